/* gm_block_expand on a pool of any backend: every number of 16 bits against the codec's decoder, on the stream and
 * without. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_EXPAND_SCENE_H
#define GM_TESTS_SUPPORT_EXPAND_SCENE_H

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

static inline void expand_check(const pool_bench *bench, bool by_host) {
  gm_stream *stream;
  pool_bench_ok(gm_stream_create(bench->device, &stream, err));
  expand_check_codec(bench, stream, "bf16", by_host);
  expand_check_codec(bench, stream, "fp16", by_host);
  expand_check_codec(bench, NULL, "fp16", by_host);
  pool_bench_ok(gm_stream_close(stream, err));
}

#endif
