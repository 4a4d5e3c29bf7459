#include "core/block/access.h"

#include <inttypes.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/device/memory_answer.h"
#include "core/pool/spans.h"

/* Invariant: memory that is named here belongs to a block that was live at the time of the call. The caller keeps the
 * block alive until the work has run, as in every stream-ordered API. */

static gm_status access_range(const gm_block *block, uint64_t offset, uint64_t bytes, const char *op, gm_error *err) {
  if (offset <= block->bytes && bytes <= block->bytes - offset) return GM_OK;
  return gm__bad_argument(err, op, "`offset` %" PRIu64 " and `bytes` %" PRIu64 " reach beyond the block's %" PRIu64,
                          offset, bytes, block->bytes);
}

static gm_status access_none(const gm_pool *pool, const char *op, gm_error *err) {
  return gm__bad_argument(err, op, "`block` is no live block of pool \"%s\": freed, foreign or altered",
                          pool->heap.provider.name);
}

static gm_status access_several(gm_pool *pool, const gm_block *block, const char *op, gm_error *err) {
  gm_block_span span;
  if (!gm__spans_part(pool, block, 0, &span)) return access_none(pool, op, err);
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op,
                  "`block` lies in several memories, and this is for one: gm_block_spans names them");
}

gm_status gm__access_open(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, const char *op,
                          gm__access *out, gm_error *err) {
  gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  if (!block) return gm__bad_argument(err, op, "`block` is NULL");
  gm__live live;
  if (gm__spans_is(block)) return access_several(pool, block, op, err);
  if (!gm__live_open(&pool->heap, block, &live)) return access_none(pool, op, err);
  *out = (gm__access){pool->device, live.allocation->memory, live.offset + offset, bytes};
  const bool sleeps = bytes && live.allocation->is_range && gm__pages_are_asleep(&pool->heap.provider.pages);
  gm__live_close(&live);
  if (sleeps) return gm__pages_say_asleep(&pool->heap.provider, op, err);
  return access_range(&live.block, offset, bytes, op, err);
}

gm_status gm__access_check_spanned(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes,
                                   const char *op, gm_error *err) {
  gm_block_span span;
  gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  if (!gm__spans_part(pool, block, 0, &span)) return access_none(pool, op, err);
  return access_range(block, offset, bytes, op, err);
}

gm_status gm__access_settle(gm_stream *stream, gm_error *err) {
  gm_point point = {0};
  gm_status status = gm_stream_record(stream, &point, err);
  if (status == GM_OK) status = gm_point_wait(stream->device, &point, UINT64_MAX, err);
  gm_point_release(stream->device, &point);
  return status;
}

gm_status gm_block_memory(gm_pool *pool, const gm_block *block, gm_memory *out_memory, uint64_t *out_offset) {
  GM__UNCANCELLED();
  gm__access access = {.bytes = 0};
  if (!out_memory || !out_offset) return GM_ERR_INVALID_ARGUMENT;
  gm_status status = gm__access_open(pool, block, 0, 0, "gm_block_memory", &access, NULL);
  if (status) return status;
  *out_memory = access.memory;
  *out_offset = access.offset;
  return GM_OK;
}

gm_status gm_block_native(gm_pool *pool, const gm_block *block, gm_native_memory *out, gm_error *err) {
  GM__UNCANCELLED();
  gm__access access;
  gm_status status = gm__access_open(pool, block, 0, 0, "gm_block_native", &access, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, "gm_block_native", "`out` is NULL");
  gm_device *device = access.device;
  status = device->ops->memory_native(device->handle, &access.memory, access.offset, block->bytes, out, err);
  return gm__error_of("gm_block_native", status, err);
}

static gm_status access_check_view(const gm__access *access, gm_error *err) {
  uint64_t align = access->device->info.alignment;
  if (access->bytes == 0) return gm__bad_argument(err, "gm_block_view_create", "`bytes` is 0");
  if (align == 0 || access->offset % align == 0) return GM_OK;
  return gm__bad_argument(err, "gm_block_view_create", "`offset` must be a multiple of %" PRIu64 ", is %" PRIu64, align,
                          access->offset);
}

gm_status gm_block_view_create(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes,
                               uint64_t *out_view, gm_error *err) {
  GM__UNCANCELLED();
  gm__access access;
  gm_status status = gm__access_open(pool, block, offset, bytes, "gm_block_view_create", &access, err);
  if (status) return status;
  if (!out_view) return gm__bad_argument(err, "gm_block_view_create", "`out_view` is NULL");
  status = access_check_view(&access, err);
  if (status) return status;
  gm_device *device = access.device;
  uint64_t view = 0;
  status = device->ops->view_create(device->handle, &access.memory, access.offset, bytes,
                                    GM_USAGE_TRANSFER | GM_USAGE_STORAGE, &view, err);
  gm__error_of("gm_block_view_create", status, err);
  status = gm__answer_check_word(device, "view_create", status, view, err);
  if (!status) *out_view = view;
  return status;
}

gm_status gm_block_view_destroy(gm_pool *pool, uint64_t view, gm_error *err) {
  GM__UNCANCELLED();
  if (!pool) return gm__bad_argument(err, "gm_block_view_destroy", "`pool` is NULL");
  if (!gm__pool_lives(pool)) return gm__bad_argument(err, "gm_block_view_destroy", "`pool` is destroyed");
  if (!view) return gm__bad_argument(err, "gm_block_view_destroy", "`view` is 0");
  bool abandon = gm__pool_forked(pool) || atomic_load(&pool->device->lost);
  return pool->device->ops->view_destroy(pool->device->handle, view, abandon ? GM_CLOSE_ABANDON : GM_CLOSE_NORMAL, err);
}
