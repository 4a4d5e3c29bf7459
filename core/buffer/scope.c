#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/buffer/buffer.h"

/* Invariant: a scope owns one reference of each buffer made in it, and remembers all that it handed out. Buffers are
 * made outside its lock, because that may call the user's upstream. */

struct gm_scope {
  gm_pool *pool;
  gm__mutex lock;
  gm_buffer **buffers; /* oldest first */
  size_t count, capacity;
};

gm_status gm_scope_create(gm_pool *pool, gm_scope **out, gm_error *err) {
  gm_status status = gm__pool_alive(pool, "gm_scope_create", err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, "gm_scope_create", "`out` is NULL");
  gm_scope *scope = gm__alloc(gm__context_services(pool->ctx), sizeof *scope);
  if (!scope) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_scope_create", "no host memory for a scope");
  scope->pool = pool;
  gm__mutex_init(&scope->lock, GM__RANK_SCOPE);
  atomic_fetch_add(&pool->guests, 1);
  *out = scope;
  return GM_OK;
}

static gm_status scope_reserve(gm_scope *scope, gm_error *err) {
  if (scope->count < scope->capacity) return GM_OK;
  const gm_services *services = gm__context_services(scope->pool->ctx);
  size_t capacity = scope->capacity ? scope->capacity * 2 : 16, size = sizeof(gm_buffer *);
  if (!gm__grow(services, &scope->buffers, scope->capacity * size, capacity * size)) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_scope_buffer", "no host memory for the scope's list");
  }
  scope->capacity = capacity;
  return GM_OK;
}

gm_status gm_scope_buffer(gm_scope *scope, const gm_buffer_params *params, gm_buffer **out, gm_error *err) {
  if (!scope) return gm__bad_argument(err, "gm_scope_buffer", "`scope` is NULL");
  gm_status status = gm__pool_alive(scope->pool, "gm_scope_buffer", err);
  if (status) return status;
  gm_buffer *buffer = NULL;
  if (!out) return gm__bad_argument(err, "gm_scope_buffer", "`out` is NULL");
  status = gm_buffer_create(scope->pool, params, &buffer, err);
  if (status) return status;
  gm__mutex_lock(&scope->lock);
  status = scope_reserve(scope, err);
  if (!status) scope->buffers[scope->count++] = buffer;
  gm__mutex_unlock(&scope->lock);
  if (status) {
    gm_buffer_release(buffer, params->request.stream);
    return status;
  }
  *out = buffer;
  return GM_OK;
}

void gm_scope_end(gm_scope *scope, gm_stream *stream) {
  if (!scope) return;
  gm_pool *pool = scope->pool;
  const gm_services *services = gm__context_services(pool->ctx);
  while (scope->count > 0) gm_buffer_release(scope->buffers[--scope->count], stream);
  gm__release(services, scope->buffers, scope->capacity * sizeof(gm_buffer *));
  if (!gm__pool_forked(pool)) gm__mutex_destroy(&scope->lock);
  gm__release(services, scope, sizeof *scope);
  atomic_fetch_sub(&pool->guests, 1);
}
