/* What C says better than Cython: population counts, the lowest bit, prefetching, and the choice of
 * instructions at run time. Every compiler gets the portable way; GCC and Clang on x86-64 get wider ones, too.
 *
 * NEARDUP_INSTRUCTIONS in the environment ("baseline", "avx2", "avx512") limits the choice, for tests.
 */
#ifndef NEARDUP_BITS_H
#define NEARDUP_BITS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) || defined(__clang__)
#define neardup_prefetch(address) __builtin_prefetch(address, 0, 2)
static inline int neardup_trailing_zeros(uint64_t bits) { return __builtin_ctzll(bits); }
static inline int neardup_popcount(uint64_t bits) { return __builtin_popcountll(bits); }
#else
#define neardup_prefetch(address) ((void)(address))
static inline int neardup_popcount(uint64_t bits)
{
    bits = bits - ((bits >> 1) & 0x5555555555555555u);
    bits = (bits & 0x3333333333333333u) + ((bits >> 2) & 0x3333333333333333u);
    return (int)((((bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u) >> 56);
}
static inline int neardup_trailing_zeros(uint64_t bits) { return neardup_popcount(~bits & (bits - 1)); }
#endif

/* The first place from `at` on whose number differs from `value` in at most `most` bits; `end` if none does. */
typedef ptrdiff_t neardup_next64_function(const uint64_t *, ptrdiff_t, ptrdiff_t, uint64_t, int);
typedef ptrdiff_t neardup_next32_function(const uint32_t *, ptrdiff_t, ptrdiff_t, uint32_t, int);

static ptrdiff_t neardup_next64_baseline(
    const uint64_t *values, ptrdiff_t at, ptrdiff_t end, uint64_t value, int most)
{
    while (at < end && neardup_popcount(values[at] ^ value) > most)
        at++;
    return at;
}

static ptrdiff_t neardup_next32_baseline(
    const uint32_t *values, ptrdiff_t at, ptrdiff_t end, uint32_t value, int most)
{
    while (at < end && neardup_popcount(values[at] ^ value) > most)
        at++;
    return at;
}

/* In how many bits each of `count` rows of so many words differs from one such row. */
typedef void neardup_differing_function(const uint64_t *, const uint64_t *, ptrdiff_t, ptrdiff_t, uint32_t *);

static void neardup_differing_baseline(
    const uint64_t *one, const uint64_t *rows, ptrdiff_t words, ptrdiff_t count, uint32_t *bits)
{
    for (ptrdiff_t row = 0; row < count; row++, rows += words) {
        bits[row] = 0;
        for (ptrdiff_t i = 0; i < words; i++)
            bits[row] += (uint32_t)neardup_popcount(one[i] ^ rows[i]);
    }
}

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
#define NEARDUP_X86 1
#include <immintrin.h>

/* Ones of each byte, by a table of the ones of each half of a byte (Muła, Kurz and Lemire 2018). */
__attribute__((target("avx2"))) static inline __m256i neardup_ones_of_bytes(__m256i bits)
{
    const __m256i ones = _mm256_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i half = _mm256_set1_epi8(15);
    return _mm256_add_epi8(
        _mm256_shuffle_epi8(ones, _mm256_and_si256(bits, half)),
        _mm256_shuffle_epi8(ones, _mm256_and_si256(_mm256_srli_epi16(bits, 4), half)));
}

__attribute__((target("avx2"))) static ptrdiff_t neardup_next64_avx2(
    const uint64_t *values, ptrdiff_t at, ptrdiff_t end, uint64_t value, int most)
{
    const __m256i wanted = _mm256_set1_epi64x((long long)value), limit = _mm256_set1_epi64x(most);
    for (; at + 4 <= end; at += 4) {
        __m256i bits = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(values + at)), wanted);
        __m256i counts = _mm256_sad_epu8(neardup_ones_of_bytes(bits), _mm256_setzero_si256());
        int far = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(counts, limit)));
        if (far != 15)
            return at + __builtin_ctz(~far);
    }
    return neardup_next64_baseline(values, at, end, value, most);
}

