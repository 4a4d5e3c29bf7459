/* A card with a small largest allocation, whose memory can run out: the CPU backend in disguise, with a pool on it.
 *
 *   pool_bench bench;
 *   narrow_card_open(&bench, 64 * MIB, GM_STRATEGY_BEST_FIT, (gm_pool_params){0});
 *   ... pool_bench_close(&bench); */
#ifndef GM_TESTS_SUPPORT_NARROW_CARD_H
#define GM_TESTS_SUPPORT_NARROW_CARD_H

#include "backends/cpu/cpu_backend.h"
#include "support/pool_bench.h"

#define MIB (UINT64_C(1) << 20)

enum { NARROW_CARD_LARGEST = 4 }; /* MiB in one allocation */

static uint64_t narrow_card_left;

static inline gm_status narrow_card_info(void *driver, uint32_t index, void *device, gm_device_info *out,
                                         gm_error *err) {
  gm_status status = gm__cpu_backend.device_info(driver, index, device, out, err);
  out->unified = false;
  out->type = GM_DEVICE_TYPE_DISCRETE;
  out->max_alloc_bytes = NARROW_CARD_LARGEST * MIB;
  return status;
}

static inline gm_status narrow_card_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  if (params->bytes > NARROW_CARD_LARGEST * MIB) return GM_ERR_ALLOCATION_TOO_LARGE;
  if (params->bytes > narrow_card_left) return GM_ERR_OUT_OF_DEVICE_MEMORY;
  gm_status status = gm__cpu_backend.memory_alloc(device, params, out, err);
  if (status == GM_OK) narrow_card_left -= out->bytes;
  return status;
}

static inline gm_status narrow_card_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  narrow_card_left += memory->bytes;
  return gm__cpu_backend.memory_free(device, memory, mode, err);
}

static inline void narrow_card_open(pool_bench *bench, uint64_t bytes, gm_strategy strategy, gm_pool_params params) {
  gm_backend_ops ops = gm__cpu_backend;
  narrow_card_left = bytes;
  ops.name = "card";
  ops.api = GM_API_OTHER;
  ops.device_info = narrow_card_info;
  ops.memory_alloc = narrow_card_alloc;
  ops.memory_free = narrow_card_free;
  counted_services_init(&bench->host);
  const gm_context_params context = {
      .struct_size = sizeof context, .services = &bench->host.services, .ignore_environment = true};
  params.struct_size = sizeof params;
  params.strategy = strategy;
  params.checked = params.no_vmm = true;
  pool_bench_ok(gm_context_create(&context, &bench->ctx, err));
  pool_bench_ok(gm_backend_register(bench->ctx, &ops, err));
  pool_bench_ok(gm_device_open_index(bench->ctx, "card", 0, &bench->device, err));
  pool_bench_ok(gm_pool_create(bench->device, &params, &bench->pool, err));
}

/* Nobody has anything, and no figure says otherwise. */
static inline void narrow_card_check_quiet(pool_bench *bench) {
  gm_pool_trim(bench->pool, 0);
  const gm_stats stats = pool_bench_stats(bench);
  assert_int_equal(stats.active, 0);
  assert_int_equal(stats.in_use_bytes, 0);
  assert_int_equal(stats.requested_bytes, 0);
  assert_int_equal(stats.reserved_bytes, 0);
}

#endif
