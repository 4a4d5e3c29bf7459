/* Codecs as stages of a pipeline on the CPU: both ends, both directions, gm's own and a program's. A piece from a
 * stranger can do anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "gm/context.h"
#include "gm/pipeline.h"
#include "support/adopt_scene.h"
#include "support/codec_scene.h"

enum { PLAIN = 4000, HALF = PLAIN / 2, COUNT = PLAIN / 4, PIECES = 12, ROOM = PLAIN + 64 };

static gm_context *ctx;
static gm_device *device;
static gm_pool *pool;
static gm_pipeline *pipeline;
static gm_pipeline_params params;

typedef struct piece {
  unsigned char bytes[ROOM];
  uint64_t count;
} piece;

static piece input[PIECES], seen[PIECES], output[PIECES]; /* of the source, on the device, of the sink */
static int inputs, read, stepped, written;

enum { CANCEL_NOWHERE, CANCEL_READ, CANCEL_IN_CODEC, CANCEL_STEP, CANCEL_OUT_CODEC, CANCEL_WRITE, CANCEL_ENDS };
static int cancel_in; /* the callback that cancels at its fifth call */

static void may_cancel(int where, int call) {
  if (cancel_in == where && call == 4) gm_pipeline_cancel(pipeline);
}

static gm_status read_piece(void *user, void *host, uint64_t most, uint64_t *out_bytes) {
  (void)user;
  if (read == inputs) return GM_OK;
  assert_int_equal(most, params.read_bytes ? params.read_bytes : params.item_bytes);
  may_cancel(CANCEL_READ, read);
  memcpy(host, input[read].bytes, (size_t)input[read].count);
  *out_bytes = input[read++].count;
  return GM_OK;
}

/* The device gives back what it got. */
static gm_status step_piece(void *user, gm_pipeline_item *item, gm_error *err) {
  (void)user;
  const void *in = (const void *)(uintptr_t)item->in.address;
  if (item->stream && gm_stream_sync(item->stream, err) != GM_OK) return err->status;
  assert_in_range(item->bytes, 1, params.item_bytes);
  assert_int_equal(item->index, stepped);
  may_cancel(CANCEL_STEP, stepped);
  seen[stepped].count = item->bytes;
  memcpy(seen[stepped++].bytes, in, (size_t)item->bytes);
  if (!params.out_bytes) return GM_OK;
  item->out_bytes = item->index == 5 ? 0 : item->bytes; /* one piece leaves nothing */
  memcpy((void *)(uintptr_t)item->out.address, in, (size_t)item->out_bytes);
  return GM_OK;
}

static gm_status write_piece(void *user, const void *host, uint64_t bytes, uint64_t index) {
  (void)user;
  assert_int_equal(index, written);
  assert_in_range(bytes, 0, ROOM);
  may_cancel(CANCEL_WRITE, written);
  if (bytes) memcpy(output[written].bytes, host, (size_t)bytes);
  output[written++].count = bytes;
  return GM_OK;
}

/* --- a program's own codec: a byte 0x77 and all bytes changed, for each piece --- */

static struct {
  gm_status answer; /* of its hooks, for the piece `at` */
  int at, calls, encoded, decoded;
  uint64_t says; /* how many bytes it says that it wrote; 0: the truth */
} own;

static uint64_t own_most(void *user, uint64_t bytes) {
  assert_ptr_equal(user, &own);
  return bytes + 1;
}

static gm_status own_answer(uint64_t wrote, uint64_t *out_bytes, gm_error *err) {
  const bool now = own.calls++ == own.at;
  *out_bytes = now && own.says ? own.says : wrote;
  if (!now || !own.answer) return GM_OK;
  *err = (gm_error){.status = own.answer, .op = "own", .message = "the key is lost"};
  return own.answer;
}

static gm_status own_encode(void *user, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                            uint64_t *out_bytes, gm_error *err) {
  unsigned char *put = to;
  assert_ptr_equal(user, &own);
  assert_true(capacity > bytes);
  may_cancel(CANCEL_IN_CODEC, own.encoded++);
  put[0] = 0x77;
  for (uint64_t i = 0; i < bytes; i++) put[i + 1] = ((const unsigned char *)from)[i] ^ 0x3c;
  return own_answer(bytes + 1, out_bytes, err);
}