__attribute__((target("avx2"))) static ptrdiff_t neardup_next32_avx2(
    const uint32_t *values, ptrdiff_t at, ptrdiff_t end, uint32_t value, int most)
{
    const __m256i wanted = _mm256_set1_epi32((int)value), limit = _mm256_set1_epi32(most);
    for (; at + 8 <= end; at += 8) {
        __m256i bits = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(values + at)), wanted);
        __m256i pairs = _mm256_maddubs_epi16(neardup_ones_of_bytes(bits), _mm256_set1_epi8(1));
        __m256i counts = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
        int far = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(counts, limit)));
        if (far != 255)
            return at + __builtin_ctz(~far);
    }
    return neardup_next32_baseline(values, at, end, value, most);
}

__attribute__((target("avx2"))) static void neardup_differing_avx2(
    const uint64_t *one, const uint64_t *rows, ptrdiff_t words, ptrdiff_t count, uint32_t *bits)
{
    for (ptrdiff_t row = 0; row < count; row++, rows += words) {
        __m256i sums = _mm256_setzero_si256();
        ptrdiff_t i = 0;
        for (; i + 4 <= words; i += 4) {
            __m256i differing = _mm256_xor_si256(
                _mm256_loadu_si256((const __m256i *)(one + i)), _mm256_loadu_si256((const __m256i *)(rows + i)));
            sums = _mm256_add_epi64(
                sums, _mm256_sad_epu8(neardup_ones_of_bytes(differing), _mm256_setzero_si256()));
        }
        __m128i halves = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
        bits[row] = (uint32_t)(_mm_cvtsi128_si64(halves) + _mm_extract_epi64(halves, 1));
        for (; i < words; i++)
            bits[row] += (uint32_t)neardup_popcount(one[i] ^ rows[i]);
    }
}

__attribute__((target("avx512f,avx512vpopcntdq"))) static ptrdiff_t neardup_next64_avx512(
    const uint64_t *values, ptrdiff_t at, ptrdiff_t end, uint64_t value, int most)
{
    const __m512i wanted = _mm512_set1_epi64((long long)value), limit = _mm512_set1_epi64(most);
    for (; at < end; at += 8) {
        __mmask8 there = end - at >= 8 ? 255 : (__mmask8)((1u << (end - at)) - 1);
        __m512i bits = _mm512_xor_si512(_mm512_maskz_loadu_epi64(there, values + at), wanted);
        __mmask8 near = _mm512_mask_cmple_epi64_mask(there, _mm512_popcnt_epi64(bits), limit);
        if (near)
            return at + __builtin_ctz(near);
    }
    return end;
}

__attribute__((target("avx512f,avx512vpopcntdq"))) static ptrdiff_t neardup_next32_avx512(
    const uint32_t *values, ptrdiff_t at, ptrdiff_t end, uint32_t value, int most)
{
    const __m512i wanted = _mm512_set1_epi32((int)value), limit = _mm512_set1_epi32(most);
    for (; at < end; at += 16) {
        __mmask16 there = end - at >= 16 ? 65535 : (__mmask16)((1u << (end - at)) - 1);
        __m512i bits = _mm512_xor_si512(_mm512_maskz_loadu_epi32(there, values + at), wanted);
        __mmask16 near = _mm512_mask_cmple_epi32_mask(there, _mm512_popcnt_epi32(bits), limit);
        if (near)
            return at + __builtin_ctz(near);
    }
    return end;
}

__attribute__((target("avx512f,avx512vpopcntdq"))) static void neardup_differing_avx512(
    const uint64_t *one, const uint64_t *rows, ptrdiff_t words, ptrdiff_t count, uint32_t *bits)
{
    for (ptrdiff_t row = 0; row < count; row++, rows += words) {
        __m512i sums = _mm512_setzero_si512();
        ptrdiff_t i = 0;
        for (; i + 8 <= words; i += 8) {
            __m512i differing = _mm512_xor_si512(_mm512_loadu_si512(one + i), _mm512_loadu_si512(rows + i));
            sums = _mm512_add_epi64(sums, _mm512_popcnt_epi64(differing));
        }
        bits[row] = (uint32_t)_mm512_reduce_add_epi64(sums);
        for (; i < words; i++)
            bits[row] += (uint32_t)neardup_popcount(one[i] ^ rows[i]);
    }
}
#endif

