#include "engines.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_once_t context_once = PTHREAD_ONCE_INIT, host_once = PTHREAD_ONCE_INIT;
static gm_context *context;
static gm_pool *host;
static gm_error context_failure, host_failure;
static _Thread_local char why[512];

static void make_context(void) { (void)gm_context_create(NULL, &context, &context_failure); }

gm_context *gm_engines_context(void) {
  pthread_once(&context_once, make_context);
  if (!context) gm_engines_note(&context_failure);
  return context;
}

void gm_engines_note(const gm_error *err) {
  (void)snprintf(why, sizeof why, "%s: %s: %s", gm_status_name(err->status), err->op, err->message);
}

void gm_engines_note_refusal(gm_pool *pool, const gm_request *request) {
  gm_explanation told = {.struct_size = sizeof told};
  gm_error err = {.status = GM_OK};
  if (gm_explain(pool, request, &told, &err))
    gm_engines_note(&err);
  else
    (void)snprintf(why, sizeof why, "%s", told.text);
}

const char *gm_engines_why(void) { return why; }

static void make_host(void) {
  gm_device *device = NULL;
  const gm_pool_params params = {.struct_size = sizeof params, .name = "host"};
  if (gm_device_open_index(context, "cpu", 0, &device, &host_failure)) return;
  (void)gm_pool_create(device, &params, &host, &host_failure);
}

gm_pool *gm_engines_host_pool(void) {
  if (!gm_engines_context()) return NULL;
  pthread_once(&host_once, make_host);
  if (!host) gm_engines_note(&host_failure);
  return host;
}

void *gm_engines_host_alloc(uint64_t bytes) {
  const gm_request request = {.bytes = bytes};
  gm_pool *pool = gm_engines_host_pool();
  void *pointer = pool ? gm_malloc(pool, bytes, NULL) : NULL;
  if (pool && !pointer) gm_engines_note_refusal(pool, &request);
  return pointer;
}

void gm_engines_host_free(void *pointer) {
  if (pointer) (void)gm_free_ptr(gm_engines_host_pool(), pointer, 0, NULL);
}

int gm_engines_host_limit(uint64_t bytes) {
  gm_error err = {.status = GM_OK};
  gm_pool *pool = gm_engines_host_pool();
  const gm_status status = pool ? gm_pool_set_max_bytes(pool, bytes, &err) : GM_ERR_UNAVAILABLE;
  if (pool && status) gm_engines_note(&err);
  return (int)status;
}

uint64_t gm_engines_figure(gm_pool *pool, const char *name) {
  gm_stats stats = {.struct_size = sizeof stats};
  if (!pool || gm_pool_stats(pool, &stats)) return UINT64_MAX;
#define X(field, text) \
  if (strcmp(name, #field) == 0) return stats.field;
  GM_STATS_FIELDS(X)
#undef X
  return UINT64_MAX;
}

uint64_t gm_engines_host_figure(const char *name) { return gm_engines_figure(gm_engines_host_pool(), name); }