static gm_status own_decode(void *user, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                            uint64_t *out_bytes, gm_error *err) {
  const unsigned char *at = from;
  assert_ptr_equal(user, &own);
  may_cancel(CANCEL_OUT_CODEC, own.decoded++);
  if (!bytes || at[0] != 0x77 || bytes - 1 > capacity) return GM_ERR_FORMAT; /* without a word */
  for (uint64_t i = 0; i + 1 < bytes; i++) ((unsigned char *)to)[i] = at[i + 1] ^ 0x3c;
  return own_answer(bytes - 1, out_bytes, err);
}

static const gm_codec own_codec = {sizeof own_codec, 1, "own", &own, own_most, own_encode, own_decode, 0};

/* --- the scene --- */

static int begin(void **state) {
  (void)state;
  gm_error err;
  const gm_pool_params pool_params = {.struct_size = sizeof pool_params};
  ctx = adopt_scene_context("cpu", NULL);
  adopt_scene_ok(gm_device_open_index(ctx, "cpu", 0, &device, &err), &err);
  adopt_scene_ok(gm_pool_create(device, &pool_params, &pool, &err), &err);
  params = (gm_pipeline_params){
      .struct_size = sizeof params, .item_bytes = PLAIN, .in_pool = pool, .source = read_piece, .step = step_piece};
  pipeline = NULL;
  memset(input, 0, sizeof input);
  memset(seen, 0, sizeof seen);
  memset(output, 0, sizeof output);
  memset(&own, 0, sizeof own);
  own.at = -1;
  inputs = PIECES;
  cancel_in = CANCEL_NOWHERE;
  read = stepped = written = 0;
  return 0;
}

static int end(void **state) {
  (void)state;
  gm_error err;
  adopt_scene_ok(gm_pipeline_destroy(pipeline, &err), &err);
  adopt_scene_end_pool(ctx, device, pool);
  return 0;
}

/* Floats; pieces differ, also in their size. */
static void plain_input(void) {
  for (int i = 0; i < PIECES; i++) {
    input[i].count = PLAIN - (uint64_t)(i % 4) * 400;
    for (int k = 0; k < COUNT; k++) {
      const float number = (float)(i * COUNT + k) / 97.0f - 50.0f;
      memcpy(input[i].bytes + 4 * k, &number, sizeof number);
    }
  }
}

static piece coded(const gm_codec *with, const piece *from) {
  piece p = {.count = 0};
  assert_int_equal(gm_codec_encode(with, from->bytes, from->count, p.bytes, ROOM, &p.count, NULL), GM_OK);
  return p;
}

static void encoded_input(const gm_codec *with) {
  plain_input();
  for (int i = 0; i < PIECES; i++) input[i] = coded(with, &input[i]);
}

static gm_pipeline_stats run_whole(void) {
  gm_error err;
  gm_pipeline_stats stats = {.struct_size = sizeof stats};
  adopt_scene_ok(gm_pipeline_create(device, &params, &pipeline, &err), &err);
  adopt_scene_ok(gm_pipeline_run(pipeline, &stats, &err), &err);
  assert_int_equal(stepped, PIECES);
  assert_int_equal(stats.items, PIECES);
  return stats;
}

static uint64_t sum(const piece *pieces) {
  uint64_t bytes = 0;
  for (int i = 0; i < PIECES; i++) bytes += pieces[i].count;
  return bytes;
}

static void same(const piece *got, const piece *want, int i) {
  if (got->count != want->count) fail_msg("piece %d: %d bytes, not %d", i, (int)got->count, (int)want->count);
  assert_memory_equal(got->bytes, want->bytes, (size_t)want->count);
}

static void floats_go_up_in_half_of_the_bytes(void **state) {
  (void)state;
  plain_input();
  params.in_codec = codec("bf16");
  params.read_bytes = PLAIN;
  params.item_bytes = HALF;
  const gm_pipeline_stats stats = run_whole();
  for (int i = 0; i < PIECES; i++) {
    const piece want = coded(codec("bf16"), &input[i]);
    same(&seen[i], &want, i);
  }
  assert_int_equal(stats.read_bytes, sum(input));
  assert_int_equal(stats.up_bytes, sum(input) / 2);
  assert_int_equal(stats.written_bytes, 0);
  assert_true(stats.host_bytes >= PLAIN + HALF);
}

static void packed_pieces_are_unpacked_on_their_way(void **state) {
  (void)state;
  encoded_input(codec("planes"));
  params.in_codec = codec("planes");
  params.in_way = GM_CODEC_DECODE;
  params.read_bytes = ROOM;
  const gm_pipeline_stats stats = run_whole();
  plain_input();
  for (int i = 0; i < PIECES; i++) same(&seen[i], &input[i], i);
  assert_int_equal(stats.up_bytes, sum(input));
}

