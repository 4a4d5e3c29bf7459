/* Buffers whose bytes tell which one they are, and what compaction, sleep and moves do to them on any device. Needs
 * cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_RELOCATION_BENCH_H
#define GM_TESTS_SUPPORT_RELOCATION_BENCH_H

#include <stdlib.h>
#include <string.h>

#include "gm/cleanup.h"
#include "gm/relocation.h"
#include "support/pool_bench.h"
#include "support/random.h"

enum { RELOCATION_MOST = 96 };

#define RELOCATION_KIB UINT64_C(1024)

static inline gm_buffer *relocation_make(gm_pool *pool, uint64_t bytes, uint32_t flags) {
  const gm_buffer_params params = {
      .struct_size = sizeof params, .request = {.bytes = bytes, .flags = flags}, .fallback = GM_FALLBACK_REFUSE};
  gm_buffer *buffer = NULL;
  pool_bench_ok(gm_buffer_create(pool, &params, &buffer, err));
  return buffer;
}

static inline unsigned char *relocation_bytes(uint64_t id, uint64_t bytes) {
  unsigned char *out = malloc((size_t)bytes);
  uint64_t seed = id;
  assert_non_null(out);
  for (uint64_t at = 0; at < bytes; at++) out[at] = (unsigned char)(test_random(&seed) >> 56);
  return out;
}

static inline void relocation_fill(gm_buffer *buffer) {
  const uint64_t bytes = gm_buffer_bytes(buffer);
  unsigned char *data = relocation_bytes(gm_buffer_id(buffer), bytes);
  pool_bench_ok(gm_buffer_write(buffer, 0, data, bytes, NULL, err));
  free(data);
}

static inline void relocation_check(gm_buffer *buffer) {
  const uint64_t bytes = gm_buffer_bytes(buffer);
  unsigned char *wanted = relocation_bytes(gm_buffer_id(buffer), bytes), *has = malloc((size_t)bytes);
  assert_non_null(has);
  pool_bench_ok(gm_buffer_read(buffer, 0, has, bytes, NULL, err));
  assert_memory_equal(has, wanted, (size_t)bytes);
  free(wanted);
  free(has);
}

static inline gm_compact_report relocation_compact(gm_pool *pool) {
  gm_compact_report report = {.struct_size = sizeof report};
  pool_bench_ok(gm_pool_compact(pool, NULL, &report, err));
  return report;
}

/* Random buffers come and go, between compactions. All bytes stay what they were, and the pool ends with no more memory
 * than without compaction. */
static inline void relocation_at_random(gm_pool *pool, uint64_t seed, int rounds) {
  gm_buffer *buffers[RELOCATION_MOST] = {NULL};
  uint64_t moves = 0;
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < RELOCATION_MOST; i++) {
      const bool drop = test_random(&seed) % 3 != 0;
      if (buffers[i] && drop) {
        gm_buffer_release(buffers[i], NULL);
        buffers[i] = NULL;
      } else if (!buffers[i]) {
        const uint32_t flags = test_random(&seed) % 8 ? GM_RELOCATABLE : 0;
        buffers[i] = relocation_make(pool, 1 + test_random(&seed) % (200 * RELOCATION_KIB), flags);
        relocation_fill(buffers[i]);
      }
    }
    const gm_compact_report report = relocation_compact(pool);
    moves += report.moves;
    assert_true((report.moves == 0) == (report.moved_bytes == 0));
    for (int i = 0; i < RELOCATION_MOST; i++) {
      if (buffers[i]) relocation_check(buffers[i]);
    }
  }
  assert_true(moves > 0);
  for (int i = 0; i < RELOCATION_MOST; i++) gm_buffer_release(buffers[i], NULL);
}

