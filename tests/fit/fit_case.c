#include "fit/fit_case.h"

#include <stdio.h>
#include <string.h>

static json_object *fit_member(json_object *object, const char *key) {
  json_object *value = NULL;
  return json_object_object_get_ex(object, key, &value) ? value : NULL;
}

const char *fit_text(json_object *object, const char *key) {
  const char *text = json_object_get_string(fit_member(object, key));
  return text ? text : "";
}

uint64_t fit_number(json_object *object, const char *key) { return json_object_get_uint64(fit_member(object, key)); }

static bool fit_flag(json_object *object, const char *key) { return json_object_get_boolean(fit_member(object, key)); }

static bool fit_open_model(const char *directory, fit_case *self) {
  char path[4096];
  gm_error err = {.status = GM_OK};
  snprintf(path, sizeof path, "%s/%s/header.gguf", directory, self->name);
  gm_status status = gm_model_open_header(NULL, path, &self->model, &err);
  if (status == GM_OK) status = gm_model_read_config(self->model, &self->config, &err);
  if (status != GM_OK) printf("%s\n  FAILED header.gguf: %s\n", self->name, err.message);
  return status == GM_OK;
}

static const char *fit_measured_problem(fit_case *self) {
  if (!self->measured) return "cannot be read as JSON";
  json_object *model = fit_member(self->measured, "model");
  if (!json_object_is_type(fit_member(model, "n_params"), json_type_int)) return "no number in model.n_params";
  self->runs = fit_member(self->measured, "runs");
  if (!json_object_is_type(self->runs, json_type_array)) return "no list in runs";
  for (size_t i = 0; i < json_object_array_length(self->runs); i++) {
    if (fit_run_counts(json_object_array_get_idx(self->runs, i))) return NULL;
  }
  return "no run that counts: each failed, or was repacked";
}

static bool fit_open_measured(const char *directory, fit_case *self) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s/measured.json", directory, self->name);
  self->measured = json_object_from_file(path);
  const char *problem = fit_measured_problem(self);
  if (!problem) return true;
  const char *why = self->measured ? "" : json_util_get_last_err();
  printf("%s\n  FAILED measured.json: %s %.*s\n", self->name, problem, (int)strcspn(why, "\n"), why);
  return false;
}

bool fit_case_open(const char *directory, const char *name, fit_case *out) {
  *out = (fit_case){.config.struct_size = sizeof out->config};
  snprintf(out->name, sizeof out->name, "%s", name);
  if (fit_open_model(directory, out) && fit_open_measured(directory, out)) return true;
  fit_case_close(out);
  return false;
}

void fit_case_close(fit_case *self) {
  gm_model_close(self->model);
  json_object_put(self->measured);
  *self = (fit_case){.model = NULL};
}

bool fit_run_counts(json_object *run) {
  return !fit_member(run, "error") && strcmp(fit_text(run, "mode"), "cpu-repack") != 0;
}

static gm_dtype fit_type(json_object *run, const char *key) {
  gm_dtype type = GM_DTYPE_F64;
  return gm_dtype_from_name(fit_text(run, key), &type) == GM_OK ? type : GM_DTYPE_F64;
}

const char *fit_run_problem(json_object *run) {
  static const char *const numbers[] = {"n_gpu_layers", "n_ctx", "n_batch", "n_ubatch", "n_seq_max", "total"};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    if (!json_object_is_type(fit_member(run, numbers[i]), json_type_int)) return numbers[i];
  }
  static const char *const buffers[] = {"weights", "kv", "compute"};
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
    if (!json_object_is_type(fit_member(run, buffers[i]), json_type_object)) return buffers[i];
  }
  if (fit_type(run, "type_k") == GM_DTYPE_F64) return "type_k";
  return fit_type(run, "type_v") == GM_DTYPE_F64 ? "type_v" : NULL;
}

gm_estimate_settings fit_run_settings(json_object *run) {
  int64_t layers = json_object_get_int64(fit_member(run, "n_gpu_layers"));
  bool on_host = strncmp(fit_text(run, "mode"), "cpu", 3) == 0;
  gm_estimate_settings settings = {.struct_size = sizeof settings,
                                   .place = layers < 0 ? GM_ESTIMATE_DEVICE : GM_ESTIMATE_SPLIT,
                                   .device_layers = layers < 0 ? 0 : (uint32_t)layers,
                                   .sequences = (uint32_t)fit_number(run, "n_seq_max"),
                                   .context = fit_number(run, "n_ctx"),
                                   .batch = fit_number(run, "n_batch"),
                                   .micro_batch = fit_number(run, "n_ubatch"),
                                   .outputs = fit_number(run, "n_outputs_max"),
                                   .key_type = fit_type(run, "type_k"),
                                   .value_type = fit_type(run, "type_v"),
                                   .separate_sequences = !fit_flag(run, "kv_unified"),
                                   .plain_attention = !fit_flag(run, "flash_attn"),
                                   .full_windows = fit_flag(run, "swa_full"),
                                   .embeddings = fit_flag(run, "embeddings"),
                                   .kv_on_host = !fit_flag(run, "offload_kqv"),
                                   .kv_copies = strcmp(fit_text(run, "mode"), "sim-gpu-fa16") == 0};
  if (on_host) settings.place = GM_ESTIMATE_HOST;
  return settings;
}

/* Buffers of the simulated device have "SIM0" for a name, all others are on the host. */
static void fit_sum_buffers(json_object *run, const char *key, uint64_t sums[2]) {
  json_object *buffers = fit_member(run, key);
  if (!json_object_is_type(buffers, json_type_object)) return;
  json_object_object_foreach(buffers, name, bytes) {
    sums[strcmp(name, "SIM0") == 0 ? FIT_DEVICE : FIT_HOST] += json_object_get_uint64(bytes);
  }
}

fit_buffers fit_run_measured(json_object *run, bool *has_output) {
  fit_buffers out = {.output = fit_number(run, "output"), .total = fit_number(run, "total")};
  *has_output = fit_member(run, "output") != NULL;
  fit_sum_buffers(run, "weights", out.weights);
  fit_sum_buffers(run, "kv", out.kv);
  fit_sum_buffers(run, "compute", out.compute);
  return out;
}
