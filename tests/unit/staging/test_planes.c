/* The lossless codec: what comes back, what packs, pieces that were cut, changed or made by somebody hostile, and where
 * libzstd is missing. */
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

#include "core/base/checksum.h"
#include "core/base/thread.h"
#include "core/staging/planes.h"
#include "support/child_part.h"
#include "support/codec_scene.h"
#include "support/random.h"

enum { CHUNK = 256 << 10, HEAD = 24, CHUNK_HEAD = 16, SMALL = 2048 };

static gm_error err;

/* Weights: bf16 of numbers as a normal distribution makes them. */
static void fill_weights(unsigned char *out, uint64_t bytes, uint64_t seed) {
  for (uint64_t i = 0; i + 2 <= bytes; i += 2) {
    double sum = -6;
    for (int k = 0; k < 12; k++) sum += (double)(test_random(&seed) >> 40) / (1 << 24);
    const float number = (float)(0.02 * sum);
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    const uint16_t bf16 = (uint16_t)(bits >> 16);
    memcpy(out + i, &bf16, sizeof bf16);
  }
  if (bytes % 2) out[bytes - 1] = 7;
}

static void fill_noise(unsigned char *out, uint64_t bytes, uint64_t seed) {
  for (uint64_t i = 0; i < bytes; i++) out[i] = (unsigned char)test_random(&seed);
}

static void check_comes_back(const unsigned char *from, uint64_t bytes) {
  const packed p = pack(codec("planes"), from, bytes);
  unsigned char *back = room_new(bytes);
  uint64_t got = 0;
  assert_int_equal(gm_codec_decode(codec("planes"), p.piece, p.bytes, back, bytes, &got, &err), GM_OK);
  assert_int_equal(got, bytes);
  assert_memory_equal(back, from, bytes);
  room_check(back, bytes);
  free(back);
  free(p.piece);
}

static void planes_come_back(void **state) {
  static const uint64_t sizes[] = {1,  2,    15,   31,        32,    33,        34,
                                   47, 4096, 4097, CHUNK - 1, CHUNK, CHUNK + 2, 2 * CHUNK + 37};
  unsigned char *from = room_new(3 * CHUNK);
  (void)state;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    fill_weights(from + 1, sizes[i], i); /* at an odd address */
    check_comes_back(from + 1, sizes[i]);
    fill_noise(from, sizes[i], i);
    check_comes_back(from, sizes[i]);
    memset(from, 0, sizes[i]);
    check_comes_back(from, sizes[i]);
  }
  free(from);
  check_comes_back((const unsigned char *)"", 0);
}

/* Two thirds for weights. Each chunk decides for itself: noise stays as it is, and costs its head. */
static void planes_pack_what_gains(void **state) {
  enum { CHUNKS = 4 };
  unsigned char *from = room_new(CHUNKS * CHUNK);
  (void)state;
  fill_weights(from, CHUNKS * CHUNK, 1);
  packed p = pack(codec("planes"), from, CHUNKS * CHUNK);
  assert_true((double)p.bytes <= 0.67 * CHUNKS * CHUNK);
  free(p.piece);
  fill_noise(from, CHUNKS * CHUNK, 1);
  p = pack(codec("planes"), from, CHUNKS * CHUNK);
  assert_int_equal(p.bytes, HEAD + CHUNKS * (CHUNK_HEAD + CHUNK));
  assert_int_equal(p.bytes, p.most);
  free(p.piece);
  fill_weights(from + CHUNK, CHUNK, 1);
  p = pack(codec("planes"), from, CHUNKS * CHUNK);
  assert_in_range(p.bytes, HEAD + 3 * CHUNK, HEAD + 3 * CHUNK + (uint64_t)(0.67 * CHUNK) + CHUNKS * CHUNK_HEAD);
  free(p.piece);
  free(from);
}