static void results_are_packed_on_their_way_out(void **state) {
  (void)state;
  plain_input();
  params.out_bytes = PLAIN;
  params.sink = write_piece;
  params.out_codec = codec("planes");
  const gm_pipeline_stats stats = run_whole();
  assert_int_equal(written, PIECES);
  for (int i = 0; i < PIECES; i++) {
    const piece want = i == 5 ? (piece){.count = 0} : coded(codec("planes"), &input[i]);
    same(&output[i], &want, i);
  }
  assert_int_equal(stats.written_bytes, sum(output));
  assert_int_equal(stats.down_bytes, sum(input) - input[5].count);
}

/* Both ends at once share their room: half of the bytes go up and come down, all are read and written. */
static void floats_come_back_whole(void **state) {
  (void)state;
  plain_input();
  params.in_codec = params.out_codec = codec("fp16");
  params.out_way = GM_CODEC_DECODE;
  params.read_bytes = params.write_bytes = PLAIN;
  params.item_bytes = params.out_bytes = HALF;
  params.sink = write_piece;
  run_whole();
  for (int i = 0; i < PIECES; i++) {
    const piece half = coded(codec("fp16"), &input[i]);
    piece want = {.count = 0};
    uint64_t bytes = 0;
    if (i != 5)
      assert_int_equal(gm_codec_decode(codec("fp16"), half.bytes, half.count, want.bytes, ROOM, &bytes, NULL), 0);
    want.count = bytes;
    same(&output[i], &want, i);
  }
}

static void a_program_brings_its_own(void **state) {
  (void)state;
  encoded_input(&own_codec);
  params.in_codec = params.out_codec = &own_codec;
  params.in_way = GM_CODEC_DECODE;
  params.read_bytes = PLAIN + 1;
  params.out_bytes = PLAIN;
  params.sink = write_piece;
  run_whole();
  for (int i = 0; i < PIECES; i++) {
    const piece want = {.count = 0};
    same(&output[i], i == 5 ? &want : &input[i], i);
  }
  plain_input();
  for (int i = 0; i < PIECES; i++) same(&seen[i], &input[i], i);
}

