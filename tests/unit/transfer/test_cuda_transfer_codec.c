/* Copies with codecs on the simulated CUDA driver: where they are cut, failures with copy, byte and codec, and pieces
 * from strangers. There are cancel and resume, engines that record, and copies that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "support/codec_scene.h"
#include "support/transfer_scene.h"

enum { HALF = BYTES / 4 * 2, PLAIN = 2 * HALF, SMALL = SLOT / 2 };

/* --- a program's codec: one byte before all bytes, which change --- */

static struct {
  int calls, fails_at; /* the call that fails; -1: none */
  uint64_t says;       /* how many bytes it says that it wrote; 0: the truth */
} own;

static uint64_t own_most(void *user, uint64_t bytes) {
  assert_ptr_equal(user, &own);
  return bytes + 1;
}

static gm_status own_turn(uint64_t made, uint64_t *out_bytes, gm_error *err) {
  *out_bytes = own.says ? own.says : made;
  if (own.calls++ != own.fails_at) return GM_OK;
  *err = (gm_error){.status = GM_ERR_IO, .op = "own", .message = "the key is lost"};
  return GM_ERR_IO;
}

static gm_status own_encode(void *user, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                            uint64_t *out_bytes, gm_error *err) {
  assert_ptr_equal(user, &own);
  if (bytes + 1 > capacity) return GM_ERR_OVER_LIMIT;
  ((unsigned char *)to)[0] = 0x77;
  for (uint64_t i = 0; i < bytes; i++) ((unsigned char *)to)[i + 1] = ((const unsigned char *)from)[i] ^ 0x3c;
  return own_turn(bytes + 1, out_bytes, err);
}

static gm_status own_decode(void *user, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                            uint64_t *out_bytes, gm_error *err) {
  assert_ptr_equal(user, &own);
  if (!bytes || *(const unsigned char *)from != 0x77) return GM_ERR_FORMAT; /* without a word */
  if (bytes - 1 > capacity) return GM_ERR_OVER_LIMIT;
  for (uint64_t i = 0; i + 1 < bytes; i++) ((unsigned char *)to)[i] = ((const unsigned char *)from)[i + 1] ^ 0x3c;
  return own_turn(bytes - 1, out_bytes, err);
}

static const gm_codec own_codec = {sizeof own_codec, 1, "own", &own, own_most, own_encode, own_decode, 0};

static unsigned char *piece; /* of PLAIN bytes of `up` */

static int begin_codec(void **state) {
  memset(&own, 0, sizeof own);
  own.fails_at = -1;
  piece = calloc(1, BYTES + 1);
  assert_non_null(piece);
  const int begun = begin(state);
  for (uint64_t i = 0; i < PLAIN / 4; i++) {
    const float number = (float)(i % 200);
    memcpy(up + 4 * i, &number, sizeof number);
  }
  return begun;
}

static int end_codec(void **state) {
  free(piece);
  return end(state);
}

static gm_copy with(gm_copy copy, const gm_codec *codec, gm_codec_way way, uint64_t host_bytes) {
  copy.codec = codec;
  copy.codec_way = way;
  copy.host_bytes = host_bytes;
  return copy;
}

static gm_copy half_up(void) { return with(copy_up(0, HALF), codec("bf16"), GM_CODEC_ENCODE, PLAIN); }
static gm_copy half_down(void) { return with(copy_down(0, HALF), codec("bf16"), GM_CODEC_DECODE, PLAIN); }

/* The device makes the floats whole. */
static gm_copy whole_up(void) {
  gm_copy copy = with(copy_up(0, PLAIN), codec("bf16"), GM_CODEC_ENCODE, PLAIN);
  copy.expand = true;
  return copy;
}

static void check_whole(void) {
  gm_error err;
  memset(down, 0, BYTES);
  ok(gm_block_read(pool, &there, 0, down, PLAIN, NULL, NULL, &err), &err);
  assert_memory_equal(up, down, PLAIN);
  ok(gm_block_fill(pool, &there, 0, PLAIN, "x", 1, NULL, NULL, &err), &err);
}

static gm_copy own_up(uint64_t bytes, const void *from, uint64_t host_bytes) {
  gm_copy copy = with(copy_up(0, bytes), &own_codec, GM_CODEC_DECODE, host_bytes);
  copy.from.host = (void *)(uintptr_t)from;
  return copy;
}

