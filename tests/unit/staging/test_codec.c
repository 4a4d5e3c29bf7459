/* Codecs over host memory: which there are, floats of 16 bits, a program's own, and wrong arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gm/codec.h"
#include "support/codec_scene.h"
#include "support/random.h"

static gm_error err;

/* --- which there are --- */

static void names_find_codecs(void **state) {
  (void)state;
  assert_ptr_equal(codec("bf16"), codec("bf16"));
  codec("fp16");
  codec("planes");
  assert_null(gm_codec_find("zip"));
  assert_null(gm_codec_find(""));
  assert_null(gm_codec_find(NULL));
}

/* --- floats of 16 bits --- */

typedef struct bound {
  const char *name;
  double relative, least, infinite;
} bound;

static void check_bound(const bound *b, float in, float back) {
  const double x = in, y = back;
  if (fabs(x) >= b->infinite) {
    assert_true(isinf(back) && signbit(in) == signbit(back));
    return;
  }
  const double most = fmax(b->relative * fabs(x), b->least);
  if (!(fabs(y - x) <= most)) fail_msg("%s: %a comes back as %a", b->name, x, y);
  assert_int_equal(signbit(in), signbit(back));
}

/* The bounds that the header states, at random numbers of each exponent. */
static void narrow_floats_keep_their_bounds(void **state) {
  static const bound bounds[] = {{"bf16", 0x1p-8, 0x1p-134, 0x1.ffp127}, {"fp16", 0x1p-11, 0x1p-25, 65520}};
  enum { EACH = 16, COUNT = 255 * EACH };
  static float in[COUNT], back[COUNT];
  uint64_t random = 3, bytes = 0;
  (void)state;
  for (uint32_t i = 0; i < COUNT; i++) {
    const uint32_t bits = i / EACH << 23 | ((uint32_t)test_random(&random) & 0x807fffffu);
    memcpy(&in[i], &bits, sizeof bits);
  }
  for (int k = 0; k < 2; k++) {
    packed p = pack(codec(bounds[k].name), (const unsigned char *)in, sizeof in);
    assert_int_equal(p.bytes, sizeof in / 2);
    assert_int_equal(p.most, sizeof in / 2);
    assert_int_equal(gm_codec_decode(codec(bounds[k].name), p.piece, p.bytes, back, sizeof back, &bytes, &err), GM_OK);
    assert_int_equal(bytes, sizeof back);
    for (int i = 0; i < COUNT; i++) check_bound(&bounds[k], in[i], back[i]);
    free(p.piece);
  }
}

static void narrow_floats_refuse_what_does_not_fit(void **state) {
  static const char *const names[] = {"bf16", "fp16"};
  unsigned char in[16] = {0}, out[16] = {0};
  (void)state;
  for (int k = 0; k < 2; k++) {
    const gm_codec *c = codec(names[k]);
    uint64_t bytes = 99;
    assert_int_equal(gm_codec_most(c, 6, &bytes, &err), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_codec_encode(c, in, 6, out, 16, &bytes, &err), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_codec_encode(c, in, 8, out, 3, &bytes, &err), GM_ERR_OVER_LIMIT);
    assert_int_equal(gm_codec_decode(c, in, 5, out, 16, &bytes, &err), GM_ERR_FORMAT);
    assert_int_equal(gm_codec_decode(c, in, 8, out, 15, &bytes, &err), GM_ERR_OVER_LIMIT);
    assert_int_equal(bytes, 99);
    assert_int_equal(gm_codec_encode(c, NULL, 0, NULL, 0, &bytes, &err), GM_OK);
    assert_int_equal(bytes, 0);
  }
}

/* --- a program's own --- */

typedef struct own {
  gm_status answer; /* of both hooks */
  bool silent;      /* it says nothing about a failure */
  uint64_t says;    /* how many bytes it says that it wrote; 0: the truth */
  int calls;
} own;

static uint64_t own_most(void *user, uint64_t bytes) {
  (void)user;
  return bytes > 1u << 20 ? UINT64_MAX : bytes;
}

static gm_status own_run(void *user, const void *from, uint64_t bytes, void *to, uint64_t capacity, uint64_t *out_bytes,
                         gm_error *why) {
  own *o = user;
  o->calls++;
  if (o->answer) {
    if (!o->silent) *why = (gm_error){.status = o->answer, .op = "own", .message = "the moon is full"};
    return o->answer;
  }
  for (uint64_t i = 0; i < bytes && i < capacity; i++) ((unsigned char *)to)[i] = ((const unsigned char *)from)[i] ^ 1;
  *out_bytes = o->says ? o->says : bytes;
  return GM_OK;
}

