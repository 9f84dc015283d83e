"""Words and their hashes in C, for texts of mostly ASCII words; the twin is in :mod:`neardup.text.words`."""

from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from neardup.text._murmur cimport mix

cdef uint8_t kinds[256]   # the lower-case character of a word; 0: between words; 255: not ASCII
cdef uint32_t signs[64]
cdef int sign_count = 0

for code in range(256):
    letter = chr(code)
    kinds[code] = 255 if code > 127 else ord(letter.lower()) if letter.isalnum() or letter == "_" else 0


def configure(others):
    """Take over the signs beyond ASCII that are no part of a word."""
    global sign_count
    sign_count = 0
    for sign in sorted(others):
        signs[sign_count] = ord(sign)
        sign_count += 1


cdef inline uint64_t _rotate(uint64_t x, int bits) noexcept nogil:
    return (x << bits) | (x >> (64 - bits))


cdef inline uint64_t _load(const uint8_t* data) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, data, 8)
    return value


cdef uint64_t murmur(const uint8_t* data, size_t size, uint32_t seed) noexcept nogil:
    """First half of MurmurHash3 x64 128 (Appleby), as mmh3 gives it on a little-endian machine."""
    cdef uint64_t c1 = 0x87C37B91114253D5ULL, c2 = 0x4CF5AD432745937FULL
    cdef uint64_t h1 = seed, h2 = seed, k1 = 0, k2 = 0
    cdef size_t blocks = size // 16, i, rest
    cdef const uint8_t* tail
    for i in range(blocks):
        k1 = _load(data + 16 * i)
        k2 = _load(data + 16 * i + 8)
        h1 ^= _rotate(k1 * c1, 31) * c2
        h1 = (_rotate(h1, 27) + h2) * 5 + 0x52DCE729
        h2 ^= _rotate(k2 * c2, 33) * c1
        h2 = (_rotate(h2, 31) + h1) * 5 + 0x38495AB5
    tail = data + 16 * blocks
    rest = size & 15
    k1 = 0
    k2 = 0
    i = rest
    while i > 8:
        i -= 1
        k2 = (k2 << 8) | tail[i]
    if rest > 8:
        h2 ^= _rotate(k2 * c2, 33) * c1
        i = 8
    while i > 0:
        i -= 1
        k1 = (k1 << 8) | tail[i]
    if rest > 0:
        h1 ^= _rotate(k1 * c1, 31) * c2
    h1 ^= size
    h2 ^= size
    h1 += h2
    h2 += h1
    h1 = mix(h1)
    h2 = mix(h2)
    return h1 + h2


cdef int _is_sign(uint32_t c) noexcept nogil:
    cdef int i
    for i in range(sign_count):
        if signs[i] == c:
            return 1
    return 0


cdef struct Hashes:
    uint64_t* values
    size_t size
    size_t room


cdef inline int _append(Hashes* hashes, uint64_t value) except -1 nogil:
    cdef uint64_t* moved
    if hashes.size == hashes.room:
        moved = <uint64_t*>realloc(hashes.values, 16 * hashes.room)
        if moved == NULL:
            raise MemoryError
        hashes.values = moved
        hashes.room *= 2
    hashes.values[hashes.size] = value
    hashes.size += 1
    return 0


def word_hashes(str text not None, uint32_t seed, others):
    """Hashes of the words of a text in NFC, as bytes of uint64, and the number of words before any was parted.

    ``others``: mapping of a word with other characters than ASCII to the hashes of its parts.
    """
    cdef Py_ssize_t length
    cdef const uint8_t* data = <const uint8_t*>PyUnicode_AsUTF8AndSize(text, &length)
    cdef const uint8_t* end = data + length
    cdef const uint8_t* after
    cdef uint8_t* word
    cdef uint8_t kind
    cdef uint32_t c
    cdef size_t size = 0, words = 0, done
    cdef int width
    cdef bint is_other = False
    cdef Hashes hashes
    hashes.room = length // 6 + 16
    hashes.size = 0
    hashes.values = <uint64_t*>malloc(8 * hashes.room)
    word = <uint8_t*>malloc(length + 1)
    if hashes.values == NULL or word == NULL:
        free(hashes.values)
        free(word)
        raise MemoryError
    try:
        while True:
            kind = kinds[data[0]] if data < end else 0
            if kind != 0 and kind != 255:
                word[size] = kind
                size += 1
                data += 1
                continue
            width = 1
            if kind == 255:
                width = 2 if data[0] < 0xE0 else 3 if data[0] < 0xF0 else 4
                c = data[0] & (0x1F if width == 2 else 0x0F if width == 3 else 0x07)
                for done in range(1, width):
                    c = (c << 6) | (data[done] & 0x3F)
                if not _is_sign(c):
                    memcpy(word + size, data, width)
                    size += width
                    data += width
                    is_other = True
                    continue
            if size:
                words += 1
                if is_other:
                    is_other = False
                    for value in others[PyUnicode_DecodeUTF8(<char*>word, size, "strict")]:
                        _append(&hashes, value)
                else:
                    _append(&hashes, murmur(word, size, seed))
                size = 0
            if data >= end:
                break
            data += width
        return (<char*>hashes.values)[: 8 * hashes.size], words
    finally:
        free(hashes.values)
        free(word)