/* Which of eight numbers times `factor` are at least `floor`: bit i for the i-th; none for what is no number. */
static inline unsigned int neardup_reaching(const double *numbers, double factor, double floor)
{
    unsigned int reached = 0;
#ifdef NEARDUP_X86
    const __m128d factors = _mm_set1_pd(factor), floors = _mm_set1_pd(floor);
    for (int i = 0; i < 8; i += 2)
        reached |= (unsigned int)_mm_movemask_pd(
                       _mm_cmpge_pd(_mm_mul_pd(_mm_loadu_pd(numbers + i), factors), floors))
            << i;
#else
    for (int i = 0; i < 8; i++)
        reached |= (unsigned int)(numbers[i] * factor >= floor) << i;
#endif
    return reached;
}

enum { NEARDUP_BASELINE, NEARDUP_AVX2, NEARDUP_AVX512 };

/* The widest instructions that this processor has, and the environment allows. */
static inline int neardup_instructions(void)
{
#ifdef NEARDUP_X86
    const char *most = getenv("NEARDUP_INSTRUCTIONS");
    if (most && strcmp(most, "baseline") == 0)
        return NEARDUP_BASELINE;
    if (__builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512dq")
        && !(most && strcmp(most, "avx2") == 0))
        return NEARDUP_AVX512;
    if (__builtin_cpu_supports("avx2"))
        return NEARDUP_AVX2;
#endif
    return NEARDUP_BASELINE;
}

static neardup_next64_function *neardup_next64 = neardup_next64_baseline;
static neardup_next32_function *neardup_next32 = neardup_next32_baseline;
static neardup_differing_function *neardup_differing = neardup_differing_baseline;
/* Whether the functions that are named "wide" can be called. */
static int neardup_is_wide = 0;

/* To be called once when a module is imported that searches with these. */
static inline void neardup_choose_instructions(void)
{
#ifdef NEARDUP_X86
    switch (neardup_instructions()) {
    case NEARDUP_AVX512:
        neardup_next64 = neardup_next64_avx512;
        neardup_next32 = neardup_next32_avx512;
        neardup_differing = neardup_differing_avx512;
        neardup_is_wide = 1;
        break;
    case NEARDUP_AVX2:
        neardup_next64 = neardup_next64_avx2;
        neardup_next32 = neardup_next32_avx2;
        neardup_differing = neardup_differing_avx2;
        break;
    }
#endif
}

/* Which of 64 bytes are zero; the lowest bit is that of the first. */
static inline uint64_t neardup_zeros64(const uint8_t *bytes)
{
    uint64_t zeros = 0;
#ifdef NEARDUP_X86
    for (int i = 0; i < 64; i += 16) {
        __m128i equal = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(bytes + i)), _mm_setzero_si128());
        zeros |= (uint64_t)(unsigned)_mm_movemask_epi8(equal) << i;
    }
#else
    for (int i = 0; i < 64; i++)
        zeros |= (uint64_t)(bytes[i] == 0) << i;
#endif
    return zeros;
}

/* Which of 64 characters are ", ', <, > or NUL; the lowest bit is that of the first. */
static inline uint64_t neardup_signs64(const uint8_t *text)
{
    uint64_t signs = 0;
#if defined(NEARDUP_X86) && defined(__SSSE3__)
    /* The sign that has these four bits at its end; 0, which ends in others, where none has. */
    const __m128i of_ends = _mm_setr_epi8(0, 0, '"', 0, 0, 0, 0, '\'', 0, 0, 0, 0, '<', 0, '>', 0);
    for (int i = 0; i < 64; i += 16) {
        __m128i seen = _mm_loadu_si128((const __m128i *)(text + i));
        __m128i equal = _mm_cmpeq_epi8(_mm_shuffle_epi8(of_ends, seen), seen);
        signs |= (uint64_t)(unsigned)_mm_movemask_epi8(equal) << i;
    }
#else
    for (int i = 0; i < 64; i++)
        signs |= (uint64_t)(strchr("\"'<>", text[i]) != NULL) << i;
#endif
    return signs;
}

#ifdef NEARDUP_X86
#define NEARDUP_WIDE __attribute__((target("avx512f,avx512dq")))

