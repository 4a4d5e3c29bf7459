/* Floats of 32 bits as floats of 16, each way that this processor has against a reference that knows only what a code
 * is worth. For each code of 16 bits the reference has the inputs that are nearest to it. They are an interval, so its
 * ends and what lies beside them decide for all inputs. `--all` gives every input of 32 bits to each way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/staging/convert.h"
#include "support/child_part.h"
#include "support/random.h"

enum { CODES = 0x8000, BLOCK = 1 << 16, GUARD = 64, MOST_WAYS = 8 };

/* A format of 16 bits, and how it converts. */
typedef struct format {
  const char *name;
  int fraction, bias;
  uint32_t infinity;    /* its code */
  bool quiet;           /* a NaN of 16 bits comes back quiet */
  uint32_t last[CODES]; /* of codes up to infinity: the last magnitude of 32 bits that is nearest */
} format;

static format bf16 = {"bf16", 7, 127, 0x7f80, false, {0}};
static format fp16 = {"fp16", 10, 15, 0x7c00, true, {0}};

static gm__convert_run narrow(const gm__convert_way *way, const format *f) {
  return f == &bf16 ? way->bf16_from_fp32 : way->fp16_from_fp32;
}

static gm__convert_run widen(const gm__convert_way *way, const format *f) {
  return f == &bf16 ? way->fp32_from_bf16 : way->fp32_from_fp16;
}

/* --- the reference --- */

/* Infinity counts as the number that would follow the largest one: rounding takes it so. */
static double worth(const format *f, uint32_t code) {
  const int exponent = (int)(code >> f->fraction), fraction = (int)(code & ((1u << f->fraction) - 1));
  const int whole = exponent ? fraction + (1 << f->fraction) : fraction;
  return ldexp(whole, (exponent ? exponent : 1) - f->bias - f->fraction);
}

static uint32_t bits_of(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}

static void reference_make(format *f) {
  for (uint32_t code = 0; code < f->infinity; code++) {
    const double middle = (worth(f, code) + worth(f, code + 1)) / 2; /* exact in both formats */
    assert_true((double)(float)middle == middle);
    f->last[code] = bits_of((float)middle) - (code & 1); /* a tie goes to the even code */
  }
  f->last[f->infinity] = 0x7f800000u;
}

/* REQUIRES: `*code` is not above the answer for the magnitude; it becomes that answer. */
static uint32_t reference_of(const format *f, uint32_t in, uint32_t *code) {
  const uint32_t magnitude = in & 0x7fffffffu, sign = in >> 16 & 0x8000u, drop = 23 - (uint32_t)f->fraction;
  if (magnitude > 0x7f800000u) {
    return sign | f->infinity | 1u << (f->fraction - 1) | (magnitude >> drop & ((1u << f->fraction) - 1));
  }
  while (magnitude > f->last[*code]) ++*code;
  return sign | *code;
}

/* --- inputs that decide --- */

typedef struct sample {
  uint32_t *in;
  uint16_t *expected;
  size_t count;
} sample;

static void sample_add(const format *f, sample *s, uint32_t magnitude, uint32_t from) {
  for (uint32_t sign = 0; sign < 2; sign++) {
    uint32_t code = from;
    s->in[s->count] = magnitude | sign << 31;
    s->expected[s->count] = (uint16_t)reference_of(f, magnitude | sign << 31, &code);
    s->count++;
  }
}

static void sample_make(const format *f, sample *s) {
  uint64_t random = 1;
  s->in = malloc(CODES * 12 * sizeof *s->in);
  s->expected = malloc(CODES * 12 * sizeof *s->expected);
  s->count = 0;
  assert_true(s->in && s->expected);
  for (uint32_t code = 0, first = 0; code <= f->infinity; first = f->last[code++] + 1) {
    const uint32_t last = f->last[code], inside = first + (uint32_t)(test_random(&random) % (last - first + 1));
    sample_add(f, s, first, code);
    sample_add(f, s, first < last ? first + 1 : first, code);
    sample_add(f, s, inside, code);
    sample_add(f, s, first < last ? last - 1 : last, code);
    sample_add(f, s, last, code);
  }
  for (uint32_t bit = 0; bit < 23; bit++) sample_add(f, s, 0x7f800000u | 1u << bit, 0);
  for (int i = 0; i < 1000; i++) sample_add(f, s, 0x7f800000u | (1 + (uint32_t)test_random(&random) % 0x7fffff), 0);
}

