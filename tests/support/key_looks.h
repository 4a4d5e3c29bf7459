/* The effects that a key of the configuration may have: each look opens a pool in a context, and has a number for an
 * answer. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_KEY_LOOKS_H
#define GM_TESTS_SUPPORT_KEY_LOOKS_H

#include "core/device/device.h"
#include "core/staging/link_file.h"
#include "core/staging/ring.h"
#include "gm/buffer.h"
#include "gm/cache.h"
#include "gm/cleanup.h"
#include "gm/copy.h"
#include "gm/pressure.h"
#include "gm/reserve.h"
#include "gm/tensor_sets.h"
#include "gm/tracker.h"
#include "support/fake_backend.h"
#include "support/store_bench.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)

enum { MOST_LINES = 16 };

static char said[MOST_LINES][512];
static int said_count;

static void hear(void *user, int level, const char *line) {
  (void)user, (void)level;
  if (said_count < MOST_LINES) snprintf(said[said_count++], sizeof said[0], "%s", line);
}

static int times_said(const char *words) {
  int count = 0;
  for (int i = 0; i < said_count; i++) count += strstr(said[i], words) != NULL;
  return count;
}

static const gm_services services = {.log = hear};

static gm_context *open_context(const char *preset, bool ignore_environment) {
  gm_context *ctx = NULL;
  const gm_context_params params = {.struct_size = sizeof params,
                                    .services = &services,
                                    .preset = preset,
                                    .backends = "cpu,null,fake",
                                    .ignore_environment = ignore_environment,
                                    .backend_options = "null:capacity=512M"};
  said_count = 0;
  pool_bench_ok(gm_context_create(&params, &ctx, err));
  return ctx;
}

static const gm_pool_params segments = {.struct_size = sizeof segments, .no_vmm = true},
                            capped = {.struct_size = sizeof capped, .max_bytes = 64 * MIB};

static void open_on(pool_bench *bench, gm_context *ctx, const char *backend, const gm_pool_params *params) {
  bench->ctx = ctx;
  pool_bench_ok(gm_device_open_index(ctx, backend, 0, &bench->device, err));
  pool_bench_ok(gm_pool_create(bench->device, params, &bench->pool, err));
}

static uint64_t close_with(pool_bench *bench, uint64_t answer) {
  pool_bench_ok(gm_pool_destroy(bench->pool, err));
  pool_bench_ok(gm_device_close(bench->device, err));
  return answer;
}

static bool take(pool_bench *bench, uint64_t bytes, gm_block *out) {
  const gm_request request = {.bytes = bytes};
  return gm_acquired(gm_alloc(bench->pool, &request, out));
}

static gm_block taken(pool_bench *bench, uint64_t bytes) {
  gm_block block;
  assert_true(take(bench, bytes, &block));
  return block;
}

static void give(pool_bench *bench, const gm_block *block) {
  assert_int_equal(gm_free(bench->pool, block, NULL), GM_OK);
}

static void turn(pool_bench *bench, uint64_t bytes, int count) {
  gm_block blocks[32];
  assert_true(count <= 32);
  for (int i = 0; i < count; i++) blocks[i] = taken(bench, bytes);
  for (int i = 0; i < count; i++) give(bench, &blocks[i]);
}

/* May a pool take 300 of 512 MiB? */
static uint64_t look_room(gm_context *ctx) {
  pool_bench bench;
  gm_block block;
  open_on(&bench, ctx, "null", NULL);
  const bool has = take(&bench, 300 * MIB, &block);
  if (has) give(&bench, &block);
  return close_with(&bench, has);
}

/* For a buffer without device memory: 0: it was refused. */
static uint64_t look_fallback(gm_context *ctx) {
  pool_bench bench;
  gm_buffer *buffer = NULL;
  const gm_pool_params none = {.struct_size = sizeof none, .max_bytes = MIB};
  const gm_buffer_params params = {.struct_size = sizeof params, .request = {.bytes = 16 * MIB}};
  open_on(&bench, ctx, "null", &none);
  const bool made = gm_buffer_create(bench.pool, &params, &buffer, NULL) == GM_OK;
  if (made) assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_HOST);
  gm_buffer_release(buffer, NULL);
  return close_with(&bench, made);
}