/* The finaliser of murmur3. */
NEARDUP_WIDE static inline __m512i neardup_mix8(__m512i values)
{
    values = _mm512_xor_si512(values, _mm512_srli_epi64(values, 33));
    values = _mm512_mullo_epi64(values, _mm512_set1_epi64((long long)0xFF51AFD7ED558CCDu));
    values = _mm512_xor_si512(values, _mm512_srli_epi64(values, 33));
    values = _mm512_mullo_epi64(values, _mm512_set1_epi64((long long)0xC4CEB9FE1A85EC53u));
    return _mm512_xor_si512(values, _mm512_srli_epi64(values, 33));
}

/* SimHash: add each weight to the sums of the bits that are 1 in the hash, subtract it from the others. The
 * first sum is that of the highest bit. */
NEARDUP_WIDE static inline void neardup_accumulate_wide(
    const uint64_t *hashes, const double *weights, ptrdiff_t count, double *sums)
{
    const __m512i backwards = _mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    __m512d of_byte[8];
    for (int j = 0; j < 8; j++)
        of_byte[j] = _mm512_permutexvar_pd(backwards, _mm512_loadu_pd(sums + 56 - 8 * j));
    for (ptrdiff_t i = 0; i < count; i++) {
        const __m512d more = _mm512_set1_pd(weights[i]), less = _mm512_set1_pd(-weights[i]);
        for (int j = 0; j < 8; j++) {
            __mmask8 ones = (__mmask8)(hashes[i] >> 8 * j);
            of_byte[j] = _mm512_add_pd(of_byte[j], _mm512_mask_blend_pd(ones, less, more));
        }
    }
    for (int j = 0; j < 8; j++)
        _mm512_storeu_pd(sums + 56 - 8 * j, _mm512_permutexvar_pd(backwards, of_byte[j]));
}

/* A hash for each run of so many words; `count` runs. */
NEARDUP_WIDE static inline void neardup_shingles_wide(
    const uint64_t *hashes, ptrdiff_t width, ptrdiff_t count, uint64_t *made)
{
    const __m512i step = _mm512_set1_epi64((long long)0x9E3779B97F4A7C15u);
    for (ptrdiff_t i = 0; i < count; i += 8) {
        __mmask8 there = count - i >= 8 ? 255 : (__mmask8)((1u << (count - i)) - 1);
        __m512i value = _mm512_set1_epi64(width);
        for (ptrdiff_t j = 0; j < width; j++)
            value = _mm512_xor_si512(
                neardup_mix8(_mm512_add_epi64(value, step)), _mm512_maskz_loadu_epi64(there, hashes + i + j));
        _mm512_mask_storeu_epi64(made + i, there, neardup_mix8(value));
    }
}

/* What eight elements draw in a turn, and the places that they draw for. */
NEARDUP_WIDE static inline __m512i neardup_draw8(
    __m512i elements, __m512i salt, __m512i stamp, __m512i size, __m512i *place)
{
    __m512i drawn = neardup_mix8(_mm512_add_epi64(elements, salt));
    *place = _mm512_srli_epi64(_mm512_mul_epu32(_mm512_srli_epi64(drawn, 32), size), 32);
    return _mm512_or_si512(stamp, _mm512_and_si512(drawn, _mm512_set1_epi64(0xFFFFFFFF)));
}

/* Turns of a sketch of up to 1,024 places until none is empty, or to the last turn, below the number of
 * places: draw each element for a place, and keep the least that is drawn for it, with the row of the last
 * element that draws it. `empty` has a bit for each place that is empty, 16 numbers. Returns the turn that
 * would be next. */
