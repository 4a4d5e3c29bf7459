/* Invariant: an object is in the context's list exactly when it is dead and its memory is still held. */
#include "core/context/object.h"

#include "core/base/alloc.h"

void *gm__object_new(gm_context *ctx, gm__kind kind, size_t bytes) {
  gm__object *object = gm__alloc(&ctx->services, bytes);
  if (!object) return NULL;
  object->kind = kind;
  object->bytes = (uint32_t)bytes;
  return object;
}

void gm__object_end(gm_context *ctx, gm__object *object) {
  object->kind = GM__KIND_DEAD;
#ifdef NDEBUG
  gm__release(&ctx->services, object, object->bytes);
#else
  bool forked = gm__context_forked(ctx);
  if (!forked) gm__mutex_lock(&ctx->lock);
  object->next = ctx->dead;
  ctx->dead = object;
  if (!forked) gm__mutex_unlock(&ctx->lock);
#endif
}

void gm__objects_release(gm_context *ctx) {
  for (gm__object *object = ctx->dead, *next; object; object = next) {
    next = object->next;
    gm__release(&ctx->services, object, object->bytes);
  }
  ctx->dead = NULL;
}
