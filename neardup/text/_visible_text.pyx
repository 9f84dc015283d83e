"""The walk over lxml's tree, and what becomes of its text; see visible_text.py."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memchr, memcpy, memmove, memset, strcmp, strlen

from lxml.includes cimport etreepublic as public
from lxml.includes cimport tree
from lxml.includes.tree cimport const_xmlChar, xmlAttr, xmlNode

from neardup.text._ascii cimport between, each, whole_bytes
from neardup.text._buffer cimport Buffer, reserve
from neardup.text._characters cimport INVISIBLE, SCRIPT, SPACE, WORD, decode, kind_of, letters
from neardup.text._selectors cimport Automaton, Matched

public.import_lxml__etree()

cdef enum:
    JOINS = 1        # does not end a word
    SKIPPED = 2      # is left out with all it contains
    IMAGE = 4        # may have an alternative text
    NAMES = 512      # places for names of elements, a power of two
    NAMES_SEEN = 64  # places for those of one tree

cdef struct Name:
    const char* name
    int kind
    uint64_t steps  # of selectors that such elements may match

cdef Name names[NAMES]
cdef list _kept = []
cdef uint8_t spaces[128]
cdef uint8_t scheme[256]


def configure(joining, skipped, images, scheme_characters):
    """Take over the sets of names of elements, and what the scheme of a URL consists of."""
    cdef uint32_t slot
    memset(names, 0, sizeof(names))
    _kept.clear()
    for name in joining | skipped | images:
        encoded = name.encode()
        _kept.append(encoded)
        slot = hash_name(encoded)
        while names[slot].name != NULL:
            slot = (slot + 1) % NAMES
        names[slot].name = encoded
        names[slot].kind = JOINS * (name in joining) | SKIPPED * (name in skipped) | IMAGE * (name in images)
    for slot in range(128):
        spaces[slot] = chr(slot).isspace()
        scheme[slot] = chr(slot) in scheme_characters


cdef uint32_t hash_name(const char* name) noexcept nogil:
    cdef uint32_t value = 2166136261u
    while name[0]:
        value = (value ^ <uint8_t>name[0]) * 16777619u
        name += 1
    return (value ^ (value >> 15)) % NAMES


cdef struct Text:
    Buffer made
    bint spaced    # what comes next needs no space before it


cdef struct Walk:
    # As long as a tree stands, the address of a name says what it is. Most names are there once.
    Name seen[NAMES_SEEN]
    void* automaton     # of selectors; NULL: none
    xmlNode** left_out  # a table of open addresses; NULL: none
    size_t mask         # of its places
    bint alt_texts


cdef int kind_of_name(const char* name) noexcept nogil:
    cdef uint32_t slot = hash_name(name)
    while names[slot].name != NULL:
        if strcmp(names[slot].name, name) == 0:
            return names[slot].kind
        slot = (slot + 1) % NAMES
    return 0


cdef inline bint has_namespace(const xmlNode* node) noexcept nogil:
    return node.ns != NULL and node.ns.href != NULL


cdef inline Name* name_of_element(Walk* walk, const xmlNode* node) noexcept:
    cdef const char* name = <const char*>node.name
    cdef Name* seen = &walk.seen[(<uintptr_t>name >> 3 ^ <uintptr_t>name >> 9) % NAMES_SEEN]
    if seen.name != name:
        seen.name = name
        seen.kind = kind_of_name(name)
        if walk.automaton != NULL:
            seen.steps = (<Automaton>walk.automaton).steps_of_name(name)
    return seen


cdef inline int kind_of_element(Walk* walk, const xmlNode* node) noexcept:
    return 0 if has_namespace(node) else name_of_element(walk, node).kind


cdef size_t place_left_out(const Walk* walk, const xmlNode* node) noexcept nogil:
    """Where an element is in the table of those that are left out, or would be."""
    cdef size_t place = (<uint64_t><uintptr_t>node * <uint64_t>0x9E3779B97F4A7C15 >> 32) & walk.mask
    while walk.left_out[place] != NULL and walk.left_out[place] != node:
        place = (place + 1) & walk.mask
    return place


cdef inline bint is_left_out(const Walk* walk, const xmlNode* node) noexcept nogil:
    return walk.left_out != NULL and walk.left_out[place_left_out(walk, node)] != NULL


cdef int leave_out(Walk* walk, left_out) except -1:
    """Take over the elements of a set."""
    cdef xmlNode* node
    if not left_out:
        return 0
    walk.mask = 15
    while walk.mask < 2 * <size_t>len(left_out):
        walk.mask = 2 * walk.mask + 1
    walk.left_out = <xmlNode**>calloc(walk.mask + 1, sizeof(xmlNode*))
    if walk.left_out == NULL:
        raise MemoryError
    for element in left_out:
        node = node_of(element)
        walk.left_out[place_left_out(walk, node)] = node
    return 0


cdef xmlNode* node_of(public._Element element) except NULL:
    if element is None or element._c_node == NULL:
        raise ValueError("the element has no tree")
    return element._c_node


cdef inline void add_space(Text* text) noexcept nogil:
    """A space, if none is there; there must be room."""
    text.made.bytes[text.made.size] = c" "
    text.made.size += not text.spaced
    text.spaced = True


cdef inline int end_word(Text* text, int kind) except -1:
    """Append a space at the beginning or end of an element, unless it joins what it touches."""
    reserve(&text.made, 16)
    if not kind & JOINS:
        add_space(text)
    return 0


cdef int add(Text* text, const uint8_t* data, size_t size) except -1:
    """Append UTF-8, white space as single spaces and nothing that is invisible."""
    cdef size_t at = 0
    # As many bytes and a space before them, and all eight of the last step.
    reserve(&text.made, size + 16)
    while at < size:
        if data[at] < 128:
            at += add_ascii(text, data + at, size - at)
        else:
            at += add_other(text, data + at, data + size)
    return 0


cdef inline uint64_t load(const uint8_t* data, size_t size) noexcept nogil:
    """Up to eight bytes; what is missing are letters."""
    cdef uint64_t value
    cdef uint32_t[2] halves
    if size >= 8:
        memcpy(&value, data, 8)
        return value
    if size >= 4:
        memcpy(halves, data, 4)
        memcpy(halves + 1, data + size - 4, 4)
        value = halves[0] | <uint64_t>halves[1] << 8 * (size - 4)
    else:
        # Of two bytes and of one, some are taken twice.
        value = data[0]
        value |= <uint64_t>data[size // 2] << 8 * (size // 2)
        value |= <uint64_t>data[size - 1] << 8 * (size - 1)
    return value | each(c"a") << 8 * size


cdef size_t add_ascii(Text* text, const uint8_t* data, size_t size) noexcept nogil:
    """Append ASCII, eight bytes at once where no white space follows on white space."""
    cdef uint64_t eight, white
    cdef size_t at = 0, step
    cdef uint8_t* made
    while at < size:
        step = min(<size_t>8, size - at)
        eight = load(data + at, step)
        if eight & each(128):
            break
        white = between(eight, 9, 13) | between(eight, 28, 32)
        if white & (white << 8 | <uint64_t>text.spaced << 7):
            add_bytes(text, data + at, step)
        else:
            eight = eight & ~whole_bytes(white) | (white >> 7) * c" "
            memcpy(text.made.bytes + text.made.size, &eight, 8)
            text.made.size += step
            text.spaced = white >> (8 * step - 1) & 1
        at += step
    while at < size and data[at] < 128:
        add_bytes(text, data + at, 1)
        at += 1
    return at


cdef inline void add_bytes(Text* text, const uint8_t* data, size_t size) noexcept nogil:
    """Append ASCII byte by byte; there must be room."""
    cdef uint8_t* made = text.made.bytes
    cdef size_t i, end = text.made.size
    cdef bint spaced = text.spaced, space
    for i in range(size):
        space = spaces[data[i]]
        made[end] = c" " if space else data[i]
        end += not (space and spaced)
        spaced = space
    text.made.size = end
    text.spaced = spaced


cdef int add_other(Text* text, const uint8_t* data, const uint8_t* end) except -1:
    """Append a character beyond ASCII; returns how many bytes it takes."""
    cdef uint32_t code
    cdef int width = decode(data, end, &code)
    cdef uint16_t kind = kind_of(code)
    if kind & SPACE:
        add_space(text)
    elif not kind & INVISIBLE:
        memcpy(text.made.bytes + text.made.size, data, width)
        text.made.size += width
        text.spaced = False
    return width


cdef int add_alternative(Text* text, xmlNode* node) except -1:
    """The alternative text of an image between spaces; a space if it has none, or is no image."""
    end_word(text, 0)
    if strcmp(<const char*>node.name, "input") == 0:
        kind = public.attributeValueFromNsName(node, NULL, <const_xmlChar*>"type")
        if kind is None or kind.lower() != "image":
            return 0
    alternative = public.attributeValueFromNsName(node, NULL, <const_xmlChar*>"alt")
    if alternative is not None:
        encoded = (<str>alternative).encode("utf-8", "surrogatepass")
        add(text, <const uint8_t*><const char*>encoded, len(encoded))
        end_word(text, 0)
    return 0


cdef inline bint is_text(const xmlNode* node) noexcept nogil:
    return node.type == tree.XML_TEXT_NODE or node.type == tree.XML_CDATA_SECTION_NODE


cdef inline int add_content(Text* text, const xmlNode* node) except -1:
    """Append what a text node holds."""
    if node.content != NULL:
        add(text, <const uint8_t*>node.content, strlen(<const char*>node.content))
    return 0


cdef int add_part(Walk* walk, xmlNode* root, Text* text) except -1:
    """Append the text of the tree below an element."""
    cdef xmlNode* node = root
    cdef int kind = kind_of_element(walk, root) if root.type == tree.XML_ELEMENT_NODE else SKIPPED
    if is_left_out(walk, root):
        return 0
    if kind & IMAGE and walk.alt_texts:
        return add_alternative(text, root)
    if kind & SKIPPED or root.children == NULL:
        return 0
    node = root.children
    while True:
        if is_text(node):
            add_content(text, node)
        elif node.type == tree.XML_ELEMENT_NODE:
            kind = kind_of_element(walk, node)
            if is_left_out(walk, node):
                kind = kind & JOINS | SKIPPED
            end_word(text, kind)
            if kind & IMAGE and walk.alt_texts:
                add_alternative(text, node)
            if not kind & SKIPPED and node.children != NULL:
                node = node.children
                continue
        while node.next == NULL:
            node = node.parent
            if node == root:
                return 0
            end_word(text, kind_of_element(walk, node))
        node = node.next


cdef struct Place:
    xmlNode* node
    xmlNode* part    # that the node stands in; NULL: none that is included
    size_t depth     # below the top


cdef int add_chosen(Walk* walk, Automaton automaton, xmlNode* top, Buffer* matched, Text* text) except -1:
    """Append the text of what selectors choose of the tree below an element. ``matched`` has a place for what
    each element matches, from the one above the top to the one in hand.
    """
    cdef Place place = Place(node=top, part=NULL, depth=1)
    memset(matched.bytes, 0, sizeof(Matched))
    while True:
        if place.node.type == tree.XML_ELEMENT_NODE:
            if enter_chosen(walk, automaton, &place, matched, text) and place.node.children != NULL:
                place.node = place.node.children
                place.depth += 1
                continue
        elif place.part != NULL and is_text(place.node):
            add_content(text, place.node)
        while True:
            if place.node == place.part:
                place.part = NULL
                end_word(text, 0)
            if place.node == top:
                return 0
            if place.node.next != NULL:
                break
            place.node = place.node.parent
            place.depth -= 1
            if place.part != NULL:
                end_word(text, kind_of_element(walk, place.node))
        place.node = place.node.next


cdef bint enter_chosen(
    Walk* walk, Automaton automaton, Place* place, Buffer* matched, Text* text
) except -1:
    """Whether to go on with what is in an element."""
    cdef int kind = kind_of_element(walk, place.node)
    cdef uint64_t steps = automaton.any_name
    cdef Matched* here
    matched.size = place.depth * sizeof(Matched)
    reserve(matched, sizeof(Matched))
    here = <Matched*>matched.bytes + place.depth
    if not has_namespace(place.node):
        steps = name_of_element(walk, place.node).steps
    automaton.match(place.node, steps, here - 1, here)
    if here.here & automaton.excluded:
        if place.part != NULL:
            end_word(text, kind)
        return False
    if place.part == NULL:
        if automaton.includes and not here.here & automaton.included:
            return True
        place.part = place.node
        kind &= ~JOINS
    end_word(text, kind)
    if kind & IMAGE and walk.alt_texts:
        add_alternative(text, place.node)
        if place.node == place.part:
            return False
    return kind & SKIPPED == 0


def utf8_of_parts(list parts not None, left_out not None, bint alt_texts):
    """The text of parts of a page in UTF-8; see visible_text.py."""
    cdef Walk walk
    cdef Text text = Text(made=Buffer(bytes=NULL, size=0, room=0), spaced=True)
    memset(&walk, 0, sizeof(walk))
    walk.alt_texts = alt_texts
    try:
        reserve(&text.made, 1 << 14)
        leave_out(&walk, left_out)
        for part in parts:
            add_part(&walk, node_of(part), &text)
            end_word(&text, 0)
        return finished(&text)
    finally:
        free(walk.left_out)
        free(text.made.bytes)


def utf8_of_chosen(list parts not None, Automaton automaton not None, bint alt_texts):
    """The text of what selectors choose in parts of a page in UTF-8; see visible_text.py."""
    cdef Walk walk
    cdef Text text = Text(made=Buffer(bytes=NULL, size=0, room=0), spaced=True)
    cdef Buffer matched = Buffer(bytes=NULL, size=0, room=0)
    memset(&walk, 0, sizeof(walk))
    walk.alt_texts = alt_texts
    walk.automaton = <void*>automaton
    try:
        reserve(&text.made, 1 << 14)
        reserve(&matched, 64 * sizeof(Matched))
        for part in parts:
            add_chosen(&walk, automaton, node_of(part), &matched, &text)
        return finished(&text)
    finally:
        free(matched.bytes)
        free(text.made.bytes)


def utf8_of_text(bytes data not None):
    """A text in UTF-8 as that of a tree; see visible_text.py."""
    cdef Text text = Text(made=Buffer(bytes=NULL, size=0, room=0), spaced=True)
    try:
        reserve(&text.made, 16)
        add(&text, <const uint8_t*><const char*>data, len(data))
        return finished(&text)
    finally:
        free(text.made.bytes)


cdef bytes finished(Text* text):
    remove_urls(&text.made)
    return PyBytes_FromStringAndSize(<const char*>text.made.bytes, text.made.size)


cdef int remove_urls(Buffer* text) except -1:
    """Put a space in the place of each URL of a text with single spaces, and none at the end."""
    cdef const uint8_t* found = find_scheme(text.bytes, text.bytes + text.size)
    if found != NULL:
        remove_schemes(text, found)
    found = find_www(text.bytes, text.bytes, text.bytes + text.size)
    if found != NULL:
        remove_www(text, found)
    text.size -= text.size > 0 and text.bytes[text.size - 1] == c" "
    return 0


cdef inline uint8_t* with_space(const Buffer* text, uint8_t* end) noexcept nogil:
    """The end of what is kept of a text, behind a space; none follows on another or begins the text."""
    if end > text.bytes and (end - 1)[0] != c" ":
        end[0] = c" "
        end += 1
    return end


cdef const uint8_t* find_scheme(const uint8_t* data, const uint8_t* end) noexcept nogil:
    """Where the next ``://`` begins; NULL: nowhere."""
    while end - data >= 3:
        data = <const uint8_t*>memchr(data, c":", end - data - 2)
        if data == NULL or data[1] == c"/" and data[2] == c"/":
            return data
        data += 1
    return NULL