static void sample_free(sample *s) {
  free(s->in);
  free(s->expected);
}

static void check(const gm__convert_way *way, const format *f, const uint32_t *in, const uint16_t *expected,
                  const uint16_t *out, size_t count) {
  if (memcmp(out, expected, count * sizeof *out) == 0) return;
  for (size_t i = 0; i < count; i++) {
    if (out[i] == expected[i]) continue;
    fail_msg("%s: %08x to %s is %04x, not %04x", way->name, in[i], f->name, out[i], expected[i]);
  }
}

static void check_sample(const gm__convert_way *way, const format *f, const sample *s) {
  uint16_t *out = malloc(s->count * sizeof *out);
  assert_non_null(out);
  narrow(way, f)(out, s->in, s->count);
  check(way, f, s->in, s->expected, out, s->count);
  free(out);
}

/* The last magnitude of a few codes, as the formats' own pages give them. */
static void the_reference_knows_known_numbers(void **state) {
  (void)state;
  assert_true(worth(&fp16, 1) == 0x1p-24 && worth(&fp16, 0x3c00) == 1 && worth(&fp16, 0x7bff) == 65504);
  assert_true(worth(&bf16, 1) == 0x1p-133 && worth(&bf16, 0x3f80) == 1 && worth(&bf16, 0x7f7f) == 0x1.fep127);
  assert_int_equal(fp16.last[0], bits_of(0x1p-25f));          /* a tie with 0, which is even */
  assert_int_equal(fp16.last[0x7bff], bits_of(65520.0f) - 1); /* and one with infinity */
  assert_int_equal(bf16.last[0x3f80], bits_of(0x1.01p0f));    /* 1 + 2^-8 */
  assert_int_equal(bf16.last[0x3f81], bits_of(0x1.03p0f) - 1);
}

static void each_way_rounds_to_the_nearest(void **state) {
  format *const formats[] = {&bf16, &fp16};
  (void)state;
  for (int i = 0; i < 2; i++) {
    sample s;
    sample_make(formats[i], &s);
    assert_true(s.count > 10u * formats[i]->infinity);
    for (size_t w = 0; gm__convert_way_at(w); w++) check_sample(gm__convert_way_at(w), formats[i], &s);
    sample_free(&s);
  }
}

static void each_code_comes_back(void **state) {
  const format *const formats[] = {&bf16, &fp16};
  static uint16_t in[2 * CODES];
  static uint32_t out[2 * CODES];
  (void)state;
  for (uint32_t i = 0; i < 2 * CODES; i++) in[i] = (uint16_t)i;
  for (size_t w = 0; gm__convert_way_at(w); w++) {
    for (int k = 0; k < 2; k++) {
      const format *f = formats[k];
      widen(gm__convert_way_at(w), f)(out, in, 2 * CODES);
      for (uint32_t i = 0; i < 2 * CODES; i++) {
        const uint32_t code = i & 0x7fffu, sign = (i & 0x8000u) << 16;
        uint32_t expected = bits_of((float)worth(f, code));
        if (code >= f->infinity) expected = 0x7f800000u | (code & (f->infinity ^ 0x7fffu)) << (23 - f->fraction);
        if (code > f->infinity && f->quiet) expected |= 0x400000u;
        if (out[i] != (expected | sign)) {
          fail_msg("%s: %s %04x is %08x, not %08x", gm__convert_way_at(w)->name, f->name, i, out[i], expected | sign);
        }
      }
    }
  }
}

/* --- lengths and addresses --- */

typedef struct piece {
  unsigned char in[GUARD + 4 * 100 + GUARD], out[GUARD + 4 * 100 + GUARD], expected[sizeof(uint32_t) * 100];
} piece;