/* So many per cent of the upper bytes are 0, the others anything. Less than 3 % of gain is not worth it. */
static void planes_leave_small_gains(void **state) {
  unsigned char *from = room_new(CHUNK);
  uint64_t seed = 5;
  int left = 0, packed_some = 0;
  (void)state;
  for (int zeros = 2; zeros <= 20; zeros += 2) {
    for (uint64_t i = 0; i < CHUNK; i += 2) {
      const uint64_t upper = test_random(&seed) % 100 < (uint64_t)zeros ? 0 : test_random(&seed) & 255;
      const uint16_t turned = (uint16_t)(upper << 8 | (test_random(&seed) & 255));
      const uint16_t number = (uint16_t)(turned >> 1 | turned << 15);
      memcpy(from + i, &number, sizeof number);
    }
    const double zero = zeros / 100.0 + (1 - zeros / 100.0) / 256, other = (1 - zero) / 255;
    const double kept = (8 - zero * log2(zero) - 255 * other * log2(other)) / 16; /* of the bytes, at best */
    const packed p = pack(codec("planes"), from, CHUNK);
    const bool is_packed = p.bytes < p.most;
    if (kept > 0.97) assert_false(is_packed);
    if (kept < 0.95) assert_true(is_packed);
    if (is_packed) assert_true((double)p.bytes <= 0.97 * CHUNK + HEAD + CHUNK_HEAD);
    left += !is_packed && kept < 0.985;
    packed_some += is_packed;
    free(p.piece);
    check_comes_back(from, CHUNK);
  }
  assert_true(left > 0 && packed_some > 0);
  free(from);
}

static void planes_need_room(void **state) {
  unsigned char *from = room_new(SMALL), back[SMALL];
  uint64_t bytes = 99;
  (void)state;
  fill_weights(from, SMALL, 1);
  const packed p = pack(codec("planes"), from, SMALL);
  assert_true(p.bytes < SMALL);
  for (uint64_t room = 0; room < p.bytes; room += room + 40 < p.bytes ? 7 : 1) {
    unsigned char *to = room_new(room);
    assert_int_equal(gm_codec_encode(codec("planes"), from, SMALL, to, room, &bytes, &err), GM_ERR_OVER_LIMIT);
    room_check(to, room);
    free(to);
  }
  assert_int_equal(bytes, 99);
  for (uint64_t room = 0; room < SMALL; room += 97) {
    assert_int_equal(gm_codec_decode(codec("planes"), p.piece, p.bytes, back, room, &bytes, &err), GM_ERR_OVER_LIMIT);
  }
  assert_int_equal(bytes, 99);
  free(p.piece);
  free(from);
}

/* --- in parts --- */

static gm_status read_in_parts(const unsigned char *piece, uint64_t bytes, unsigned char *to, uint64_t plain,
                               uint64_t seed) {
  gm__planes_reader reader;
  gm_status status = gm__planes_read_begin(&reader, piece, bytes, plain, &err);
  if (status == GM_OK) assert_int_equal(reader.total, plain);
  for (uint64_t at = 0, part; at < plain && status == GM_OK; at += part) {
    part = seed ? test_log_uniform(&seed, 2 * CHUNK) : CHUNK;
    if (part > plain - at) part = plain - at;
    status = gm__planes_read(&reader, to + at, part, &err);
  }
  if (!seed) assert_null(reader.window); /* whole chunks need none */
  gm__planes_read_end(&reader);
  return status;
}

static gm_status write_in_parts(const unsigned char *from, uint64_t bytes, packed *p, uint64_t room, uint64_t seed) {
  gm__planes_writer writer;
  gm_status status = gm__planes_write_begin(&writer, bytes, p->piece, room, &err);
  for (uint64_t at = 0, part; at < bytes && status == GM_OK; at += part) {
    part = seed ? test_log_uniform(&seed, 2 * CHUNK) : CHUNK;
    if (part > bytes - at) part = bytes - at;
    status = gm__planes_write(&writer, from + at, part, &err);
  }
  if (!seed) assert_null(writer.window);
  p->bytes = writer.put;
  gm__planes_write_end(&writer);
  return status;
}

/* Parts of any size make the same piece, and give the same bytes. */
static void planes_go_in_parts(void **state) {
  enum { PLAIN = 3 * CHUNK + 37 };
  unsigned char *from = room_new(PLAIN), *back = room_new(PLAIN);
  (void)state;
  fill_weights(from, PLAIN, 1);
  fill_noise(from + CHUNK, CHUNK, 2);
  const packed whole = pack(codec("planes"), from, PLAIN);
  packed parts = {room_new(whole.bytes), 0, 0};
  for (uint64_t seed = 0; seed < 3; seed++) {
    memset(parts.piece, 0, whole.bytes);
    memset(back, 0, PLAIN);
    assert_int_equal(write_in_parts(from, PLAIN, &parts, whole.bytes, seed), GM_OK);
    assert_int_equal(parts.bytes, whole.bytes);
    assert_memory_equal(parts.piece, whole.piece, whole.bytes);
    assert_int_equal(read_in_parts(whole.piece, whole.bytes, back, PLAIN, seed), GM_OK);
    assert_memory_equal(back, from, PLAIN);
  }
  assert_int_equal(write_in_parts(from, PLAIN, &parts, whole.bytes - 1, 3), GM_ERR_OVER_LIMIT);
  assert_int_equal(read_in_parts(whole.piece, whole.bytes - 1, back, PLAIN, 3), GM_ERR_FORMAT);
  assert_int_equal(read_in_parts(whole.piece, whole.bytes + 1, back, PLAIN, 3), GM_ERR_FORMAT);
  assert_int_equal(read_in_parts(whole.piece, whole.bytes, back, PLAIN - 1, 3), GM_ERR_OVER_LIMIT);
  room_check(parts.piece, whole.bytes);
  room_check(back, PLAIN);
  free(parts.piece);
  free(whole.piece);
  free(back);
  free(from);
}