cdef int remove_schemes(Buffer* text, const uint8_t* found) except -1:
    """Remove URLs by their ``://``, of which the first is found."""
    cdef const uint8_t* end = text.bytes + text.size
    cdef const uint8_t* data = text.bytes
    cdef uint8_t* made = text.bytes
    while found != NULL:
        memmove(made, data, found - data)
        made += found - data
        while made > text.bytes and scheme[(made - 1)[0]]:
            made -= 1
        made = with_space(text, made)
        data = after_url(found + 3, end)
        found = find_scheme(data, end)
    memmove(made, data, end - data)
    text.size = made + (end - data) - text.bytes
    return 0


cdef const uint8_t* after_url(const uint8_t* data, const uint8_t* end) except NULL:
    """The first character that is no part of the URL that goes on here, nor a space after it."""
    cdef uint32_t code
    cdef int width
    while data < end:
        width = 1
        if data[0] < 128:
            if data[0] <= 32 or data[0] == 127 or data[0] == c'"' or data[0] == c"<" or data[0] == c">":
                break
        else:
            width = decode(data, end, &code)
            if kind_of(code) & (WORD | SCRIPT) != WORD:
                break
        data += width
    return data + (data < end and data[0] == c" ")


cdef const uint8_t* find_www(const uint8_t* text, const uint8_t* data, const uint8_t* end) except? NULL:
    """Where the next ``www.`` of a URL begins, in a text from some place on; NULL: nowhere."""
    cdef const uint8_t* www
    while end - data >= 4:
        www = <const uint8_t*>memchr(data + 3, c".", end - data - 3)
        if www == NULL:
            return NULL
        www -= 3
        if www[0] | 32 == c"w" and www[1] | 32 == c"w" and www[2] | 32 == c"w":
            if not is_part_of_word(text, www) and begins_word(www + 4, end):
                return www
        data = www + 1
    return NULL