static void a_program_brings_its_own(void **state) {
  own o = {.answer = GM_OK};
  gm_codec c = {.struct_size = sizeof c,
                .unit = 4,
                .name = "own",
                .user = &o,
                .most = own_most,
                .encode = own_run,
                .decode = own_run};
  unsigned char in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {0}, back[8] = {0};
  uint64_t bytes = 99;
  (void)state;
  assert_int_equal(gm_codec_encode(&c, in, 8, out, 8, &bytes, &err), GM_OK);
  assert_int_equal(bytes, 8);
  assert_int_equal(gm_codec_decode(&c, out, 8, back, 8, &bytes, &err), GM_OK);
  assert_memory_equal(back, in, 8);
  assert_int_equal(gm_codec_most(&c, 8, &bytes, &err), GM_OK);
  assert_int_equal(gm_codec_most(&c, 2u << 20, &bytes, &err), GM_ERR_OVER_LIMIT);
  assert_int_equal(gm_codec_encode(&c, in, 7, out, 8, &bytes, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(o.calls, 2);
  o.says = 9;
  bytes = 99;
  assert_int_equal(gm_codec_encode(&c, in, 8, out, 8, &bytes, &err), GM_ERR_OVER_LIMIT);
  assert_int_equal(gm_codec_decode(&c, out, 8, back, 8, &bytes, &err), GM_ERR_OVER_LIMIT);
  assert_non_null(strstr(err.message, "`own` says that it wrote 9 bytes, there is room for 8"));
  assert_int_equal(bytes, 99);
  o.answer = GM_ERR_IO;
  assert_int_equal(gm_codec_decode(&c, out, 8, back, 8, &bytes, &err), GM_ERR_IO);
  assert_string_equal(err.message, "the moon is full");
  o.silent = true;
  assert_int_equal(gm_codec_decode(&c, out, 8, back, 8, &bytes, &err), GM_ERR_IO);
  assert_non_null(strstr(err.message, "the codec `own` answered GM_ERR_IO"));
  assert_int_equal(gm_codec_decode(&c, out, 8, back, 8, &bytes, NULL), GM_ERR_IO);
}

static void wrong_arguments_are_refused(void **state) {
  own o = {.answer = GM_OK};
  const gm_codec good = {
      .struct_size = sizeof good, .name = "own", .user = &o, .most = own_most, .encode = own_run, .decode = own_run};
  unsigned char memory[64] = {0};
  uint64_t bytes = 99;
  gm_codec bad[5] = {good, good, good, good, good};
  (void)state;
  bad[0].name = NULL;
  bad[1].most = NULL;
  bad[2].encode = NULL;
  bad[3].decode = NULL;
  bad[4].struct_size = 4;
  for (int i = 0; i < 5; i++) {
    assert_int_equal(gm_codec_most(&bad[i], 8, &bytes, &err), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_codec_encode(&bad[i], memory, 8, memory + 8, 8, &bytes, &err), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_codec_decode(&bad[i], memory, 8, memory + 8, 8, &bytes, &err), GM_ERR_INVALID_ARGUMENT);
  }
  assert_int_equal(gm_codec_most(NULL, 8, &bytes, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_codec_most(&good, 8, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_codec_encode(&good, NULL, 8, memory, 8, &bytes, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_codec_encode(&good, memory, 8, NULL, 8, &bytes, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_codec_encode(&good, memory, 8, memory + 8, 8, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_codec_encode(&good, memory, 9, memory + 8, 8, &bytes, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_codec_encode(&good, memory + 8, 8, memory, 9, &bytes, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_codec_encode(&good, memory, UINT64_MAX, memory + 8, 8, &bytes, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_codec_decode(&good, memory, 8, memory + 8, UINT64_MAX, &bytes, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(o.calls, 0);
  assert_int_equal(bytes, 99);
  assert_int_equal(gm_codec_encode(&good, memory, 8, memory + 8, 8, &bytes, NULL), GM_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_find_codecs),
      cmocka_unit_test(narrow_floats_keep_their_bounds),
      cmocka_unit_test(narrow_floats_refuse_what_does_not_fit),
      cmocka_unit_test(a_program_brings_its_own),
      cmocka_unit_test(wrong_arguments_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
