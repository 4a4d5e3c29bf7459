/* A context, a device and a pool for tests of the layers above the device, on memory that counts.
 *
 *   pool_bench bench;
 *   pool_bench_open(&bench, "null", "null:capacity=64M,latency=1000", NULL);
 *   ... bench.pool, bench.device, bench.ctx ...
 *   pool_bench_close(&bench);   // everything given back */
#ifndef GM_TESTS_SUPPORT_POOL_BENCH_H
#define GM_TESTS_SUPPORT_POOL_BENCH_H

#include "gm/config.h"
#include "gm/pool.h"
#include "support/counted_services.h"

typedef struct pool_bench {
  counted_services host;
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
} pool_bench;

/* Needs cmocka.h. */
#define pool_bench_ok(call)                                                   \
  do {                                                                        \
    gm_error pool_bench_err = {.status = GM_OK};                              \
    gm_error *err = &pool_bench_err;                                          \
    gm_status pool_bench_status = (call);                                     \
    if (pool_bench_status) fail_msg("%s: %s", #call, pool_bench_err.message); \
  } while (0)

/* A context and an open device; figures are gm's whole (no share of it kept free). `root`: where /proc and /sys are;
 * NULL: the system's. */
static inline void pool_bench_open_on(pool_bench *bench, const char *backend, const char *options, const char *root) {
  counted_services_init(&bench->host);
  gm_context_params params = {.struct_size = sizeof params,
                              .services = &bench->host.services,
                              .backend_options = options,
                              .host_root = root,
                              .ignore_environment = true};
  bench->pool = NULL;
  pool_bench_ok(gm_context_create(&params, &bench->ctx, err));
  pool_bench_ok(gm_config_set(bench->ctx, "memory_fraction", "1", err));
  pool_bench_ok(gm_config_set(bench->ctx, "min_free_bytes", "0", err));
  pool_bench_ok(gm_device_open_index(bench->ctx, backend, 0, &bench->device, err));
}

static inline void pool_bench_open_device(pool_bench *bench, const char *backend, const char *options) {
  pool_bench_open_on(bench, backend, options, NULL);
}

static inline void pool_bench_open(pool_bench *bench, const char *backend, const char *options,
                                   const gm_pool_params *params) {
  pool_bench_open_device(bench, backend, options);
  pool_bench_ok(gm_pool_create(bench->device, params, &bench->pool, err));
}

static inline void pool_bench_close(pool_bench *bench) {
  pool_bench_ok(gm_pool_destroy(bench->pool, err));
  pool_bench_ok(gm_device_close(bench->device, err));
  pool_bench_ok(gm_context_destroy(bench->ctx, err));
  counted_services_check(&bench->host);
}

static inline gm_stats pool_bench_stats(pool_bench *bench) {
  gm_stats stats = {.struct_size = sizeof stats};
  gm_pool_stats(bench->pool, &stats);
  return stats;
}

#endif
