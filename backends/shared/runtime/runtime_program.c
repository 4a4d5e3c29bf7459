#include "backends/shared/runtime/runtime_program.h"

#include "backends/shared/runtime/runtime_stream.h"
#include "core/base/error.h"
#include "core/base/log.h"

/* Invariants: one thread moves `state` from NONE to BUSY. It writes `module` and `function` before it sets READY.
 * REFUSED stays. A thread that finds BUSY does not wait: it goes without the program. */

enum { PROGRAM_NONE, PROGRAM_BUSY, PROGRAM_READY, PROGRAM_REFUSED };

static const struct {
  const char *name, *instead;
} program_rows[GM__RUNTIME_PROGRAMS] = {
    [GM__RUNTIME_FILL] = {"gm_fill", "fills with patterns of 8 and 16 bytes are done by copies"},
    [GM__RUNTIME_COPY_MANY] = {"gm_copy_many", "small copies go one by one"},
    [GM__RUNTIME_EXPAND] = {"gm_expand", "the host expands numbers"},
};

void gm__runtime_programs_open(gm__runtime_device *device) {
  for (int i = 0; i < GM__RUNTIME_PROGRAMS; i++) atomic_init(&device->programs[i].state, PROGRAM_NONE);
}

static gm_status program_load(gm__runtime_device *device, gm__runtime_program_id id, const void *code, gm_error *err) {
  const gm__runtime *api = device->api;
  gm__runtime_program *program = &device->programs[id];
  int answer = api->module_load.call(device, code, &program->module);
  if (answer != GM__RUNTIME_SUCCESS) return gm__runtime_fail(device, answer, api->module_load.op, err);
  if (!program->module) return gm__runtime_nonsense(device, api->module_load.op, "gave no module", err);
  answer = api->module_function.call(device, program->module, program_rows[id].name, &program->function);
  if (answer != GM__RUNTIME_SUCCESS) return gm__runtime_fail(device, answer, api->module_function.op, err);
  return program->function ? GM_OK : gm__runtime_nonsense(device, api->module_function.op, "gave no function", err);
}

/* `out_later`: a capture began while a compiler was at work, so gm tries again later. */
static gm_status program_make(gm__runtime_device *device, gm__runtime_program_id id, bool *out_later, gm_error *err) {
  gm__runtime_code code = {.bytes = NULL};
  gm_status status = device->api->program_code(device, id, &code, err);
  if (status != GM_OK) return status;
  *out_later = gm__runtime_capture_check(device, NULL) != GM_OK;
  if (!*out_later) status = program_load(device, id, code.bytes, err);
  if (device->api->program_code_release) device->api->program_code_release(device, &code);
  return status;
}

static void program_refuse(gm__runtime_device *device, gm__runtime_program_id id, const gm_error *why) {
  if (atomic_exchange(&device->programs[id].state, PROGRAM_REFUSED) == PROGRAM_REFUSED) return;
  gm__log(device->services, why->status == GM_ERR_UNAVAILABLE ? GM_LOG_INFO : GM_LOG_WARN,
          "%s device %u: %s, not by a kernel: %s", device->api->name, (unsigned)device->info.index,
          program_rows[id].instead, why->message);
}

static void *program_function(gm__runtime_device *device, gm__runtime_program_id id) {
  gm__runtime_program *program = &device->programs[id];
  gm_error why = {.status = GM_OK};
  bool later = false;
  int state = atomic_load(&program->state);
  if (state == PROGRAM_READY) return program->function;
  if (state != PROGRAM_NONE || gm__runtime_capture_check(device, NULL) != GM_OK) return NULL;
  if (!atomic_compare_exchange_strong(&program->state, &state, PROGRAM_BUSY)) return NULL;
  if (program_make(device, id, &later, &why) != GM_OK) {
    program_refuse(device, id, &why);
    return NULL;
  }
  atomic_store(&program->state, later ? PROGRAM_NONE : PROGRAM_READY);
  return later ? NULL : program->function;
}

int gm__runtime_launch(gm__runtime_device *device, gm__runtime_program_id id, uint64_t blocks, uint32_t threads,
                       void *stream, void **parameters, bool *out_done) {
  const gm__runtime *api = device->api;
  gm_error why;
  void *function = program_function(device, id);
  *out_done = false;
  if (!function) return GM__RUNTIME_SUCCESS;
  const int code = api->launch(device, function, (uint32_t)blocks, threads, stream, parameters);
  *out_done = code == GM__RUNTIME_SUCCESS;
  if (*out_done || gm__code_find(api->codes, code)->status == GM_ERR_DEVICE_LOST) return code;
  gm__code_fail(api->codes, &why, code, api->launch_op);
  program_refuse(device, id, &why);
  return GM__RUNTIME_SUCCESS;
}

void gm__runtime_programs_unload(gm__runtime_device *device) {
  for (int i = 0; i < GM__RUNTIME_PROGRAMS; i++) {
    void *module = device->programs[i].module;
    if (module) device->api->module_unload(device, module);
  }
}
