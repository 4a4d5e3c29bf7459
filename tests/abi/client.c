/* A program that was compiled with other headers than the library. This file is compiled three times. An older gm's
 * headers have shorter structs; a newer one's have a member more in each; the third are gm's own. Behind every struct
 * lie bytes that are nobody's: gm writes none of them, and nothing that it does depends on them. */
#include "gm/model_all.h"
#include "gm/tools.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gm/native_cpu.h"
#include "support/safetensors_bytes.h"
#include "support/temp_folder.h"

enum { BEHIND = 64, FILL = 0xa5 };

/* A struct of the caller's, and what lies behind it. */
#define GUARDED(type, name)                      \
  struct {                                       \
    type it;                                     \
    unsigned char behind[BEHIND];                \
  } name;                                        \
  memset(&name.it, 0, sizeof name.it);           \
  memset(name.behind, FILL, sizeof name.behind); \
  memcpy(&name.it, &(uint32_t){sizeof name.it}, 4)

/* An output, with a guard behind it. Its bytes hold anything before gm writes them. */
#define OUTPUT(type, name)                \
  GUARDED(type, name);                    \
  memset(&name.it, FILL, sizeof name.it); \
  memcpy(&name.it, &(uint32_t){sizeof name.it}, 4)

static void check_size(const void *it, size_t bytes, const unsigned char *behind) {
  uint32_t size;
  memcpy(&size, it, sizeof size);
  assert_int_equal(size, bytes);
  for (int i = 0; i < BEHIND; i++) assert_int_equal(behind[i], FILL);
}

#define UNTOUCHED(name) check_size(&name.it, sizeof name.it, name.behind)

#ifdef CLIENT_NEWER
/* A member that gm does not know: refused where it is set, and 0 where gm would have to tell it. */
#define REFUSED(name, call)                     \
  name.it.later = 1;                            \
  assert_int_equal(call, GM_ERR_NOT_SUPPORTED); \
  name.it.later = 0
#define TOLD(name) \
  UNTOUCHED(name); \
  assert_int_equal(name.it.later, 0)
#else
#define REFUSED(name, call) UNTOUCHED(name)
#define TOLD(name) UNTOUCHED(name)
#endif

typedef struct world {
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  gm_error err;
} world;

static world w;

static void ok(gm_status status) {
  if (status) print_error("%s: %s: %s\n", gm_status_name(status), w.err.op, w.err.message);
  assert_int_equal(status, GM_OK);
}

static gm_block take(uint64_t bytes) {
  const gm_request request = {.bytes = bytes};
  gm_block block;
  assert_true(gm_alloc(w.pool, &request, &block) <= GM_ACQUIRE_FRESH);
  return block;
}

static int setup(void **state) {
  (void)state;
  GUARDED(gm_context_params, context);
  GUARDED(gm_pool_params, pool);
  context.it.ignore_environment = true;
  context.it.backends = "cpu,null";
  pool.it.name = "client";
  REFUSED(context, gm_context_create(&context.it, &w.ctx, NULL));
  ok(gm_context_create(&context.it, &w.ctx, &w.err));
  ok(gm_device_open_index(w.ctx, "cpu", 0, &w.device, &w.err));
  REFUSED(pool, gm_pool_create(w.device, &pool.it, &w.pool, NULL));
  ok(gm_pool_create(w.device, &pool.it, &w.pool, &w.err));
  return 0;
}

static int teardown(void **state) {
  (void)state;
  ok(gm_pool_destroy(w.pool, &w.err));
  ok(gm_device_close(w.device, &w.err));
  ok(gm_context_destroy(w.ctx, &w.err));
  return 0;
}

static void test_versions(void **state) {
  (void)state;
  assert_int_equal(gm_version(), GM_VERSION_NUMBER);
}

/* ---- devices ---- */

static void test_arrays(void **state) {
  (void)state;
  struct {
    gm_backend_info it[3];
    unsigned char behind[BEHIND];
  } backends = {.it = {{.struct_size = sizeof *backends.it}}};
  struct {
    gm_device_entry it[2];
    unsigned char behind[BEHIND];
  } devices = {.it = {{.struct_size = sizeof *devices.it}}};
  size_t count = 0;
  memset(backends.behind, FILL, BEHIND);
  memset(devices.behind, FILL, BEHIND);
  ok(gm_discover_backends(w.ctx, GM_PROBE_ACTIVE, backends.it, 3, &count, &w.err));
  assert_true(count >= 2);
  for (size_t i = 0; i < count && i < 3; i++) {
    assert_int_equal(backends.it[i].struct_size, sizeof *backends.it);
    assert_true(memchr(backends.it[i].name, 0, sizeof backends.it[i].name) && backends.it[i].name[0]);
  }
  ok(gm_discover_devices(w.ctx, devices.it, 2, &count, &w.err));
  assert_true(count >= 2);
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(devices.it[i].struct_size, sizeof *devices.it);
    assert_true(devices.it[i].id.backend[0] != 0);
  }
  for (int i = 0; i < BEHIND; i++) assert_int_equal(backends.behind[i] & devices.behind[i], FILL);
}

