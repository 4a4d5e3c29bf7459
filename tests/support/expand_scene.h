/* gm_block_expand on a pool of any backend: every number of 16 bits against the codec's decoder, on the stream and
 * without. Then the same as a wish of transfers and pipelines. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_EXPAND_SCENE_H
#define GM_TESTS_SUPPORT_EXPAND_SCENE_H

#include "core/staging/staging.h"
#include "gm/pipeline.h"
#include "gm/transfer.h"
#include "support/pool_bench.h"

enum { EXPAND_ALL = 65536 };

static inline gm_block expand_take(const pool_bench *bench, uint64_t bytes) {
  const gm_request request = {.bytes = bytes};
  gm_block block;
  const gm_acquire answer = gm_alloc(bench->pool, &request, &block);
  assert_true(answer == GM_ACQUIRE_OK || answer == GM_ACQUIRE_FRESH);
  return block;
}

static inline void expand_check_codec(const pool_bench *bench, gm_stream *stream, const char *name, bool by_host) {
  static uint16_t numbers[EXPAND_ALL + 1];
  static uint32_t want[EXPAND_ALL], got[EXPAND_ALL];
  const gm_codec *codec = gm_codec_find(name);
  gm_block from = expand_take(bench, sizeof numbers), to = expand_take(bench, sizeof got + 8);
  gm_point point = {0};
  uint64_t bytes = 0;
  bool host = !by_host;
  for (uint32_t i = 0; i < EXPAND_ALL; i++) numbers[i + 1] = (uint16_t)i;
  pool_bench_ok(gm_codec_decode(codec, numbers + 1, 2 * EXPAND_ALL, want, sizeof want, &bytes, err));
  pool_bench_ok(gm_block_write(bench->pool, &from, 0, numbers, sizeof numbers, stream, NULL, err));
  pool_bench_ok(gm_block_expand(bench->pool, &to, 8, bench->pool, &from, 2, EXPAND_ALL, codec, stream,
                                stream ? &point : NULL, &host, err));
  if (stream) pool_bench_ok(gm_point_wait(bench->device, &point, UINT64_MAX, err));
  gm_point_release(bench->device, &point);
  pool_bench_ok(gm_block_read(bench->pool, &to, 8, got, sizeof got, stream, NULL, err));
  assert_memory_equal(got, want, sizeof got);
  assert_int_equal(host, by_host);
  assert_int_equal(gm_free(bench->pool, &from, stream), GM_OK);
  assert_int_equal(gm_free(bench->pool, &to, stream), GM_OK);
}

/* Floats go up as those of 16 bits, and are whole in the block: more of them than one slot takes, and the last few. */
enum { EXPAND_MANY = EXPAND_ALL / 2 + 3, EXPAND_FEW = 5, EXPAND_SLOTS = 3, EXPAND_SLOT = 98304 };

static inline gm_copy expand_copy(const pool_bench *bench, const gm_block *to, uint64_t at, const void *from,
                                  uint64_t count, const char *name, gm_codec_way way) {
  return (gm_copy){.struct_size = sizeof(gm_copy),
                   .to = {.pool = bench->pool, .block = to, .offset = 4 * at},
                   .from = {.host = (void *)(uintptr_t)from},
                   .bytes = 4 * count,
                   .host_bytes = way == GM_CODEC_ENCODE ? 4 * count : 2 * count,
                   .codec = gm_codec_find(name),
                   .codec_way = way,
                   .expand = true};
}

static inline gm_transfer_stats expand_run(const pool_bench *bench, const gm_copy *copies, uint64_t count,
                                           gm_stream *stream) {
  const gm_transfer_params params = {.struct_size = sizeof params, .stream = stream};
  gm_transfer_stats stats = {.struct_size = sizeof stats};
  gm_transfer *transfer;
  pool_bench_ok(gm_transfer_start(bench->device, copies, count, &params, &transfer, err));
  pool_bench_ok(gm_transfer_wait(transfer, UINT64_MAX, &stats, err));
  pool_bench_ok(gm_transfer_release(transfer, err));
  return stats;
}

static inline void expand_check_transfer(const pool_bench *bench, gm_stream *stream, const char *name, bool by_host) {
  static uint16_t halves[EXPAND_MANY + 1];
  static uint32_t floats[EXPAND_FEW], want[EXPAND_MANY + EXPAND_FEW], got[EXPAND_MANY + EXPAND_FEW];
  uint64_t bytes = 0;
  uint16_t few[EXPAND_FEW];
  gm_block to = expand_take(bench, sizeof got);
  for (uint32_t i = 0; i < EXPAND_MANY; i++) halves[i + 1] = (uint16_t)(i * 2 + 1);
  for (uint32_t i = 0; i < EXPAND_FEW; i++) floats[i] = 0x3f812345 + i * 0x1111111;
  pool_bench_ok(gm_codec_decode(gm_codec_find(name), halves + 1, 2 * EXPAND_MANY, want, 4 * EXPAND_MANY, &bytes, err));
  pool_bench_ok(gm_codec_encode(gm_codec_find(name), floats, sizeof floats, few, sizeof few, &bytes, err));
  pool_bench_ok(gm_codec_decode(gm_codec_find(name), few, sizeof few, want + EXPAND_MANY, sizeof floats, &bytes, err));
  const gm_copy copies[] = {
      expand_copy(bench, &to, 0, halves + 1, EXPAND_MANY, name, GM_CODEC_DECODE),
      expand_copy(bench, &to, EXPAND_MANY, floats, EXPAND_FEW, name, GM_CODEC_ENCODE),
  };
  const gm_transfer_stats stats = expand_run(bench, copies, 2, stream);
  pool_bench_ok(gm_block_read(bench->pool, &to, 0, got, sizeof got, stream, NULL, err));
  assert_memory_equal(got, want, sizeof got);
  assert_int_equal(stats.device_expanded, by_host ? 0 : sizeof got);
  assert_int_equal(stats.host_expanded, by_host ? sizeof got : 0);
  assert_int_equal(stats.link_bytes, by_host ? sizeof got : sizeof got / 2);
  assert_int_equal(stats.useful_bytes, sizeof got);
  assert_int_equal(gm_free(bench->pool, &to, stream), GM_OK);
}

