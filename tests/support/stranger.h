/* A registered backend is promised the same as gm's own: discovery, selection, placement, limits. The stranger is a
 * copy of one of gm's backends, its twin, under another name. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_STRANGER_H
#define GM_TESTS_SUPPORT_STRANGER_H

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "gm/backend.h"
#include "gm/fit.h"
#include "support/named_libraries.h"
#include "support/pool_bench.h"

#define STRANGER_MIB (UINT64_C(1) << 20)

/* The table of a module, loaded as an engine loads its plug-in. */
static inline const gm_backend_ops *stranger_ops(const char *path) {
  const gm_backend_ops *(*module)(void) = NULL;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  void *symbol = dlsym(library, "gm_backend_module");
  assert_non_null(symbol);
  memcpy(&module, &symbol, sizeof module);
  return module();
}

/* A context of the stranger and its twin. */
static inline gm_context *stranger_context(const gm_backend_ops *ops, const char *twin) {
  char names[64];
  gm_context *ctx = NULL;
  snprintf(names, sizeof names, "%s,%s", ops->name, twin);
  const gm_context_params params = {.struct_size = sizeof params,
                                    .backends = names,
                                    .probe_helper = getenv("GM_PROBE_HELPER"),
                                    .libraries = named_libraries(),
                                    .ignore_environment = true};
  pool_bench_ok(gm_context_create(&params, &ctx, err));
  pool_bench_ok(gm_backend_register(ctx, ops, err));
  return ctx;
}

static inline gm_backend_info stranger_backend(gm_context *ctx, const char *name, gm_probe_level level) {
  gm_backend_info infos[16] = {{.struct_size = sizeof *infos}};
  size_t count = 0;
  pool_bench_ok(gm_discover_backends(ctx, level, infos, 16, &count, err));
  for (size_t i = 0; i < count && i < 16; i++) {
    if (strcmp(infos[i].name, name) == 0) return infos[i];
  }
  fail_msg("%s is not there", name);
  return infos[0];
}

/* The first device of that backend. */
static inline gm_device_entry stranger_entry(gm_context *ctx, const char *name) {
  static gm_device_entry entries[64];
  size_t count = 0;
  entries[0].struct_size = sizeof *entries;
  pool_bench_ok(gm_discover_devices(ctx, entries, 64, &count, err));
  for (size_t i = 0; i < count && i < 64; i++) {
    if (strcmp(entries[i].id.backend, name) == 0) return entries[i];
  }
  fail_msg("no device of %s", name);
  return entries[0];
}

/* A device in host memory has less free than the system, or than the device. Other programs may change which, between
 * two looks. */
static inline bool stranger_is_bound(gm_figure_source source) {
  return source == GM_SOURCE_OS || source == GM_SOURCE_OWN_ACCOUNTING;
}

/* The stranger's devices are its twin's under its own name, and memory that both can take is counted once. */
static inline void stranger_is_discovered(gm_context *ctx, const gm_backend_ops *ops, const char *twin,
                                          gm_probe_level level) {
  const gm_backend_info own = stranger_backend(ctx, ops->name, level), known = stranger_backend(ctx, twin, level);
  if (own.status != GM_OK) fail_msg("%s", own.reason.message);
  assert_int_equal(own.api, ops->api);
  assert_int_equal(own.device_count, known.device_count);
  const gm_device_entry entry = stranger_entry(ctx, ops->name), other = stranger_entry(ctx, twin);
  assert_string_equal(entry.info.backend, ops->name);
  assert_string_equal(entry.info.name, other.info.name);
  assert_int_equal(entry.info.total_bytes, other.info.total_bytes);
  assert_int_equal(entry.memory.total_bytes, other.memory.total_bytes);
  assert_int_equal(entry.memory.free_state, other.memory.free_state);
  if (!stranger_is_bound(entry.memory.free_source) || !stranger_is_bound(other.memory.free_source)) {
    assert_int_equal(entry.memory.free_source, other.memory.free_source);
  }
  assert_int_equal(entry.host_pool, other.host_pool);
}

static inline const gm_rejection *stranger_rejection(const gm_selection *found, const char *name) {
  for (uint32_t i = 0; i < found->rejected_count && i < 32; i++) {
    if (strcmp(found->rejected[i].id.backend, name) == 0) return &found->rejected[i];
  }
  fail_msg("no word on %s", name);
  return &found->rejected[0];
}