static void test_selection(void **state) {
  (void)state;
  GUARDED(gm_select_params, params);
  OUTPUT(gm_selection, selection);
  REFUSED(params, gm_select_backend_for_bytes(w.ctx, 1, &params.it, &selection.it, NULL));
  ok(gm_select_backend_for_bytes(w.ctx, 1, &params.it, &selection.it, &w.err));
  TOLD(selection);
  assert_int_equal(selection.it.api, GM_API_CPU);
}

static void test_device(void **state) {
  (void)state;
  OUTPUT(gm_memory_info, memory);
  OUTPUT(gm_host_info, host);
  OUTPUT(gm_memory_type, type);
  OUTPUT(gm_pressure, pressure);
  OUTPUT(gm_stats, stats);
  ok(gm_device_memory_info(w.device, &memory.it, &w.err));
  UNTOUCHED(memory); /* lies inside other structs: its size stays */
  assert_true(memory.it.total_bytes > 0);
  ok(gm_host_info_read(NULL, &host.it, &w.err));
  TOLD(host);
  assert_true(host.it.total_bytes > 0);
  ok(gm_device_memory_type(w.device, 0, &type.it, &w.err));
  TOLD(type);
  assert_int_equal(type.it.flags & GM_MEMORY_HOST_VISIBLE, GM_MEMORY_HOST_VISIBLE);
  ok(gm_device_pressure(w.device, &pressure.it, &w.err));
  TOLD(pressure);
  ok(gm_device_stats(w.device, &stats.it, &w.err));
  TOLD(stats);
  ok(gm_context_stats(w.ctx, &stats.it, &w.err));
  TOLD(stats);
}

/* ---- pools ---- */

static void test_pool_reports(void **state) {
  (void)state;
  const gm_block block = take(1000);
  const gm_request request = {.bytes = 5};
  OUTPUT(gm_stats, stats);
  OUTPUT(gm_explanation, why);
  OUTPUT(gm_pointer_info, info);
  OUTPUT(gm_quota, quota);
  OUTPUT(gm_pressure, pressure);
  OUTPUT(gm_check_report, report);
  ok(gm_pool_stats(w.pool, &stats.it));
  TOLD(stats);
  assert_int_equal(stats.it.requested_bytes, 1000);
  assert_true(gm_stats_fragmentation(&stats.it) == -1); /* nobody has looked for holes */
  gm_stats_add(&stats.it, &stats.it);
  TOLD(stats);
  assert_int_equal(stats.it.requested_bytes, 2000);
  ok(gm_explain(w.pool, &request, &why.it, &w.err));
  TOLD(why);
  assert_int_equal(why.it.asked_bytes, 5);
  ok(gm_pointer_find(w.device, (void *)(uintptr_t)block.address, &info.it));
  TOLD(info);
  assert_int_equal(info.it.requested_bytes, 1000);
  ok(gm_pool_quota(w.pool, 1, &quota.it, &w.err));
  TOLD(quota);
  assert_true(quota.it.bytes == GM_NO_QUOTA);
  ok(gm_pool_pressure(w.pool, &pressure.it, &w.err));
  TOLD(pressure);
  ok(gm_pool_check(w.pool, &report.it, &w.err));
  TOLD(report);
  assert_int_equal(report.it.damaged, 0);
  ok(gm_free(w.pool, &block, NULL));
}

static void test_native_memory(void **state) {
  (void)state;
  static char engine[4096];
  gm_block block = take(1000);
  OUTPUT(gm_cpu_memory, native);
  native.it.head.api = GM_API_CPU;
  ok(gm_block_native(w.pool, &block, &native.it.head, &w.err));
  TOLD(native);
  assert_true((uintptr_t)native.it.pointer == block.address);
  ok(gm_free(w.pool, &block, NULL));
#ifndef CLIENT_OLDER /* which cannot say how many bytes it lends */
  GUARDED(gm_cpu_memory, lent);
  lent.it.head.api = GM_API_CPU;
  lent.it.pointer = engine;
  lent.it.bytes = sizeof engine;
  REFUSED(lent, gm_block_wrap(w.pool, &lent.it.head, &block, NULL));
  ok(gm_block_wrap(w.pool, &lent.it.head, &block, &w.err));
  ok(gm_free(w.pool, &block, NULL));
#else
  (void)engine;
#endif
}