/* --- hostile pieces --- */

static gm_status decode(const unsigned char *piece, uint64_t bytes, unsigned char *to, uint64_t capacity) {
  uint64_t got = 0;
  unsigned char *exact = malloc(bytes ? bytes : 1); /* so that a sanitizer sees a read behind the end */
  assert_non_null(exact);
  if (bytes) memcpy(exact, piece, bytes);
  const gm_status status = gm_codec_decode(codec("planes"), exact, bytes, to, capacity, &got, &err);
  assert_true(status != GM_OK || got <= capacity);
  free(exact);
  return status;
}

/* planes.h says so; somebody hostile can do that, too. */
static void seal(unsigned char *chunk, uint64_t stored, uint64_t place) {
  const uint64_t sum = gm__checksum(chunk + CHUNK_HEAD, stored, gm__checksum(chunk, 8, place));
  for (int i = 0; i < 8; i++) chunk[8 + i] = (unsigned char)(sum >> 8 * i);
}

static void planes_refuse_pieces_that_are_cut(void **state) {
  unsigned char *from = room_new(SMALL), *back = room_new(2 * SMALL);
  (void)state;
  fill_weights(from, SMALL, 1);
  const packed p = pack(codec("planes"), from, SMALL);
  for (uint64_t cut = 0; cut < p.bytes; cut++) assert_int_equal(decode(p.piece, cut, back, SMALL), GM_ERR_FORMAT);
  assert_int_equal(decode(p.piece, p.bytes + 1, back, SMALL), GM_ERR_FORMAT);
  room_check(back, SMALL);
  free(p.piece);
  free(back);
  free(from);
}

static void check_flips(packed p, uint64_t plain) {
  unsigned char *back = room_new(2 * plain);
  for (uint64_t bit = 0; bit < 8 * p.bytes; bit++) {
    p.piece[bit / 8] ^= (unsigned char)(1u << bit % 8);
    const gm_status status = decode(p.piece, p.bytes, back, 2 * plain);
    if (status != GM_ERR_FORMAT && status != GM_ERR_OVER_LIMIT)
      fail_msg("bit %lu: %s", (unsigned long)bit, gm_status_name(status));
    p.piece[bit / 8] ^= (unsigned char)(1u << bit % 8);
  }
  assert_int_equal(decode(p.piece, p.bytes, back, plain), GM_OK);
  free(back);
}

static void planes_refuse_flipped_bits(void **state) {
  unsigned char from[256];
  (void)state;
  fill_weights(from, sizeof from, 1);
  packed p = pack(codec("planes"), from, sizeof from);
  assert_true(p.bytes < p.most);
  check_flips(p, sizeof from);
  free(p.piece);
  fill_noise(from, sizeof from, 1);
  p = pack(codec("planes"), from, sizeof from);
  check_flips(p, sizeof from);
  free(p.piece);
}

/* With a right checksum anything reaches zstd: it answers, and nothing is written behind the room. */
static void planes_survive_hostile_planes(void **state) {
  unsigned char *from = room_new(SMALL), *back = room_new(SMALL);
  int refused = 0;
  (void)state;
  fill_weights(from, SMALL, 1);
  packed p = pack(codec("planes"), from, SMALL);
  const uint64_t stored = p.bytes - HEAD - CHUNK_HEAD;
  for (uint64_t at = HEAD + CHUNK_HEAD + SMALL / 2; at < p.bytes; at++) {
    for (unsigned flip = 1; flip < 256; flip *= 2) {
      p.piece[at] ^= (unsigned char)flip;
      seal(p.piece + HEAD, stored, 0);
      const gm_status status = decode(p.piece, p.bytes, back, SMALL);
      assert_true(status == GM_OK || status == GM_ERR_FORMAT);
      refused += status != GM_OK;
      room_check(back, SMALL);
      p.piece[at] ^= (unsigned char)flip;
    }
  }
  assert_true(refused > 100);
  free(p.piece);
  free(back);
  free(from);
}