static void fails(gm_copy wrong, gm_status status, const char *word) {
  const gm_copy copies[] = {with(copy_up(SLOT, SMALL), codec("bf16"), GM_CODEC_ENCODE, SLOT), wrong};
  gm_error err = {.message = ""};
  gm_transfer *t = start(copies, 2, NULL);
  const gm_transfer_stats stats = wait_for(t, status);
  assert_int_equal(stats.failed_copy, 1);
  assert_int_equal(stats.useful_bytes, SMALL);
  gm_transfer_poll(t, NULL, NULL, &err);
  if (!strstr(err.message, "copy 1, byte 0: `") || !strstr(err.message, word)) fail_msg("%s", err.message);
  release(t);
}

/* --- --- */

static void floats_are_cut_at_numbers(void **state) {
  (void)state;
  const gm_copy one = half_up(), back = half_down();
  gm_transfer_stats stats = run(&one, 1, NULL);
  assert_int_equal(stats.useful_bytes, HALF);
  assert_int_equal(stats.staged_bytes, HALF);
  assert_int_equal(stats.link_copies, (HALF + SLOT - 1) / SLOT);
  stats = run(&back, 1, NULL);
  assert_int_equal(stats.useful_bytes, HALF);
  assert_memory_equal(up, down, PLAIN);
}

/* Coded and plain copies by turns. A slot has no room for half a piece. */
static void pieces_share_slots(void **state) {
  (void)state;
  enum { PIECES = 30, EACH = 10000 };
  gm_copy copies[2 * PIECES];
  unsigned char *at = malloc((size_t)PIECES * (EACH + 1));
  uint64_t made[PIECES];
  assert_non_null(at);
  for (uint64_t i = 0; i < PIECES; i++) {
    gm_error err;
    ok(gm_codec_encode(&own_codec, up + i * 2 * EACH, EACH, at + i * (EACH + 1), EACH + 1, &made[i], &err), &err);
    copies[2 * i] = own_up(EACH, at + i * (EACH + 1), EACH + 1);
    copies[2 * i].from.offset = 0;
    copies[2 * i].to.offset = i * 2 * EACH;
    copies[2 * i + 1] = copy_up((2 * i + 1) * EACH, EACH);
  }
  assert_int_equal(run(copies, 2 * PIECES, NULL).useful_bytes, 2 * PIECES * EACH);
  for (uint64_t i = 0; i < PIECES; i++) {
    copies[2 * i] = with(copy_down(i * 2 * EACH, EACH), &own_codec, GM_CODEC_ENCODE, EACH + 1 + i);
    copies[2 * i].to = (gm_end){.host = at + i * (EACH + 1)};
    copies[2 * i].out_host_bytes = &made[i];
    copies[2 * i].host_bytes = EACH + 1;
    copies[2 * i + 1] = copy_down((2 * i + 1) * EACH, EACH);
  }
  memset(at, 0, (size_t)PIECES * (EACH + 1));
  memset(made, 0, sizeof made);
  run(copies, 2 * PIECES, NULL);
  for (uint64_t i = 0; i < PIECES; i++) {
    uint64_t plain;
    assert_int_equal(made[i], EACH + 1);
    assert_int_equal(
        gm_codec_decode(&own_codec, at + i * (EACH + 1), EACH + 1, down + 2 * i * EACH, EACH, &plain, NULL), GM_OK);
  }
  assert_memory_equal(up, down, 2 * PIECES * EACH);
  free(at);
}