static void test_buffers_and_batches(void **state) {
  (void)state;
  const gm_request requests[2] = {{.bytes = 100}, {.bytes = 200}};
  gm_buffer *buffer = NULL;
  gm_part parts[2];
  GUARDED(gm_buffer_params, params);
  GUARDED(gm_batch_params, batch);
  params.it.request.bytes = 100;
  batch.it.requests = requests;
  batch.it.count = 2;
  REFUSED(params, gm_buffer_create(w.pool, &params.it, &buffer, NULL));
  ok(gm_buffer_create(w.pool, &params.it, &buffer, &w.err));
  gm_buffer_release(buffer, NULL);
  REFUSED(batch, gm_alloc_batch(w.pool, &batch.it, parts, NULL, NULL));
  ok(gm_alloc_batch(w.pool, &batch.it, parts, NULL, &w.err));
  ok(gm_free_batch(w.pool, parts, 2, NULL, &w.err));
}

static void test_managed(void **state) {
  (void)state;
  gm_managed *managed = NULL;
  GUARDED(gm_managed_params, params);
  OUTPUT(gm_managed_info, info);
  params.it.bytes = 5000;
  REFUSED(params, gm_managed_create(w.pool, &params.it, &managed, NULL));
  ok(gm_managed_create(w.pool, &params.it, &managed, &w.err));
  ok(gm_managed_get_info(managed, &info.it, &w.err));
  TOLD(info);
  assert_int_equal(info.it.bytes, 5000);
  ok(gm_managed_destroy(managed, NULL, &w.err));
}

static void test_peers(void **state) {
  (void)state;
  gm_device *other = NULL;
  gm_pool *there = NULL;
  OUTPUT(gm_peer_path, path);
  OUTPUT(gm_peer_result, result);
  ok(gm_device_open_index(w.ctx, "cpu", 0, &other, &w.err));
  ok(gm_pool_create(other, NULL, &there, &w.err));
  const gm_block from = take(100);
  const gm_request request = {.bytes = 100};
  gm_block to;
  assert_true(gm_alloc(there, &request, &to) <= GM_ACQUIRE_FRESH);
  ok(gm_peer_get_info(w.device, other, &path.it, &w.err));
  TOLD(path);
  ok(gm_block_copy_peer(there, &to, 0, w.pool, &from, 0, 100, NULL, NULL, &result.it, &w.err));
  TOLD(result);
  ok(gm_free(there, &to, NULL));
  ok(gm_free(w.pool, &from, NULL));
  ok(gm_pool_destroy(there, &w.err));
  ok(gm_device_close(other, &w.err));
}

static void test_transfers(void **state) {
  (void)state;
  gm_transfer *transfer = NULL;
  const gm_block block = take(100);
  GUARDED(gm_copy, copy); /* of no bytes: an older program's ends before */
  GUARDED(gm_transfer_params, params);
  OUTPUT(gm_transfer_stats, stats);
  OUTPUT(gm_transfer_links, links);
  copy.it.to = copy.it.from = (gm_end){.pool = w.pool, .block = &block};
  REFUSED(copy, gm_transfer_start(w.device, &copy.it, 1, &params.it, &transfer, NULL));
  REFUSED(params, gm_transfer_start(w.device, &copy.it, 1, &params.it, &transfer, NULL));
  ok(gm_transfer_start(w.device, &copy.it, 1, &params.it, &transfer, &w.err));
  ok(gm_transfer_wait(transfer, UINT64_MAX, &stats.it, &w.err));
  TOLD(stats);
  ok(gm_transfer_release(transfer, &w.err));
  ok(gm_transfer_measure(w.device, &links.it, &w.err));
  TOLD(links);
  ok(gm_free(w.pool, &block, NULL));
}

