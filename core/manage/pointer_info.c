/* The thing at an address: the block of a pool, and all that the pool knows of it. */
#include "core/base/sized.h"
#include "core/manage/lifecycle.h"
#include "core/pool/spans.h"

/* The part that a live block is; NULL: it is no part. */
static const gm__span_part *pointer_part(const gm__live *live) { return live->cold ? live->cold->part : NULL; }

gm_status gm_block_of(gm_pool *pool, const void *pointer, gm_block *out) {
  gm__live live;
  if (!gm__pool_lives(pool) || !pointer || !out) return GM_ERR_INVALID_ARGUMENT;
  if (gm__pool_forked(pool)) return GM_ERR_FORKED;
  if (!gm__live_at(&pool->heap, (uintptr_t)pointer, &live)) return GM_ERR_NOT_FOUND;
  const gm__span_part *part = pointer_part(&live);
  *out = part ? part->whole->block : live.block;
  gm__live_close(&live);
  return GM_OK;
}

static gm_pointer_info pointer_tell(const gm__live *live, uint64_t address) {
  const gm__span_part *part = pointer_part(live);
  return (gm_pointer_info){.struct_size = sizeof(gm_pointer_info),
                           .tag = live->tag,
                           .pool = gm__pool_of(&live->heap->arenas),
                           .block = part ? part->whole->block : live->block,
                           .offset = address - live->block.address + (part ? part->span.offset : 0),
                           .requested_bytes = part ? part->whole->requested : live->requested,
                           .stream = live->stream};
}

gm_status gm_pointer_find(gm_device *device, const void *pointer, gm_pointer_info *out) {
  gm__live live;
  static const char op[] = "gm_pointer_find";
  gm_status status = gm__device_check(device, op, NULL);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", NULL);
  if (status || !pointer) return status ? status : GM_ERR_INVALID_ARGUMENT;
  gm_context *ctx = device->ctx;
  bool found = false;
  uint32_t looks = 0;
  gm__mutex_lock(&ctx->lock);
  for (gm_pool *pool = NULL; !found && (pool = gm__pools_walk(ctx, pool, &looks));) {
    found = pool->device == device && gm__live_at(&pool->heap, (uintptr_t)pointer, &live);
  }
  gm__mutex_unlock(&ctx->lock);
  if (!found) return GM_ERR_NOT_FOUND;
  gm_pointer_info info = pointer_tell(&live, (uintptr_t)pointer);
  gm__live_close(&live); /* the device's lock is ranked before those of pools */
  if (!gm__device_find_stream(device, info.stream)) info.stream = 0;
  gm__sized_out(out, &info, sizeof info);
  return GM_OK;
}