/* Pieces of a pipeline, of which the last is shorter. The step sees floats of 32 bits. */
enum { EXPAND_PIECE = 33000, EXPAND_PIECES = 4, EXPAND_LAST = 7, EXPAND_ITEM = 4 * EXPAND_PIECE };

typedef struct expand_pieces {
  const pool_bench *bench;
  uint32_t floats[EXPAND_PIECE]; /* that 16 bits hold */
  uint16_t halves[EXPAND_PIECE];
} expand_pieces;

static inline gm_status expand_step(void *user, gm_pipeline_item *item, gm_error *err) {
  static uint32_t got[EXPAND_PIECE];
  const expand_pieces *pieces = user;
  assert_int_equal(item->bytes, item->index + 1 < EXPAND_PIECES ? EXPAND_ITEM : 4 * EXPAND_LAST);
  const gm_status status = gm_block_read(pieces->bench->pool, &item->in, 0, got, item->bytes, item->stream, NULL, err);
  if (status == GM_OK) assert_memory_equal(got, pieces->floats, item->bytes);
  return status;
}

static inline void expand_check_pipeline(const pool_bench *bench, const char *name, gm_codec_way way, bool by_host) {
  const uint64_t width = way == GM_CODEC_ENCODE ? 4 : 2;
  static expand_pieces pieces;
  uint64_t bytes = 0;
  gm_pipeline *pipeline;
  gm_pipeline_stats stats = {.struct_size = sizeof stats};
  const gm_codec *codec = gm_codec_find(name);
  const gm_pipeline_params params = {.struct_size = sizeof params,
                                     .item_bytes = EXPAND_ITEM,
                                     .in_pool = bench->pool,
                                     .step = expand_step,
                                     .user = &pieces,
                                     .in_codec = codec,
                                     .in_way = way,
                                     .read_bytes = width * EXPAND_PIECE,
                                     .expand = true};
  pieces.bench = bench;
  for (uint32_t i = 0; i < EXPAND_PIECE; i++) pieces.halves[i] = (uint16_t)(i * 31);
  pool_bench_ok(
      gm_codec_decode(codec, pieces.halves, sizeof pieces.halves, pieces.floats, sizeof pieces.floats, &bytes, err));
  const void *from = way == GM_CODEC_ENCODE ? (const void *)pieces.floats : pieces.halves;
  pool_bench_ok(gm_pipeline_create(bench->device, &params, &pipeline, err));
  for (uint64_t i = 0; i < EXPAND_PIECES; i++) {
    const uint64_t count = i + 1 < EXPAND_PIECES ? EXPAND_PIECE : EXPAND_LAST;
    pool_bench_ok(gm_pipeline_push(pipeline, from, width * count, UINT64_MAX, err));
  }
  pool_bench_ok(gm_pipeline_flush(pipeline, &stats, err));
  const uint64_t all = (EXPAND_PIECES - 1) * EXPAND_ITEM + 4 * EXPAND_LAST;
  assert_int_equal(stats.items, EXPAND_PIECES);
  assert_int_equal(stats.up_bytes, all / 2);
  assert_int_equal(stats.device_expanded, by_host ? 0 : all);
  assert_int_equal(stats.host_expanded, by_host ? all : 0);
  pool_bench_ok(gm_pipeline_destroy(pipeline, err));
}

static inline void expand_check(const pool_bench *bench, bool by_host) {
  gm_stream *stream;
  pool_bench_ok(gm__staging_shape(bench->device, EXPAND_SLOTS, EXPAND_SLOT, err));
  pool_bench_ok(gm_stream_create(bench->device, &stream, err));
  expand_check_codec(bench, stream, "bf16", by_host);
  expand_check_codec(bench, stream, "fp16", by_host);
  expand_check_codec(bench, NULL, "fp16", by_host);
  expand_check_transfer(bench, stream, "bf16", by_host);
  expand_check_transfer(bench, NULL, "fp16", by_host);
  expand_check_pipeline(bench, "bf16", GM_CODEC_DECODE, by_host);
  expand_check_pipeline(bench, "fp16", GM_CODEC_ENCODE, by_host);
  pool_bench_ok(gm_stream_close(stream, err));
}

#endif