/* An older program cannot ask for such a pool: its params end before. */
#ifndef CLIENT_OLDER
static void test_share(void **state) {
  (void)state;
  gm_pool *pool = NULL;
  GUARDED(gm_pool_params, params);
  OUTPUT(gm_shared, shared);
  params.it.share = GM_SHARE_FD;
  ok(gm_pool_create(w.device, &params.it, &pool, &w.err));
  const gm_request request = {.bytes = 4096};
  gm_block block, imported;
  assert_true(gm_alloc(pool, &request, &block) <= GM_ACQUIRE_FRESH);
  ok(gm_block_export(pool, &block, &shared.it, &w.err));
  TOLD(shared);
  assert_true(shared.it.fd >= 0);
  REFUSED(shared, gm_block_import(w.pool, &shared.it, &imported, NULL));
  ok(gm_block_import(w.pool, &shared.it, &imported, &w.err));
  gm_shared_close(&shared.it);
  TOLD(shared);
  assert_int_equal(shared.it.kind, GM_SHARE_NONE);
  ok(gm_free(w.pool, &imported, NULL));
  ok(gm_free(pool, &block, NULL));
  ok(gm_pool_destroy(pool, &w.err));
}

#else
static void test_share(void **state) {
  (void)state;
  OUTPUT(gm_shared, shared);
  const gm_block block = take(100);
  assert_int_equal(gm_block_export(w.pool, &block, &shared.it, NULL), GM_ERR_INVALID_ARGUMENT);
  UNTOUCHED(shared);
  ok(gm_free(w.pool, &block, NULL));
}
#endif

static void test_recordings(void **state) {
  (void)state;
  temp_folder folder;
  char path[4096];
  gm_trace *trace = NULL;
  OUTPUT(gm_warm_up_result, warm);
  OUTPUT(gm_recording, recording);
  OUTPUT(gm_trace_event, event);
  OUTPUT(gm_trace_profile, profile);
  const gm_warm_up list = {.bytes = 4096, .count = 2};
  temp_folder_make(&folder);
  snprintf(path, sizeof path, "%s", temp_folder_write(&folder, "trace", "", 0));
  ok(gm_pool_record_begin(w.pool, path, &w.err));
  ok(gm_pool_warm_up(w.pool, &list, 1, NULL, &warm.it, &w.err));
  TOLD(warm);
  assert_int_equal(warm.it.blocks, 2);
  ok(gm_pool_record_end(w.pool, &recording.it, &w.err));
  TOLD(recording);
  assert_int_equal(recording.it.allocs, 2);
  ok(gm_trace_open(NULL, path, &trace, &w.err));
  ok(gm_trace_next(trace, &event.it, &w.err));
  TOLD(event);
  gm_trace_close(trace);
  ok(gm_trace_profile_read(NULL, path, &profile.it, &w.err));
  TOLD(profile);
  assert_int_equal(profile.it.allocs, 2);
  temp_folder_remove(&folder);
}

/* ---- models ---- */

static const char header[] = "{\"t\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}";
static const char dimensions[] =
    "{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"intermediate_size\":128,\"vocab_size\":100,\"max_position_embeddings\":512}";

static void test_model_files(void **state) {
  (void)state;
  temp_folder folder;
  gm_model *model = NULL;
  gm_loaded_model *loaded = NULL;
  OUTPUT(gm_tensor_info, tensor);
  GUARDED(gm_load_params, params);
  OUTPUT(gm_load_result, result);
  GUARDED(gm_save_params, how);
  OUTPUT(gm_save_result, saved);
  OUTPUT(gm_sums_result, sums);
  temp_folder_make(&folder);
  safetensors_bytes file = safetensors_bytes_make(header, strlen(header), 16, 1);
  ok(gm_model_open(NULL, temp_folder_write(&folder, "m.safetensors", file.bytes, file.length), &model, &w.err));
  ok(gm_model_tensor(model, 0, &tensor.it, &w.err));
  TOLD(tensor);
  assert_int_equal(tensor.it.bytes, 16);
  params.it.verify = true;
  REFUSED(params, gm_model_load(model, w.pool, &params.it, &loaded, &result.it, NULL));
  ok(gm_model_load(model, w.pool, &params.it, &loaded, &result.it, &w.err));
  TOLD(result);
  assert_int_equal(result.it.bytes, 16);
  const char *copy = temp_folder_join(&folder, "copy.safetensors");
  how.it.checksums = true;
  REFUSED(how, gm_model_save(model, loaded, copy, &how.it, &saved.it, NULL));
  ok(gm_model_save(model, loaded, copy, &how.it, &saved.it, &w.err));
  TOLD(saved);
  assert_int_equal(saved.it.bytes, 16);
  ok(gm_model_check_sums(model, NULL, NULL, &sums.it, &w.err));
  TOLD(sums);
  ok(gm_loaded_model_release(loaded, NULL));
  gm_model_close(model);
  safetensors_bytes_free(&file);
  temp_folder_remove(&folder);
}

