"""The walk of :mod:`neardup.text.visible_text` over lxml's tree in C; its twin is written there in Python."""

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, strcmp, strlen

from lxml.includes cimport etreepublic as public
from lxml.includes cimport tree
from lxml.includes.tree cimport const_xmlChar, xmlAttr, xmlNode

public.import_lxml__etree()

cdef enum:
    JOINS = 1        # does not end a word
    SKIPPED = 2      # is left out with all it contains
    IMAGE = 4        # may have an alternative text
    TAG_SLOTS = 512
    OF_ITSELF = 0
    SPACE = 1
    INVISIBLE = 2

cdef struct Tag:
    const char* name
    int kind

cdef struct Range:
    uint32_t first
    uint32_t last

cdef struct Text:
    uint8_t* bytes
    size_t size
    size_t room
    bint apart       # a space comes before the next character

cdef Tag tags[TAG_SLOTS]
cdef list _names = []
cdef Range* unseen = NULL
cdef Py_ssize_t unseen_count = 0
cdef uint8_t ascii_space[128]


def configure(joining, skipped, images, invisible):
    """Take over the sets of tag names, and the ranges of invisible characters in order."""
    global unseen, unseen_count
    cdef int kind
    cdef uint32_t slot
    for slot in range(TAG_SLOTS):
        tags[slot].name = NULL
    _names.clear()
    for name in joining | skipped | images:
        kind = (JOINS if name in joining else 0) | (SKIPPED if name in skipped else 0)
        kind |= IMAGE if name in images else 0
        encoded = name.encode()
        _names.append(encoded)
        slot = _hash(<const uint8_t*><const char*>encoded)
        while tags[slot].name != NULL:
            slot = (slot + 1) & (TAG_SLOTS - 1)
        tags[slot].name = encoded
        tags[slot].kind = kind
    free(unseen)
    unseen_count = len(invisible)
    unseen = <Range*>malloc(unseen_count * sizeof(Range))
    if unseen == NULL:
        raise MemoryError
    for place, (first, last) in enumerate(invisible):
        unseen[<Py_ssize_t>place] = Range(first, last)
    for slot in range(128):
        ascii_space[slot] = chr(slot).isspace()


cdef inline uint32_t _hash(const uint8_t* name) noexcept nogil:
    cdef uint32_t value = 2166136261u
    while name[0]:
        value = (value ^ name[0]) * 16777619u
        name += 1
    return (value ^ (value >> 15)) & (TAG_SLOTS - 1)


cdef inline int _kind(xmlNode* node) noexcept nogil:
    cdef uint32_t slot
    if node.ns != NULL and node.ns.href != NULL:
        return 0
    slot = _hash(<const uint8_t*>node.name)
    while tags[slot].name != NULL:
        if strcmp(tags[slot].name, <const char*>node.name) == 0:
            return tags[slot].kind
        slot = (slot + 1) & (TAG_SLOTS - 1)
    return 0


cdef inline int _reserve(Text* text, size_t more) except -1 nogil:
    cdef size_t room
    cdef uint8_t* moved
    if text.size + more > text.room:
        room = 2 * (text.size + more)
        moved = <uint8_t*>realloc(text.bytes, room)
        if moved == NULL:
            raise MemoryError
        text.bytes = moved
        text.room = room
    return 0


cdef int _class_of(uint32_t c) noexcept nogil:
    """What becomes of a character beyond ASCII."""
    cdef Py_ssize_t low = 0, high = unseen_count, middle
    if c == 0x85 or c == 0xA0 or c == 0x1680 or 0x2000 <= c <= 0x200A or c == 0x2028 or c == 0x2029 \
            or c == 0x202F or c == 0x205F or c == 0x3000:
        return SPACE
    while low < high:
        middle = (low + high) >> 1
        if c > unseen[middle].last:
            low = middle + 1
        else:
            high = middle
    return INVISIBLE if low < unseen_count and c >= unseen[low].first else OF_ITSELF


