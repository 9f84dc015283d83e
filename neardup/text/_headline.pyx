"""The search for headings in lxml's tree, and the hashes of words; see headline.py."""

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, strcmp, strlen

from lxml.includes cimport etreepublic as public
from lxml.includes.tree cimport XML_ELEMENT_NODE, xmlNode

from neardup.text._buffer cimport Buffer
from neardup.text._words cimport fold

public.import_lxml__etree()

from neardup.text.words import Parts

cdef object parts_of_ascii = Parts()
"""ASCII leaves nothing to be remembered."""

cdef frozenset date_words = None


def heading_after(public._Element root not None, public._Element after):
    """The first ``h1`` of a tree in document order after an element of the tree; None: there is none."""
    cdef xmlNode* top = root._c_node
    cdef xmlNode* node = top if after is None else after._c_node
    if node == NULL or top == NULL:
        raise ValueError("the element has no tree")
    if after is not None:
        node = following(top, node)
    while node != NULL:
        if is_heading(node, c"1"):
            return public.elementFactory(root._doc, node)
        node = following(top, node)
    return None


def titles_and_headings(public._Element root not None):
    """All ``title``, ``h1`` and ``h2`` of a tree in document order."""
    cdef xmlNode* node = root._c_node
    if node == NULL:
        raise ValueError("the element has no tree")
    while node != NULL:
        if is_heading(node, c"1") or is_heading(node, c"2") or is_title(node):
            yield public.elementFactory(root._doc, node)
        node = following(root._c_node, node)


cdef inline xmlNode* following(const xmlNode* top, xmlNode* node) noexcept nogil:
    """The node of a tree in document order after one; NULL: there is none."""
    if node.type == XML_ELEMENT_NODE and node.children != NULL:
        return node.children
    while node != top and node.next == NULL:
        node = node.parent
    return NULL if node == top else node.next


cdef inline bint is_html(const xmlNode* node) noexcept nogil:
    return node.type == XML_ELEMENT_NODE and (node.ns == NULL or node.ns.href == NULL)


cdef inline bint is_heading(const xmlNode* node, char level) noexcept nogil:
    cdef const char* name = <const char*>node.name
    return is_html(node) and name[0] == c"h" and name[1] == level and name[2] == 0


cdef inline bint is_title(const xmlNode* node) noexcept nogil:
    cdef const char* name = <const char*>node.name
    return is_html(node) and name[0] == c"t" and strcmp(name, "title") == 0


cdef inline uint32_t rotated(uint32_t value, int bits) noexcept nogil:
    return value << bits | value >> (32 - bits)


cdef inline uint32_t mixed(uint32_t block) noexcept nogil:
    return rotated(block * <uint32_t>0xCC9E2D51, 15) * <uint32_t>0x1B873593


cdef uint32_t murmur(const uint8_t* data, size_t size) noexcept nogil:
    """MurmurHash3 x86 32 with seed 0."""
    cdef uint32_t value = 0, block
    cdef size_t at = 0
    while at + 4 <= size:
        memcpy(&block, data + at, 4)
        value = rotated(value ^ mixed(block), 13) * 5 + <uint32_t>0xE6546B64
        at += 4
    if at < size:
        block = 0
        memcpy(&block, data + at, size - at)
        value ^= mixed(block)
    value ^= <uint32_t>size
    value = (value ^ value >> 16) * <uint32_t>0x85EBCA6B
    value = (value ^ value >> 13) * <uint32_t>0xC2B2AE35
    return value ^ value >> 16


cdef bint counts(const uint8_t* word, size_t size) except -1:
    """Whether a word is a number, or the name of a month or of a weekday."""
    cdef str decoded = PyUnicode_DecodeUTF8(<const char*>word, size, "surrogatepass")
    return decoded.isdigit() or decoded in date_words


cdef int put_hash(list made, const uint8_t* word, size_t size) except -1:
    made.append((murmur(word, size) & ~<uint32_t>1 | counts(word, size)) or 2)
    return 0


cdef bint is_new(const uint8_t* words, const uint8_t* word, size_t size) noexcept nogil:
    """Whether a word does not stand before itself in a text of which the words have zeros between them."""
    cdef size_t length
    while words < word:
        length = strlen(<const char*>words)
        if length == size and memcmp(words, word, size) == 0:
            return False
        words += length + 1
    return True


def hashes(list symbols not None, str text not None, Py_ssize_t most):
    """Hashes of the first distinct words, of which symbols come first."""
    global date_words
    cdef Buffer words = Buffer(bytes=NULL, size=0, room=0)
    cdef size_t at = 0, size
    cdef list made = []
    cdef bytes encoded
    if date_words is None:
        from neardup.text import headline
        date_words = headline.date_words()
    for symbol in dict.fromkeys(symbols):
        if len(made) == most:
            return made
        encoded = (<str>symbol).encode()
        put_hash(made, <const uint8_t*><const char*>encoded, len(encoded))
    try:
        parted = parts_of_ascii if text.isascii() else Parts()
        fold(text.encode("utf-8", "surrogatepass"), parted, None, &words)
        while at < words.size and len(made) < most:
            size = strlen(<const char*>words.bytes + at)
            if size and is_new(words.bytes, words.bytes + at, size):
                put_hash(made, words.bytes + at, size)
            at += size + 1
    finally:
        free(words.bytes)
    return made
