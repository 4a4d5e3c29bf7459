#include "gm/scope.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/sized.h"
#include "core/buffer/buffer.h"
#include "core/manage/explain.h"
#include "core/pool/free_one.h"

/* Invariants. An object that a scope was asked to own has a claimed place before it is made, so it is never made and
 * then lost. An object that is being released is claimed, too: it can come back. Objects are made and released outside
 * the lock, because both may call the program. */

typedef enum scope_kind { SCOPE_BUFFER, SCOPE_BLOCK, SCOPE_OBJECT, SCOPE_INNER } scope_kind;

static const char *const scope_names[] = {"a buffer", "a block", "an object", "an inner scope"};

typedef struct scope_item {
  scope_kind kind;
  uint64_t stream; /* number of the stream of its request; 0: none */
  gm_pool *pool;   /* of a buffer or a block */
  union {
    gm_buffer *buffer;
    gm_block block;
    gm_scope *inner;
    struct {
      gm_scope_release release;
      void *pointer;
    } object;
  } is;
} scope_item;

struct gm_scope {
  gm__object head;
  gm_pool *pool;
  gm_scope *outer; /* under the lock of that one; NULL: none */
  uint32_t depth;  /* of scopes around it */
  gm__mutex lock;
  scope_item *items; /* oldest first */
  size_t count, capacity, claimed;
};

static gm_status scope_check(const gm_scope *scope, const char *op, gm_error *err) {
  if (!scope) return gm__bad_argument(err, op, "`scope` is NULL");
  if (!gm__object_is(&scope->head, GM__KIND_SCOPE)) return gm__bad_argument(err, op, "`scope` is ended");
  return GM_OK;
}

/* In a forked child another thread may have the lock for ever. */
static void scope_lock(gm_scope *scope) {
  if (!gm__pool_forked(scope->pool)) gm__mutex_lock(&scope->lock);
}

static void scope_unlock(gm_scope *scope) {
  if (!gm__pool_forked(scope->pool)) gm__mutex_unlock(&scope->lock);
}

static uint64_t scope_stream_id(const gm_stream *stream) { return stream ? gm_stream_id(stream) : 0; }

/* ---- the list ---- */

/* REQUIRES: the lock. */
static bool scope_reserve(gm_scope *scope, size_t count) {
  const size_t taken = scope->count + scope->claimed, most = SIZE_MAX / 2 / sizeof(scope_item);
  if (count <= scope->capacity - taken) return true;
  if (count > most - taken) return false;
  size_t capacity = scope->capacity ? scope->capacity * 2 : 16;
  if (capacity < taken + count) capacity = taken + count;
  if (!gm__grow(gm__context_services(scope->pool->ctx), &scope->items, scope->capacity * sizeof(scope_item),
                capacity * sizeof(scope_item))) {
    return false;
  }
  scope->capacity = capacity;
  return true;
}

static gm_status scope_claim(gm_scope *scope, size_t count, const char *op, gm_error *err) {
  scope_lock(scope);
  const bool room = scope_reserve(scope, count);
  if (room) scope->claimed += count;
  scope_unlock(scope);
  return room ? GM_OK : gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for the scope's list");
}

static void scope_unclaim(gm_scope *scope, size_t count) {
  scope_lock(scope);
  scope->claimed -= count;
  scope_unlock(scope);
}

/* Fills a claimed place: at the bottom of the list, or at its top. */
static void scope_put(gm_scope *scope, const scope_item *item, bool bottom) {
  scope_lock(scope);
  if (bottom) memmove(scope->items + 1, scope->items, scope->count * sizeof *item);
  scope->items[bottom ? 0 : scope->count] = *item;
  scope->count++;
  scope->claimed--;
  scope_unlock(scope);
}

/* Takes the newest object out. Its place stays claimed. False: there are no more than `stayed`. */
static bool scope_take(gm_scope *scope, size_t stayed, scope_item *out) {
  scope_lock(scope);
  const bool any = scope->count > stayed;
  if (any) *out = scope->items[--scope->count];
  if (any) scope->claimed++;
  scope_unlock(scope);
  return any;
}

/* The inner scope is the outer one's no longer. */
static void scope_leave(gm_scope *inner) {
  gm_scope *outer = inner->outer;
  if (!outer) return;
  scope_lock(outer);
  size_t at = outer->count;
  while (at > 0 && !(outer->items[at - 1].kind == SCOPE_INNER && outer->items[at - 1].is.inner == inner)) at--;
  if (at > 0) memmove(&outer->items[at - 1], &outer->items[at], (outer->count - at) * sizeof(scope_item));
  if (at > 0) outer->count--;
  scope_unlock(outer);
}

/* ---- the end ---- */

static gm_status scope_drain(gm_scope *scope, gm_stream *stream, gm_error *err);

