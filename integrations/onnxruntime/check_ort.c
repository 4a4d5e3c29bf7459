#include "check_ort.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ort_open.h"

static _Thread_local char message[512];

const char *check_message(void) { return message; }

bool check_worked(const check_ort *on, struct OrtStatus *status) {
  if (!status) return true;
  (void)snprintf(message, sizeof message, "%s", on->api->get_error_message(status));
  on->api->release_status(status);
  return false;
}

bool check_ort_open(check_ort *out, const char *path) {
  const struct OrtApiBase *(*base)(void) = NULL;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *symbol = library ? dlsym(library, "OrtGetApiBase") : NULL;
  memcpy(&base, &symbol, sizeof base);
  if (!base) return printf("%s: %s\n", path, dlerror()) < 0;
  out->base = base();
  const ort_api_base *table = (const ort_api_base *)(const void *)out->base;
  out->text = table->get_version();
  if (sscanf(out->text, "1.%3u.", &out->version) != 1) return false;
  if (out->version > GM_ORT_NEWEST) out->version = GM_ORT_NEWEST;
  out->api = table->get_api(out->version);
  return out->api && check_worked(out, out->api->create_env(ORT_LOG_FATAL, "check", &out->env)) &&
         check_worked(out, out->api->create_cpu_memory_info(ORT_DEVICE_ALLOCATOR, ORT_MEMORY_DEFAULT, &out->cpu));
}

void check_ort_close(check_ort *on) {
  on->api->release_memory_info(on->cpu);
  on->api->release_env(on->env);
}

static bool set(const check_ort *on, struct OrtSessionOptions *to, const check_choice *how) {
  const ort_api *api = on->api;
  const int threads = how->threads ? how->threads : 1;
  return check_worked(on, api->set_intra_op_threads(to, threads)) &&
         check_worked(on, api->set_inter_op_threads(to, threads)) &&
         (!how->parallel || check_worked(on, api->set_execution_mode(to, ORT_PARALLEL))) &&
         (!how->no_arena || check_worked(on, api->disable_cpu_arena(to))) &&
         (!how->env_allocators ||
          check_worked(on, api->add_session_config_entry(to, "session.use_env_allocators", "1"))) &&
         (!how->weight || check_worked(on, api->add_initializer(to, how->weight, how->value))) &&
         (!how->custom_operators || check_worked(on, api->register_custom_ops_library(to, how->custom_operators)));
}

bool check_session_open(check_session *out, const check_ort *on, const check_model *model, const check_choice *how) {
  struct OrtSessionOptions *options = NULL;
  *out = (check_session){on, model, NULL};
  if (!check_worked(on, on->api->create_session_options(&options))) return false;
  const bool made =
      set(on, options, how) &&
      check_worked(on, on->api->create_session_from_array(on->env, model->bytes, model->size, options, &out->session));
  on->api->release_session_options(options);
  return made;
}

void check_session_close(check_session *session) {
  if (session->session) session->on->api->release_session(session->session);
  session->session = NULL;
}

size_t check_input_count(const check_model *model, int64_t batch) {
  size_t count = (size_t)batch;
  for (size_t i = 1; i < model->rank; i++) count *= (size_t)model->shape[i];
  return count;
}

size_t check_output_count(const check_model *model, int64_t batch) {
  return model->rank == 4 ? (size_t)batch * 100 : check_input_count(model, batch);
}

void check_input(const check_model *model, int64_t batch, unsigned seed, float *out) {
  const size_t count = check_input_count(model, batch);
  for (size_t i = 0; i < count; i++) {
    seed = seed * 1664525u + 1013904223u;
    out[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
  }
}

static float *copy_of(const check_session *session, struct OrtValue *value, size_t count) {
  void *data = NULL;
  float *copy = malloc(count * sizeof *copy);
  if (copy && check_worked(session->on, session->on->api->get_tensor_data(value, &data)))
    return memcpy(copy, data, count * sizeof *copy);
  free(copy);
  return NULL;
}

static float *run_on(const check_session *session, int64_t batch, float *input, size_t count) {
  const check_ort *on = session->on;
  const check_model *model = session->model;
  int64_t shape[4];
  struct OrtValue *x = NULL, *y = NULL;
  float *copy = NULL;
  memcpy(shape, model->shape, sizeof shape);
  shape[0] = batch;
  if (!check_worked(on, on->api->create_tensor_over(on->cpu, input, check_input_count(model, batch) * sizeof *input,
                                                    shape, model->rank, ORT_FLOAT, &x)))
    return NULL;
  if (check_worked(on, on->api->run(session->session, NULL, &model->input, (const struct OrtValue *const *)&x, 1,
                                    &model->output, 1, &y)))
    copy = copy_of(session, y, count);
  if (y) on->api->release_value(y);
  on->api->release_value(x);
  return copy;
}

float *check_run(const check_session *session, int64_t batch, unsigned seed, size_t *out_count) {
  float *input = malloc(check_input_count(session->model, batch) * sizeof *input);
  if (!input) return NULL;
  check_input(session->model, batch, seed, input);
  *out_count = check_output_count(session->model, batch);
  float *output = run_on(session, batch, input, *out_count);
  free(input);
  return output;
}

long long check_figure(const check_session *session, const char *key) {
  const check_ort *on = session->on;
  struct OrtAllocator *allocator = NULL;
  struct OrtKeyValuePairs *pairs = NULL;
  long long figure = -1;
  if (on->version < ORT_SINCE_STREAMS) return -1;
  if (!check_worked(on, on->api->create_allocator(session->session, on->cpu, &allocator))) return -1;
  if (check_worked(on, on->api->allocator_get_stats(allocator, &pairs))) {
    const char *value = on->api->get_key_value(pairs, key);
    if (value) figure = strtoll(value, NULL, 10);
    on->api->release_key_values(pairs);
  }
  on->api->release_allocator(allocator);
  return figure;
}