/* Four of five buffers go; what is left fits in far fewer segments. */
static inline void relocation_frees_segments(gm_pool *pool) {
  gm_buffer *buffers[RELOCATION_MOST];
  for (int i = 0; i < RELOCATION_MOST; i++) {
    buffers[i] = relocation_make(pool, 256 * RELOCATION_KIB, GM_RELOCATABLE);
    relocation_fill(buffers[i]);
  }
  for (int i = 0; i < RELOCATION_MOST; i++) {
    if (i % 5 == 0) continue;
    gm_buffer_release(buffers[i], NULL);
    buffers[i] = NULL;
  }
  gm_pool_clear(pool);
  gm_stats before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
  assert_int_equal(gm_pool_stats(pool, &before), GM_OK);
  const gm_compact_report report = relocation_compact(pool);
  assert_int_equal(gm_pool_stats(pool, &after), GM_OK);
  printf("  reserved %llu KiB before, %llu KiB after, in use %llu KiB, %llu moves\n",
         (unsigned long long)(before.reserved_bytes >> 10), (unsigned long long)(after.reserved_bytes >> 10),
         (unsigned long long)(after.in_use_bytes >> 10), (unsigned long long)report.moves);
  assert_true(report.moves > 0);
  assert_true(report.freed_bytes > 0);
  assert_true(after.reserved_bytes + report.freed_bytes <= before.reserved_bytes);
  assert_int_equal(after.in_use_bytes, before.in_use_bytes);
  for (int i = 0; i < RELOCATION_MOST; i += 5) {
    relocation_check(buffers[i]);
    gm_buffer_release(buffers[i], NULL);
  }
}

/* The pool's buffers leave the device, and come back with their bytes. */
static inline void relocation_sleeps(gm_pool *pool) {
  gm_buffer *buffers[8];
  uint64_t freed = 0;
  for (int i = 0; i < 8; i++) {
    buffers[i] = relocation_make(pool, 100 * RELOCATION_KIB + (uint64_t)i, i % 2 ? GM_RELOCATABLE : 0);
    relocation_fill(buffers[i]);
  }
  pool_bench_ok(gm_pool_sleep(pool, true, NULL, &freed, err));
  gm_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_pool_stats(pool, &stats), GM_OK);
  assert_true(freed > 0);
  assert_int_equal(stats.in_use_bytes, 0);
  assert_int_equal(stats.reserved_bytes, 0);
  for (int i = 0; i < 8; i++) {
    assert_int_equal(gm_buffer_location(buffers[i]), GM_LOCATION_HOST);
    relocation_check(buffers[i]);
  }
  pool_bench_ok(gm_pool_sleep(pool, true, NULL, NULL, err)); /* it sleeps */
  pool_bench_ok(gm_pool_wake(pool, NULL, err));
  for (int i = 0; i < 8; i++) {
    assert_int_equal(gm_buffer_location(buffers[i]), GM_LOCATION_DEVICE);
    relocation_check(buffers[i]);
  }
  pool_bench_ok(gm_pool_sleep(pool, false, NULL, NULL, err));
  unsigned char byte = 0;
  gm_error failure;
  assert_int_equal(gm_buffer_read(buffers[0], 0, &byte, 1, NULL, &failure), GM_ERR_BUSY);
  assert_int_equal(gm_buffer_write(buffers[0], 0, &byte, 1, NULL, &failure), GM_ERR_BUSY);
  pool_bench_ok(gm_pool_wake(pool, NULL, err));
  pool_bench_ok(gm_pool_wake(pool, NULL, err)); /* it is awake */
  for (int i = 0; i < 8; i++) {
    relocation_fill(buffers[i]);
    relocation_check(buffers[i]);
    gm_buffer_release(buffers[i], NULL);
  }
}

/* To the host and back. */
static inline void relocation_moves(gm_pool *pool, gm_stream *stream) {
  gm_buffer *buffer = relocation_make(pool, 300 * RELOCATION_KIB, GM_RELOCATABLE);
  relocation_fill(buffer);
  for (int i = 0; i < 3; i++) {
    pool_bench_ok(gm_buffer_lock(buffer, NULL, err));
    pool_bench_ok(gm_buffer_unlock(buffer, stream, err));
    pool_bench_ok(gm_buffer_move(buffer, GM_LOCATION_HOST, stream, err));
    assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_HOST);
    relocation_check(buffer);
    pool_bench_ok(gm_buffer_move(buffer, GM_LOCATION_DEVICE, i % 2 ? stream : NULL, err));
    assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_DEVICE);
    relocation_check(buffer);
  }
  gm_buffer_release(buffer, stream);
}

