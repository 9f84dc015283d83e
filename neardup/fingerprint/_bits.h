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
    if (__builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512f")
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

/* To be called once when a module is imported that searches with these. */
static inline void neardup_choose_instructions(void)
{
#ifdef NEARDUP_X86
    switch (neardup_instructions()) {
    case NEARDUP_AVX512:
        neardup_next64 = neardup_next64_avx512;
        neardup_next32 = neardup_next32_avx512;
        neardup_differing = neardup_differing_avx512;
        break;
    case NEARDUP_AVX2:
        neardup_next64 = neardup_next64_avx2;
        neardup_next32 = neardup_next32_avx2;
        neardup_differing = neardup_differing_avx2;
        break;
    }
#endif
}

#endif