static void a_piece_from_a_stranger_is_refused(void **state) {
  (void)state;
  uint64_t made;
  assert_int_equal(gm_codec_encode(&own_codec, up, BYTES, piece, BYTES + 1, &made, NULL), GM_OK);
  fails(own_up(1000, piece + 1, 1001), GM_ERR_FORMAT, "`own`, from byte 0 of the host memory on");
  fails(own_up(1000, piece, 1002), GM_ERR_OVER_LIMIT, "`own`");             /* too large for the block's end */
  fails(own_up(1000, piece, 1000), GM_ERR_FORMAT, "made 999 bytes");        /* too small */
  fails(own_up(4 * SLOT, piece, 4 * SLOT), GM_ERR_FORMAT, "made 262143 ");  /* one that is larger than a slot */
  fails(own_up(4 * SLOT, piece + 1, 4 * SLOT + 1), GM_ERR_FORMAT, "`own`"); /* as above */
  own.says = UINT64_MAX;
  fails(own_up(1000, piece, 1001), GM_ERR_OVER_LIMIT, "says that it wrote");
  fails(with(copy_down(0, 1000), &own_codec, GM_CODEC_ENCODE, 2000), GM_ERR_OVER_LIMIT, "says that it wrote");
  own.says = 0;
  fails(with(copy_down(0, 1000), &own_codec, GM_CODEC_ENCODE, 1000), GM_ERR_OVER_LIMIT, "`own`");
  fails(with(copy_down(0, 1000), &own_codec, GM_CODEC_ENCODE, 1002), GM_ERR_FORMAT, "made 1001 bytes for the host");
  fails(with(copy_down(0, 1000), &own_codec, GM_CODEC_DECODE, 1000), GM_ERR_FORMAT, "`own`");
}

/* Whole chunks had arrived before a byte of the piece was changed, and no guard behind the room is touched. */
static void hostile_pieces_of_planes_are_refused(void **state) {
  (void)state;
  const uint64_t bytes = PLAIN;
  packed p = pack(codec("planes"), up, bytes);
  for (uint64_t i = 0; i < 40; i++) {
    const uint64_t at = i < 24 ? i : 24 + (i - 24) * (p.bytes - 24) / 16;
    const gm_copy one = with(copy_up(0, bytes), codec("planes"), GM_CODEC_DECODE, p.bytes);
    gm_copy copy = one;
    copy.from = (gm_end){.host = p.piece};
    p.piece[at] ^= 0x41;
    gm_transfer *t = start(&copy, 1, NULL);
    const gm_status status = gm_transfer_wait(t, UINT64_MAX, NULL, NULL);
    assert_true(status == GM_ERR_FORMAT || status == GM_ERR_OVER_LIMIT);
    release(t);
    p.piece[at] ^= 0x41;
  }
  for (uint64_t cut = 1; cut < p.bytes; cut += 1 + cut / 3) {
    gm_copy copy = with(copy_up(0, bytes), codec("planes"), GM_CODEC_DECODE, cut);
    copy.from = (gm_end){.host = p.piece};
    gm_transfer *t = start(&copy, 1, NULL);
    wait_for(t, GM_ERR_FORMAT);
    release(t);
  }
  free(p.piece);
}

/* --- failures, cancels and what goes later --- */

static void a_hook_that_fails_is_named_with_its_byte(void **state) {
  (void)state;
  gm_error err = {.message = ""};
  gm_codec cut = own_codec; /* chunks of 1 byte: 2 bytes on the host */
  cut.chunk = 1;
  own.fails_at = 2;
  const gm_copy one = with(copy_up(0, BYTES / 2), &cut, GM_CODEC_DECODE, BYTES / 2 * 2);
  memset(up, 0x77, BYTES);
  gm_transfer *t = start(&one, 1, NULL);
  wait_for(t, GM_ERR_OVER_LIMIT); /* its pieces are not as its `chunk` says */
  release(t);
  const gm_copy copies[] = {own_up(SMALL, piece, SMALL + 1), own_up(SMALL, piece, SMALL + 1),
                            own_up(SMALL, piece, SMALL + 1), own_up(SMALL, piece, SMALL + 1)};
  piece[0] = 0x77;
  own.calls = 0;
  t = start(copies, 4, NULL);
  const gm_transfer_stats stats = wait_for(t, GM_ERR_IO);
  assert_int_equal(stats.failed_copy, 2);
  assert_int_equal(stats.useful_bytes, 2 * SMALL);
  gm_transfer_poll(t, NULL, NULL, &err);
  assert_string_equal(err.message, "copy 2, byte 0: `own`, from byte 0 of the host memory on: the key is lost");
  own.fails_at = -1;
  const gm_transfer_params again = {.struct_size = sizeof again, .resume = t};
  assert_int_equal(run(copies, 4, &again).useful_bytes, 4 * SMALL);
  assert_int_equal(own.calls, 3 + 2);
  release(t);
}

