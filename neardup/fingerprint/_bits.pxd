"""What native modules take from ``_bits.h``: population counts, and the search for a number near another."""

from libc.stdint cimport uint32_t, uint64_t


cdef extern from "neardup/fingerprint/_bits.h" nogil:
    int popcount "neardup_popcount"(uint64_t bits)
    # Place of the lowest one; there must be one.
    int trailing_zeros "neardup_trailing_zeros"(uint64_t bits)
    # Ask for a cache line, without waiting for it.
    void prefetch "neardup_prefetch"(const void *address)
    # Which of eight numbers times ``factor`` are at least ``floor``: bit i for the i-th.
    unsigned int reaching "neardup_reaching"(const double *numbers, double factor, double floor)
    # The first place from ``at`` on whose number differs in at most ``most`` bits; ``end`` if none does.
    Py_ssize_t next_near64 "neardup_next64"(
        const uint64_t *values, Py_ssize_t at, Py_ssize_t end, uint64_t value, int most
    )
    Py_ssize_t next_near32 "neardup_next32"(
        const uint32_t *values, Py_ssize_t at, Py_ssize_t end, uint32_t value, int most
    )
    # In how many bits each of ``count`` rows of so many words differs from one such row.
    void differing_bits "neardup_differing"(
        const uint64_t *one, const uint64_t *rows, Py_ssize_t words, Py_ssize_t count, uint32_t *bits
    )
    # To be called once, when a module that searches is imported.
    void choose_instructions "neardup_choose_instructions"()