static inline void stranger_is_selected(gm_context *ctx, const gm_backend_ops *ops) {
  const gm_select_params only = {.struct_size = sizeof only, .prefer = ops->name};
  const gm_select_params half = {
      .struct_size = sizeof half, .prefer = ops->name, .memory_fraction = 0.5, .keep_free_bytes = GM_NO_BYTES};
  gm_selection found = {.struct_size = sizeof found};
  gm_device *device = NULL;
  gm_error why = {.status = GM_OK};
  pool_bench_ok(gm_select_backend_for_bytes(ctx, STRANGER_MIB, &only, &found, err));
  assert_string_equal(found.id.backend, ops->name);
  assert_int_equal(found.api, ops->api);
  assert_true(found.free_bytes >= found.headroom_bytes);
  const gm_device_entry entry = stranger_entry(ctx, ops->name);
  assert_int_equal(gm_select_backend_for_bytes(ctx, entry.memory.total_bytes / 2 + 1, &half, &found, &why),
                   GM_ERR_NOT_FOUND);
  assert_non_null(strstr(why.message, ops->name));
  assert_non_null(strstr(stranger_rejection(&found, ops->name)->why, "does not fit"));
  pool_bench_ok(gm_select_backend_for_bytes(ctx, STRANGER_MIB, &only, &found, err));
  pool_bench_ok(gm_device_open(ctx, &found.id, &device, err));
  assert_string_equal(gm_device_get_info(device)->backend, ops->name);
  pool_bench_ok(gm_device_close(device, err));
  pool_bench_ok(gm_open_for_bytes(ctx, ops->name, STRANGER_MIB, &device, err));
  assert_string_equal(gm_device_get_info(device)->backend, ops->name);
  pool_bench_ok(gm_device_close(device, err));
}

/* Software on the host is refused where the caller says so, whoever brings it. */
static inline void stranger_is_refused(gm_context *ctx, const gm_backend_ops *ops) {
  const gm_select_params params = {.struct_size = sizeof params, .prefer = ops->name, .refuse_cpu = true};
  gm_selection found = {.struct_size = sizeof found};
  gm_error why = {.status = GM_OK};
  assert_int_equal(gm_select_backend_for_bytes(ctx, STRANGER_MIB, &params, &found, &why), GM_ERR_NOT_FOUND);
  assert_non_null(strstr(why.message, "host"));
}

static inline gm_fit_plan stranger_plan(const gm_fit_device *devices, uint32_t count, uint64_t layer_bytes,
                                        gm_fit_part *parts) {
  enum { LAYERS = 10 };
  gm_fit_layer layers[LAYERS] = {{.weight_bytes = 0}};
  for (int i = 0; i < LAYERS; i++) layers[i].weight_bytes = layer_bytes;
  const gm_fit_request request = {.struct_size = sizeof request,
                                  .device_count = count,
                                  .devices = devices,
                                  .layers = layers,
                                  .layer_count = LAYERS,
                                  .host_free_bytes = GM_UNKNOWN_BYTES};
  gm_fit_plan plan = {.struct_size = sizeof plan};
  pool_bench_ok(gm_place_layers(NULL, &request, parts, &plan, err));
  return plan;
}

/* Layers go where the stranger's device has room, beside a device that has none. */
static inline void stranger_gets_layers(gm_device *device) {
  gm_fit_device devices[2] = {{.name = "full"}, {.margin_bytes = 0}};
  gm_fit_part parts[2];
  pool_bench_ok(gm_fit_device_read(device, &devices[1], err));
  assert_string_equal(devices[1].name, gm_device_get_info(device)->name);
  assert_true(devices[1].free_bytes > STRANGER_MIB);
  gm_fit_plan plan = stranger_plan(devices, 2, devices[1].free_bytes / 10, parts);
  assert_true(plan.fits && plan.device_layers == 10 && plan.devices_used == 1);
  assert_true(parts[0].layer_count == 0 && parts[1].layer_count == 10);
  plan = stranger_plan(devices, 2, devices[1].free_bytes / 4, parts);
  assert_true(plan.fits && plan.device_layers == 4 && parts[1].layer_count == 4);
  assert_true(plan.device_bytes <= devices[1].free_bytes);
}

#endif