static void cancelled_and_resumed(gm_copy one, bool up_going, uint64_t kept) {
  const gm_transfer_params lazy = {.struct_size = sizeof lazy, .no_wait = true};
  cuda_say("hold");
  gm_transfer *t = start(&one, 1, &lazy);
  gm_transfer_cancel(t);
  cuda_say("release");
  gm_transfer_stats stats = wait_for(t, GM_ERR_CANCELLED);
  assert_in_range(stats.useful_bytes, kept, one.bytes - 1);
  const gm_transfer_params again = {.struct_size = sizeof again, .resume = t};
  const gm_transfer_stats rest = run(&one, 1, &again);
  assert_int_equal(rest.useful_bytes, one.bytes);
  assert_int_equal(rest.link_bytes, one.bytes - kept);
  release(t);
  if (up_going) return;
  assert_memory_equal(up, down, PLAIN);
}

/* A codec that is cut goes on where it was. A piece that is whole goes again. */
static void cancelled_it_goes_on_at_a_chunk(void **state) {
  (void)state;
  gm_error err;
  uint64_t made;
  cancelled_and_resumed(half_up(), true, SLOTS * SLOT);
  const gm_copy back = half_down();
  run(&back, 1, NULL);
  assert_memory_equal(up, down, PLAIN);
  memset(down, 0, BYTES);
  cancelled_and_resumed(half_down(), false, (SLOTS - 1) * SLOT); /* the ring keeps one for others */
  ok(gm_codec_encode(&own_codec, up, PLAIN, piece, BYTES + 1, &made, &err), &err);
  cancelled_and_resumed(own_up(PLAIN, piece, PLAIN + 1), true, 0);
  memset(down, 0, BYTES);
  ok(gm_block_read(pool, &there, 0, down, PLAIN, NULL, NULL, &err), &err);
  assert_memory_equal(up, down, PLAIN);
  ok(gm_block_write(pool, &there, 0, piece, PLAIN + 1, NULL, NULL, &err), &err);
  memset(down, 0, BYTES);
  cancelled_and_resumed(with(copy_down(0, PLAIN + 1), &own_codec, GM_CODEC_DECODE, PLAIN), false, 0);
}

/* --- floats that the device makes whole --- */

static void floats_go_as_half_of_their_bytes(void **state) {
  (void)state;
  const gm_copy one = whole_up();
  const gm_transfer_stats stats = run(&one, 1, NULL);
  assert_int_equal(stats.useful_bytes, PLAIN);
  assert_int_equal(stats.device_expanded, PLAIN);
  assert_int_equal(stats.link_bytes, PLAIN / 2);
  assert_int_equal(stats.staged_bytes, PLAIN / 2);
  check_whole();
}

static void cancelled_they_go_on_at_a_number(void **state) {
  (void)state;
  const gm_transfer_params lazy = {.struct_size = sizeof lazy, .no_wait = true};
  const gm_copy one = whole_up();
  cuda_say("hold");
  gm_transfer *t = start(&one, 1, &lazy);
  gm_transfer_cancel(t);
  cuda_say("release");
  const gm_transfer_stats stats = wait_for(t, GM_ERR_CANCELLED);
  assert_in_range(stats.device_expanded, 4, PLAIN - 4);
  const gm_transfer_params again = {.struct_size = sizeof again, .resume = t};
  const gm_transfer_stats rest = run(&one, 1, &again);
  assert_int_equal(rest.useful_bytes, PLAIN);
  assert_int_equal(rest.device_expanded, PLAIN - stats.device_expanded);
  release(t);
  check_whole();
}

/* A kernel that the driver refuses in the middle, and no memory for it: the host does the rest. */
static void what_the_device_cannot_the_host_does(void **state) {
  (void)state;
  const gm_copy one = whole_up();
  cuda_say("fail cuLaunchKernel:3:701");
  gm_transfer_stats stats = run(&one, 1, NULL);
  assert_in_range(stats.device_expanded, 4, SLOT * 4);
  assert_int_equal(stats.device_expanded + stats.host_expanded, PLAIN);
  assert_int_equal(stats.link_bytes, stats.device_expanded / 2 + stats.host_expanded);
  check_whole();
}

