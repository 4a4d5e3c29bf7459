/* Buffers whose bytes tell which one they are, and what compaction, sleep and moves do to them on any device. Needs
 * cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_RELOCATION_BENCH_H
#define GM_TESTS_SUPPORT_RELOCATION_BENCH_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "gm/cleanup.h"
#include "gm/copy.h"
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

/* Room for a buffer's bytes, in whole words: valgrind pays for each step of a loop. */
static inline unsigned char *relocation_room(uint64_t bytes) {
  unsigned char *out = malloc((size_t)(bytes + sizeof(uint64_t)));
  assert_non_null(out);
  return out;
}

static inline unsigned char *relocation_bytes(uint64_t id, uint64_t bytes) {
  unsigned char *out = relocation_room(bytes);
  uint64_t seed = id;
  for (uint64_t at = 0; at < bytes; at += sizeof seed) {
    const uint64_t word = test_random(&seed);
    memcpy(out + at, &word, sizeof word);
  }
  return out;
}

/* Adds `more`, below 128, to each byte. */
static inline void relocation_add(unsigned char *data, uint64_t bytes, uint64_t more) {
  const uint64_t ones = UINT64_C(0x0101010101010101), low = ones * 0x7f;
  for (uint64_t at = 0, word; at < bytes; at += sizeof word) {
    memcpy(&word, data + at, sizeof word);
    word = ((word & low) + ones * more) ^ (word & ~low); /* no byte carries into the next */
    memcpy(data + at, &word, sizeof word);
  }
}

/* cmocka compares byte by byte: only a difference is worth that. */
static inline void relocation_same(const unsigned char *has, const unsigned char *wanted, uint64_t bytes) {
  if (memcmp(has, wanted, (size_t)bytes) != 0) assert_memory_equal(has, wanted, (size_t)bytes);
}

static inline void relocation_fill(gm_buffer *buffer) {
  const uint64_t bytes = gm_buffer_bytes(buffer);
  unsigned char *data = relocation_bytes(gm_buffer_id(buffer), bytes);
  pool_bench_ok(gm_buffer_write(buffer, 0, data, bytes, NULL, err));
  free(data);
}

static bool relocation_unread; /* the device has no memory behind its addresses: nobody can look at bytes */

static inline void relocation_check(gm_buffer *buffer) {
  if (relocation_unread) return;
  const uint64_t bytes = gm_buffer_bytes(buffer);
  unsigned char *wanted = relocation_bytes(gm_buffer_id(buffer), bytes), *has = relocation_room(bytes);
  pool_bench_ok(gm_buffer_read(buffer, 0, has, bytes, NULL, err));
  relocation_same(has, wanted, bytes);
  free(wanted);
  free(has);
}

/* Makes buffers of 256 KiB, so many that they fill several segments. */
static inline void relocation_fill_pool(gm_pool *pool, gm_buffer *buffers[RELOCATION_MOST]) {
  for (int i = 0; i < RELOCATION_MOST; i++) {
    buffers[i] = relocation_make(pool, 256 * RELOCATION_KIB, GM_RELOCATABLE);
    relocation_fill(buffers[i]);
  }
}

/* Releases all but every n-th buffer. The others become NULL. */
static inline void relocation_thin(gm_buffer *buffers[RELOCATION_MOST], int n) {
  for (int i = 0; i < RELOCATION_MOST; i++) {
    if (i % n == 0) continue;
    gm_buffer_release(buffers[i], NULL);
    buffers[i] = NULL;
  }
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
  relocation_fill_pool(pool, buffers);
  relocation_thin(buffers, 5);
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

/* The pool sleeps as a whole, after work that is still under way, and its block and its buffer stay where they are.
 * `may`: it maps pages. */
static inline void relocation_sleeps_whole(gm_pool *pool, gm_stream *stream, bool may) {
  const uint64_t bytes = 5 * RELOCATION_KIB * RELOCATION_KIB + 100, at = bytes - 1;
  const gm_request request = {.bytes = bytes, .stream = stream};
  gm_block block, before, after;
  gm_point point = {0, 0, 0};
  gm_error failure;
  uint64_t freed = 0;
  unsigned char byte = 0;
  gm_buffer *buffer = relocation_make(pool, 100 * RELOCATION_KIB, 0);
  relocation_fill(buffer);
  pool_bench_ok(gm_buffer_block(buffer, &before, err));
  assert_true(gm_acquired(gm_alloc(pool, &request, &block)));
  pool_bench_ok(gm_block_fill(pool, &block, 0, bytes, "w", 1, stream, &point, err));
  gm_point_release(gm_pool_device(pool), &point);
  const gm_status slept = gm_pool_sleep_whole(pool, true, NULL, &freed, &failure);
  assert_int_equal(slept, may ? GM_OK : GM_ERR_NOT_SUPPORTED);
  gm_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_pool_stats(pool, &stats), GM_OK);
  if (may) assert_int_equal(stats.reserved_bytes, 0);
  if (may) assert_int_equal(gm_block_read(pool, &block, at, &byte, 1, NULL, NULL, &failure), GM_ERR_BUSY);
  pool_bench_ok(gm_pool_wake(pool, stream, err));
  pool_bench_ok(gm_block_read(pool, &block, at, &byte, 1, may ? NULL : stream, NULL, err));
  assert_int_equal(byte, 'w');
  pool_bench_ok(gm_buffer_block(buffer, &after, err));
  assert_memory_equal(&after, &before, sizeof before);
  relocation_check(buffer);
  gm_buffer_release(buffer, NULL);
  assert_int_equal(gm_free(pool, &block, stream), GM_OK);
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

enum { RELOCATION_COUNT = 32, RELOCATION_ROUNDS = 2 };

/* All buffers are worked through, one after the other: each round adds one to each byte. */
static inline void relocation_work(gm_buffer *buffers[RELOCATION_COUNT], uint64_t bytes) {
  unsigned char *data = relocation_room(bytes);
  memset(data, 0, (size_t)bytes + sizeof(uint64_t));
  for (int i = 0; i < RELOCATION_ROUNDS * RELOCATION_COUNT; i++) {
    gm_buffer *buffer = buffers[i % RELOCATION_COUNT];
    pool_bench_ok(gm_buffer_promote(buffer, NULL, err));
    pool_bench_ok(gm_buffer_lock(buffer, NULL, err));
    assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_DEVICE);
    pool_bench_ok(gm_buffer_read(buffer, 0, data, bytes, NULL, err));
    relocation_add(data, bytes, 1);
    pool_bench_ok(gm_buffer_write(buffer, 0, data, bytes, NULL, err));
    pool_bench_ok(gm_buffer_unlock(buffer, NULL, err));
  }
  free(data);
}

