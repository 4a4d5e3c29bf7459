/* A pool that is recorded into a file of a folder of its own. Needs cmocka.h included before.
 *
 *   return cmocka_run_group_tests(tests, record_make_folder, record_drop_folder); */
#ifndef GM_TESTS_SUPPORT_RECORD_BENCH_H
#define GM_TESTS_SUPPORT_RECORD_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gm/record.h"
#include "support/pool_bench.h"

static const gm_pool_params arenas = {.struct_size = sizeof arenas, .strategy = GM_STRATEGY_BEST_FIT, .checked = true};
static const gm_pool_params buckets = {.struct_size = sizeof buckets, .strategy = GM_STRATEGY_BUCKET, .checked = true};

static char folder[] = "/tmp/gm_record.XXXXXX";
static char plain[64], packed[64]; /* paths in it */

static inline int record_make_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(plain, sizeof plain, "%s/a.gmtrace", folder);
  snprintf(packed, sizeof packed, "%s/a.gmtrace.gz", folder);
  return 0;
}

static inline int record_drop_folder(void **state) {
  (void)state;
  unlink(plain);
  unlink(packed);
  return rmdir(folder); /* fails when something else was left there */
}

static inline gm_block take(const pool_bench *bench, uint64_t bytes, gm_stream *stream) {
  const gm_request request = {.bytes = bytes, .stream = stream, .flags = GM_INSERT_WAIT};
  gm_block block = {0};
  if (gm_alloc(bench->pool, &request, &block) > GM_ACQUIRE_FRESH) fail_msg("no memory");
  return block;
}

static inline void give(const pool_bench *bench, const gm_block *block, gm_stream *stream) {
  assert_int_equal(gm_free(bench->pool, block, stream), GM_OK);
}

static inline void begin(const pool_bench *bench, const char *path) {
  pool_bench_ok(gm_pool_record_begin(bench->pool, path, err));
}

static inline gm_recording end(const pool_bench *bench) {
  gm_recording recording = {.struct_size = sizeof recording};
  pool_bench_ok(gm_pool_record_end(bench->pool, &recording, err));
  return recording;
}

static inline uint64_t file_bytes(const char *path) {
  struct stat st;
  assert_int_equal(stat(path, &st), 0);
  return (uint64_t)st.st_size;
}

#endif
