#include "core/staging/convert.h"

#if defined __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#include <stdbool.h>

/* AVX512_BF16 is not used: it takes denormal numbers for 0, and these loops wait for memory as it is. Conversions to
 * and from fp16 have their own rounding. They trap where the thread wants that, but for one of AVX-512. */

#define X86_AVX2 __attribute__((target("avx2,f16c")))
#define X86_AVX512 __attribute__((target("avx512f,avx512bw")))

/* A loop over `step` elements at a time by `one`; the last few go the scalar way. */
#define X86_RUN(target, name, member, step, from_type, to_type, one)                        \
  target static void name(void *to, const void *from, size_t count) {                       \
    const size_t at_step = (step) * sizeof(from_type), put_step = (step) * sizeof(to_type); \
    const unsigned char *at = from;                                                         \
    unsigned char *put = to;                                                                \
    size_t left = count;                                                                    \
    for (; left >= (step); left -= (step), at += at_step, put += put_step) one(put, at);    \
    gm__convert_scalar.member(put, at, left);                                               \
  }

/* No trap meanwhile, and the flags are as before. */
#define X86_QUIET(name, run)                                   \
  static void name(void *to, const void *from, size_t count) { \
    const unsigned before = _mm_getcsr();                      \
    _mm_setcsr(before | _MM_MASK_MASK);                        \
    run(to, from, count);                                      \
    _mm_setcsr(before);                                        \
  }

/* --- AVX2 and F16C: 16 elements --- */

X86_AVX2 static inline __m256i avx2_load(const unsigned char *at) { return _mm256_loadu_si256((const __m256i *)at); }

X86_AVX2 static inline __m256i avx2_bf16(__m256i in) {
  const __m256i upper = _mm256_srli_epi32(in, 16), odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(in, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i magnitude = _mm256_and_si256(in, _mm256_set1_epi32(0x7fffffff));
  const __m256i nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
  return _mm256_blendv_epi8(_mm256_srli_epi32(sum, 16), _mm256_or_si256(upper, _mm256_set1_epi32(0x40)), nan);
}

/* Packing works in each half of a register: the quarters come as 0, 2, 1, 3. */
X86_AVX2 static inline void avx2_to_bf16(unsigned char *put, const unsigned char *at) {
  const __m256i both = _mm256_packus_epi32(avx2_bf16(avx2_load(at)), avx2_bf16(avx2_load(at + 32)));
  _mm256_storeu_si256((__m256i *)put, _mm256_permute4x64_epi64(both, 0xd8));
}

X86_AVX2 static inline void avx2_from_bf16(unsigned char *put, const unsigned char *at) {
  const __m256i in = avx2_load(at);
  const __m256i low = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(in));
  const __m256i high = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(in, 1));
  _mm256_storeu_si256((__m256i *)put, _mm256_slli_epi32(low, 16));
  _mm256_storeu_si256((__m256i *)(put + 32), _mm256_slli_epi32(high, 16));
}

X86_AVX2 static inline __m128i avx2_fp16(const unsigned char *at) {
  return _mm256_cvtps_ph(_mm256_castsi256_ps(avx2_load(at)), _MM_FROUND_TO_NEAREST_INT);
}

X86_AVX2 static inline void avx2_to_fp16(unsigned char *put, const unsigned char *at) {
  _mm256_storeu_si256((__m256i *)put, _mm256_set_m128i(avx2_fp16(at + 32), avx2_fp16(at)));
}

X86_AVX2 static inline void avx2_from_fp16(unsigned char *put, const unsigned char *at) {
  const __m256i in = avx2_load(at);
  const __m256 low = _mm256_cvtph_ps(_mm256_castsi256_si128(in)),
               high = _mm256_cvtph_ps(_mm256_extracti128_si256(in, 1));
  _mm256_storeu_si256((__m256i *)put, _mm256_castps_si256(low));
  _mm256_storeu_si256((__m256i *)(put + 32), _mm256_castps_si256(high));
}

X86_RUN(X86_AVX2, avx2_bf16_from_fp32, bf16_from_fp32, 16, uint32_t, uint16_t, avx2_to_bf16)
X86_RUN(X86_AVX2, avx2_fp32_from_bf16, fp32_from_bf16, 16, uint16_t, uint32_t, avx2_from_bf16)
X86_RUN(X86_AVX2, f16c_fp16_from_fp32, fp16_from_fp32, 16, uint32_t, uint16_t, avx2_to_fp16)
X86_RUN(X86_AVX2, f16c_fp32_from_fp16, fp32_from_fp16, 16, uint16_t, uint32_t, avx2_from_fp16)

X86_QUIET(avx2_fp16_from_fp32, f16c_fp16_from_fp32)
X86_QUIET(avx2_fp32_from_fp16, f16c_fp32_from_fp16)

/* --- planes, by AVX2: 32 numbers --- */

/* Each half of a register packs by itself, as above. */
X86_AVX2 static void avx2_split(void *lower, void *upper, const void *from, size_t count) {
  unsigned char *put_low = lower, *put_high = upper;
  const unsigned char *at = from;
  const __m256i byte = _mm256_set1_epi16(0xff);
  for (; count >= 32; count -= 32, at += 64, put_low += 32, put_high += 32) {
    __m256i a = avx2_load(at), b = avx2_load(at + 32);
    a = _mm256_or_si256(_mm256_slli_epi16(a, 1), _mm256_srli_epi16(a, 15));
    b = _mm256_or_si256(_mm256_slli_epi16(b, 1), _mm256_srli_epi16(b, 15));
    const __m256i low = _mm256_packus_epi16(_mm256_and_si256(a, byte), _mm256_and_si256(b, byte));
    const __m256i high = _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
    _mm256_storeu_si256((__m256i *)put_low, _mm256_permute4x64_epi64(low, 0xd8));
    _mm256_storeu_si256((__m256i *)put_high, _mm256_permute4x64_epi64(high, 0xd8));
  }
  gm__convert_scalar.split(put_low, put_high, at, count);
}