cdef int _add(Text* text, const uint8_t* data, size_t size) except -1 nogil:
    """Append UTF-8, white space as single spaces and nothing that is invisible."""
    cdef const uint8_t* end = data + size
    cdef const uint8_t* start
    cdef uint8_t byte
    cdef uint32_t c
    cdef int width, found
    _reserve(text, size + 1)
    while data < end:
        byte = data[0]
        if byte < 128:
            if ascii_space[byte]:
                text.apart = True
                data += 1
                continue
            if text.apart:
                text.apart = False
                if text.size:
                    text.bytes[text.size] = b' '
                    text.size += 1
            start = data
            while data < end and data[0] < 128 and not ascii_space[data[0]]:
                data += 1
            memcpy(text.bytes + text.size, start, data - start)
            text.size += data - start
            _reserve(text, end - data + 1)
            continue
        if byte >= 0xF0:
            width = 4
            c = byte & 0x07
        elif byte >= 0xE0:
            width = 3
            c = byte & 0x0F
        else:
            width = 2
            c = byte & 0x1F
        if end - data < width:
            width = <int>(end - data)  # what is no UTF-8 is told when the text is decoded
        start = data + 1
        while start < data + width:
            c = (c << 6) | (start[0] & 0x3F)
            start += 1
        found = _class_of(c)
        if found == SPACE:
            text.apart = True
        elif found == OF_ITSELF:
            _reserve(text, width + 1)
            if text.apart:
                text.apart = False
                if text.size:
                    text.bytes[text.size] = b' '
                    text.size += 1
            memcpy(text.bytes + text.size, data, width)
            text.size += width
        data += width
        _reserve(text, end - data + 1)
    return 0


cdef int _add_alternative(Text* text, xmlNode* node) except -1:
    """The alternative text of an image between spaces; a space if it has none, or is no image."""
    cdef const_xmlChar* name = <const_xmlChar*>"alt"
    text.apart = True
    if strcmp(<const char*>node.name, "input") == 0:
        kind = public.attributeValueFromNsName(node, NULL, <const_xmlChar*>"type")
        if kind is None or kind.lower() != "image":
            return 0
    alternative = public.attributeValueFromNsName(node, NULL, name)
    if alternative is not None:
        encoded = (<str>alternative).encode("utf-8", "surrogatepass")
        _add(text, <const uint8_t*><const char*>encoded, len(encoded))
        text.apart = True
    return 0


cdef int _walk(xmlNode* root, bint alt_texts, Text* text) except -1:
    cdef xmlNode* node = root
    cdef int kind = _kind(root) if root.type == tree.XML_ELEMENT_NODE else SKIPPED
    if kind & IMAGE and alt_texts:
        return _add_alternative(text, root)
    if kind & SKIPPED or root.children == NULL:
        return 0
    node = root.children
    while True:
        if node.type == tree.XML_TEXT_NODE or node.type == tree.XML_CDATA_SECTION_NODE:
            if node.content != NULL:
                _add(text, <const uint8_t*>node.content, strlen(<const char*>node.content))
        elif node.type == tree.XML_ELEMENT_NODE:
            kind = _kind(node)
            if not kind & JOINS:
                if kind & IMAGE and alt_texts:
                    _add_alternative(text, node)
                else:
                    text.apart = True
            if not kind & SKIPPED:
                if node.children != NULL:
                    node = node.children
                    continue
        while node.next == NULL:
            node = node.parent
            if node == root:
                return 0
            if not _kind(node) & JOINS:
                text.apart = True
        node = node.next


def visible_text(public._Element root not None, bint alt_texts):
    """The text of the tree below an element: single spaces, nothing invisible, URLs as they are."""
    cdef Text text
    if root._c_node == NULL:
        raise ValueError("the element has no tree")
    text.room = 1 << 16
    text.size = 0
    text.apart = False
    text.bytes = <uint8_t*>malloc(text.room)
    if text.bytes == NULL:
        raise MemoryError
    try:
        _walk(root._c_node, alt_texts, &text)
        return PyUnicode_DecodeUTF8(<char*>text.bytes, text.size, "strict")
    finally:
        free(text.bytes)
