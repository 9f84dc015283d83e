"""Kinds of characters beyond ASCII, and UTF-8; the kinds are told in characters.py."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t


cdef enum:
    BLOCK = 256
    SCRIPT = 7
    WORD = 8
    MARK = 16
    SUSPECT = 32
    FOLDED = 64
    INTRICATE = 128
    SPACE = 256
    INVISIBLE = 512
    PART_OF_A_RUN = SCRIPT | WORD | MARK | SUSPECT | FOLDED | INTRICATE


cdef struct Folded:
    uint8_t size
    uint8_t[7] bytes


cdef struct Block:
    uint16_t[BLOCK] kinds
    Folded[BLOCK] folded


cdef Block* blocks[0x1100]
"""NULL: not asked for so far."""


cdef uint8_t letters[256]
"""The lower-case character of a word of ASCII; 0: none."""


cdef Block* make_block(uint32_t number) except NULL


cdef int refuse(const uint8_t* data, const uint8_t* end) except -1
"""Raise UnicodeDecodeError."""


cdef inline Block* block_of(uint32_t code) except NULL:
    cdef Block* block = blocks[code // BLOCK]
    return make_block(code // BLOCK) if block == NULL else block


cdef inline uint16_t kind_of(uint32_t code) except? 0xFFFF:
    return block_of(code).kinds[code % BLOCK]


cdef inline int decode(const uint8_t* data, const uint8_t* end, uint32_t* code) except -1:
    """The character beyond ASCII that begins here, perhaps a lone surrogate; returns how many bytes it takes.
    UnicodeDecodeError if there is none.
    """
    cdef uint32_t first = data[0]
    cdef int width = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    cdef uint32_t value = first & (0x7F >> width)
    cdef int i
    if first < 0xC2 or first > 0xF4 or end - data < width:
        refuse(data, end)
    for i in range(1, width):
        if data[i] & 0xC0 != 0x80:
            refuse(data, end)
        value = value << 6 | data[i] & 0x3F
    if value > 0x10FFFF:
        refuse(data, end)
    code[0] = value
    return width
