"""Hashes of the words of a text; see features.py."""

import numpy as np

from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from neardup.fingerprint._bits cimport trailing_zeros, zeros64
from neardup.text._buffer cimport Buffer, reserve
from neardup.text._murmur cimport mix
from neardup.text._words cimport fold


cdef uint64_t C1 = 0x87C37B91114253D5ULL
cdef uint64_t C2 = 0x4CF5AD432745937FULL

cdef enum:
    SEEN = 64   # bytes that are looked at together
    SEED = 0    # features.SEED
    SHORT = 15  # bytes of words that are hashed without a loop

cdef uint64_t[SHORT + 1][2] KEPT
"""Masks that keep so many of sixteen bytes."""

cdef int _size
for _size in range(SHORT + 1):
    memset(KEPT[_size], 0xFF, _size)


cdef inline uint64_t rotate(uint64_t x, int bits) noexcept nogil:
    return (x << bits) | (x >> (64 - bits))


cdef inline uint64_t load(const uint8_t* data) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, data, 8)
    return value


cdef inline uint64_t finish(uint64_t h1, uint64_t h2, uint64_t k1, uint64_t k2, size_t size) noexcept nogil:
    """The last bytes of a word, and how many it has."""
    h1 ^= rotate(k1 * C1, 31) * C2
    h2 ^= rotate(k2 * C2, 33) * C1
    h1 ^= size
    h2 ^= size
    h1 += h2
    h2 += h1
    return mix(h1) + mix(h2)


cdef inline uint64_t murmur_seen(const uint8_t* data, size_t size) noexcept nogil:
    """:func:`murmur` of bytes behind which there are ``SHORT`` others that may be read."""
    if size > SHORT:
        return murmur(data, size)
    return finish(SEED, SEED, load(data) & KEPT[size][0], load(data + 8) & KEPT[size][1], size)


cdef uint64_t murmur(const uint8_t* data, size_t size) noexcept nogil:
    """First half of MurmurHash3 x64 128 (Appleby), as mmh3 gives it on a little-endian machine."""
    cdef uint64_t h1 = SEED, h2 = SEED
    cdef uint64_t[2] last
    cdef size_t i
    for i in range(size // 16):
        h1 ^= rotate(load(data + 16 * i) * C1, 31) * C2
        h1 = (rotate(h1, 27) + h2) * 5 + 0x52DCE729
        h2 ^= rotate(load(data + 16 * i + 8) * C2, 33) * C1
        h2 = (rotate(h2, 31) + h1) * 5 + 0x38495AB5
    last[0] = last[1] = 0
    memcpy(last, data + size - (size & 15), size & 15)
    return finish(h1, h2, last[0], last[1], size)


def word_hashes(bytes text not None, parted not None, check=None):
    cdef Buffer words = Buffer(bytes=NULL, size=0, room=0)
    cdef Buffer hashes = Buffer(bytes=NULL, size=0, room=0)
    cdef uint64_t[::1] values
    try:
        fold(text, parted, check, &words)
        reserve(&hashes, words.size)
        hash_all(&words, &hashes)
        made = np.empty(hashes.size // 8, dtype=np.uint64)
        if hashes.size:
            values = made
            memcpy(&values[0], hashes.bytes, hashes.size)
    finally:
        free(words.bytes)
        free(hashes.bytes)
    if check is not None:
        check(made.size)
    return made


cdef int hash_all(const Buffer* words, Buffer* hashes) except -1:
    """Hashes of words as :func:`fold` leaves them."""
    cdef const uint8_t* data = words.bytes
    cdef uint64_t present, first
    cdef uint64_t* made
    cdef size_t at = 0, size, step
    while at < words.size:
        reserve(hashes, 8 * SEEN)
        made = <uint64_t*>(hashes.bytes + hashes.size)
        present = ~zeros64(data + at)
        step = SEEN
        while present:
            size = trailing_zeros(present)
            first = <uint64_t>1 << size
            if present + first < first:  # a word that may go on behind what is seen
                step = size
                break
            made[0] = murmur_seen(data + at + size, trailing_zeros(~(present >> size)))
            made += 1
            present &= present + first
        if step == 0:
            step = SEEN
            while data[at + step]:
                step += 1
            made[0] = murmur(data + at, step)
            made += 1
        at += step
        hashes.size = <uint8_t*>made - hashes.bytes
    return 0