cdef bint is_part_of_word(const uint8_t* text, const uint8_t* data) except -1:
    """Whether the character before is part of a word that is written with spaces."""
    cdef const uint8_t* before = data - 1
    cdef uint32_t code
    if data == text:
        return False
    if before[0] < 128:
        return letters[before[0]] != 0
    while before > text and before[0] & 0xC0 == 0x80:
        before -= 1
    decode(before, data, &code)
    return kind_of(code) & (WORD | SCRIPT) == WORD


cdef bint begins_word(const uint8_t* data, const uint8_t* end) except -1:
    cdef uint32_t code
    if data == end:
        return False
    if data[0] < 128:
        return letters[data[0]] != 0
    decode(data, end, &code)
    return kind_of(code) & WORD != 0


cdef int remove_www(Buffer* text, const uint8_t* found) except -1:
    """Remove URLs by their ``www.``, of which the first is found."""
    cdef const uint8_t* end = text.bytes + text.size
    cdef const uint8_t* data = text.bytes
    cdef uint8_t* made = text.bytes
    while found != NULL:
        memmove(made, data, found - data)
        made = with_space(text, made + (found - data))
        data = after_url(found + 4, end)
        found = find_www(data, data, end)
    memmove(made, data, end - data)
    text.size = made + (end - data) - text.bytes
    return 0