/* Four times the pool's memory is worked through twice, buffer by buffer: each round adds one to each byte. */
static inline void relocation_four_times_the_memory(gm_device *device, bool pages) {
  enum { COUNT = 32, ROUNDS = 2 };
  const uint64_t bytes = 512 * RELOCATION_KIB, cap = COUNT * bytes / 4;
  const gm_pool_params shape = {.struct_size = sizeof shape, .max_bytes = cap, .no_vmm = !pages};
  gm_pool *pool = NULL;
  gm_buffer *buffers[COUNT];
  unsigned char *data = malloc((size_t)bytes);
  assert_non_null(data);
  pool_bench_ok(gm_pool_create(device, &shape, &pool, err));
  for (int i = 0; i < COUNT; i++) {
    buffers[i] = relocation_make(pool, bytes, GM_EVICTABLE | GM_RELOCATABLE);
    relocation_fill(buffers[i]);
  }
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < COUNT; i++) {
      pool_bench_ok(gm_buffer_promote(buffers[i], NULL, err));
      pool_bench_ok(gm_buffer_lock(buffers[i], NULL, err));
      assert_int_equal(gm_buffer_location(buffers[i]), GM_LOCATION_DEVICE);
      pool_bench_ok(gm_buffer_read(buffers[i], 0, data, bytes, NULL, err));
      for (uint64_t at = 0; at < bytes; at++) data[at]++;
      pool_bench_ok(gm_buffer_write(buffers[i], 0, data, bytes, NULL, err));
      pool_bench_ok(gm_buffer_unlock(buffers[i], NULL, err));
    }
  }
  gm_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_pool_stats(pool, &stats), GM_OK);
  assert_true(stats.peak_reserved_bytes <= cap);
  assert_true(stats.evictions > 0);
  for (int i = 0; i < COUNT; i++) {
    unsigned char *wanted = relocation_bytes(gm_buffer_id(buffers[i]), bytes);
    for (uint64_t at = 0; at < bytes; at++) wanted[at] = (unsigned char)(wanted[at] + ROUNDS);
    pool_bench_ok(gm_buffer_read(buffers[i], 0, data, bytes, NULL, err));
    assert_memory_equal(data, wanted, (size_t)bytes);
    free(wanted);
    gm_buffer_release(buffers[i], NULL);
  }
  free(data);
  pool_bench_ok(gm_pool_destroy(pool, err));
}

/* All of the above on a backend of the context: on plain segments, then on pages where the device has them. */
static inline void relocation_on_device(const char *backend, const gm_context_params *params) {
  for (int pages = 0; pages < 2; pages++) {
    gm_context *ctx = NULL;
    gm_device *device = NULL;
    gm_pool *pool = NULL;
    gm_stream *stream = NULL;
    const gm_pool_params shape = {.struct_size = sizeof shape, .no_vmm = !pages};
    pool_bench_ok(gm_context_create(params, &ctx, err));
    pool_bench_ok(gm_device_open_index(ctx, backend, 0, &device, err));
    pool_bench_ok(gm_pool_create(device, &shape, &pool, err));
    pool_bench_ok(gm_stream_create(device, &stream, err));
    relocation_frees_segments(pool);
    relocation_at_random(pool, 7, 6);
    relocation_moves(pool, stream);
    relocation_sleeps(pool);
    relocation_four_times_the_memory(device, pages);
    pool_bench_ok(gm_stream_close(stream, err));
    pool_bench_ok(gm_pool_destroy(pool, err));
    pool_bench_ok(gm_device_close(device, err));
    pool_bench_ok(gm_context_destroy(ctx, err));
  }
}

#endif
