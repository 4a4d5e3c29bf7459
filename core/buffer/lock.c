#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/block/access.h"
#include "core/buffer/hold.h"
#include "gm/copy.h"

/* Locks of callers. Invariants: a buffer that nobody has locked shows the host no pointer. While a thread is `waiting`
 * for the points of a buffer, no other thread changes them. */

static gm__pool_buffers *lock_list(const gm_buffer *buffer) { return &buffer->pool->buffers; }

/* False: `out` is not NULL, and the buffer has no block. */
static bool lock_take(gm_buffer *buffer, gm_block *out) {
  gm__pool_buffers *list = lock_list(buffer);
  gm__mutex_lock(&list->lock);
  while (buffer->moving) gm__cond_wait(&list->changed, &list->lock);
  const bool can = !out || buffer->at.location != GM_LOCATION_HOST;
  if (can) {
    gm__buffer_hold_more(buffer);
    buffer->callers++;
    if (out) *out = buffer->at.block;
  }
  gm__mutex_unlock(&list->lock);
  return can;
}

gm_status gm_buffer_lock(gm_buffer *buffer, gm_block *out, gm_error *err) {
  const gm_status status = gm__buffer_check(buffer, "gm_buffer_lock", err);
  if (status || lock_take(buffer, out)) return status;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_buffer_lock",
                  "the buffer lives in plain host memory: lock it without a block, and ask gm_buffer_host");
}

/* ---- the host's pointer ---- */

/* True where the host may keep its mapping while kernels use the memory. */
static bool lock_is_mapped_for_life(const gm__access *access) {
  const gm_device *device = access->device;
  const uint32_t type = access->memory.type;
  return access->memory.host || (type < device->type_count && device->types[type].flags & GM_MEMORY_PERSISTENT_MAP);
}

static gm_status lock_map(const gm_buffer *buffer, const char *op, void **out, gm_error *err) {
  gm__access access;
  const gm_block *block = &buffer->at.block;
  gm_status status = gm__access_open(buffer->pool, block, 0, buffer->bytes, op, &access, err);
  if (status) return status;
  const uint32_t now = lock_is_mapped_for_life(&access) ? GM_MAP_NO_WAIT : 0;
  status = gm_block_map(buffer->pool, block, 0, buffer->bytes, GM_MAP_READ | GM_MAP_WRITE | now, NULL, out, err);
  return gm__error_of(op, status, err);
}

/* The address of the buffer's first byte, once the work on it is done. *out is the address that it has already, or
 * NULL. REQUIRES: it is locked, and this thread is `waiting`. */
static gm_status lock_show(gm_buffer *buffer, const char *op, void **out, gm_error *err) {
  const gm_status status = gm__error_of(op, gm__buffer_follow(buffer, NULL, err), err);
  if (status || *out) return status;
  *out = buffer->at.host;
  if (*out) return GM_OK;
  if (buffer->at.location != GM_LOCATION_HOST) return lock_map(buffer, op, out, err);
  return gm__fail(err, GM_ERR_BUSY, op, "the buffer sleeps without its contents: gm_pool_wake first");
}

/* Makes this thread the one that is `waiting`. False: nobody has locked the buffer. */
static bool lock_wait_begin(gm_buffer *buffer) {
  gm__pool_buffers *list = lock_list(buffer);
  gm__mutex_lock(&list->lock);
  while (buffer->callers && buffer->waiting) gm__cond_wait(&list->changed, &list->lock);
  const bool locked = buffer->callers > 0;
  if (locked) buffer->waiting = true;
  gm__mutex_unlock(&list->lock);
  return locked;
}

static void lock_wait_end(gm_buffer *buffer, void *host) {
  gm__pool_buffers *list = lock_list(buffer);
  gm__mutex_lock(&list->lock);
  buffer->host = host;
  buffer->waiting = false;
  gm__cond_broadcast(&list->changed);
  gm__mutex_unlock(&list->lock);
}

