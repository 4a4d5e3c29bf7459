/* Frames of zstd with literals alone: what zstd packs comes back as zstd unpacks it. A frame that was cut or changed is
 * refused, or comes back as from zstd. Nothing is written behind the room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "core/base/zstd.h"
#include "core/staging/literals.h"
#include "support/codec_scene.h"
#include "support/random.h"

enum { BLOCK = 128 << 10, FRAME = BLOCK + 1024 };

static const gm__zstd *zstd;
static gm__zstd_encoder *encoder;
static gm__zstd_decoder *decoder;
static gm__literals work;
static unsigned char *plain, *frame, *room, *theirs;

static int begin(void **state) {
  (void)state;
  gm_error err;
  zstd = gm__zstd_open(&err);
  if (!zstd) fail_msg("%s", err.message);
  encoder = zstd->encoder_new();
  decoder = zstd->decoder_new();
  zstd->encoder_set(encoder, GM__ZSTD_LEVEL, -131072);
  zstd->encoder_set(encoder, GM__ZSTD_LITERALS, GM__ZSTD_LITERALS_HUFFMAN);
  plain = room_new(2 * BLOCK);
  frame = room_new(FRAME);
  room = room_new(BLOCK);
  theirs = room_new(2 * BLOCK);
  return 0;
}

static int end(void **state) {
  (void)state;
  zstd->encoder_free(encoder);
  zstd->decoder_free(decoder);
  free(plain);
  free(frame);
  free(room);
  free(theirs);
  return 0;
}

/* Symbols of which each further one is rarer: `steep` of 256 are the first one. */
static void fill(uint64_t count, unsigned steep, unsigned first, uint64_t seed) {
  for (uint64_t i = 0; i < count; i++) {
    unsigned symbol = first;
    while (test_random(&seed) % 256 >= steep && symbol < first + 200) symbol++;
    plain[i] = (unsigned char)symbol;
  }
}

static size_t pack_frame(uint64_t count) { return zstd->encode(encoder, frame, FRAME, plain, count); }

/* Where gm unpacks, zstd unpacks to the same. */
static bool unpacks(size_t bytes, uint64_t count) {
  memset(room, ROOM_FILL, count + ROOM_GUARD);
  unsigned char *copy = malloc(bytes ? bytes : 1); /* a tool sees reads behind it */
  assert_non_null(copy);
  memcpy(copy, frame, bytes);
  const bool took = gm__literals_unpack(&work, room, count, copy, bytes);
  room_check(room, count);
  if (took) {
    const size_t got = zstd->decode(decoder, theirs, count, copy, bytes);
    assert_int_equal(got, count);
    assert_memory_equal(room, theirs, count);
  }
  free(copy);
  return took;
}

static void literals_come_back(void **state) {
  (void)state;
  static const uint64_t counts[] = {BLOCK, BLOCK - 1, BLOCK - 2, BLOCK - 3, 20000, 16383, 16384, 1500, 1023, 1024, 300};
  static const unsigned steeps[] = {230, 128, 60, 20, 4};
  int taken = 0;
  for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
    for (unsigned k = 0; k < sizeof steeps / sizeof *steeps; k++) {
      fill(counts[i], steeps[k], k % 2 ? 0 : 55, i + 1);
      const size_t bytes = pack_frame(counts[i]);
      assert_false(zstd->is_error(bytes));
      taken += unpacks(bytes, counts[i]);
    }
  }
  assert_in_range(taken, 40, 55); /* zstd leaves some of the small ones as they are */
  fill(BLOCK, 60, 100, 3);
  assert_true(unpacks(pack_frame(BLOCK), BLOCK));
}

/* No Huffman literals, or more than them. */
static void other_frames_are_left_to_zstd(void **state) {
  (void)state;
  uint64_t seed = 1;
  memset(plain, 7, BLOCK);
  assert_false(unpacks(pack_frame(BLOCK), BLOCK)); /* one symbol */
  for (uint64_t i = 0; i < BLOCK; i++) plain[i] = (unsigned char)test_random(&seed);
  assert_false(unpacks(pack_frame(BLOCK), BLOCK)); /* nothing to gain */
  fill(100, 100, 0, 1);
  assert_false(unpacks(pack_frame(100), 100)); /* one stream */
  fill(2 * BLOCK, 100, 0, 1);
  const size_t two = zstd->encode(encoder, frame, FRAME, plain, 2 * BLOCK); /* two blocks */
  assert_false(zstd->is_error(two));
  assert_false(gm__literals_unpack(&work, theirs, 2 * BLOCK, frame, two));
  fill(BLOCK / 2, 100, 0, 1);
  memcpy(plain + BLOCK / 2, plain, BLOCK / 2); /* matches */
  zstd->encoder_set(encoder, GM__ZSTD_LEVEL, 1);
  assert_false(unpacks(pack_frame(BLOCK), BLOCK));
  zstd->encoder_set(encoder, GM__ZSTD_LEVEL, -131072);
  assert_false(unpacks(0, 100));
}

static void frames_that_are_cut_are_refused(void **state) {
  (void)state;
  fill(3000, 60, 100, 4);
  const size_t bytes = pack_frame(3000);
  assert_true(unpacks(bytes, 3000));
  for (size_t cut = 0; cut < bytes; cut++) assert_false(unpacks(cut, 3000));
  assert_false(unpacks(bytes, 2999));
  assert_false(unpacks(bytes, 3001));
}

/* Any bit, then any few bytes. In the head, the tree and the streams. */
static void changed_frames_come_back_as_from_zstd(void **state) {
  (void)state;
  uint64_t seed = 9;
  int taken = 0;
  for (unsigned steep = 20; steep < 200; steep += 60) {
    fill(2000, steep, 30, steep);
    const size_t bytes = pack_frame(2000);
    assert_true(unpacks(bytes, 2000));
    for (size_t at = 0; at < bytes; at++) {
      frame[at] ^= (unsigned char)(1u << test_random(&seed) % 8);
      taken += unpacks(bytes, 2000);
      frame[at] ^= 0xff;
      unpacks(bytes, 2000);
      pack_frame(2000);
    }
    for (int round = 0; round < 3000; round++) {
      for (int i = 0; i < 3; i++)
        frame[test_random(&seed) % (round % 2 ? 80 : bytes)] = (unsigned char)test_random(&seed);
      unpacks(bytes, 2000);
      pack_frame(2000);
    }
  }
  assert_true(taken > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(literals_come_back, begin, end),
      cmocka_unit_test_setup_teardown(other_frames_are_left_to_zstd, begin, end),
      cmocka_unit_test_setup_teardown(frames_that_are_cut_are_refused, begin, end),
      cmocka_unit_test_setup_teardown(changed_frames_come_back_as_from_zstd, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
