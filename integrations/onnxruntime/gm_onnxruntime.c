#include "gm_onnxruntime.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../shared/engines.h"
#include "ort_open.h"

/* ONNX Runtime's kernels for 64-bit ARM read up to 30 bytes behind a buffer. Its own allocators add them, too. */
#if defined(__aarch64__)
#define READ_BEHIND 30
#else
#define READ_BEHIND 0
#endif

typedef struct host_allocator {
  ort_allocator head; /* first: what ONNX Runtime has */
  const struct OrtApiBase *base;
  const ort_api *api;
  struct OrtMemoryInfo *info;
  gm_pool *pool;
  struct host_allocator *next; /* in the list of RegisterCustomOps */
} host_allocator;

static const host_allocator *of(const struct OrtAllocator *self) { return (const host_allocator *)(const void *)self; }

static void *take(struct OrtAllocator *self, size_t bytes) {
  const uint64_t all = bytes > UINT64_MAX - READ_BEHIND ? bytes : bytes + READ_BEHIND;
  const gm_request request = {.bytes = all};
  void *pointer = bytes ? gm_malloc(of(self)->pool, all, NULL) : NULL;
  if (bytes && !pointer) gm_engines_note_refusal(of(self)->pool, &request), gm_ort_raise();
  return pointer;
}

static void release(struct OrtAllocator *self, void *pointer) {
  if (pointer) (void)gm_free_ptr(of(self)->pool, pointer, 0, NULL);
}

static const struct OrtMemoryInfo *info_of(const struct OrtAllocator *self) { return of(self)->info; }

static void add_figure(const ort_api *api, struct OrtKeyValuePairs *to, const char *key, uint64_t value) {
  char text[24];
  (void)snprintf(text, sizeof text, "%" PRIu64, value);
  api->add_key_value(to, key, text);
}

/* The keys are those of ONNX Runtime's arena. */
static struct OrtStatus *stats_of(const struct OrtAllocator *self, struct OrtKeyValuePairs **out) {
  const ort_api *api = of(self)->api;
  gm_stats stats = {.struct_size = sizeof stats};
  if (gm_pool_stats(of(self)->pool, &stats)) return api->create_status(ORT_FAIL, "gm: the pool has no statistics");
  api->create_key_values(out);
  add_figure(api, *out, "InUse", stats.in_use_bytes);
  add_figure(api, *out, "MaxInUse", stats.peak_in_use_bytes);
  add_figure(api, *out, "TotalAllocated", stats.reserved_bytes);
  add_figure(api, *out, "NumAllocs", stats.allocs);
  add_figure(api, *out, "NumArenaExtensions", stats.driver_allocs);
  add_figure(api, *out, "NumArenaShrinkages", stats.driver_frees);
  return NULL;
}

static struct OrtStatus *shrink(struct OrtAllocator *self) {
  (void)gm_pool_trim(of(self)->pool, 0);
  return NULL;
}

static bool fill(host_allocator *it, const struct OrtApiBase *base, gm_pool *pool) {
  const ort_allocator head = {0, take, release, info_of, take, stats_of, NULL, shrink};
  *it = (host_allocator){.head = head, .base = base, .pool = pool ? pool : gm_engines_host_pool()};
  it->api = it->pool ? gm_ort_open(base, &it->head.version) : NULL;
  return it->api && !it->api->create_cpu_memory_info(ORT_DEVICE_ALLOCATOR, ORT_MEMORY_DEFAULT, &it->info);
}

static host_allocator *make(const struct OrtApiBase *base, gm_pool *pool) {
  const gm_error err = {.status = GM_ERR_OUT_OF_HOST_MEMORY, .op = "gm_ort_allocator_create"};
  host_allocator *it = malloc(sizeof *it);
  if (!it) gm_engines_note(&err);
  if (it && fill(it, base, pool)) return it;
  free(it);
  return NULL;
}

struct OrtAllocator *gm_ort_allocator_create(const struct OrtApiBase *base, gm_pool *pool) {
  return (struct OrtAllocator *)(void *)make(base, pool);
}

void gm_ort_allocator_destroy(struct OrtAllocator *allocator) {
  if (!allocator) return;
  of(allocator)->api->release_memory_info(of(allocator)->info);
  free(allocator);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list, and registrations */
static host_allocator *registered;                       /* one for each ONNX Runtime of the process; they stay */

/* REQUIRES: lock */
static host_allocator *allocator_for(const struct OrtApiBase *base) {
  host_allocator *it = registered;
  while (it && it->base != base) it = it->next;
  if (it || !(it = make(base, NULL))) return it;
  it->next = registered;
  return registered = it;
}

/* Until 1.22 an environment refuses a second allocator for the same memory. */
static struct OrtStatus *put_into(struct OrtEnv *env, host_allocator *it) {
  struct OrtAllocator *allocator = (struct OrtAllocator *)(void *)it;
  struct OrtStatus *status = it->api->register_allocator(env, allocator);
  if (!status) return NULL;
  it->api->release_status(status);
  status = it->api->unregister_allocator(env, it->info);
  return status ? status : it->api->register_allocator(env, allocator);
}

struct OrtStatus *RegisterCustomOps(struct OrtSessionOptions *options, const struct OrtApiBase *base) {
  struct OrtEnv *env = NULL; /* ONNX Runtime has one, and counts who holds it */
  pthread_mutex_lock(&lock);
  host_allocator *it = allocator_for(base);
  struct OrtStatus *status = it ? it->api->create_env(ORT_LOG_ERROR, "gm", &env) : gm_ort_failure(base);
  if (it && !status) status = put_into(env, it);
  pthread_mutex_unlock(&lock);
  if (env) it->api->release_env(env);
  return !it || status ? status : it->api->add_session_config_entry(options, "session.use_env_allocators", "1");
}