static void put(unsigned char *at, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(number >> 8 * i);
}

static void planes_refuse_huge_claims(void **state) {
  static const uint64_t claims[] = {SMALL + 1, SMALL + 2, CHUNK, 1u << 31, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX};
  unsigned char *from = room_new(SMALL), *back = room_new(CHUNK);
  (void)state;
  fill_weights(from, SMALL, 1);
  packed p = pack(codec("planes"), from, SMALL);
  const uint64_t stored = p.bytes - HEAD - CHUNK_HEAD;
  for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
    put(p.piece + 16, claims[i], 8);
    assert_int_equal(decode(p.piece, p.bytes, back, SMALL), GM_ERR_OVER_LIMIT);
    if (claims[i] <= CHUNK) assert_int_equal(decode(p.piece, p.bytes, back, CHUNK), GM_ERR_FORMAT);
  }
  put(p.piece + 16, SMALL, 8);
  for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
    put(p.piece + HEAD, claims[i], 4);
    assert_int_equal(decode(p.piece, p.bytes, back, SMALL), GM_ERR_FORMAT);
  }
  for (uint64_t few = 0; few <= SMALL / 2; few += SMALL / 2) { /* no plane, or only the lower one */
    put(p.piece + HEAD, few, 4);
    seal(p.piece + HEAD, few, 0);
    assert_int_equal(decode(p.piece, HEAD + CHUNK_HEAD + few, back, SMALL), GM_ERR_FORMAT);
  }
  put(p.piece + HEAD, stored, 4);
  put(p.piece + HEAD + 4, 2, 4); /* a kind that does not exist */
  seal(p.piece + HEAD, stored, 0);
  assert_int_equal(decode(p.piece, p.bytes, back, SMALL), GM_ERR_FORMAT);
  free(p.piece);
  free(back);
  free(from);
}

/* Chunks of one piece do not change places. */
static void planes_know_the_place_of_a_chunk(void **state) {
  unsigned char *from = room_new(2 * CHUNK), *back = room_new(2 * CHUNK), *swapped;
  (void)state;
  fill_noise(from, 2 * CHUNK, 1);
  const packed p = pack(codec("planes"), from, 2 * CHUNK);
  const uint64_t each = CHUNK_HEAD + CHUNK;
  swapped = room_new(p.bytes);
  memcpy(swapped, p.piece, HEAD);
  memcpy(swapped + HEAD, p.piece + HEAD + each, each);
  memcpy(swapped + HEAD + each, p.piece + HEAD, each);
  assert_int_equal(decode(swapped, p.bytes, back, 2 * CHUNK), GM_ERR_FORMAT);
  assert_int_equal(decode(p.piece, p.bytes, back, 2 * CHUNK), GM_OK);
  free(swapped);
  free(p.piece);
  free(back);
  free(from);
}

static void planes_have_a_bound_for_each_size(void **state) {
  uint64_t most = 99;
  (void)state;
  assert_int_equal(gm_codec_most(codec("planes"), 0, &most, &err), GM_OK);
  assert_int_equal(most, HEAD);
  assert_int_equal(gm_codec_most(codec("planes"), CHUNK + 1, &most, &err), GM_OK);
  assert_int_equal(most, HEAD + 2 * CHUNK_HEAD + CHUNK + 1);
  assert_int_equal(gm_codec_most(codec("planes"), UINT64_MAX, &most, &err), GM_ERR_OVER_LIMIT);
  assert_int_equal(gm_codec_most(codec("planes"), UINT64_MAX - 1000, &most, &err), GM_ERR_OVER_LIMIT);
  assert_int_equal(most, HEAD + 2 * CHUNK_HEAD + CHUNK + 1);
}

/* --- libzstd --- */

static unsigned char zstd_from[SMALL], zstd_noise[SMALL], zstd_room[2 * SMALL], zstd_back[SMALL];

