/* The answers of gm to figures that cannot be, on a simulated driver of CUDA's kind. Needs cmocka.h included
 * before. */
#ifndef GM_TESTS_SUPPORT_FIGURE_SCENE_H
#define GM_TESTS_SUPPORT_FIGURE_SCENE_H

#include <stdio.h>

#include "gm/device.h"
#include "gm/memory_info.h"
#include "support/pool_bench.h"

/* A card that says it has 0 bytes: an unknown size, and no failure. */
static inline void total_of_zero_holds(const char *backend, const char *library,
                                       int (*control)(const char *command, char *reply, size_t capacity)) {
  char libraries[512];
  gm_memory_info info = {.struct_size = sizeof info};
  pool_bench bench = {.pool = NULL};
  snprintf(libraries, sizeof libraries, "%s=%s", backend, library);
  counted_services_init(&bench.host);
  const gm_context_params params = {.struct_size = sizeof params,
                                    .services = &bench.host.services,
                                    .libraries = libraries,
                                    .ignore_environment = true};
  assert_int_equal(control("set TOTAL 0", NULL, 0), 0);
  assert_int_equal(control("set CONTEXT_BYTES 0", NULL, 0), 0);
  pool_bench_ok(gm_context_create(&params, &bench.ctx, err));
  pool_bench_ok(gm_device_open_index(bench.ctx, backend, 0, &bench.device, err));
  pool_bench_ok(gm_pool_create(bench.device, NULL, &bench.pool, err));
  pool_bench_ok(gm_device_memory_info(bench.device, &info, err));
  assert_true(info.total_bytes == GM_UNKNOWN_BYTES || info.free_bytes <= info.total_bytes);
  const gm_request request = {.bytes = 4096};
  gm_block block;
  assert_true(gm_alloc(bench.pool, &request, &block) > GM_ACQUIRE_FRESH);
  pool_bench_close(&bench);
  assert_int_equal(control("set TOTAL 1g", NULL, 0), 0);
  assert_int_equal(control("set CONTEXT_BYTES 4m", NULL, 0), 0);
}

/* Whatever the query of free memory answers: no failure, free at most total, and a pool that works. */
static inline void figures_hold(const char *backend, const char *library,
                                int (*control)(const char *command, char *reply, size_t capacity)) {
  static const char *const answers[] = {"zero", "free_above_total", "fail", "oom", "true"};
  char libraries[512];
  pool_bench bench = {.pool = NULL};
  snprintf(libraries, sizeof libraries, "%s=%s", backend, library);
  counted_services_init(&bench.host);
  const gm_context_params params = {.struct_size = sizeof params,
                                    .services = &bench.host.services,
                                    .libraries = libraries,
                                    .ignore_environment = true};
  pool_bench_ok(gm_context_create(&params, &bench.ctx, err));
  pool_bench_ok(gm_device_open_index(bench.ctx, backend, 0, &bench.device, err));
  pool_bench_ok(gm_pool_create(bench.device, NULL, &bench.pool, err));
  for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
    char command[64];
    gm_memory_info info = {.struct_size = sizeof info};
    snprintf(command, sizeof command, "set MEMINFO %s", answers[i]);
    assert_int_equal(control(command, NULL, 0), 0);
    pool_bench_ok(gm_device_memory_info(bench.device, &info, err));
    assert_true(info.total_bytes > 0);
    if (info.free_bytes != GM_UNKNOWN_BYTES) assert_true(info.free_bytes <= info.total_bytes);
  }
  const gm_request request = {.bytes = 4096};
  gm_block block;
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_FRESH);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

#endif
