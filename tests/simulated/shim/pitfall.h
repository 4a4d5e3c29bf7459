/* A context on a simulated driver, through gm's public interface alone: for the tests that are named after pitfalls.
 * Needs cmocka.h. */
#ifndef GM_TESTS_SIMULATED_SHIM_PITFALL_H
#define GM_TESTS_SIMULATED_SHIM_PITFALL_H

#include "gm/copy.h"
#include "gm/spans.h"
#include "support/pool_bench.h"

enum { PITFALL_ENTRIES = 64 };
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* The backend that the driver is for, its script's variable and its file. */
typedef struct pitfall_driver {
  const char *backend, *variable, *libraries;
  const char *options; /* backend_options; NULL: none */
} pitfall_driver;

static inline void pitfall_context(pool_bench *bench, const pitfall_driver *driver, const char *script) {
  setenv(driver->variable, script, 1);
  memset(bench, 0, sizeof *bench);
  counted_services_init(&bench->host);
  gm_context_params params = {.struct_size = sizeof params,
                              .services = &bench->host.services,
                              .backends = driver->backend,
                              .libraries = driver->libraries,
                              .backend_options = driver->options,
                              .ignore_environment = true};
  pool_bench_ok(gm_context_create(&params, &bench->ctx, err));
  pool_bench_ok(gm_config_set(bench->ctx, "memory_fraction", "1", err));
  pool_bench_ok(gm_config_set(bench->ctx, "min_free_bytes", "0", err));
}

/* Context, device 0 and a pool. */
/* Every block is a driver allocation of its own, so that a test can count them. */
static inline void pitfall_open(pool_bench *bench, const pitfall_driver *driver, const char *script) {
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BUCKET};
  pitfall_context(bench, driver, script);
  pool_bench_ok(gm_device_open_index(bench->ctx, driver->backend, 0, &bench->device, err));
  pool_bench_ok(gm_pool_create(bench->device, &params, &bench->pool, err));
}

/* Whatever is there: all of it was given back. */
static inline void pitfall_close(pool_bench *bench) {
  if (bench->pool) pool_bench_ok(gm_pool_destroy(bench->pool, err));
  if (bench->device) pool_bench_ok(gm_device_close(bench->device, err));
  pool_bench_ok(gm_context_destroy(bench->ctx, err));
  counted_services_check(&bench->host);
}

/* The devices that discovery lists, every one with sane figures. */
static inline uint32_t pitfall_discover(pool_bench *bench, gm_device_entry entries[PITFALL_ENTRIES]) {
  size_t count = 0;
  pool_bench_ok(gm_discover_backends(bench->ctx, GM_PROBE_ACTIVE, NULL, 0, &count, err));
  memset(entries, 0, PITFALL_ENTRIES * sizeof *entries);
  for (size_t i = 0; i < PITFALL_ENTRIES; i++) entries[i].struct_size = sizeof entries[i];
  pool_bench_ok(gm_discover_devices(bench->ctx, entries, PITFALL_ENTRIES, &count, err));
  for (size_t i = 0; i < count && i < PITFALL_ENTRIES; i++) {
    const gm_memory_info *memory = &entries[i].memory;
    assert_true(entries[i].info.simulated);
    assert_true(memory->free_bytes == GM_UNKNOWN_BYTES || memory->free_bytes <= memory->total_bytes);
    assert_true(entries[i].info.alignment > 0 && !(entries[i].info.alignment & (entries[i].info.alignment - 1)));
    assert_true(strnlen(entries[i].info.name, sizeof entries[i].info.name) < sizeof entries[i].info.name);
  }
  return (uint32_t)count;
}

/* The figures of the open device. */
static inline gm_memory_info pitfall_figures(const pool_bench *bench) {
  gm_memory_info memory = {.struct_size = sizeof memory};
  pool_bench_ok(gm_device_memory_info(bench->device, &memory, err));
  assert_true(memory.free_bytes <= memory.total_bytes);
  return memory;
}

/* The driver's answer to an open that must fail; *out_message is its text. */
static inline gm_status pitfall_refused(const pitfall_driver *driver, const char *script, char *out_message,
                                        size_t capacity) {
  pool_bench bench;
  gm_error failure = {.status = GM_OK};
  pitfall_context(&bench, driver, script);
  const gm_status status = gm_device_open_index(bench.ctx, driver->backend, 0, &bench.device, &failure);
  snprintf(out_message, capacity, "%s", failure.message);
  assert_int_equal(failure.status, status);
  pitfall_close(&bench);
  return status;
}