gm_status gm_buffer_host(gm_buffer *buffer, void **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_buffer_host";
  gm_status status = gm__buffer_check(buffer, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  if (!lock_wait_begin(buffer)) return gm__bad_argument(err, op, "`buffer` is not locked: gm_buffer_lock first");
  void *host = buffer->host; /* which only the thread that is `waiting` changes */
  status = lock_show(buffer, op, &host, err);
  if (!status) *out = host;
  lock_wait_end(buffer, host);
  return status;
}

/* Waits for the unmap on gm's stream, because the next work may be another stream's. */
static gm_status lock_settle(const gm_buffer *buffer, const char *op, gm_error *err) {
  gm_stream *stream;
  const gm_status status = gm__access_stream(buffer->pool->device, NULL, op, &stream, err);
  return status ? status : gm__access_settle(stream, err);
}

static gm_status lock_unmap(gm_buffer *buffer, const char *op, gm_error *err) {
  gm__access access;
  gm_status status = gm__access_open(buffer->pool, &buffer->at.block, 0, 0, op, &access, err);
  if (!status) status = gm_block_unmap(buffer->pool, &buffer->at.block, buffer->host, NULL, err);
  if (status) return status;
  buffer->host = NULL;
  buffer->unmapping = !lock_is_mapped_for_life(&access);
  return GM_OK;
}

/* Ends what gm_buffer_host gave. A call after a failed wait waits again. REQUIRES: the buffer is seized. */
static gm_status lock_hide(gm_buffer *buffer, const char *op, gm_error *err) {
  gm_status status = GM_OK;
  if (buffer->at.location == GM_LOCATION_HOST) {
    gm__place_scramble(buffer, &buffer->at);
  } else {
    if (buffer->host) status = lock_unmap(buffer, op, err);
    if (!status && buffer->unmapping) status = lock_settle(buffer, op, err);
  }
  if (!status || status == GM_ERR_DEVICE_LOST) {
    buffer->host = NULL;
    buffer->unmapping = false;
  }
  return gm__error_of(op, status, err);
}

/* ---- unlock ---- */

/* The place for a point of the stream. NULL: no host memory. REQUIRES: the lock. */
static gm_point *lock_use_of(gm_buffer *buffer, uint64_t stream) {
  const gm_services *services = gm__context_services(buffer->pool->ctx);
  for (size_t i = 0; i < buffer->use_count; i++) {
    if (buffer->uses[i].stream == stream) return &buffer->uses[i];
  }
  if (buffer->use_count == buffer->use_capacity) gm__buffer_prune_uses(buffer);
  if (buffer->use_count == buffer->use_capacity) {
    const size_t capacity = buffer->use_capacity ? buffer->use_capacity * 2 : 2, size = sizeof(gm_point);
    if (!gm__grow(services, &buffer->uses, buffer->use_capacity * size, capacity * size)) return NULL;
    buffer->use_capacity = capacity;
  }
  buffer->uses[buffer->use_count] = (gm_point){0, 0, 0};
  return &buffer->uses[buffer->use_count++];
}

/* Notes the point of a caller that unlocks, which is the buffer's then. REQUIRES: the lock. */
static gm_status lock_note(gm_buffer *buffer, const gm_point *point, const char *op, gm_error *err) {
  if (!buffer->callers) return gm__bad_argument(err, op, "`buffer` is not locked");
  if (!point) return GM_OK;
  gm_point *use = lock_use_of(buffer, point->stream);
  if (!use) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory to note the stream");
  gm_point_release(buffer->pool->device, use);
  *use = *point;
  return GM_OK;
}

/* Takes one lock off. *hides: it was the last one of a buffer that shows the host a pointer, or whose unmap nobody has
 * waited for. The buffer is seized then. */
static gm_status lock_drop(gm_buffer *buffer, const gm_point *point, const char *op, bool *hides, gm_error *err) {
  gm__pool_buffers *list = lock_list(buffer);
  gm__mutex_lock(&list->lock);
  while (buffer->waiting) gm__cond_wait(&list->changed, &list->lock);
  const gm_status status = lock_note(buffer, point, op, err);
  if (!status) {
    buffer->locks--;
    buffer->callers--;
  }
  *hides = !status && (buffer->host || buffer->unmapping) && !buffer->callers;
  if (*hides) buffer->moving = true;
  gm__buffer_queue(buffer);
  while (*hides && buffer->locks) gm__cond_wait(&list->changed, &list->lock); /* a call copies, and ends by itself */
  gm__mutex_unlock(&list->lock);
  return status;
}

/* The lock stays, because the mapping or the wait for its end did. The buffer is seized. */
static void lock_put_back(gm_buffer *buffer) {
  gm__mutex_lock(&lock_list(buffer)->lock);
  buffer->locks++;
  buffer->callers++;
  gm__mutex_unlock(&lock_list(buffer)->lock);
}

gm_status gm_buffer_unlock(gm_buffer *buffer, gm_stream *stream, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_buffer_unlock";
  gm_point point = {0, 0, 0};
  bool hides = false;
  gm_status status = gm__buffer_check(buffer, op, err);
  if (status) return status;
  status = gm__buffer_check_stream(buffer->pool, stream, op, "stream", err);
  if (!status && stream) status = gm__error_of(op, gm_stream_record(stream, &point, err), err);
  if (status) return status;
  status = lock_drop(buffer, stream ? &point : NULL, op, &hides, err);
  if (status && stream) gm_point_release(buffer->pool->device, &point);
  if (!hides) return status;
  status = lock_hide(buffer, op, err);
  if (buffer->host || buffer->unmapping) lock_put_back(buffer);
  gm__buffer_settle(buffer);
  return status;
}