static void check_piece(gm__convert_run run, gm__convert_run plain, size_t count, size_t at, size_t out_bytes) {
  static piece p;
  uint64_t random = count * 7 + at;
  for (size_t i = 0; i < sizeof p.in; i++) p.in[i] = (unsigned char)test_random(&random);
  memset(p.out, 0xa5, sizeof p.out);
  run(p.out + GUARD - at, p.in + at, count);
  plain(p.expected, p.in + at, count);
  assert_memory_equal(p.out + GUARD - at, p.expected, count * out_bytes);
  for (size_t i = 0; i < GUARD - at; i++) assert_int_equal(p.out[i], 0xa5);
  for (size_t i = GUARD - at + count * out_bytes; i < sizeof p.out; i++) assert_int_equal(p.out[i], 0xa5);
}

static void nothing_beside_the_range_changes(void **state) {
  const gm__convert_way *const plain = &gm__convert_scalar;
  (void)state;
  for (size_t w = 0; gm__convert_way_at(w); w++) {
    const gm__convert_way *way = gm__convert_way_at(w);
    for (size_t count = 0; count <= 100; count++) {
      for (size_t at = 0; at < 4; at++) {
        check_piece(way->bf16_from_fp32, plain->bf16_from_fp32, count, at, 2);
        check_piece(way->fp16_from_fp32, plain->fp16_from_fp32, count, at, 2);
        check_piece(way->fp32_from_bf16, plain->fp32_from_bf16, count, at, 4);
        check_piece(way->fp32_from_fp16, plain->fp32_from_fp16, count, at, 4);
      }
    }
    way->bf16_from_fp32(NULL, NULL, 0);
    way->fp32_from_fp16(NULL, NULL, 0);
  }
}

/* --- the thread's modes --- */

/* Every code comes back under the same traps and modes, signalling NaNs among them. */
static void check_widening(const gm__convert_way *way) {
  static uint16_t in[2 * CODES];
  static uint32_t out[2 * CODES], expected[2 * CODES];
  for (uint32_t i = 0; i < 2 * CODES; i++) in[i] = (uint16_t)i;
  widen(&gm__convert_scalar, &fp16)(expected, in, 2 * CODES);
  widen(way, &fp16)(out, in, 2 * CODES);
  assert_memory_equal(out, expected, sizeof out);
}

static void modes_of_the_thread_change_nothing(void **state) {
  format *const formats[] = {&bf16, &fp16};
  static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  fenv_t before;
  (void)state;
  for (int i = 0; i < 2; i++) {
    sample s;
    sample_make(formats[i], &s);
    for (size_t w = 0; gm__convert_way_at(w); w++) {
      for (int m = 0; m < 3; m++) {
        assert_int_equal(fegetenv(&before), 0);
        fesetround(modes[m]);
        feclearexcept(FE_ALL_EXCEPT);
        feenableexcept(FE_ALL_EXCEPT); /* a trap would end the program */
        check_sample(gm__convert_way_at(w), formats[i], &s);
        check_widening(gm__convert_way_at(w));
        const int raised = fetestexcept(FE_ALL_EXCEPT), mode = fegetround();
        fesetenv(&before);
        assert_int_equal(raised, 0);
        assert_int_equal(mode, modes[m]);
      }
    }
    sample_free(&s);
  }
}

/* --- planes --- */

/* Each number stands alone: its two bytes are those of the number turned, wherever the three ends lie. */
static void check_planes(const gm__convert_way *way, size_t count, size_t at) {
  enum { MOST = 700 };
  static unsigned char from[2 * MOST + GUARD], lower[MOST + GUARD], upper[MOST + GUARD], back[2 * MOST + GUARD];
  uint64_t random = count + 1;
  for (size_t i = 0; i < sizeof from; i++) from[i] = (unsigned char)test_random(&random);
  memset(lower, 0xa5, sizeof lower);
  memset(upper, 0xa5, sizeof upper);
  memset(back, 0xa5, sizeof back);
  way->split(lower + at, upper + at, from + at, count);
  for (size_t i = 0; i < count; i++) {
    const unsigned number = from[at + 2 * i] | (unsigned)from[at + 2 * i + 1] << 8, turned = number << 1 | number >> 15;
    assert_int_equal(lower[at + i], turned & 0xff);
    assert_int_equal(upper[at + i], turned >> 8 & 0xff);
  }
  way->join(back + at, lower + at, upper + at, count);
  assert_memory_equal(back + at, from + at, 2 * count);
  for (size_t i = 0; i < GUARD; i++) {
    const bool before = i < at;
    assert_int_equal(before ? lower[i] : lower[count + i], 0xa5);
    assert_int_equal(before ? upper[i] : upper[count + i], 0xa5);
    assert_int_equal(before ? back[i] : back[2 * count + i], 0xa5);
  }
}

