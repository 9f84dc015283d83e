"""Words in C; see words.py. Only what is intricate is left to Python, run by run."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from neardup.text._ascii cimport EIGHT, between, each, whole_bytes
from neardup.text._buffer cimport Buffer, reserve
from neardup.text._characters cimport (
    BLOCK, FOLDED, INTRICATE, MARK, PART_OF_A_RUN, SCRIPT, SUSPECT, WORD, Block, block_of, decode, letters
)


cdef enum:
    MOST_OF_ONE = 16  # bytes that one character may add, with the one before it and zeros between words


cdef struct Folding:
    const uint8_t* data
    Py_ssize_t size
    bint is_nfc           # known to be
    bint scripts_parted   # runs of scripts without spaces are left to Python
    Py_ssize_t runs       # left to Python so far


cdef struct Run:
    # What the next character of a run is to be compared with.
    Py_ssize_t start
    size_t written        # of the output, before the run
    bint changed          # the character before is another one than in the text
    int script            # without spaces, of the characters before; 0: none
    Py_ssize_t last       # the character before, where it is of such a script
    int width
    bint alone            # it is the first of them


cdef int fold(bytes text, parted, check, Buffer* words) except -1:
    cdef Folding folding = Folding(
        data=NULL, size=0, is_nfc=False, scripts_parted=parted.scripts, runs=0
    )
    while True:
        folding.data = <const uint8_t*>PyBytes_AS_STRING(text)
        folding.size = PyBytes_GET_SIZE(text)
        words.size = 0
        reserve(words, folding.size + MOST_OF_ONE + AFTER)
        if fold_all(&folding, parted, check, words):
            break
        text = parted.in_nfc(text)
        folding.is_nfc = True
    reserve(words, AFTER)
    memset(words.bytes + words.size, 0, AFTER)
    return 0


cdef bint fold_all(Folding* folding, parted, check, Buffer* words) except -1:
    """False if the text may not be in NFC."""
    cdef const uint8_t* data = folding.data
    cdef uint32_t code
    cdef Py_ssize_t at = 0, done, stop
    cdef int width
    while at < folding.size:
        done = fold_ascii(data + at, folding.size - at, words.bytes + words.size)
        at += done
        words.size += done
        stop = min(at + EIGHT, folding.size)
        while at < stop and data[at] < 128:
            words.bytes[words.size] = letters[data[at]]
            words.size += 1
            at += 1
        if at < folding.size and data[at] >= 128:
            width = decode(data + at, data + folding.size, &code)
            if block_of(code).kinds[code % BLOCK] & PART_OF_A_RUN:
                while at and letters[data[at - 1]]:  # to the beginning of the run
                    at -= 1
                    words.size -= 1
                at = fold_run(folding, at, parted, check, words)
                if at < 0:
                    return False
            else:
                words.bytes[words.size] = 0
                words.size += 1
                at += width
    return True


cdef Py_ssize_t fold_ascii(const uint8_t* data, Py_ssize_t size, uint8_t* out) noexcept nogil:
    """Fold what is ASCII from the first character on, eight at a time; returns how many were folded."""
    cdef Py_ssize_t at = 0
    cdef uint64_t eight, low, is_letter, is_other
    while at + EIGHT <= size:
        memcpy(&eight, data + at, EIGHT)
        if eight & each(128):
            break
        low = eight | each(32)
        is_letter = between(low, c"a", c"z")
        is_other = between(eight, c"0", c"9") | between(eight, c"_", c"_")
        eight = low & whole_bytes(is_letter) | eight & whole_bytes(is_other)
        memcpy(out + at, &eight, EIGHT)
        at += EIGHT
    return at


cdef Py_ssize_t fold_run(Folding* folding, Py_ssize_t at, parted, check, Buffer* words) except -2:
    """Fold a run of characters of words with others than ASCII among them; returns where the run ends, or −1
    if it may not be in NFC.
    """
    cdef const uint8_t* data = folding.data
    cdef Run run = Run(start=at, written=words.size, changed=False, script=0, last=0, width=0, alone=False)
    cdef Block* block
    cdef uint32_t code
    cdef uint16_t kind
    cdef uint8_t letter
    cdef int width
    while at < folding.size:
        reserve(words, folding.size - at + MOST_OF_ONE + AFTER)
        if data[at] < 128:
            letter = letters[data[at]]
            if letter == 0:
                break
            end_script(&run, words)
            words.bytes[words.size] = letter
            words.size += 1
            run.changed = letter != data[at]
            at += 1
            continue
        width = decode(data + at, data + folding.size, &code)
        block = block_of(code)
        kind = block.kinds[code % BLOCK]
        if not kind & PART_OF_A_RUN:
            break
        if kind & SUSPECT and not folding.is_nfc:
            return -1
        if kind & INTRICATE or run.changed and kind & SUSPECT or kind & SCRIPT and folding.scripts_parted:
            return leave_to_python(folding, &run, at, parted, check, words)
        if kind & SCRIPT or run.script and kind & MARK:
            add_to_script(data, &run, at, width, kind, words)
        elif kind & FOLDED:
            end_script(&run, words)
            run.changed = True
            add(words, block.folded[code % BLOCK].bytes, block.folded[code % BLOCK].size)
        else:
            end_script(&run, words)
            run.changed = False
            if kind & WORD:
                add(words, data + at, width)
            else:
                add_zero(words)
        at += width
    add_zero(words)
    return at


cdef inline void add(Buffer* words, const uint8_t* data, int size) noexcept nogil:
    memcpy(words.bytes + words.size, data, size)
    words.size += size


cdef inline void add_zero(Buffer* words) noexcept nogil:
    words.bytes[words.size] = 0
    words.size += 1


cdef inline void end_script(Run* run, Buffer* words) noexcept nogil:
    if run.script:
        run.script = 0
        add_zero(words)


cdef void add_to_script(
    const uint8_t* data, Run* run, Py_ssize_t at, int width, uint16_t kind, Buffer* words
) noexcept nogil:
    """Add a character of a script without spaces: overlapping pairs become words, or one that is alone."""
    if run.script and (kind & SCRIPT == run.script or kind & MARK):
        if not run.alone:
            add_zero(words)
            add(words, data + run.last, run.width)
        run.alone = False
    else:
        add_zero(words)
        run.script = kind & SCRIPT
        run.alone = True
    add(words, data + at, width)
    run.last = at
    run.width = width
    run.changed = False


cdef Py_ssize_t leave_to_python(
    Folding* folding, Run* run, Py_ssize_t at, parted, check, Buffer* words
) except -2:
    """Let Python part a run whose folding has come to ``at``; returns where the run ends, or −1 if it may not
    be in NFC.
    """
    cdef const uint8_t* data = folding.data
    cdef bytes found
    cdef uint32_t code
    cdef uint16_t kind
    cdef int width
    while at < folding.size:
        width = 1
        if data[at] < 128:
            if letters[data[at]] == 0:
                break
        else:
            width = decode(data + at, data + folding.size, &code)
            kind = block_of(code).kinds[code % BLOCK]
            if not kind & PART_OF_A_RUN:
                break
            if kind & SUSPECT and not folding.is_nfc:
                return -1
        at += width
    folding.runs += 1
    if check is not None:
        check(folding.runs)
    found = parted[PyBytes_FromStringAndSize(<const char*>data + run.start, at - run.start)]
    words.size = run.written
    reserve(words, PyBytes_GET_SIZE(found) + folding.size - at + MOST_OF_ONE + AFTER)
    memcpy(words.bytes + words.size, PyBytes_AS_STRING(found), PyBytes_GET_SIZE(found))
    words.size += PyBytes_GET_SIZE(found)
    add_zero(words)
    return at


def words(str text not None, split=None, check=None):
    from neardup.text.words import Parts, bigrams

    cdef Buffer found = Buffer(bytes=NULL, size=0, room=0)
    cdef size_t i
    cdef list made
    try:
        fold(text.encode("utf-8", "surrogatepass"), Parts(split or bigrams), check, &found)
        for i in range(found.size):
            if found.bytes[i] == 0:
                found.bytes[i] = 32
        made = PyUnicode_DecodeUTF8(<const char*>found.bytes, found.size, "surrogatepass").split()
    finally:
        free(found.bytes)
    if check is not None:
        check(len(made))
    return made
