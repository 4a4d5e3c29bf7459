#include "core/pool/release.h"

#include "core/base/error.h"
#include "core/pool/entry.h"
#include "core/pool/spanned.h"

/* A free at a point of the engine is a free in the order of the point's stream, whose mark keeps the point: what the
 * stream is known to have passed settles it, or the point does. */

/* The live memory's next free keeps the point. Where that cannot be noted the stream's order must do. */
static void free_at_give(gm_pool *pool, const gm_block *raw, gm_stream *stream, const gm_point *point) {
  const gm_device *device = pool->device;
  const gm_backend_point theirs = {.handle = point->handle, .value = point->value};
  gm_backend_point own;
  gm__entry entry;
  if (!gm__entry_open_raw(pool, raw, &entry)) return;
  const int slot = gm__entry_slot(&entry, stream);
  if (slot != GM__ORDER_HOST && gm__entry_make_rare(&entry) &&
      device->ops->point_copy(device->handle, &theirs, &own, NULL) == GM_OK) {
    gm__order_give_point(entry.order, &entry.rare->mark, slot, &own);
    gm__entry_note_mark(&entry);
  }
  gm__entry_close(&entry);
}

/* It was not freed: its next free is another one. */
static void free_at_take(gm_pool *pool, const gm_block *raw) {
  gm__entry entry;
  if (!gm__entry_open_raw(pool, raw, &entry)) return;
  if (entry.rare && entry.rare->mark.given == GM__GIVEN_NEXT) gm__order_drop_point(entry.order, &entry.rare->mark);
  gm__entry_close(&entry);
}

/* GM_OK: the block is the pool's, live and free to go; *out_imported: it must be waited for. */
static gm_status free_at_look(gm_pool *pool, const gm_block *block, bool *out_imported) {
  gm__entry entry;
  *out_imported = false;
  if (gm__spanned_is(block)) return GM_OK; /* which looks at its memories itself */
  if (!gm__entry_open(pool, block, &entry)) return GM_ERR_INVALID_ARGUMENT;
  const bool mapped = entry.rare && entry.rare->mapping.pointer, piece = entry.rare && entry.rare->piece;
  *out_imported = !entry.arena && entry.node->opened;
  gm__entry_close(&entry);
  return piece ? GM_ERR_INVALID_ARGUMENT : mapped ? GM_ERR_BUSY : GM_OK;
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
  const bool spanned = gm__spanned_is(block);
  if (!spanned) free_at_give(pool, block, stream, point);
  for (uint32_t i = 0; spanned && gm__spanned_piece(pool, block, i, &span); i++) {
    free_at_give(pool, &span.block, stream, point);
  }
  status = gm_free(pool, block, stream);
  if (!status) return status;
  if (!spanned) free_at_take(pool, block);
  for (uint32_t i = 0; spanned && gm__spanned_piece(pool, block, i, &span); i++) free_at_take(pool, &span.block);
  return status;
}

gm_status gm_free_at(gm_pool *pool, const gm_block *block, const gm_point *point, gm_error *err) {
  static const char op[] = "gm_free_at";
  gm_status status = gm__pool_check(pool, op, err);
  if (!status && !block) return gm__bad_argument(err, op, "`block` is NULL");
  if (!status) status = gm__point_check(pool->device, point, op, err);
  if (status) return status;
  status = free_at(pool, block, point, err);
  if (status == GM_ERR_INVALID_ARGUMENT) return gm__bad_argument(err, op, "`block` is no live block of the pool");
  if (status == GM_ERR_DAMAGED) return gm__fail(err, status, 0, op, "the block was damaged: gm_pool_check has it");
  if (status == GM_ERR_BUSY)
    return gm__fail(err, status, 0, op, "the block is mapped, or its stream is being captured");
  return status;
}