static void planes_of_each_way_are_the_same(void **state) {
  (void)state;
  for (size_t w = 0; gm__convert_way_at(w); w++) {
    for (size_t count = 0; count < 140; count++) check_planes(gm__convert_way_at(w), count, count % 5);
    for (size_t at = 0; at < 33; at++) check_planes(gm__convert_way_at(w), 600 + at, at);
  }
}

/* --- the choice --- */

static void choose_named(temp_folder *root) {
  const gm__convert_way *last = &gm__convert_scalar;
  (void)root;
  setenv("GM_CONVERT", last->name, 1);
  if (gm__convert_way_here() != last) _exit(1);
  setenv("GM_CONVERT", "vector", 1);
  if (gm__convert_way_here() != last) _exit(2); /* once for the process */
}

static void choose_unknown(temp_folder *root) {
  (void)root;
  setenv("GM_CONVERT", "abacus", 1);
  if (gm__convert_way_here() != gm__convert_way_at(0)) _exit(1);
}

static void choose_fastest(temp_folder *root) {
  (void)root;
  unsetenv("GM_CONVERT");
  if (gm__convert_way_here() != gm__convert_way_at(0)) _exit(1);
}

static void the_environment_names_the_way(void **state) {
  size_t ways = 0;
  (void)state;
  while (gm__convert_way_at(ways)) ways++;
  assert_in_range(ways, 2, MOST_WAYS);
  assert_ptr_equal(gm__convert_way_at(ways - 1), &gm__convert_scalar);
  in_child(choose_named, NULL);
  in_child(choose_unknown, NULL);
  in_child(choose_fastest, NULL);
}

/* The compiler's word for each processor that it knows to ask. A way that is left out by mistake gives the same bits.
 */
static void no_way_is_left_out(void **state) {
  (void)state;
#if defined(__x86_64__) && !defined(__clang__)
  assert_int_equal(gm__convert_avx2() != NULL, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"));
  assert_int_equal(gm__convert_avx512() != NULL,
                   __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"));
#else
  skip();
#endif
}

/* --- every input --- */

static void check_all(const gm__convert_way *way, const format *f) {
  static uint32_t in[BLOCK];
  static uint16_t expected[BLOCK], out[BLOCK];
  for (uint32_t sign = 0; sign < 2; sign++) {
    uint32_t code = 0;
    for (uint32_t first = 0; first < 0x80000000u; first += BLOCK) {
      for (uint32_t i = 0; i < BLOCK; i++) {
        in[i] = sign << 31 | (first + i);
        expected[i] = (uint16_t)reference_of(f, in[i], &code);
      }
      narrow(way, f)(out, in, BLOCK);
      check(way, f, in, expected, out, BLOCK);
    }
  }
  printf("%s to %s: all 2^32 inputs are exact\n", way->name, f->name);
}

static void every_input(void **state) {
  (void)state;
  for (size_t w = 0; gm__convert_way_at(w); w++) {
    check_all(gm__convert_way_at(w), &bf16);
    check_all(gm__convert_way_at(w), &fp16);
  }
}

int main(int argc, char **argv) {
  reference_make(&bf16);
  reference_make(&fp16);
  const struct CMUnitTest all[] = {cmocka_unit_test(every_input)};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_reference_knows_known_numbers), cmocka_unit_test(each_way_rounds_to_the_nearest),
      cmocka_unit_test(planes_of_each_way_are_the_same),   cmocka_unit_test(each_code_comes_back),
      cmocka_unit_test(nothing_beside_the_range_changes),  cmocka_unit_test(modes_of_the_thread_change_nothing),
      cmocka_unit_test(the_environment_names_the_way),     cmocka_unit_test(no_way_is_left_out),
  };
  if (argc > 1 && strcmp(argv[1], "--all") == 0) return cmocka_run_group_tests(all, NULL, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