static uint64_t look_tracker(gm_context *ctx) {
  pool_bench bench;
  open_on(&bench, ctx, "null", NULL);
  return close_with(&bench, gm_pool_tracker(bench.pool) != NULL);
}

static uint64_t look_block_bytes(gm_context *ctx) {
  pool_bench bench;
  open_on(&bench, ctx, "null", NULL);
  const gm_block block = taken(&bench, 524289);
  const uint64_t bytes = pool_bench_stats(&bench).in_use_bytes;
  give(&bench, &block);
  return close_with(&bench, bytes);
}

static gm_pressure_level level_of(pool_bench *bench) {
  gm_pressure now = {.struct_size = sizeof now};
  pool_bench_ok(gm_pool_pressure(bench->pool, &now, err));
  return now.level;
}

/* For a pool that is half used. */
static uint64_t look_level(gm_context *ctx) {
  pool_bench bench;
  open_on(&bench, ctx, "null", &capped);
  const gm_block block = taken(&bench, 32 * MIB);
  const gm_pressure_level level = level_of(&bench);
  give(&bench, &block);
  return close_with(&bench, level);
}

/* For a pool that falls from 0.61 to 0.59. */
static uint64_t look_relief(gm_context *ctx) {
  pool_bench bench;
  open_on(&bench, ctx, "null", &capped);
  const gm_block block = taken(&bench, 38 * MIB), more = taken(&bench, MIB);
  assert_int_equal(level_of(&bench), GM_PRESSURE_MEDIUM);
  give(&bench, &more);
  const gm_pressure_level level = level_of(&bench);
  give(&bench, &block);
  return close_with(&bench, level);
}

/* Is the GPU taken? */
static uint64_t look_best(gm_context *ctx) {
  fake_backend_reset();
  pool_bench_ok(gm_backend_register(ctx, &fake_ops, err));
  gm_selection best = {.struct_size = sizeof best};
  pool_bench_ok(gm_best_backend(ctx, &best, err));
  return strcmp(best.id.backend, "fake") == 0;
}

static uint64_t look_new_pool(gm_context *ctx) {
  pool_bench bench;
  open_on(&bench, ctx, "null", &segments);
  return close_with(&bench, pool_bench_stats(&bench).driver_allocs > 0);
}

/* Do freed blocks of the size wait for a request of that size? To read statistics joins blocks. */
static uint64_t quick_hits(gm_context *ctx, uint64_t bytes) {
  pool_bench bench;
  open_on(&bench, ctx, "null", &segments);
  turn(&bench, bytes, 1);
  const uint64_t before = pool_bench_stats(&bench).local_cache_hits;
  turn(&bench, bytes, 1);
  turn(&bench, bytes, 1);
  return close_with(&bench, pool_bench_stats(&bench).local_cache_hits - before);
}

static uint64_t look_quick_small(gm_context *ctx) { return quick_hits(ctx, 4 * KIB); }
static uint64_t look_quick_large(gm_context *ctx) { return quick_hits(ctx, 64 * KIB); }

static uint64_t look_segment(gm_context *ctx) {
  pool_bench bench;
  open_on(&bench, ctx, "null", &segments);
  turn(&bench, 4096, 1);
  return close_with(&bench, pool_bench_stats(&bench).reserved_bytes / MIB);
}

/* Does gm fill a block of zeros that lies in new memory? */
static const gm_backend_ops *real_ops;
static int fills;

static gm_status count_fill(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                            const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  fills += bytes == 12288;
  return real_ops->fill(device, stream, memory, offset, bytes, pattern, pattern_bytes, out, err);
}

static uint64_t look_zeros(gm_context *ctx) {
  pool_bench bench = {.ctx = ctx};
  gm_block block;
  const gm_request zeros = {.bytes = 12288, .flags = GM_ZERO | GM_INSERT_WAIT};
  pool_bench_ok(gm_device_open_index(ctx, "null", 0, &bench.device, err));
  real_ops = bench.device->ops;
  gm_backend_ops counting = *real_ops;
  counting.fill = count_fill;
  bench.device->ops = &counting;
  fills = 0;
  pool_bench_ok(gm_pool_create(bench.device, &segments, &bench.pool, err));
  assert_true(gm_acquired(gm_alloc(bench.pool, &zeros, &block)));
  give(&bench, &block);
  bench.device->ops = real_ops;
  return close_with(&bench, (uint64_t)fills);
}

