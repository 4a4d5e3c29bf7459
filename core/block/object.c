#include <inttypes.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/block/access.h"
#include "core/device/memory_answer.h"
#include "core/heap/live.h"
#include "core/heap/object_sweep.h"
#include "core/provider/native_objects.h"

/* Native objects for exactly a range of a block. The driver allocation keeps them: the next block at the same place and
 * of the same size costs no driver call. */

static const char object_op[] = "gm_block_object";

static gm_status object_describe(const gm__access *access, uint64_t view, gm_native_memory *out, gm_error *err) {
  const gm_device *device = access->device;
  return device->ops->view_native(device->handle, &access->memory, access->offset, access->bytes, view, out, err);
}

/* Finds the block for this call, and locks its arena and the provider. NOT_SUPPORTED: its pages come and go, so no
 * native object can stay. */
static gm_status object_open(gm_pool *pool, const gm_block *block, gm__live *out, gm_error *err) {
  if (!gm__live_open(&pool->heap, block, out)) {
    return gm__bad_argument(err, object_op, "`block` was freed during the call");
  }
  if (out->allocation->is_range) {
    gm__live_close(out);
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, object_op,
                    "the pool maps pages, and they have no object of their own: ask for GM_DEDICATED, or make the pool "
                    "with no_vmm");
  }
  if (out->arena) gm__mutex_lock(&pool->heap.provider.lock);
  return GM_OK;
}

static void object_close(gm_pool *pool, const gm__live *live) {
  if (live->arena) gm__mutex_unlock(&pool->heap.provider.lock);
  gm__live_close(live);
}

/* The kept view of the range; 0: there is none. *out_due: so many are kept that a sweep is due. */
static gm_status object_find(gm_pool *pool, const gm_block *block, const gm__access *access, uint64_t *out_view,
                             bool *out_due, gm_error *err) {
  gm__live live;
  const gm_status status = object_open(pool, block, &live, err);
  if (status) return status;
  const gm__native_object *found = gm__native_objects_find(live.allocation, access->offset, access->bytes,
                                                           gm__native_owner(block->number, block->check));
  *out_view = found ? found->view : 0;
  *out_due = gm__object_sweep_is_due(&pool->heap);
  object_close(pool, &live);
  return GM_OK;
}

/* Keeps a new view. Another thread may have kept one meanwhile: *view becomes that one, *out_spare the new one. */
static gm_status object_keep(gm_pool *pool, const gm_block *block, const gm__access *access, uint64_t *view,
                             uint64_t *out_spare, gm_error *err) {
  gm__live live;
  const uint64_t owner = gm__native_owner(block->number, block->check);
  const gm__native_object object = {.offset = access->offset, .bytes = access->bytes, .view = *view, .owner = owner};
  *out_spare = *view;
  const gm_status status = object_open(pool, block, &live, err);
  if (status) return status;
  const gm__native_object *found = gm__native_objects_find(live.allocation, access->offset, access->bytes, owner);
  const bool added = !found && gm__native_objects_add(&pool->heap.provider, live.allocation, &object);
  if (found) *view = found->view;
  object_close(pool, &live);
  if (added) *out_spare = 0;
  if (added || found) return GM_OK;
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, object_op, "no host memory for the object's record");
}

static gm_status object_check_align(const gm__access *access, gm_error *err) {
  const uint64_t align = access->device->info.alignment;
  if (align == 0 || access->offset % align == 0) return GM_OK;
  return gm__bad_argument(err, object_op, "`offset` must be a multiple of %" PRIu64 " for an object of its own", align);
}

static gm_status object_make(gm_pool *pool, const gm_block *block, const gm__access *access, uint64_t *out_view,
                             gm_error *err) {
  const gm_device *device = access->device;
  uint64_t view = 0, spare;
  gm_status status = object_check_align(access, err);
  if (status) return status;
  status = device->ops->view_create(device->handle, &access->memory, access->offset, access->bytes,
                                    GM_USAGE_TRANSFER | GM_USAGE_STORAGE, &view, err);
  status = gm__answer_check_word(device, "view_create", status, view, err);
  if (status) return status;
  status = object_keep(pool, block, access, &view, &spare, err);
  if (spare) gm__native_view_destroy(&pool->heap.provider, spare);
  if (!status) *out_view = view;
  return status;
}

/* The object of a range that has neither an address nor all of a native object. */
static gm_status object_of_range(gm_pool *pool, const gm_block *block, const gm__access *access, gm_native_memory *out,
                                 gm_error *err) {
  uint64_t view;
  bool due;
  gm_status status = object_find(pool, block, access, &view, &due, err);
  if (status) return status;
  if (!view) {
    if (due) gm__object_sweep(&pool->heap);
    status = object_make(pool, block, access, &view, err);
  }
  return status ? status : object_describe(access, view, out, err);
}

static gm_status object_get(gm_pool *pool, const gm_block *block, const gm__access *access, gm_native_memory *out,
                            gm_error *err) {
  const gm_device *device = access->device;
  if (!(device->info.capabilities & GM_CAP_VIEW)) {
    return device->ops->memory_native(device->handle, &access->memory, access->offset, access->bytes, out, err);
  }
  const gm_status status = object_describe(access, 0, out, err);
  return status == GM_ERR_NOT_SUPPORTED ? object_of_range(pool, block, access, out, err) : status;
}

gm_status gm_block_object(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, gm_native_memory *out,
                          gm_error *err) {
  GM__UNCANCELLED();
  gm__access access;
  const gm_status status = gm__access_open(pool, block, offset, bytes, object_op, &access, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, object_op, "`out` is NULL");
  if (!bytes) return gm__bad_argument(err, object_op, "`bytes` is 0");
  return gm__error_of(object_op, object_get(pool, block, &access, out, err), err);
}