NEARDUP_WIDE static inline uint64_t neardup_draw_wide(
    const uint64_t *elements, ptrdiff_t count, uint64_t turn, uint64_t last,
    uint64_t *values, int64_t *rows, uint64_t size, uint64_t *empty)
{
    enum { AT_ONCE = 64 };
    uint64_t places[AT_ONCE + 8], drawn[AT_ONCE + 8];
    int64_t drawing[AT_ONCE + 8];
    const __m512i eight_rows = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    for (; turn <= last; turn++) {
        /* What was full before this turn stays as it is, since stamps grow. */
        const __m512i first = _mm512_loadu_si512(empty), second = _mm512_loadu_si512(empty + 8);
        const __m512i salt = _mm512_set1_epi64((long long)(turn * 0x9E3779B97F4A7C15u));
        const __m512i stamp = _mm512_set1_epi64((long long)(turn << 32));
        if (_mm512_test_epi64_mask(_mm512_or_si512(first, second), _mm512_set1_epi64(-1)) == 0)
            break;
        for (ptrdiff_t i = 0; i < count; i += AT_ONCE) {
            int kept = 0;
            for (ptrdiff_t j = i; j < count && j < i + AT_ONCE; j += 8) {
                __mmask8 there = count - j >= 8 ? 255 : (__mmask8)((1u << (count - j)) - 1);
                __m512i place, value = _mm512_maskz_loadu_epi64(there, elements + j);
                value = neardup_draw8(value, salt, stamp, _mm512_set1_epi64((long long)size), &place);
                __m512i words = _mm512_permutex2var_epi64(first, _mm512_srli_epi64(place, 6), second);
                __m512i bits = _mm512_and_si512(place, _mm512_set1_epi64(63));
                bits = _mm512_sllv_epi64(_mm512_set1_epi64(1), bits);
                __mmask8 wanted = _mm512_mask_test_epi64_mask(there, words, bits);
                _mm512_storeu_si512(places + kept, _mm512_maskz_compress_epi64(wanted, place));
                _mm512_storeu_si512(drawn + kept, _mm512_maskz_compress_epi64(wanted, value));
                const __m512i from = _mm512_add_epi64(_mm512_set1_epi64(j), eight_rows);
                _mm512_storeu_si512(drawing + kept, _mm512_maskz_compress_epi64(wanted, from));
                kept += __builtin_popcount(wanted);
            }
            for (int j = 0; j < kept; j++) {
                uint64_t at = places[j];
                if (values[at] == UINT64_MAX)
                    empty[at / 64] ^= (uint64_t)1 << at % 64;
                rows[at] = drawn[j] <= values[at] ? drawing[j] : rows[at];
                values[at] = drawn[j] < values[at] ? drawn[j] : values[at];
            }
        }
    }
    return turn;
}

/* Turns of a sketch from `turn` up to `end`, which are below the number of places: for each place that one of
 * the elements has filled in such a turn, the row of the last such element. Other places are left alone. */
NEARDUP_WIDE static inline void neardup_match_wide(
    const uint64_t *elements, ptrdiff_t count, uint64_t turn, uint64_t end,
    const uint64_t *values, uint64_t size, int64_t *rows)
{
    for (; turn < end; turn++) {
        const __m512i salt = _mm512_set1_epi64((long long)(turn * 0x9E3779B97F4A7C15u));
        const __m512i stamp = _mm512_set1_epi64((long long)(turn << 32));
        for (ptrdiff_t i = 0; i < count; i += 8) {
            __mmask8 there = count - i >= 8 ? 255 : (__mmask8)((1u << (count - i)) - 1);
            __m512i place, drawn = _mm512_maskz_loadu_epi64(there, elements + i);
            drawn = neardup_draw8(drawn, salt, stamp, _mm512_set1_epi64((long long)size), &place);
            __m512i held = _mm512_mask_i64gather_epi64(drawn, there, place, values, 8);
            unsigned int holds = _mm512_mask_cmpeq_epi64_mask(there, held, drawn);
            if (holds) {
                uint64_t places[8];
                _mm512_storeu_si512(places, place);
                for (; holds; holds &= holds - 1) {
                    int j = __builtin_ctz(holds);
                    rows[places[j]] = i + j;
                }
            }
        }
    }
}
#else
static inline void neardup_accumulate_wide(
    const uint64_t *hashes, const double *weights, ptrdiff_t count, double *sums)
{
}
static inline void neardup_shingles_wide(
    const uint64_t *hashes, ptrdiff_t width, ptrdiff_t count, uint64_t *made)
{
}
static inline uint64_t neardup_draw_wide(
    const uint64_t *elements, ptrdiff_t count, uint64_t turn, uint64_t last,
    uint64_t *values, int64_t *rows, uint64_t size, uint64_t *empty)
{
    return turn;
}
static inline void neardup_match_wide(
    const uint64_t *elements, ptrdiff_t count, uint64_t turn, uint64_t end,
    const uint64_t *values, uint64_t size, int64_t *rows)
{
}
#endif

#endif