/* Does a coalesce ask the stream, on which the block was freed? */
static uint64_t look_coalesce(gm_context *ctx) {
  pool_bench bench;
  gm_stream *stream;
  gm_block block;
  open_on(&bench, ctx, "null", NULL);
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  const gm_request request = {.bytes = 4096, .stream = stream};
  assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  assert_int_equal(gm_free(bench.pool, &block, stream), GM_OK);
  const bool joined = gm_pool_coalesce(bench.pool, false) == pool_bench_stats(&bench).reserved_bytes;
  pool_bench_ok(gm_stream_close(stream, err));
  return close_with(&bench, joined);
}

/* MiB that the pool keeps when it grows. */
static uint64_t look_kept(gm_context *ctx) {
  pool_bench bench;
  open_on(&bench, ctx, "null", &segments);
  turn(&bench, 8 * MIB, 1);
  const gm_block large = taken(&bench, 256 * MIB);
  const gm_stats stats = pool_bench_stats(&bench);
  give(&bench, &large);
  return close_with(&bench, stats.pooled_bytes / MIB);
}

static void clean(pool_bench *bench, double threshold, uint64_t *bytes) {
  pool_bench_ok(gm_pool_cleanup(bench->pool, threshold, false, bytes, err));
}

/* Is memory that was unused at two inspections still there? */
static uint64_t look_old(gm_context *ctx) {
  pool_bench bench;
  open_on(&bench, ctx, "null", &capped);
  turn(&bench, 4096, 1);
  for (int i = 0; i < 3; i++) clean(&bench, 1, NULL);
  return close_with(&bench, pool_bench_stats(&bench).reserved_bytes > 0);
}

/* The bound of a stream's quick lists after three inspections of a pool with so much of its 64 MiB in use. */
static uint64_t scaled_bound(gm_context *ctx, uint64_t used) {
  pool_bench bench;
  open_on(&bench, ctx, "null", &capped);
  const gm_block block = taken(&bench, used);
  pool_bench_ok(gm_pool_configure(bench.pool, "cache.stream_local", "4", err)); /* the bound begins here */
  for (int i = 0; i < 3; i++) clean(&bench, 1, NULL);
  turn(&bench, 4096, 32);
  const uint64_t before = pool_bench_stats(&bench).local_cache_hits;
  turn(&bench, 4096, 32);
  turn(&bench, 4096, 32);
  const uint64_t bound = pool_bench_stats(&bench).local_cache_hits - before;
  give(&bench, &block);
  return close_with(&bench, bound);
}

static uint64_t look_bound_idle(gm_context *ctx) { return scaled_bound(ctx, MIB); }
static uint64_t look_bound_half(gm_context *ctx) { return scaled_bound(ctx, 32 * MIB); }

static uint64_t look_cleaned(gm_context *ctx) {
  pool_bench bench;
  uint64_t bytes = 0;
  open_on(&bench, ctx, "null", &capped);
  turn(&bench, MIB, 1);
  clean(&bench, GM_CLEANUP_THRESHOLD_CONFIG, &bytes);
  return close_with(&bench, bytes > 0);
}

static uint64_t look_cache(gm_context *ctx) {
  gm_cache *cache = NULL;
  gm_cache_stats stats = {.struct_size = sizeof stats};
  pool_bench_ok(gm_cache_create(ctx, NULL, &cache, err));
  for (int i = 0; i < 120; i++) pool_bench_ok(gm_cache_put(cache, &i, sizeof i, &stats, 1, NULL, err));
  pool_bench_ok(gm_cache_get_stats(cache, &stats, err));
  pool_bench_ok(gm_cache_destroy(cache, err));
  return stats.entries;
}

static uint64_t look_store(gm_context *ctx) {
  pool_bench bench;
  open_on(&bench, ctx, "cpu", &segments);
  gm_store *store = store_open(bench.pool, NULL);
  for (int i = 0; i < 3; i++) store_put(store, (char[]){(char)('a' + i), 0}, (uint64_t)i, 0, 100);
  const uint64_t there = store_stats(store).device_values;
  store_close(store);
  return close_with(&bench, there);
}

static gm_status make_set(void *user, const char *path, void **out_set, uint64_t *out_bytes, gm_error *err) {
  (void)path, (void)err;
  ++*(int *)user;
  *out_set = user;
  *out_bytes = 1;
  return GM_OK;
}

