#include "tests/integrations/played_ort.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "integrations/onnxruntime/ort_abi.h"

enum { PAIRS = 16 };

struct OrtStatus {
  int code;
  char message[512];
};

struct OrtMemoryInfo {
  const char *name;
};

struct OrtKeyValuePairs {
  char keys[PAIRS][32], values[PAIRS][32];
  unsigned count;
};

played_ort played;

static struct OrtStatus *create_status(int code, const char *message) {
  struct OrtStatus *status = calloc(1, sizeof *status);
  status->code = code;
  (void)snprintf(status->message, sizeof status->message, "%s", played.table_is_wrong ? "?" : message);
  played.statuses++;
  return status;
}

static int get_error_code(const struct OrtStatus *status) { return status->code; }
static const char *get_error_message(const struct OrtStatus *status) { return status->message; }

static void release_status(struct OrtStatus *status) {
  free(status);
  played.statuses--;
}

static struct OrtStatus *refused(played_call call) {
  return played.refused == call ? create_status(ORT_FAIL, "refused") : NULL;
}

static struct OrtStatus *create_env(int level, const char *name, struct OrtEnv **out) {
  struct OrtStatus *status = level >= 0 && name ? refused(PLAYED_CREATE_ENV) : create_status(ORT_FAIL, "arguments");
  if (!status) played.envs++, *out = (struct OrtEnv *)(void *)&played;
  return status;
}

static void release_env(struct OrtEnv *env) { played.envs -= env != NULL; }

static struct OrtStatus *create_info(const char *name, int type, int ordinal, int memory_type,
                                     struct OrtMemoryInfo **out) {
  if (type != ORT_DEVICE_ALLOCATOR || ordinal < 0 || memory_type != ORT_MEMORY_DEFAULT)
    return create_status(ORT_FAIL, "arguments");
  *out = malloc(sizeof **out);
  (*out)->name = name;
  played.infos++;
  return NULL;
}

static struct OrtStatus *create_cpu_info(int type, int memory_type, struct OrtMemoryInfo **out) {
  return create_info("Cpu", type, 0, memory_type, out);
}

static struct OrtStatus *get_name(const struct OrtMemoryInfo *info, const char **out) {
  return *out = info->name, NULL;
}

static void release_info(struct OrtMemoryInfo *info) {
  free(info);
  played.infos--;
}

static struct OrtStatus *add_config(struct OrtSessionOptions *options, const char *key, const char *value) {
  struct OrtStatus *status = options ? refused(PLAYED_CONFIG) : create_status(ORT_FAIL, "arguments");
  if (!status) played.configured += strcmp(key, "session.use_env_allocators") == 0 && strcmp(value, "1") == 0;
  return status;
}

static struct OrtStatus *register_one(struct OrtEnv *env, struct OrtAllocator *allocator) {
  if (played.keeps_first && played.registered && env) return create_status(ORT_FAIL, "there is one");
  struct OrtStatus *status = refused(PLAYED_REGISTER);
  if (!status) played.registered = allocator;
  return status;
}

static struct OrtStatus *unregister(struct OrtEnv *env, const struct OrtMemoryInfo *info) {
  struct OrtStatus *status = env && info ? refused(PLAYED_UNREGISTER) : create_status(ORT_FAIL, "arguments");
  if (!status) played.registered = NULL;
  return status;
}

static void create_pairs(struct OrtKeyValuePairs **out) { *out = calloc(1, sizeof **out); }

static void add_pair(struct OrtKeyValuePairs *pairs, const char *key, const char *value) {
  (void)snprintf(pairs->keys[pairs->count], sizeof pairs->keys[0], "%s", key);
  (void)snprintf(pairs->values[pairs->count++], sizeof pairs->values[0], "%s", value);
}

static void *get_handle(struct OrtSyncStream *stream) { return stream; }

static const ort_api table = {.create_status = create_status,
                              .get_error_code = get_error_code,
                              .get_error_message = get_error_message,
                              .create_env = create_env,
                              .create_memory_info = create_info,
                              .create_cpu_memory_info = create_cpu_info,
                              .memory_info_get_name = get_name,
                              .release_env = release_env,
                              .release_status = release_status,
                              .release_memory_info = release_info,
                              .add_session_config_entry = add_config,
                              .register_allocator = register_one,
                              .unregister_allocator = unregister,
                              .create_key_values = create_pairs,
                              .add_key_value = add_pair,
                              .sync_stream_get_handle = get_handle};

static const ort_api *get_api(uint32_t version) {
  played.asked = version;
  return played.no_table ? NULL : &table;
}

static const char *get_version(void) { return played.version; }

const struct OrtApiBase *played_base(void) {
  static const ort_api_base base = {get_api, get_version};
  return (const struct OrtApiBase *)(const void *)&base;
}

void played_reset(void) {
  const played_ort first = {.version = "1.32.0"};
  played = first;
}

static ort_allocator *of(const struct OrtAllocator *allocator) { return (ort_allocator *)(uintptr_t)allocator; }

void *played_alloc(struct OrtAllocator *allocator, size_t bytes) { return of(allocator)->alloc(allocator, bytes); }
void *played_reserve(struct OrtAllocator *allocator, size_t bytes) { return of(allocator)->reserve(allocator, bytes); }

void *played_alloc_on(struct OrtAllocator *allocator, size_t bytes, void *native_stream) {
  return of(allocator)->alloc_on_stream(allocator, bytes, native_stream);
}

void played_free(struct OrtAllocator *allocator, void *pointer) { of(allocator)->free(allocator, pointer); }
uint32_t played_version_of(const struct OrtAllocator *allocator) { return of(allocator)->version; }
void played_shrink(struct OrtAllocator *allocator) { played_release(of(allocator)->shrink(allocator)); }

uint64_t played_figure(const struct OrtAllocator *allocator, const char *key) {
  struct OrtKeyValuePairs *pairs = NULL;
  uint64_t figure = UINT64_MAX;
  struct OrtStatus *status = of(allocator)->get_stats(allocator, &pairs);
  played_release(status);
  for (unsigned i = 0; !status && i < pairs->count; i++)
    if (strcmp(pairs->keys[i], key) == 0) figure = strtoull(pairs->values[i], NULL, 10);
  free(pairs);
  return figure;
}

const char *played_message(const struct OrtStatus *status) { return status ? status->message : "success"; }

void played_release(struct OrtStatus *status) {
  if (status) release_status(status);
}