static void test_estimates(void **state) {
  (void)state;
  temp_folder folder;
  gm_fit_layer layers[3];
  OUTPUT(gm_model_config, config);
  GUARDED(gm_estimate_settings, settings);
  OUTPUT(gm_memory_estimate, estimate);
  GUARDED(gm_fit_request, request);
  OUTPUT(gm_fit_plan, plan);
  temp_folder_make(&folder);
  const char *path = temp_folder_write(&folder, "config.json", dimensions, strlen(dimensions));
  ok(gm_model_config_load(NULL, path, &config.it, &w.err));
  TOLD(config);
  assert_int_equal(config.it.layers, 2);
  REFUSED(config, gm_estimate_memory(NULL, &config.it, NULL, &settings.it, &estimate.it, NULL));
  REFUSED(settings, gm_estimate_memory(NULL, &config.it, NULL, &settings.it, &estimate.it, NULL));
  ok(gm_estimate_memory(NULL, &config.it, NULL, &settings.it, &estimate.it, &w.err));
  TOLD(estimate);
  assert_true(estimate.it.total.bytes > 0);
  ok(gm_estimate_layers(NULL, &config.it, NULL, &settings.it, layers, 3, &request.it, &w.err));
  TOLD(request);
  assert_int_equal(request.it.layer_count, 3);
  request.it.host_free_bytes = GM_UNKNOWN_BYTES;
  REFUSED(request, gm_place_layers(NULL, &request.it, NULL, &plan.it, NULL));
  ok(gm_place_layers(NULL, &request.it, NULL, &plan.it, &w.err));
  UNTOUCHED(plan); /* lies inside another one */
  assert_true(plan.it.fits);
  temp_folder_remove(&folder);
}

static gm_status figures(void *user, const gm_fit_setting *setting, gm_fit_request *out, gm_error *err) {
  (void)setting, (void)err;
  out->layers = user;
  out->layer_count = 1;
  out->host_free_bytes = GM_UNKNOWN_BYTES;
  return GM_OK;
}

static void test_fitting(void **state) {
  (void)state;
  gm_fit_layer layer = {.weight_bytes = 1};
  GUARDED(gm_fit_source, source);
  GUARDED(gm_fit_setting, setting);
  OUTPUT(gm_fit_plan, plan);
  source.it.figures = figures;
  source.it.user = &layer;
  setting.it.context = 1;
  REFUSED(source, gm_fit_try(&source.it, &setting.it, NULL, &plan.it, NULL));
  ok(gm_fit_try(&source.it, &setting.it, NULL, &plan.it, &w.err));
  assert_true(plan.it.fits);
  GUARDED(gm_component_settings, run);
  gm_component component;
  uint32_t count = 0;
  REFUSED(run, gm_estimate_pipeline(NULL, "/nowhere", &run.it, &component, 1, &count, NULL));
  run.it.width = run.it.height = 512;
  assert_int_equal(gm_estimate_pipeline(NULL, "/nowhere", &run.it, &component, 1, &count, NULL), GM_ERR_NOT_FOUND);
  GUARDED(gm_fit_taken, taken);
  OUTPUT(gm_fit_check_result, result);
  REFUSED(taken, gm_fit_check(&plan.it.host, 0, &taken.it, &result.it, NULL));
  ok(gm_fit_check(&plan.it.host, 0, &taken.it, &result.it, &w.err));
  TOLD(result);
  assert_true(result.it.within);
  setting.it.reserved[0] = 1;
  assert_int_equal(gm_fit_try(&source.it, &setting.it, NULL, &plan.it, NULL), GM_ERR_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_versions),
      cmocka_unit_test(test_arrays),
      cmocka_unit_test(test_selection),
      cmocka_unit_test(test_device),
      cmocka_unit_test(test_pool_reports),
      cmocka_unit_test(test_native_memory),
      cmocka_unit_test(test_buffers_and_batches),
      cmocka_unit_test(test_managed),
      cmocka_unit_test(test_peers),
      cmocka_unit_test(test_transfers),
      cmocka_unit_test(test_share),
      cmocka_unit_test(test_recordings),
      cmocka_unit_test(test_model_files),
      cmocka_unit_test(test_estimates),
      cmocka_unit_test(test_fitting),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