static void without_memory_beside_the_host_does(void **state) {
  (void)state;
  const gm_copy one = whole_up();
  cuda_say("fail cuMemAlloc_v2:1:2");
  gm_transfer_stats stats = run(&one, 1, NULL);
  assert_int_equal(stats.host_expanded, PLAIN);
  check_whole();
  stats = run(&one, 1, NULL); /* there is some again */
  assert_int_equal(stats.device_expanded, PLAIN);
  check_whole();
}

static void a_lost_kernel_fails_the_copy(void **state) {
  (void)state;
  const gm_copy one = whole_up();
  gm_error err;
  cuda_say("fail cuLaunchKernel:2:719:sticky");
  gm_transfer *t = start(&one, 1, NULL);
  const gm_transfer_stats stats = wait_for(t, GM_ERR_DEVICE_LOST);
  assert_int_equal(stats.failed_copy, 0);
  assert_int_not_equal(gm_transfer_poll(t, NULL, NULL, &err), GM_OK);
  release(t);
  lost = true;
}

/* --- an engine that records gets bytes as the device's end has them --- */

static uint64_t recorded;

static bool record(void *user, const gm_copy *given, uint64_t ticket) {
  gm_transfer **t = user;
  (void)t, (void)ticket;
  assert_null(given->codec);
  assert_int_equal(given->host_bytes, 0);
  assert_true(given->bytes <= SLOT);
  gm_error err;
  if (given->to.block) {
    ok(gm_block_write(given->to.pool, given->to.block, given->to.offset, given->from.host, given->bytes, NULL, NULL,
                      &err),
       &err);
  } else {
    ok(gm_block_read(given->from.pool, given->from.block, given->from.offset, given->to.host, given->bytes, NULL, NULL,
                     &err),
       &err);
  }
  recorded = ticket;
  return true;
}

static void an_engine_records_coded_pieces(void **state) {
  (void)state;
  gm_transfer_params params = {.struct_size = sizeof params, .stream = stream, .record = record};
  const gm_copy copies[] = {half_up(), half_down(), whole_up()};
  uint64_t answered = 0;
  for (int i = 0; i < 3; i++) {
    bool done = false;
    recorded = answered = 0;
    gm_transfer *t = start(&copies[i], 1, &params);
    while (!done) {
      while (answered < recorded) assert_int_equal(gm_transfer_passed(t, ++answered, NULL, NULL), GM_OK);
      assert_int_equal(gm_transfer_poll(t, NULL, &done, NULL), GM_OK);
    }
    release(t);
  }
  assert_memory_equal(up, down, PLAIN);
  check_whole();
  const gm_copy wrong = own_up(1000, up + 1, 1001); /* no piece: the engine never hears of it */
  recorded = 0;
  gm_transfer *t = start(&wrong, 1, &params);
  wait_for(t, GM_ERR_FORMAT);
  assert_int_equal(recorded, 0);
  release(t);
}

/* --- refused before the first one moves --- */

static void refuse(gm_copy wrong, gm_status status, const char *word) {
  const gm_copy copies[] = {half_up(), wrong};
  gm_transfer *t = NULL;
  gm_error err;
  assert_int_equal(gm_transfer_start(device, copies, 2, NULL, &t, &err), status);
  assert_null(t);
  if (!strstr(err.message, "copy 1") || !strstr(err.message, word)) fail_msg("%s", err.message);
  assert_int_equal(cuda_calls("cuMemcpyHtoDAsync") + cuda_calls("cuMemcpyHtoD"), 0);
}

static void wrong_wishes_to_expand_are_refused(void **state) {
  (void)state;
  const gm_status bad = GM_ERR_INVALID_ARGUMENT;
  const gm_codec stranger = *codec("bf16");
  gm_copy wrong = copy_up(0, 8);
  wrong.expand = true;
  refuse(wrong, bad, "`expand` needs `codec`");
  wrong = with(copy_up(0, 8), codec("planes"), GM_CODEC_DECODE, 8);
  wrong.expand = true;
  refuse(wrong, bad, "\"bf16\" or \"fp16\"");
  wrong.codec = &stranger;
  refuse(wrong, bad, "\"bf16\" or \"fp16\"");
  wrong = with(copy_down(0, 8), codec("bf16"), GM_CODEC_DECODE, 16);
  wrong.expand = true;
  refuse(wrong, bad, "a copy from the host");
  wrong = with(copy_up(2, 8), codec("bf16"), GM_CODEC_DECODE, 4);
  wrong.expand = true;
  refuse(wrong, bad, "multiple of 4");
  wrong = with(copy_up(0, 8), codec("bf16"), GM_CODEC_ENCODE, 16);
  wrong.expand = true;
  refuse(wrong, bad, "4 bytes on the host for 4");
  wrong = with(copy_up(0, 6), codec("bf16"), GM_CODEC_DECODE, 3);
  wrong.expand = true;
  refuse(wrong, bad, "2 bytes on the host for 4");
}

