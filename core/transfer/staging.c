#include "core/transfer/peer.h"

#include <inttypes.h>

#include "core/base/alloc.h"
#include "core/base/error.h"

/* Two halves: while one is written to the receiving device, the other is filled from the sending one. The memory is
 * freed only when both halves are at rest, or the device is lost and nothing moves any more. */

enum { STAGING_HALVES = 2 };

typedef struct staging {
  const gm_services *services;
  gm_device *lender; /* owner of page-locked memory; NULL: plain host memory */
  gm_memory memory;  /* of the lender */
  unsigned char *bytes;
  uint64_t size, half; /* of all, and of one half */
  gm_point points[STAGING_HALVES];
} staging;

static bool staging_has_pinned(const gm_device *device) {
  const uint32_t both = GM_MEMORY_PINNED | GM_MEMORY_HOST_POINTER;
  if (device->info.unified) return false; /* its copies are the host's own */
  for (uint32_t i = 0; i < device->type_count; i++) {
    const uint32_t flags = device->types[i].flags;
    if ((flags & both) == both && !(flags & GM_MEMORY_DEVICE_LOCAL)) return true;
  }
  return false;
}

static bool staging_borrow(staging *s, gm_device *device) {
  const gm__device_request request = {
      .bytes = s->size, .flags = GM_HOST_VISIBLE, .must_be = GM_ANYWHERE, .beside_device = true};
  if (!staging_has_pinned(device) || gm__device_alloc(device, &request, &s->memory, NULL) != GM_OK) return false;
  if (!s->memory.host) {
    gm__device_free(device, &s->memory, NULL);
    return false;
  }
  s->lender = device;
  s->bytes = s->memory.host;
  return true;
}

static gm_status staging_alloc(staging *s, const gm__access *dst, const gm__access *src, const char *op,
                               gm_error *err) {
  s->services = gm__context_services(dst->device->ctx);
  s->half = dst->bytes < gm__staging_half() ? dst->bytes : gm__staging_half();
  s->size = dst->bytes > s->half ? s->half * STAGING_HALVES : s->half;
  if (staging_borrow(s, dst->device) || staging_borrow(s, src->device)) return GM_OK;
  s->bytes = gm__alloc(s->services, (size_t)s->size);
  if (s->bytes) return GM_OK;
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, op, "no host memory for %" PRIu64 " bytes to stage through",
                  s->size);
}

static void staging_free(staging *s) {
  if (s->lender) {
    gm__device_free(s->lender, &s->memory, NULL);
  } else {
    gm__release(s->services, s->bytes, (size_t)s->size);
  }
}

/* Waits until the half may be filled again. */
static gm_status staging_rest(staging *s, unsigned half, gm_device *device, gm_error *err) {
  gm_status status = gm_point_wait(device, &s->points[half], UINT64_MAX, err);
  if (status == GM_OK) gm_point_release(device, &s->points[half]);
  return status;
}

static gm_status staging_step(staging *s, const gm__access *dst, const gm__access *src, uint64_t at, gm_stream *stream,
                              const char *op, gm_error *err) {
  const unsigned half = (unsigned)(at / s->half % STAGING_HALVES);
  const uint64_t bytes = dst->bytes - at < s->half ? dst->bytes - at : s->half;
  const gm__access from = {src->device, src->memory, src->offset + at, bytes};
  const gm__access to = {dst->device, dst->memory, dst->offset + at, bytes};
  unsigned char *through = s->bytes + half * s->half;
  gm_status status = staging_rest(s, half, dst->device, err);
  if (status == GM_OK) status = gm__access_read(&from, through, NULL, NULL, op, err);
  return status ? status : gm__access_write(&to, through, stream, &s->points[half], op, err);
}

/* Waits after the last step or a failure: nothing uses the memory any more when this returns. */
static gm_status staging_settle(staging *s, gm_device *device, gm_stream *stream, gm_error *err) {
  gm_status status = GM_OK;
  for (unsigned half = 0; half < STAGING_HALVES; half++) {
    gm_error failure;
    gm_status one = staging_rest(s, half, device, &failure);
    if (one == GM_OK) continue;
    for (int turn = 0; turn < 2; turn++) {
      if (gm_stream_sync(stream, NULL) == GM_OK) break;
    }
    gm_point_release(device, &s->points[half]);
    if (status == GM_OK && err) *err = failure;
    if (status == GM_OK) status = one;
  }
  return status;
}

gm_status gm__staging_copy(const gm__access *dst, const gm__access *src, gm_stream *stream, gm__staged *out,
                           const char *op, gm_error *err) {
  staging s = {.lender = NULL};
  gm_stream *on = NULL;
  gm_status status = gm__access_stream(dst->device, stream, op, &on, err);
  if (status == GM_OK && stream) status = gm__access_settle(stream, err);
  if (status == GM_OK) status = staging_alloc(&s, dst, src, op, err);
  if (status) return status;
  for (uint64_t at = 0; at < dst->bytes && status == GM_OK; at += s.half) {
    status = staging_step(&s, dst, src, at, on, op, err);
  }
  const gm_status settled = staging_settle(&s, dst->device, on, status ? NULL : err);
  *out = (gm__staged){s.size, s.lender != NULL};
  staging_free(&s);
  return status ? status : settled;
}