static void pushed_pieces_go_through_it(void **state) {
  (void)state;
  gm_error err;
  plain_input();
  params.in_codec = codec("bf16");
  params.read_bytes = PLAIN;
  params.item_bytes = HALF;
  params.source = NULL;
  adopt_scene_ok(gm_pipeline_create(device, &params, &pipeline, &err), &err);
  assert_int_equal(gm_pipeline_push(pipeline, input[0].bytes, PLAIN + 1, 0, &err), GM_ERR_INVALID_ARGUMENT);
  for (int i = 0; i < PIECES; i++) {
    adopt_scene_ok(gm_pipeline_push(pipeline, input[i].bytes, input[i].count, UINT64_MAX, &err), &err);
    const piece want = coded(codec("bf16"), &input[i]);
    same(&seen[i], &want, i);
  }
  adopt_scene_ok(gm_pipeline_flush(pipeline, NULL, &err), &err);
  /* no whole floats: the piece is refused, and the pipeline is at its end, since a piece of the data is lost */
  assert_int_equal(gm_pipeline_push(pipeline, input[0].bytes, 6, UINT64_MAX, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "stage in_codec"));
  assert_int_equal(gm_pipeline_push(pipeline, input[0].bytes, 8, UINT64_MAX, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(stepped, PIECES);
}

/* --- what goes wrong --- */

/* The run ends so, with pieces before it out; the message has each word. */
static void run_into(gm_status status, gm_pipeline_stage stage, int item, const char *const words[3]) {
  gm_error err;
  gm_pipeline_stats stats = {.struct_size = sizeof stats};
  adopt_scene_ok(gm_pipeline_create(device, &params, &pipeline, &err), &err);
  assert_int_equal(gm_pipeline_run(pipeline, &stats, &err), status);
  for (int i = 0; i < 3; i++) {
    if (!strstr(err.message, words[i])) fail_msg("`%s` is not in: %s", words[i], err.message);
  }
  assert_int_equal(stats.failed, stage);
  assert_int_equal(stats.failed_item, item);
  assert_int_equal(stats.items, item);
  assert_int_equal(gm_pipeline_run(pipeline, NULL, &err), status);
  adopt_scene_ok(gm_pipeline_destroy(pipeline, &err), &err);
  pipeline = NULL;
  read = stepped = written = 0;
}

static void decode_planes(void) {
  params.in_codec = codec("planes");
  params.in_way = GM_CODEC_DECODE;
  params.read_bytes = ROOM;
}

/* Every byte of a piece that is changed is found, and so is every length that is missing; nothing of it goes up. */
static void changed_and_cut_pieces_are_found(void **state) {
  (void)state;
  char byte[64];
  encoded_input(codec("planes"));
  decode_planes();
  snprintf(byte, sizeof byte, "from byte %d of the source on", (int)(input[0].count + input[1].count));
  const char *const words[] = {"piece 2, stage in_codec", "planes", byte};
  const piece good = input[2];
  for (uint64_t i = 0; i < good.count; i += i < 64 ? 1 : 97) {
    if (i >= 16 && i < 24) continue; /* the number of plain bytes: below */
    input[2].bytes[i] ^= 1;
    run_into(GM_ERR_FORMAT, GM_STAGE_IN_CODEC, 2, words);
    input[2] = good;
    input[2].count = i ? i : 1;
    run_into(GM_ERR_FORMAT, GM_STAGE_IN_CODEC, 2, words);
    input[2] = good;
  }
}

static void a_piece_that_would_be_too_large_is_refused(void **state) {
  (void)state;
  encoded_input(codec("planes"));
  decode_planes();
  const char *const words[] = {"piece 3, stage in_codec", "planes", "there is room for 4000"};
  input[3].bytes[16 + 4] = 1; /* 4 GiB more plain bytes than there are */
  run_into(GM_ERR_OVER_LIMIT, GM_STAGE_IN_CODEC, 3, words);
}

static void a_piece_of_nothing_is_refused(void **state) {
  (void)state;
  const piece empty = {.count = 0};
  const char *const words[] = {"piece 4, stage in_codec", "planes", "no bytes"};
  encoded_input(codec("planes"));
  input[4] = coded(codec("planes"), &empty);
  assert_true(input[4].count > 0);
  decode_planes();
  run_into(GM_ERR_FORMAT, GM_STAGE_IN_CODEC, 4, words);
}

static void the_programs_codec_lies_or_fails(void **state) {
  (void)state;
  const char *const large[] = {"piece 6, stage in_codec", "from byte", "wrote 9999 bytes, there is room for 4001"};
  const char *const lost[] = {"piece 6, stage in_codec", "`own`", "the key is lost"};
  const char *const silent[] = {"piece 7, stage in_codec", "`own`", "answered GM_ERR_FORMAT"};
  plain_input();
  params.in_codec = &own_codec;
  params.read_bytes = PLAIN;
  params.item_bytes = PLAIN + 1;
  own.at = 6;
  own.says = 9999;
  run_into(GM_ERR_OVER_LIMIT, GM_STAGE_IN_CODEC, 6, large);
  own.calls = 0;
  own.answer = GM_ERR_DRIVER;
  run_into(GM_ERR_DRIVER, GM_STAGE_IN_CODEC, 6, lost);
  own.at = -1;
  params.in_way = GM_CODEC_DECODE;
  params.read_bytes = PLAIN + 1;
  encoded_input(&own_codec);
  input[7].bytes[0] = 0;
  run_into(GM_ERR_FORMAT, GM_STAGE_IN_CODEC, 7, silent);
}

/* Pieces before it are written, the one that failed and later ones are not. */
static void the_way_out_fails(void **state) {
  (void)state;
  char byte[64];
  plain_input();
  params.out_bytes = PLAIN;
  params.sink = write_piece;
  params.out_codec = &own_codec;
  own.at = 3;
  own.answer = GM_ERR_IO;
  snprintf(byte, sizeof byte, "from byte %d of the output on", (int)(input[0].count + input[1].count + input[2].count));
  const char *const words[] = {"piece 3, stage out_codec", "the key is lost", byte};
  run_into(GM_ERR_IO, GM_STAGE_OUT_CODEC, 3, words);
  assert_int_equal(output[2].count, input[2].count + 1);
  assert_int_equal(output[3].count, 0);
}

/* Wherever it is cancelled, that piece still goes through all stages, with those before it, and no further one is read.
 */
static void it_is_cancelled_in_every_stage(void **state) {
  (void)state;
  gm_error err;
  plain_input();
  params.in_codec = params.out_codec = &own_codec;
  params.out_way = GM_CODEC_DECODE;
  params.depth = 3;
  params.read_bytes = params.write_bytes = PLAIN;
  params.item_bytes = params.out_bytes = PLAIN + 1;
  params.sink = write_piece;
  for (cancel_in = CANCEL_READ; cancel_in < CANCEL_ENDS; cancel_in++) {
    gm_pipeline_stats stats = {.struct_size = sizeof stats};
    adopt_scene_ok(gm_pipeline_create(device, &params, &pipeline, &err), &err);
    assert_int_equal(gm_pipeline_run(pipeline, &stats, &err), GM_ERR_CANCELLED);
    assert_int_equal(stats.failed, GM_STAGE_NONE);
    assert_in_range(read, 5, cancel_in < CANCEL_OUT_CODEC ? 5 : 5 + 3);
    assert_int_equal(written, read);
    assert_int_equal(stats.items, read);
    for (int i = 0; i < written; i++) same(&output[i], i == 5 ? &(piece){.count = 0} : &input[i], i);
    assert_int_equal(gm_pipeline_run(pipeline, NULL, &err), GM_ERR_CANCELLED);
    assert_int_equal(gm_pipeline_push(pipeline, input[0].bytes, PLAIN, 0, &err), GM_ERR_CANCELLED);
    assert_int_equal(read, written);
    adopt_scene_ok(gm_pipeline_destroy(pipeline, &err), &err);
    pipeline = NULL;
    read = stepped = written = own.encoded = own.decoded = 0;
  }
}

static void refuse(gm_status status, const char *word) {
  gm_error err;
  assert_int_equal(gm_pipeline_create(device, &params, &pipeline, &err), status);
  assert_null(pipeline);
  if (!strstr(err.message, word)) fail_msg("`%s` is not in: %s", word, err.message);
}

#define REFUSED(member, value, status, word)     \
  do {                                           \
    const gm_pipeline_params before = params;    \
    params.member = value, refuse(status, word); \
    params = before;                             \
  } while (0)

static void wrong_parameters(void **state) {
  (void)state;
  gm_codec lacks = own_codec;
  params.in_codec = codec("bf16");
  params.read_bytes = PLAIN;
  params.item_bytes = HALF;
  params.out_bytes = PLAIN;
  params.sink = write_piece;
  params.out_codec = codec("planes");
  REFUSED(read_bytes, 0, GM_ERR_INVALID_ARGUMENT, "`in_codec` needs `read_bytes`");
  REFUSED(read_bytes, 6, GM_ERR_INVALID_ARGUMENT, "multiples of 4");
  REFUSED(read_bytes, PLAIN + 4, GM_ERR_INVALID_ARGUMENT, "`in_codec` makes up to 2002 bytes of 4004");
  REFUSED(read_bytes, UINT64_MAX, GM_ERR_INVALID_ARGUMENT, "larger");
  REFUSED(write_bytes, PLAIN, GM_ERR_INVALID_ARGUMENT, "`write_bytes`, which is 4000");
  REFUSED(write_bytes, UINT64_MAX, GM_ERR_INVALID_ARGUMENT, "larger");
  REFUSED(in_codec, NULL, GM_ERR_INVALID_ARGUMENT, "`read_bytes` needs");
  REFUSED(out_bytes, 0, GM_ERR_INVALID_ARGUMENT, "`out_codec` needs `out_bytes`");
  REFUSED(out_way, GM_CODEC_DECODE, GM_ERR_INVALID_ARGUMENT, "needs `write_bytes`");
  REFUSED(in_way, (gm_codec_way)2, GM_ERR_INVALID_ARGUMENT, "the way of `in_codec` is 2");
  lacks.decode = NULL;
  REFUSED(out_codec, &lacks, GM_ERR_INVALID_ARGUMENT, "has no `decode`");
  params.out_codec = NULL;
  REFUSED(write_bytes, 1, GM_ERR_INVALID_ARGUMENT, "`write_bytes` needs");
}

int main(void) {
#define CODEC_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      CODEC_TEST(floats_go_up_in_half_of_the_bytes),
      CODEC_TEST(packed_pieces_are_unpacked_on_their_way),
      CODEC_TEST(results_are_packed_on_their_way_out),
      CODEC_TEST(floats_come_back_whole),
      CODEC_TEST(a_program_brings_its_own),
      CODEC_TEST(pushed_pieces_go_through_it),
      CODEC_TEST(changed_and_cut_pieces_are_found),
      CODEC_TEST(a_piece_that_would_be_too_large_is_refused),
      CODEC_TEST(a_piece_of_nothing_is_refused),
      CODEC_TEST(the_programs_codec_lies_or_fails),
      CODEC_TEST(the_way_out_fails),
      CODEC_TEST(it_is_cancelled_in_every_stage),
      CODEC_TEST(wrong_parameters),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
