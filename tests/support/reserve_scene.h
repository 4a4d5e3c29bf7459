/* Two contexts of a process on one card of a backend: the promises of one hold for the other. Needs cmocka.h included
 * before. */
#ifndef GM_TESTS_SUPPORT_RESERVE_SCENE_H
#define GM_TESTS_SUPPORT_RESERVE_SCENE_H

#include <string.h>

#include "gm/explain.h"
#include "gm/reserve.h"
#include "support/pool_bench.h"

/* `root` stands for the machine's files; NULL: the machine's own. */
static inline void reserve_scene_open(pool_bench *bench, const char *backend, const char *libraries, const char *root) {
  const gm_pool_params buckets = {.struct_size = sizeof buckets, .strategy = GM_STRATEGY_BUCKET};
  counted_services_init(&bench->host);
  const gm_context_params context = {.struct_size = sizeof context,
                                     .services = &bench->host.services,
                                     .libraries = libraries,
                                     .host_root = root,
                                     .ignore_environment = true};
  pool_bench_ok(gm_context_create(&context, &bench->ctx, err));
  pool_bench_ok(gm_config_set(bench->ctx, "memory_fraction", "1", err));
  pool_bench_ok(gm_config_set(bench->ctx, "min_free_bytes", "0", err));
  pool_bench_ok(gm_config_set(bench->ctx, "reserve.share", "off", err));
  pool_bench_ok(gm_device_open_index(bench->ctx, backend, 0, &bench->device, err));
  pool_bench_ok(gm_pool_create(bench->device, &buckets, &bench->pool, err));
}

static inline gm_status reserve_scene_hold(pool_bench *bench, uint64_t bytes, gm_reservation **out) {
  const gm_reserve_params params = {.struct_size = sizeof params, .bytes = bytes};
  return gm_reserve(bench->device, &params, out, NULL);
}

static inline bool reserve_scene_take(pool_bench *bench, uint64_t bytes) {
  const gm_request request = {.bytes = bytes};
  gm_block block;
  if (gm_alloc(bench->pool, &request, &block) > GM_ACQUIRE_FRESH) return false;
  assert_int_equal(gm_free(bench->pool, &block, NULL), GM_OK);
  gm_pool_trim(bench->pool, 0);
  return true;
}

/* `part` bytes and a little more are free, and twice as many are not. */
static inline void reserve_scene_holds(const char *backend, const char *libraries, const char *root, uint64_t part) {
  pool_bench one, other;
  gm_reservation *held = NULL, *more = NULL;
  gm_reservation_info info = {.struct_size = sizeof info};
  reserve_scene_open(&one, backend, libraries, root);
  reserve_scene_open(&other, backend, libraries, root);
  assert_int_equal(reserve_scene_hold(&one, part, &held), GM_OK);
  assert_int_equal(reserve_scene_hold(&other, part, &more), GM_ERR_OVER_LIMIT);
  assert_false(reserve_scene_take(&other, part));
  pool_bench_ok(gm_reservation_commit(held, one.pool, err));
  assert_true(reserve_scene_take(&one, part));
  pool_bench_ok(gm_reservation_read(held, &info, err));
  assert_true(info.taken_bytes == part && info.left_bytes == 0);
  assert_true(reserve_scene_take(&other, part)); /* it was given back, and is promised to nobody */
  gm_reservation_cancel(held);
  assert_int_equal(reserve_scene_hold(&other, part, &more), GM_OK);
  gm_reservation_cancel(more);
  pool_bench_close(&other);
  pool_bench_close(&one);
}

#endif