/* Ends a scope that is in no list. Objects that it still owns are lost to it. */
static void scope_finish(gm_scope *scope) {
  gm_pool *pool = scope->pool;
  gm__release(gm__context_services(pool->ctx), scope->items, scope->capacity * sizeof(scope_item));
  if (!gm__pool_forked(pool)) gm__mutex_destroy(&scope->lock);
  gm__object_end(pool->ctx, &scope->head);
  atomic_fetch_sub(&pool->guests, 1);
}

/* The stream in whose order the memory goes. NULL: host order. */
static gm_stream *scope_order(const scope_item *item, gm_stream *stream) {
  gm_device *device = item->pool->device;
  if (stream && gm_stream_device(stream) == device) return stream;
  return item->stream ? gm__device_find_stream(device, item->stream) : NULL;
}

static gm_status scope_free_block(const scope_item *item, gm_stream *stream) {
  gm_pool *pool = item->pool;
  if (!gm__pool_lives(pool) || gm__pool_forked(pool)) return GM_OK; /* the block went with its pool, or its process */
  return gm__free_waiting(pool, &item->is.block, scope_order(item, stream), gm_free);
}

static void scope_release_buffer(const scope_item *item, gm_stream *stream) {
  const bool here = gm__pool_lives(item->pool) && !gm__pool_forked(item->pool);
  gm_buffer_release(item->is.buffer, here ? scope_order(item, stream) : NULL);
}

static gm_status scope_end_inner(gm_scope *inner, gm_stream *stream, gm_error *err) {
  const gm_status status = scope_drain(inner, stream, err);
  if (inner->count) {
    return gm__fail(err, GM_ERR_BUSY, "gm_scope_clear", "%zu objects of an inner scope stay", inner->count);
  }
  scope_finish(inner);
  return status;
}

static gm_status scope_release(const scope_item *item, gm_stream *stream, gm_error *err) {
  gm_status status = GM_OK;
  switch (item->kind) {
    case SCOPE_BUFFER: scope_release_buffer(item, stream); break;
    case SCOPE_BLOCK: status = scope_free_block(item, stream); break;
    case SCOPE_OBJECT: status = item->is.object.release(item->is.object.pointer, stream); break;
    case SCOPE_INNER: return scope_end_inner(item->is.inner, stream, err);
  }
  return status ? gm__fail(err, status, "gm_scope_clear", "%s: %s", scope_names[item->kind], gm_status_text(status))
                : GM_OK;
}

/* Releases all, newest first. An object that refuses and is still there goes to the bottom, so its order stays. The
 * first failure, of which `err` tells. */
static gm_status scope_drain(gm_scope *scope, gm_stream *stream, gm_error *err) {
  gm_status first = GM_OK;
  scope_item item;
  for (size_t stayed = 0; scope_take(scope, stayed, &item);) {
    const gm_status status = scope_release(&item, stream, first ? NULL : err);
    const bool stays = status == GM_ERR_BUSY || status == GM_ERR_OUT_OF_HOST_MEMORY;
    if (stays) scope_put(scope, &item, true);
    if (!stays) scope_unclaim(scope, 1);
    stayed += stays;
    if (!first) first = status;
  }
  return first;
}

/* Ends a drained scope. The rest stays where it is. */
static void scope_abandon(gm_scope *scope) {
  for (size_t i = 0; i < scope->count; i++) {
    const scope_item *item = &scope->items[i];
    if (item->kind == SCOPE_INNER) {
      scope_abandon(item->is.inner);
    } else {
      gm__log(gm__context_services(scope->pool->ctx), GM_LOG_ERROR,
              "a scope of pool \"%s\" ended, but %s was not released: it refused", scope->pool->heap.provider.name,
              scope_names[item->kind]);
    }
  }
  scope_finish(scope);
}

/* ---- the API ---- */

static gm_status scope_new(gm_pool *pool, const char *op, gm_scope **out, gm_error *err) {
  const gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  gm_scope *scope = gm__object_new(pool->ctx, GM__KIND_SCOPE, sizeof *scope);
  if (!scope) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a scope");
  scope->pool = pool;
  gm__mutex_init(&scope->lock, GM__RANK_SCOPE);
  atomic_fetch_add(&pool->guests, 1);
  *out = scope;
  return GM_OK;
}

gm_status gm_scope_create(gm_pool *pool, gm_scope **out, gm_error *err) {
  GM__UNCANCELLED();
  return scope_new(pool, "gm_scope_create", out, err);
}

gm_status gm_scope_nest(gm_scope *outer, gm_scope **out, gm_error *err) {
  static const char op[] = "gm_scope_nest";
  gm_status status = scope_check(outer, op, err);
  if (status) return status;
  if (outer->depth + 1 >= GM_SCOPE_DEPTH_MOST) {
    return gm__bad_argument(err, op, "`outer` lies in %u scopes already, the most", outer->depth);
  }
  status = scope_claim(outer, 1, op, err);
  if (status) return status;
  gm_scope *inner = NULL;
  status = scope_new(outer->pool, op, out ? &inner : NULL, err);
  if (status) {
    scope_unclaim(outer, 1);
    return status;
  }
  inner->outer = outer;
  inner->depth = outer->depth + 1;
  scope_put(outer, &(scope_item){.kind = SCOPE_INNER, .is.inner = inner}, false);
  *out = inner;
  return GM_OK;
}

