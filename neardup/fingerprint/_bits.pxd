"""What native modules take from ``_bits.h``: population counts, and the search for a number near another."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t


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
    # Which of 64 bytes are zero; the lowest bit is that of the first.
    uint64_t zeros64 "neardup_zeros64"(const uint8_t *bytes)
    # Which of 64 characters are ", ', <, > or NUL; the lowest bit is that of the first.
    uint64_t signs64 "neardup_signs64"(const uint8_t *text)
    # Whether the functions that are named "wide" can be called.
    bint is_wide "neardup_is_wide"
    # SimHash: add each weight to the sums of the bits that are 1 in the hash, subtract it from the others.
    void accumulate_wide "neardup_accumulate_wide"(
        const uint64_t *hashes, const double *weights, Py_ssize_t count, double *sums
    )
    # A hash for each run of ``width`` words; ``count`` runs.
    void shingles_wide "neardup_shingles_wide"(
        const uint64_t *hashes, Py_ssize_t width, Py_ssize_t count, uint64_t *made
    )
    # Turns of a sketch of up to 1,024 places until none is empty, or to ``last``, below the number of places.
    # ``rows`` gets the last element that fills each place so. ``empty`` has a bit for each place that is
    # empty, 16 numbers. Returns the turn that would be next.
    uint64_t draw_wide "neardup_draw_wide"(
        const uint64_t *elements, Py_ssize_t count, uint64_t turn, uint64_t last,
        uint64_t *values, int64_t *rows, uint64_t size, uint64_t *empty
    )
    # For each place of a sketch that an element has filled in the turns from ``turn`` up to ``end``, which are
    # below the number of places: the row of the last such element.
    void match_wide "neardup_match_wide"(
        const uint64_t *elements, Py_ssize_t count, uint64_t turn, uint64_t end,
        const uint64_t *values, uint64_t size, int64_t *rows
    )