static void wrong_codecs_are_refused_before_the_first_moves(void **state) {
  (void)state;
  const gm_status bad = GM_ERR_INVALID_ARGUMENT;
  uint64_t made;
  gm_codec no = own_codec;
  gm_copy wrong = copy_up(0, 8);
  wrong.host_bytes = 8;
  refuse(wrong, bad, "`host_bytes` needs `codec`");
  wrong = copy_up(0, 8);
  wrong.out_host_bytes = &made;
  refuse(wrong, bad, "`out_host_bytes` needs");
  wrong = copy_up(0, 8);
  wrong.codec_way = GM_CODEC_DECODE;
  refuse(wrong, bad, "`codec_way` needs");
  refuse(with(copy_inside(8), codec("bf16"), GM_CODEC_ENCODE, 16), bad, "an end on the host");
  refuse(with(copy_up(0, 0), codec("bf16"), GM_CODEC_ENCODE, 16), bad, "needs `bytes`");
  refuse(with(copy_up(0, 8), codec("bf16"), GM_CODEC_ENCODE, 0), bad, "needs `host_bytes`");
  refuse(with(copy_up(0, 8), codec("bf16"), (gm_codec_way)7, 16), bad, "the way of `codec`");
  refuse(with(copy_up(0, 8), codec("bf16"), GM_CODEC_ENCODE, 14), bad, "multiples of 4");
  refuse(with(copy_up(0, 8), codec("bf16"), GM_CODEC_ENCODE, 12), bad, "4 bytes on the host for 2");
  refuse(with(copy_down(0, 8), codec("bf16"), GM_CODEC_DECODE, 12), bad, "4 bytes on the host for 2");
  refuse(with(copy_down(0, 8), codec("bf16"), GM_CODEC_ENCODE, 8), bad, "2 bytes on the host for 4");
  wrong = half_up();
  wrong.out_host_bytes = &made;
  refuse(wrong, bad, "copy to the host");
  no.decode = NULL;
  refuse(with(copy_up(0, 8), &no, GM_CODEC_ENCODE, 8), bad, "has no `decode`");
  no = (gm_codec){.struct_size = 3};
  refuse(with(copy_up(0, 8), &no, GM_CODEC_ENCODE, 8), bad, "struct_size");
  wrong = half_up();
  wrong.from.offset = UINTPTR_MAX - (uintptr_t)up - HALF; /* as many as the block takes, but not as the host has */
  refuse(wrong, bad, "beyond the last address");
}

int main(void) {
#define CODEC_TEST(name) cmocka_unit_test_setup_teardown(name, begin_codec, end_codec)
  const struct CMUnitTest tests[] = {
      CODEC_TEST(floats_are_cut_at_numbers),
      CODEC_TEST(pieces_share_slots),
      CODEC_TEST(a_piece_from_a_stranger_is_refused),
      CODEC_TEST(hostile_pieces_of_planes_are_refused),
      CODEC_TEST(a_hook_that_fails_is_named_with_its_byte),
      CODEC_TEST(cancelled_it_goes_on_at_a_chunk),
      CODEC_TEST(floats_go_as_half_of_their_bytes),
      CODEC_TEST(cancelled_they_go_on_at_a_number),
      CODEC_TEST(what_the_device_cannot_the_host_does),
      CODEC_TEST(without_memory_beside_the_host_does),
      CODEC_TEST(an_engine_records_coded_pieces),
      CODEC_TEST(wrong_wishes_to_expand_are_refused),
      CODEC_TEST(wrong_codecs_are_refused_before_the_first_moves),
      CODEC_TEST(a_lost_kernel_fails_the_copy), /* the last: the driver keeps what was lost */
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