gm_status gm_scope_buffer(gm_scope *scope, const gm_buffer_params *params, gm_buffer **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_scope_buffer";
  scope_item item = {.kind = SCOPE_BUFFER};
  gm_status status = scope_check(scope, op, err);
  if (!status && !out) status = gm__bad_argument(err, op, "`out` is NULL");
  if (!status) status = scope_claim(scope, 1, op, err);
  if (status) return status;
  item.pool = scope->pool;
  status = gm_buffer_create(scope->pool, params, &item.is.buffer, err);
  if (status) {
    scope_unclaim(scope, 1);
    return status;
  }
  item.stream = scope_stream_id(params->request.stream);
  *out = item.is.buffer;
  scope_put(scope, &item, false);
  return GM_OK;
}

/* The pool that is meant: one of the scope's context. */
static gm_status scope_pool(const gm_scope *scope, gm_pool **pool, const char *op, gm_error *err) {
  gm_status status = scope_check(scope, op, err);
  if (status) return status;
  if (!*pool) *pool = scope->pool;
  status = gm__pool_alive(*pool, op, err);
  if (!status && (*pool)->ctx != scope->pool->ctx) return gm__bad_argument(err, op, "`pool` is of another context");
  return status;
}

gm_status gm_scope_batch(gm_scope *scope, gm_pool *pool, const gm_batch_params *params, gm_part *out_parts,
                         size_t *out_failed, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_scope_batch";
  gm_batch_params asked = {.struct_size = sizeof asked};
  gm_status status = scope_pool(scope, &pool, op, err);
  if (!status) status = gm__sized_in(&asked, sizeof asked, params, op, "params", err);
  if (status) return status;
  const size_t blocks = asked.flags & GM_BATCH_GROUPED && asked.count ? 1 : asked.count;
  status = scope_claim(scope, blocks, op, err);
  if (status) return status;
  status = gm_alloc_batch(pool, &asked, out_parts, out_failed, err);
  for (size_t i = 0; i < blocks && !status; i++) {
    const scope_item item = {.kind = SCOPE_BLOCK,
                             .pool = pool,
                             .stream = scope_stream_id(asked.requests[i].stream),
                             .is.block = out_parts[i].block};
    scope_put(scope, &item, false);
  }
  if (status) scope_unclaim(scope, blocks);
  return gm__error_of(op, status, err);
}

gm_status gm_scope_alloc(gm_scope *scope, gm_pool *pool, const gm_request *request, gm_block *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_scope_alloc";
  gm_status status = scope_pool(scope, &pool, op, err);
  if (!status && !(request && out)) status = gm__bad_argument(err, op, "`%s` is NULL", request ? "out" : "request");
  if (!status) status = scope_claim(scope, 1, op, err);
  if (status) return status;
  gm_request wanted = *request;
  wanted.flags |= GM_INSERT_WAIT;
  const gm_acquire answer = gm_alloc(pool, &wanted, out);
  if (!gm_acquired(answer)) {
    scope_unclaim(scope, 1);
    return gm__explain_refusal(pool, &wanted, answer, op, err);
  }
  scope_put(
      scope,
      &(scope_item){.kind = SCOPE_BLOCK, .pool = pool, .stream = scope_stream_id(request->stream), .is.block = *out},
      false);
  return GM_OK;
}

gm_status gm_scope_defer(gm_scope *scope, gm_scope_release release, void *object, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_scope_defer";
  gm_status status = scope_check(scope, op, err);
  if (!status && !release) status = gm__bad_argument(err, op, "`release` is NULL");
  if (!status) status = scope_claim(scope, 1, op, err);
  if (status) return status;
  scope_put(scope, &(scope_item){.kind = SCOPE_OBJECT, .is.object = {release, object}}, false);
  return GM_OK;
}

gm_status gm_scope_keep(gm_scope *scope, gm_error *err) {
  GM__UNCANCELLED();
  const gm_status status = scope_check(scope, "gm_scope_keep", err);
  if (status) return status;
  scope_lock(scope);
  for (size_t i = 0; i < scope->count; i++) {
    if (scope->items[i].kind == SCOPE_INNER) scope->items[i].is.inner->outer = NULL;
  }
  scope->count = 0;
  scope_unlock(scope);
  return GM_OK;
}

gm_status gm_scope_clear(gm_scope *scope, gm_stream *stream, gm_error *err) {
  GM__UNCANCELLED();
  const gm_status status = scope_check(scope, "gm_scope_clear", err);
  return status ? status : scope_drain(scope, stream, err);
}

void gm_scope_end(gm_scope *scope, gm_stream *stream) {
  GM__UNCANCELLED();
  if (scope_check(scope, "gm_scope_end", NULL)) return;
  scope_leave(scope);
  scope_drain(scope, stream, NULL);
  scope_abandon(scope);
}