/* A chunk that needs no zstd comes back without it, as it does not gain. But who encodes asks for it. */
static void zstd_is_missing(temp_folder *root) {
  uint64_t bytes = 99;
  (void)root;
  setenv("GM_ZSTD_LIBRARY", "/nowhere/libzstd.so.1", 1);
  if (gm_codec_encode(codec("planes"), zstd_from, SMALL, zstd_room, sizeof zstd_room, &bytes, &err) !=
      GM_ERR_NOT_SUPPORTED) {
    _exit(1);
  }
  if (!strstr(err.message, "/nowhere/libzstd.so.1") || bytes != 99) _exit(2);
  memcpy(zstd_room, "gmplanes", 8);
  put(zstd_room + 8, 1, 4);
  put(zstd_room + 12, gm__checksum_kind_here(), 4);
  put(zstd_room + 16, SMALL, 8);
  put(zstd_room + HEAD, SMALL, 4);
  put(zstd_room + HEAD + 4, 0, 4);
  memcpy(zstd_room + HEAD + CHUNK_HEAD, zstd_noise, SMALL);
  seal(zstd_room + HEAD, SMALL, 0);
  if (decode(zstd_room, HEAD + CHUNK_HEAD + SMALL, zstd_back, SMALL) != GM_OK) _exit(3);
  if (memcmp(zstd_back, zstd_noise, SMALL) != 0) _exit(4);
  put(zstd_room + HEAD + 4, 1, 4);
  seal(zstd_room + HEAD, SMALL, 0);
  if (decode(zstd_room, HEAD + CHUNK_HEAD + SMALL, zstd_back, SMALL) != GM_ERR_NOT_SUPPORTED) _exit(5);
}

static void zstd_is_something_else(temp_folder *root) {
  uint64_t bytes = 99;
  (void)root;
  setenv("GM_ZSTD_LIBRARY", "libm.so.6", 1);
  if (gm_codec_encode(codec("planes"), zstd_from, SMALL, zstd_room, sizeof zstd_room, &bytes, &err) !=
      GM_ERR_NOT_SUPPORTED) {
    _exit(1);
  }
  if (!strstr(err.message, "ZSTD_createCCtx")) _exit(2);
}

/* A zstd without the mode of literals packs by its first level. */
static void zstd_is_older(temp_folder *root) {
  (void)root;
  setenv("GM_ZSTD_LIBRARY", GM_TEST_OLDER_ZSTD, 1);
  unsigned char *from = room_new(CHUNK);
  fill_weights(from, CHUNK, 1);
  const packed p = pack(codec("planes"), from, CHUNK);
  if ((double)p.bytes > 0.7 * CHUNK) _exit(1);
  unsigned char *back = room_new(CHUNK);
  if (decode(p.piece, p.bytes, back, CHUNK) != GM_OK || memcmp(back, from, CHUNK) != 0) _exit(2);
  free(back);
  free(p.piece);
  free(from);
}

/* First of all: who opened libzstd keeps it. */
static void zstd_is_opened_when_it_is_needed(void **state) {
  (void)state;
  fill_weights(zstd_from, SMALL, 1);
  fill_noise(zstd_noise, SMALL, 1);
  memset(zstd_room, ROOM_FILL, sizeof zstd_room);
  in_child(zstd_is_missing, NULL);
  in_child(zstd_is_something_else, NULL);
  in_child(zstd_is_older, NULL);
}

static void thread_run(void *arg) {
  unsigned char *from = room_new(CHUNK), *back = room_new(CHUNK);
  fill_weights(from, CHUNK, *(const uint64_t *)arg);
  const packed p = pack(codec("planes"), from, CHUNK);
  assert_int_equal(decode(p.piece, p.bytes, back, CHUNK), GM_OK);
  assert_memory_equal(back, from, CHUNK);
  free(p.piece);
  free(back);
  free(from);
}

static void threads_use_codecs_at_once(void **state) {
  enum { THREADS = 4 };
  gm__thread threads[THREADS];
  uint64_t seeds[THREADS];
  (void)state;
  for (uint64_t i = 0; i < THREADS; i++) {
    seeds[i] = i;
    assert_int_equal(gm__thread_create(&threads[i], "codec", thread_run, &seeds[i], NULL), GM_OK);
  }
  for (int i = 0; i < THREADS; i++) gm__thread_join(&threads[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(zstd_is_opened_when_it_is_needed),
      cmocka_unit_test(threads_use_codecs_at_once),
      cmocka_unit_test(planes_come_back),
      cmocka_unit_test(planes_pack_what_gains),
      cmocka_unit_test(planes_leave_small_gains),
      cmocka_unit_test(planes_need_room),
      cmocka_unit_test(planes_go_in_parts),
      cmocka_unit_test(planes_refuse_pieces_that_are_cut),
      cmocka_unit_test(planes_refuse_flipped_bits),
      cmocka_unit_test(planes_survive_hostile_planes),
      cmocka_unit_test(planes_refuse_huge_claims),
      cmocka_unit_test(planes_know_the_place_of_a_chunk),
      cmocka_unit_test(planes_have_a_bound_for_each_size),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
