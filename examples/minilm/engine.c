/* The engine's life: a device, two pools, the model. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "minilm.h"

gm_status minilm_fail(gm_error *err, gm_status status, const char *op, const char *format, ...) {
  va_list args;
  if (!err) return status;
  *err = (gm_error){.status = status};
  snprintf(err->op, sizeof err->op, "%s", op);
  va_start(args, format);
  vsnprintf(err->message, sizeof err->message, format, args);
  va_end(args);
  return status;
}

static const minilm_backend_calls *backend_named(const char *name) {
  if (strcmp(name, "cpu") == 0) return &minilm_cpu;
#ifdef MINILM_OPENCL
  if (strcmp(name, "opencl") == 0) return &minilm_opencl_own;
  if (strcmp(name, "opencl-gm") == 0) return &minilm_opencl_gms;
#endif
  return NULL;
}

static gm_status backend_open(minilm *m, const minilm_params *params, gm_error *err) {
  const minilm_backend_calls *calls = backend_named(params->backend);
  if (!calls) {
    return minilm_fail(err, GM_ERR_NOT_SUPPORTED, "minilm_open", "there is no backend %s here", params->backend);
  }
  m->backend.calls = calls;
  return calls->open(&m->backend, m->ctx, params->platform, err);
}

/* Two pools: weights stay until the end, and so all their memory can go back to the driver at once. */
static gm_status pools_create(minilm *m, const minilm_params *params, gm_error *err) {
  const gm_pool_params weights = {
      .struct_size = sizeof weights, .name = "minilm weights", .max_bytes = params->weights_max_bytes};
  const gm_pool_params work = {.struct_size = sizeof work, .name = "minilm work", .max_bytes = params->work_max_bytes};
  m->activations = gm_tag(m->ctx, "activations");
  gm_status status = gm_pool_create(m->backend.device, &weights, &m->weights_pool, err);
  if (!status) status = gm_pool_create(m->backend.device, &work, &m->work_pool, err);
  return status;
}

static gm_status model_load(minilm *m, const gm_model *model, gm_error *err) {
  const gm_load_params params = {
      .struct_size = sizeof params,
      .threads = 1,
      .request = {.stream = m->backend.stream, .must_be = GM_DEVICE_LOCAL, .tag = gm_tag(m->ctx, "weights")}};
  gm_status status = gm_model_load(model, m->weights_pool, &params, &m->loaded, NULL, err);
  if (!status) status = minilm_weights_bind(m, model, err);
  return status;
}

/* A wrong model is refused before a device is opened. */
static gm_status open_all(minilm *m, const minilm_params *params, const gm_model *model, gm_error *err) {
  const gm_context_params context = {.struct_size = sizeof context, .services = params->services};
  gm_status status = minilm_weights_check(m, model, err);
  if (!status) status = gm_context_create(&context, &m->ctx, err);
  if (!status) status = backend_open(m, params, err);
  if (!status) status = pools_create(m, params, err);
  if (!status) status = model_load(m, model, err);
  return status;
}

gm_status minilm_open(minilm *m, const minilm_params *params, gm_error *err) {
  gm_model *model = NULL;
  memset(m, 0, sizeof *m);
  gm_status status = gm_model_open(params->services, params->model, &model, err);
  if (!status) status = open_all(m, params, model, err);
  gm_model_close(model);
  if (status) minilm_close(m, NULL);
  return status;
}

/* gm's objects go before the engine's own. Closing the stream settles what the pools remember of it. */
gm_status minilm_close(minilm *m, gm_error *err) {
  gm_error ignored;
  gm_status first = gm_loaded_model_release(m->loaded, m->backend.stream);
  if (first) minilm_fail(err, first, "gm_loaded_model_release", "%s", gm_status_text(first));
#define CLOSE(call, object)                                        \
  do {                                                             \
    const gm_status status = call(object, first ? &ignored : err); \
    first = first ? first : status;                                \
  } while (0)
  CLOSE(gm_stream_close, m->backend.stream);
  CLOSE(gm_pool_destroy, m->work_pool);
  CLOSE(gm_pool_destroy, m->weights_pool);
  CLOSE(gm_device_close, m->backend.device);
  CLOSE(gm_context_destroy, m->ctx);
#undef CLOSE
  if (m->backend.calls) m->backend.calls->release(&m->backend);
  memset(m, 0, sizeof *m);
  return first;
}
