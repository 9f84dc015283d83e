"""Kinds of characters beyond ASCII, asked for block by block; see characters.py."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy


cdef int _code
for _code in range(128):
    letters[_code] = ord(chr(_code).lower()) if chr(_code).isalnum() or _code == ord("_") else 0


cdef Block* make_block(uint32_t number) except NULL:
    from neardup.text import characters

    cdef bytes kinds
    cdef bytes folded
    cdef Block* block
    cdef int place
    kinds, all_folded = characters.block(number)
    block = <Block*>malloc(sizeof(Block))
    if block == NULL:
        raise MemoryError
    memcpy(block.kinds, <const char*>kinds, sizeof(block.kinds))
    for place in range(BLOCK):
        folded = all_folded[place]
        block.folded[place].size = <uint8_t>len(folded)
        memcpy(block.folded[place].bytes, <const char*>folded, len(folded))
    blocks[number] = block
    return block


cdef int refuse(const uint8_t* data, const uint8_t* end) except -1:
    some = PyBytes_FromStringAndSize(<const char*>data, min(<Py_ssize_t>4, end - data))
    raise UnicodeDecodeError("utf-8", some, 0, 1, "no character")
