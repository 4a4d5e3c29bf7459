/* Invariants: `ctx` is set exactly while the manager has begun. pools[i] is set only after devices[i], and read without
 * the lock. */
#include "gm_manager.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static struct {
  pthread_mutex_t lock;
  gm_context *ctx;
  char backend[16];
  bool no_vmm;
  gm_device *devices[GM_MANAGER_DEVICES];
  _Atomic(gm_pool *) pools[GM_MANAGER_DEVICES];
} manager = {.lock = PTHREAD_MUTEX_INITIALIZER};

static gm_status manager_fail(gm_error *err, gm_status status, const char *why) {
  if (!err) return status;
  *err = (gm_error){.status = status};
  snprintf(err->message, sizeof err->message, "gm_manager: %s", why);
  return status;
}

/* ---- begin ---- */

/* In a forked child no other thread is left to unlock. */
static void manager_in_child(void) {
  const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  manager.lock = fresh;
}

static void manager_watch_forks(void) { pthread_atfork(NULL, NULL, manager_in_child); }

static void manager_lock(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, manager_watch_forks);
  pthread_mutex_lock(&manager.lock);
}

static gm_status manager_choose(gm_context *ctx, const char *asked, gm_error *err) {
  gm_selection best = {.struct_size = sizeof best};
  if (asked) {
    const int length = snprintf(manager.backend, sizeof manager.backend, "%s", asked);
    const bool fits = length > 0 && (size_t)length < sizeof manager.backend;
    return fits ? GM_OK : manager_fail(err, GM_ERR_INVALID_ARGUMENT, "no backend has that name");
  }
  const gm_status status = gm_best_backend(ctx, &best, err);
  if (status == GM_OK) memcpy(manager.backend, best.id.backend, sizeof manager.backend);
  return status;
}

/* REQUIRES: manager.lock. */
static gm_status manager_begin(const gm_manager_params *params, gm_error *err) {
  static const gm_manager_params plain = {.struct_size = sizeof plain};
  const gm_manager_params *use = params ? params : &plain;
  if (use->struct_size != sizeof *use) return manager_fail(err, GM_ERR_INVALID_ARGUMENT, "struct_size is not known");
  const gm_context_params context = {.struct_size = sizeof context, .libraries = use->libraries};
  gm_context *ctx = NULL;
  gm_status status = gm_context_create(&context, &ctx, err);
  if (status == GM_OK) status = manager_choose(ctx, use->backend, err);
  if (status != GM_OK) {
    gm_context_destroy(ctx, NULL);
    return status;
  }
  manager.no_vmm = use->no_vmm;
  manager.ctx = ctx;
  return GM_OK;
}

gm_status gm_manager_begin(const gm_manager_params *params, gm_error *err) {
  manager_lock();
  const gm_status status =
      manager.ctx ? manager_fail(err, GM_ERR_BUSY, "it has begun already") : manager_begin(params, err);
  pthread_mutex_unlock(&manager.lock);
  return status;
}

/* ---- pools ---- */

/* REQUIRES: manager.lock. */
static gm_status manager_open(uint32_t device, gm_error *err) {
  gm_status status = manager.ctx ? GM_OK : manager_begin(NULL, err);
  if (status == GM_OK && !manager.devices[device]) {
    status = gm_device_open_index(manager.ctx, manager.backend, device, &manager.devices[device], err);
  }
  if (status != GM_OK || atomic_load(&manager.pools[device])) return status;
  const gm_pool_params params = {.struct_size = sizeof params, .name = "manager", .no_vmm = manager.no_vmm};
  gm_pool *pool = NULL;
  status = gm_pool_create(manager.devices[device], &params, &pool, err);
  if (status == GM_OK) atomic_store(&manager.pools[device], pool);
  return status;
}

gm_pool *gm_manager_pool(uint32_t device, gm_error *err) {
  if (device >= GM_MANAGER_DEVICES) {
    manager_fail(err, GM_ERR_INVALID_ARGUMENT, "a device's number is below 64");
    return NULL;
  }
  gm_pool *pool = atomic_load_explicit(&manager.pools[device], memory_order_acquire);
  if (pool) return pool;
  manager_lock();
  if (manager_open(device, err) == GM_OK) pool = atomic_load(&manager.pools[device]);
  pthread_mutex_unlock(&manager.lock);
  return pool;
}

/* ---- memory ---- */

static void manager_explain(gm_pool *pool, const gm_request *request, gm_acquire acquire, gm_error *err) {
  gm_explanation why = {.struct_size = sizeof why};
  if (!err) return;
  if (gm_explain(pool, request, &why, err) != GM_OK) return;
  *err = why.last_failure;
  if (why.status != GM_OK || err->status == GM_OK) {
    const gm_status status = why.status ? why.status : GM_ERR_OUT_OF_DEVICE_MEMORY;
    manager_fail(err, status, why.status ? why.text : gm_acquire_name(acquire));
  }
}

void *gm_manager_alloc(uint32_t device, uint64_t bytes, gm_stream *stream, gm_error *err) {
  const gm_request request = {.bytes = bytes, .stream = stream, .flags = GM_INSERT_WAIT};
  gm_pool *pool = gm_manager_pool(device, err);
  gm_block block;
  if (!pool) return NULL;
  const gm_acquire acquire = gm_alloc(pool, &request, &block);
  if (gm_acquired(acquire)) return (void *)(uintptr_t)block.address;
  manager_explain(pool, &request, acquire, err);
  return NULL;
}

gm_status gm_manager_free(uint32_t device, void *pointer, uint64_t bytes_or_0, gm_stream *stream) {
  if (!pointer) return GM_OK;
  gm_pool *pool =
      device < GM_MANAGER_DEVICES ? atomic_load_explicit(&manager.pools[device], memory_order_acquire) : NULL;
  return pool ? gm_free_ptr(pool, pointer, bytes_or_0, stream) : GM_ERR_NOT_FOUND;
}

/* ---- end ---- */

/* REQUIRES: manager.lock. */
static gm_status manager_close(uint32_t device, gm_error *err) {
  gm_pool *pool = atomic_load(&manager.pools[device]);
  gm_status status = pool ? gm_pool_destroy(pool, err) : GM_OK;
  if (status != GM_OK) return status;
  atomic_store(&manager.pools[device], NULL);
  status = manager.devices[device] ? gm_device_close(manager.devices[device], err) : GM_OK;
  if (status == GM_OK) manager.devices[device] = NULL;
  return status;
}

gm_status gm_manager_end(gm_error *err) {
  gm_status status = GM_OK;
  manager_lock();
  for (uint32_t i = 0; i < GM_MANAGER_DEVICES; i++) {
    const gm_status closed = manager_close(i, status == GM_OK ? err : NULL);
    if (status == GM_OK) status = closed;
  }
  if (status == GM_OK && manager.ctx) status = gm_context_destroy(manager.ctx, err);
  if (status == GM_OK) manager.ctx = NULL;
  pthread_mutex_unlock(&manager.lock);
  return status;
}