static inline void relocation_check_work(gm_buffer *buffer, uint64_t bytes) {
  unsigned char *wanted = relocation_bytes(gm_buffer_id(buffer), bytes), *has = relocation_room(bytes);
  relocation_add(wanted, bytes, RELOCATION_ROUNDS);
  pool_bench_ok(gm_buffer_read(buffer, 0, has, bytes, NULL, err));
  relocation_same(has, wanted, bytes);
  free(wanted);
  free(has);
}

typedef struct relocation_time {
  double wall_ms, processor_ms; /* the second is nearly free of what else the machine does */
} relocation_time;

/* Works on buffers of so many bytes in a pool of at most `cap`, which may be too small for them. Returns the time. */
static inline relocation_time relocation_stress(gm_device *device, bool pages, uint64_t bytes, uint64_t cap) {
  const gm_pool_params shape = {.struct_size = sizeof shape, .max_bytes = cap, .no_vmm = !pages};
  gm_pool *pool = NULL;
  gm_buffer *buffers[RELOCATION_COUNT];
  gm_stats stats = {.struct_size = sizeof stats};
  pool_bench_ok(gm_pool_create(device, &shape, &pool, err));
  for (int i = 0; i < RELOCATION_COUNT; i++) {
    buffers[i] = relocation_make(pool, bytes, GM_EVICTABLE | GM_RELOCATABLE);
    relocation_fill(buffers[i]);
  }
  const uint64_t began = gm__now_ns();
  const clock_t spent = clock();
  relocation_work(buffers, bytes);
  const relocation_time took = {(double)(gm__now_ns() - began) / 1e6,
                                (double)(clock() - spent) * 1000 / CLOCKS_PER_SEC};
  assert_int_equal(gm_pool_stats(pool, &stats), GM_OK);
  assert_true(stats.peak_reserved_bytes <= cap);
  assert_int_equal(stats.evictions > 0, cap < RELOCATION_COUNT * bytes);
  for (int i = 0; i < RELOCATION_COUNT; i++) {
    relocation_check_work(buffers[i], bytes);
    gm_buffer_release(buffers[i], NULL);
  }
  pool_bench_ok(gm_pool_destroy(pool, err));
  return took;
}

/* Four times the pool's memory is worked through. It prints how much longer that takes than where all of it fits. */
static inline void relocation_four_times_the_memory(gm_device *device, bool pages) {
  const char *said = getenv("RELOCATION_STRESS_KIB");
  const uint64_t bytes = (said ? strtoull(said, NULL, 10) : 512) * RELOCATION_KIB, all = RELOCATION_COUNT * bytes;
  const relocation_time fits = relocation_stress(device, pages, bytes, 2 * all);
  const relocation_time capped = relocation_stress(device, pages, bytes, all / 4);
  printf("  4 times the memory (%s): %.1f ms, %.2f times as long as where it fits; of the processor %.2f times\n",
         pages ? "pages" : "segments", capped.wall_ms, capped.wall_ms / fits.wall_ms,
         capped.processor_ms / fits.processor_ms);
}

/* Does the pool map pages? The CPU can say more than it does: under valgrind it moves no private pages. */
static inline bool relocation_maps(gm_device *device, gm_pool *pool, bool pages) {
  gm_error failure;
  const gm_device_info *info = gm_device_get_info(device);
  const bool says = pages && info->capabilities & GM_CAP_VMM;
  const gm_status status = gm_pool_sleep_whole(pool, false, NULL, NULL, &failure);
  pool_bench_ok(gm_pool_wake(pool, NULL, err));
  assert_true(status == GM_OK || status == GM_ERR_NOT_SUPPORTED);
  if (!says || strcmp(info->backend, "cpu") != 0) assert_int_equal(status == GM_OK, says);
  return status == GM_OK;
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
    relocation_sleeps_whole(pool, stream, relocation_maps(device, pool, pages));
    relocation_four_times_the_memory(device, pages);
    pool_bench_ok(gm_stream_close(stream, err));
    pool_bench_ok(gm_pool_destroy(pool, err));
    pool_bench_ok(gm_device_close(device, err));
    pool_bench_ok(gm_context_destroy(ctx, err));
  }
}

#endif