X86_AVX2 static inline void avx2_turn_right(unsigned char *put, __m256i turned) {
  _mm256_storeu_si256((__m256i *)put, _mm256_or_si256(_mm256_srli_epi16(turned, 1), _mm256_slli_epi16(turned, 15)));
}

X86_AVX2 static void avx2_join(void *to, const void *lower, const void *upper, size_t count) {
  const unsigned char *at_low = lower, *at_high = upper;
  unsigned char *put = to;
  for (; count >= 32; count -= 32, put += 64, at_low += 32, at_high += 32) {
    const __m256i low = avx2_load(at_low), high = avx2_load(at_high);
    const __m256i first = _mm256_unpacklo_epi8(low, high), second = _mm256_unpackhi_epi8(low, high);
    avx2_turn_right(put, _mm256_permute2x128_si256(first, second, 0x20));
    avx2_turn_right(put + 32, _mm256_permute2x128_si256(first, second, 0x31));
  }
  gm__convert_scalar.join(put, at_low, at_high, count);
}

static const gm__convert_way convert_avx2 = {
    "avx2", avx2_bf16_from_fp32, avx2_fp32_from_bf16, avx2_fp16_from_fp32, avx2_fp32_from_fp16, avx2_split, avx2_join};

/* --- AVX-512: 32 elements --- */

X86_AVX512 static inline __m512i avx512_load(const unsigned char *at) { return _mm512_loadu_si512(at); }

X86_AVX512 static inline __m512i avx512_bf16(__m512i in) {
  const __m512i upper = _mm512_srli_epi32(in, 16), odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
  const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(in, _mm512_set1_epi32(0x7fff)), odd);
  const __m512i magnitude = _mm512_and_si512(in, _mm512_set1_epi32(0x7fffffff));
  const __mmask16 nan = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7f800000));
  return _mm512_mask_or_epi32(_mm512_srli_epi32(sum, 16), nan, upper, _mm512_set1_epi32(0x40));
}

/* Packing works in each quarter of a register. */
X86_AVX512 static inline void avx512_to_bf16(unsigned char *put, const unsigned char *at) {
  const __m512i both = _mm512_packus_epi32(avx512_bf16(avx512_load(at)), avx512_bf16(avx512_load(at + 64)));
  _mm512_storeu_si512(put, _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), both));
}

X86_AVX512 static inline void avx512_from_bf16(unsigned char *put, const unsigned char *at) {
  const __m512i in = avx512_load(at);
  const __m512i low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(in));
  const __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(in, 1));
  _mm512_storeu_si512(put, _mm512_slli_epi32(low, 16));
  _mm512_storeu_si512(put + 64, _mm512_slli_epi32(high, 16));
}

X86_AVX512 static inline __m256i avx512_fp16(const unsigned char *at) {
  const __mmask16 all = 0xffff; /* gcc's unmasked one warns where it is a macro */
  return _mm512_maskz_cvtps_ph(all, _mm512_castsi512_ps(avx512_load(at)),
                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

X86_AVX512 static inline void avx512_to_fp16(unsigned char *put, const unsigned char *at) {
  _mm256_storeu_si256((__m256i *)put, avx512_fp16(at));
  _mm256_storeu_si256((__m256i *)(put + 32), avx512_fp16(at + 64));
}

X86_AVX512 static inline void avx512_from_fp16(unsigned char *put, const unsigned char *at) {
  const __m512i in = avx512_load(at);
  const __m512 low = _mm512_cvt_roundph_ps(_mm512_castsi512_si256(in), _MM_FROUND_NO_EXC);
  const __m512 high = _mm512_cvt_roundph_ps(_mm512_extracti64x4_epi64(in, 1), _MM_FROUND_NO_EXC);
  _mm512_storeu_ps(put, low);
  _mm512_storeu_ps(put + 64, high);
}

X86_RUN(X86_AVX512, avx512_bf16_from_fp32, bf16_from_fp32, 32, uint32_t, uint16_t, avx512_to_bf16)
X86_RUN(X86_AVX512, avx512_fp32_from_bf16, fp32_from_bf16, 32, uint16_t, uint32_t, avx512_from_bf16)
X86_RUN(X86_AVX512, trap_fp16_from_fp32, fp16_from_fp32, 32, uint32_t, uint16_t, avx512_to_fp16)
X86_QUIET(avx512_fp16_from_fp32, trap_fp16_from_fp32)
X86_RUN(X86_AVX512, avx512_fp32_from_fp16, fp32_from_fp16, 32, uint16_t, uint32_t, avx512_from_fp16)

static const gm__convert_way convert_avx512 = {
    "avx512", avx512_bf16_from_fp32, avx512_fp32_from_bf16, avx512_fp16_from_fp32, avx512_fp32_from_fp16, avx2_split,
    avx2_join};

/* --- what the processor says --- */

/* The compiler's own question knows whether the system keeps the wide registers; clang 14 does not ask for F16C. */
static bool x86_has_f16c(void) {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}

const gm__convert_way *gm__convert_avx2(void) {
  return __builtin_cpu_supports("avx2") && x86_has_f16c() ? &convert_avx2 : NULL;
}

const gm__convert_way *gm__convert_avx512(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") ? &convert_avx512 : NULL;
}

#else

const gm__convert_way *gm__convert_avx2(void) { return NULL; }
const gm__convert_way *gm__convert_avx512(void) { return NULL; }

#endif