static inline gm_acquire pitfall_take(const pool_bench *bench, uint64_t bytes, uint32_t flags, gm_must_be must_be,
                                      gm_block *out) {
  const gm_request request = {.bytes = bytes, .flags = flags, .must_be = must_be};
  return gm_alloc(bench->pool, &request, out);
}

static inline gm_block pitfall_block(const pool_bench *bench, uint64_t bytes, uint32_t flags, gm_must_be must_be) {
  gm_block block;
  if (pitfall_take(bench, bytes, flags, must_be, &block) > GM_ACQUIRE_FRESH) {
    const gm_request request = {.bytes = bytes, .flags = flags, .must_be = must_be};
    gm_explanation report = {.struct_size = sizeof report};
    gm_explain(bench->pool, &request, &report, NULL);
    fail_msg("%s; %s", report.text, report.last_failure.message);
  }
  return block;
}

static inline void pitfall_free(const pool_bench *bench, const gm_block *block) {
  assert_int_equal(gm_free(bench->pool, block, NULL), GM_OK);
  gm_pool_trim(bench->pool, 0);
}

/* Ends a mapping; once more where that fails in passing. */
static inline gm_status pitfall_unmap(const pool_bench *bench, const gm_block *block, void *host, gm_error *out) {
  const gm_status status = gm_block_unmap(bench->pool, block, host, NULL, out);
  if (status != GM_OK && status != GM_ERR_DEVICE_LOST)
    pool_bench_ok(gm_block_unmap(bench->pool, block, host, NULL, err));
  return status;
}

/* The answer to the pool's last failed request. */
static inline gm_error pitfall_why(const pool_bench *bench, uint64_t bytes) {
  const gm_request request = {.bytes = bytes};
  gm_explanation report = {.struct_size = sizeof report};
  pool_bench_ok(gm_explain(bench->pool, &request, &report, err));
  return report.last_failure;
}

/* Memory larger than the driver's largest allocation, as one block of `count` memories. A pattern across the borders is
 * there when the point of the write has passed, on a stream of whatever kind the driver has. */
static inline void pitfall_in_several(const pool_bench *bench, uint64_t bytes, uint32_t count) {
  gm_stream *stream;
  gm_point point;
  uint32_t spans = 0;
  unsigned char *written = malloc(bytes), *seen = calloc(1, bytes);
  for (uint64_t i = 0; i < bytes; i++) written[i] = (unsigned char)(i * 7 + i / 1000);
  pool_bench_ok(gm_stream_create(bench->device, &stream, err));
  const gm_block from = pitfall_block(bench, bytes, GM_ALLOW_SPANS, GM_DEVICE_LOCAL);
  const gm_block to = pitfall_block(bench, bytes, GM_ALLOW_SPANS, GM_DEVICE_LOCAL);
  pool_bench_ok(gm_block_spans(bench->pool, &from, 0, 0, NULL, &spans, err));
  assert_int_equal(spans, count);
  pool_bench_ok(gm_block_write(bench->pool, &from, 0, written, bytes, stream, &point, err));
  pool_bench_ok(gm_point_wait(bench->device, &point, UINT64_MAX, err));
  gm_point_release(bench->device, &point);
  pool_bench_ok(gm_block_copy(bench->pool, &to, 1, bench->pool, &from, 0, bytes - 1, NULL, NULL, err));
  pool_bench_ok(gm_block_read(bench->pool, &to, 1, seen, bytes - 1, stream, &point, err));
  pool_bench_ok(gm_point_wait(bench->device, &point, UINT64_MAX, err));
  gm_point_release(bench->device, &point);
  assert_memory_equal(seen, written, bytes - 1);
  assert_int_equal(gm_free(bench->pool, &from, stream), GM_OK);
  pitfall_free(bench, &to);
  pool_bench_ok(gm_stream_close(stream, err));
  free(seen);
  free(written);
}

/* The memory type that a block lies in. */
static inline gm_memory_type pitfall_type(const pool_bench *bench, const gm_block *block) {
  gm_memory memory;
  uint64_t offset;
  gm_memory_type type = {.struct_size = sizeof type};
  assert_int_equal(gm_block_memory(bench->pool, block, &memory, &offset), GM_OK);
  pool_bench_ok(gm_device_memory_type(bench->device, memory.type, &type, err));
  return type;
}

#endif
