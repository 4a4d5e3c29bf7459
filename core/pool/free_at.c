#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/device/point.h"
#include "core/heap/live.h"
#include "core/order/order_told.h"
#include "core/pool/spans.h"

/* A free at a point of the engine is a free in the order of the point's stream, whose last use keeps the point. It is
 * over when the stream is known to have passed the point, or when the point says so. */

/* Makes the block's next free keep the point. Where that cannot be noted, the stream's order must do. */
static void free_at_set_point(gm_pool *pool, const gm_block *raw, gm_stream *stream, const gm_point *point) {
  const gm_device *device = pool->device;
  const gm_backend_point theirs = {.handle = point->handle, .value = point->value};
  gm_backend_point own;
  gm__live live;
  if (!gm__live_open_raw(&pool->heap, raw, &live)) return;
  const int slot = gm__live_slot(&live, stream);
  if (slot != GM__ORDER_HOST && gm__live_make_cold(&live) &&
      device->ops->point_copy(device->handle, &theirs, &own, NULL) == GM_OK) {
    gm__order_give_point(live.order, &live.cold->use, slot, &own);
    gm__live_note_use(&live);
  }
  gm__live_close(&live);
}

/* Drops the point, because the block was not freed. */
static void free_at_drop_point(gm_pool *pool, const gm_block *raw) {
  gm__live live;
  if (!gm__live_open_raw(&pool->heap, raw, &live)) return;
  if (live.cold && live.cold->use.given == GM__FREED_NEXT) gm__order_drop_point(live.order, &live.cold->use);
  gm__live_close(&live);
}

/* Checks that the block is the pool's, live and free to go. *out_imported: the point must be waited for, because the
 * memory is of another process. */
static gm_status free_at_look(gm_pool *pool, const gm_block *block, bool *out_imported) {
  gm__live live;
  *out_imported = false;
  if (gm__spans_is(block)) return GM_OK; /* gm__spans_free looks at its memories itself */
  if (!gm__live_open(&pool->heap, block, &live)) return GM_ERR_INVALID_ARGUMENT;
  const bool mapped = live.cold && live.cold->mappings, part = live.cold && live.cold->part;
  *out_imported = !live.arena && live.allocation->import;
  gm__live_close(&live);
  return part ? GM_ERR_INVALID_ARGUMENT : mapped ? GM_ERR_BUSY : GM_OK;
}

static gm_status free_at(gm_pool *pool, const gm_block *block, const gm_point *point, gm_error *err) {
  gm_block_span span;
  bool imported = false;
  gm_stream *stream = gm__point_stream(pool->device, point);
  if (!stream) return gm_free(pool, block, NULL);
  gm_status status = free_at_look(pool, block, &imported);
  if (!status && imported) status = gm_point_wait(pool->device, point, UINT64_MAX, err);
  if (status) return status;
  if (imported) return gm_free(pool, block, NULL);
  for (uint32_t i = 0; gm__spans_next(pool, block, &i, &span);) free_at_set_point(pool, &span.block, stream, point);
  status = gm_free(pool, block, stream);
  for (uint32_t i = 0; status && gm__spans_next(pool, block, &i, &span);) free_at_drop_point(pool, &span.block);
  return status;
}

gm_status gm_free_at(gm_pool *pool, const gm_block *block, const gm_point *point, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_free_at";
  gm_status status = gm__pool_alive(pool, op, err);
  if (!status && !block) return gm__bad_argument(err, op, "`block` is NULL");
  if (!status) status = gm__point_check(pool->device, point, op, err);
  if (status) return status;
  status = free_at(pool, block, point, err);
  if (status == GM_ERR_INVALID_ARGUMENT) return gm__bad_argument(err, op, "`block` is no live block of the pool");
  if (status == GM_ERR_DAMAGED) return gm__fail(err, status, op, "the block was damaged: gm_pool_check has it");
  if (status == GM_ERR_BUSY) return gm__fail(err, status, op, "the block is mapped, or its stream is being captured");
  return status;
}
