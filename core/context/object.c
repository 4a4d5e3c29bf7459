/* Invariant: an object is in a list of its context exactly when it is dead and its memory is still held. */
#include "core/context/object.h"

#include "core/base/alloc.h"

static void *object_begin(gm__object *object, gm__kind kind, size_t bytes) {
  if (!object) return NULL;
  object->kind = kind;
  object->bytes = (uint32_t)bytes;
  return object;
}

void *gm__object_new(gm_context *ctx, gm__kind kind, size_t bytes) {
  return object_begin(gm__alloc(&ctx->services, bytes), kind, bytes);
}

void *gm__object_new_plain(gm_context *ctx, gm__kind kind, size_t bytes) {
  return object_begin(gm__alloc_plain(&ctx->services, bytes), kind, bytes);
}

#ifndef NDEBUG
enum { OBJECT_DEAD_MAX = 1024 };

/* The oldest of those that wait, when there are too many. */
static gm__object *object_overdue(gm_context *ctx) {
  if (ctx->dead_count <= OBJECT_DEAD_MAX) return NULL;
  gm__object *oldest = ctx->dead;
  ctx->dead = oldest->next;
  ctx->dead_count--;
  return oldest;
}

static gm__object *object_bury(gm_context *ctx, gm__object *object) {
  object->next = NULL;
  if (ctx->dead) {
    ctx->dead_last->next = object;
  } else {
    ctx->dead = object;
  }
  ctx->dead_last = object;
  ctx->dead_count++;
  return object_overdue(ctx);
}
#endif

void gm__object_end(gm_context *ctx, gm__object *object) {
  object->kind = GM__KIND_DEAD;
#ifndef NDEBUG
  bool forked = gm__context_forked(ctx);
  if (!forked) gm__mutex_lock(&ctx->lock);
  object = object_bury(ctx, object);
  if (!forked) gm__mutex_unlock(&ctx->lock);
#endif
  if (object) gm__release(&ctx->services, object, object->bytes);
}

void gm__object_keep(gm_context *ctx, gm__object *object) {
  object->kind = GM__KIND_DEAD;
  gm__mutex_lock(&ctx->lock);
  object->next = ctx->kept;
  ctx->kept = object;
  gm__mutex_unlock(&ctx->lock);
}

static void object_release_list(gm_context *ctx, gm__object **list) {
  for (gm__object *object = *list, *next; object; object = next) {
    next = object->next;
    gm__release(&ctx->services, object, object->bytes);
  }
  *list = NULL;
}

void gm__objects_release(gm_context *ctx) {
  object_release_list(ctx, &ctx->dead);
  object_release_list(ctx, &ctx->kept);
}