/* How many sets are made, if two files are used twice. */
static uint64_t look_sets(gm_context *ctx) {
  gm_tensor_sets *sets = NULL;
  temp_folder folder;
  int made = 0;
  const gm_tensor_sets_params params = {.struct_size = sizeof params, .make = make_set, .user = &made};
  pool_bench_ok(gm_tensor_sets_create(ctx, &params, &sets, err));
  temp_folder_make(&folder);
  for (int i = 0; i < 4; i++) {
    gm_tensor_set *set = NULL;
    const char *path = temp_folder_join(&folder, i % 2 ? "b" : "a");
    if (i < 2) path = temp_folder_write(&folder, i % 2 ? "b" : "a", "x", 1);
    pool_bench_ok(gm_tensor_sets_get(sets, path, &set, err));
    gm_tensor_set_return(set);
  }
  pool_bench_ok(gm_tensor_sets_destroy(sets, err));
  temp_folder_remove(&folder);
  return (uint64_t)made;
}

/* Can memory be promised? The folder of promises is one of the process, so a child looks. */
static uint64_t look_reserve(gm_context *ctx) {
  pool_bench bench;
  gm_reservation *held = NULL;
  const gm_reserve_params params = {.struct_size = sizeof params, .bytes = MIB};
  open_on(&bench, ctx, "cpu", NULL);
  const bool can = gm_reserve(bench.device, &params, &held, NULL) == GM_OK;
  gm_reservation_cancel(held);
  return close_with(&bench, can);
}

static uint64_t look_red_zones(gm_context *ctx) {
  pool_bench bench;
  open_on(&bench, ctx, "cpu", &segments);
  const gm_block block = taken(&bench, 4096);
  const uint64_t bytes = pool_bench_stats(&bench).in_use_bytes;
  give(&bench, &block);
  return close_with(&bench, bytes > 4096);
}

/* Does memory have its old bytes when it is handed out again? */
static uint64_t look_old_bytes(gm_context *ctx) {
  pool_bench bench;
  unsigned char bytes[64], wrote[64];
  memset(wrote, 0x11, sizeof wrote);
  open_on(&bench, ctx, "cpu", &segments);
  gm_block block = taken(&bench, sizeof bytes);
  pool_bench_ok(gm_block_write(bench.pool, &block, 0, wrote, sizeof wrote, NULL, NULL, err));
  give(&bench, &block);
  block = taken(&bench, sizeof bytes);
  pool_bench_ok(gm_block_read(bench.pool, &block, 0, bytes, sizeof bytes, NULL, NULL, err));
  give(&bench, &block);
  return close_with(&bench, memcmp(bytes, wrote, sizeof bytes) == 0);
}

/* Is the memory of a block handed out again at once? */
static uint64_t look_same_place(gm_context *ctx) {
  pool_bench bench;
  open_on(&bench, ctx, "cpu", &segments);
  gm_block one = taken(&bench, 4096);
  give(&bench, &one);
  gm_block two = taken(&bench, 4096);
  give(&bench, &two);
  return close_with(&bench, one.address == two.address);
}

/* Slots that a ring of two has. */
static uint64_t look_staging(gm_context *ctx) {
  pool_bench bench;
  gm__ring *ring = NULL;
  gm__ring_info info;
  open_on(&bench, ctx, "cpu", NULL);
  pool_bench_ok(gm__ring_create(bench.device, 2, 4096, &ring, err));
  pool_bench_ok(gm__ring_grow(ring, 2, err));
  gm__ring_figures(ring, &info);
  pool_bench_ok(gm__ring_destroy(ring, err));
  return close_with(&bench, info.made);
}

/* Are rates of links kept? */
static uint64_t look_links(gm_context *ctx) {
  pool_bench bench;
  double up = 0, down = 0;
  open_on(&bench, ctx, "cpu", NULL);
  gm__link_file_keep(bench.device, 1e9, 2e9);
  return close_with(&bench, gm__link_file_find(bench.device, &up, &down));
}

/* Does gm look for the profiler's tool? */
static uint64_t look_profiler(gm_context *ctx) {
  pool_bench bench;
  open_on(&bench, ctx, "null", NULL);
  return close_with(&bench, times_said("debug.ranges is roctx") > 0);
}

#endif
