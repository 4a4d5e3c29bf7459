#include "core/buffer/place.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/block/span_copy.h"
#include "core/buffer/buffer.h"
#include "core/host/host_info.h"
#include "core/manage/explain.h"
#include "core/manage/tracked.h"
#include "core/pool/alloc.h"
#include "core/pool/free.h"
#include "core/pool/free_one.h"

enum { PLACE_LEFT = 0xDB }; /* in host memory that a buffer left */

/* ---- taking ---- */

void gm__place_of_block(const gm_buffer *buffer, const gm_block *block, gm__place *out) {
  gm__span_copy copy;
  gm_pool *pool = buffer->pool;
  *out = (gm__place){.location = GM_LOCATION_DEVICE, .block = *block};
  gm_status status = gm__span_copy_open(pool, block, 0, block->bytes, "gm_buffer_create", &copy, NULL);
  while (!status && out->location == GM_LOCATION_DEVICE && copy.here.bytes) {
    out->location = gm__heap_location(
        &pool->heap, &copy.here.memory); /* a block of several memories counts as there if all parts are */
    status = gm__span_copy_pass(&copy, copy.here.bytes, NULL);
  }
  gm__tracked_annotate(pool, block, buffer->elements, out->location);
}

bool gm__place_is_wanted(const gm_buffer *buffer, const gm__place *place) {
  const bool accessible =
      buffer->wanted.must_be != GM_DEVICE_LOCAL || buffer->pool->heap.wishes.must_be != GM_DEVICE_LOCAL;
  return place->location == GM_LOCATION_DEVICE || (place->location == GM_LOCATION_PINNED && accessible);
}

uint64_t gm__place_host_bytes(const gm_context *ctx) {
  gm_host_info host = {.struct_size = sizeof host};
  gm__host_memory_read(gm__context_services(ctx), ctx->host_root, &host);
  return host.free_bytes == GM_UNKNOWN_BYTES || host.free_bytes > PTRDIFF_MAX ? PTRDIFF_MAX : host.free_bytes;
}

static gm_status place_take_host(const gm_buffer *buffer, const char *op, gm__place *out, gm_error *err) {
  gm_pool *pool = buffer->pool;
  gm_context *ctx = pool->ctx;
  *out = (gm__place){.location = GM_LOCATION_HOST};
  if (buffer->bytes <= gm__place_host_bytes(ctx))
    out->host = gm__alloc(gm__context_services(ctx), (size_t)buffer->bytes);
  if (!out->host) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "the host has no %" PRIu64 " bytes for the buffer",
                    buffer->bytes);
  }
  const gm_track_entry entry = {.bytes = buffer->bytes,
                                .elements = buffer->elements,
                                .pool = pool->heap.id,
                                .tag = buffer->wanted.tag,
                                .location = GM_LOCATION_HOST};
  out->track_id = gm__tracked_beside(pool, &entry);
  return GM_OK;
}

typedef gm_acquire (*place_alloc)(gm_pool *pool, const gm_request *request, gm_block *out);

/* A block for the buffer, by `alloc` of *request. */
static gm_acquire place_take_block(const gm_buffer *buffer, gm_stream *stream, place_alloc alloc, gm_request *request,
                                   gm__place *out) {
  gm_block block;
  *request = buffer->wanted;
  request->stream = stream;
  const gm_acquire answer = alloc(buffer->pool, request, &block);
  if (gm__place_served(answer)) gm__place_of_block(buffer, &block, out);
  return answer;
}

static gm_status place_take_device(const gm_buffer *buffer, gm_stream *stream, const char *op, gm__place *out,
                                   gm_error *err) {
  gm_request request;
  const gm_acquire answer = place_take_block(buffer, stream, gm_alloc, &request, out);
  return gm__place_served(answer) ? GM_OK : gm__explain_refusal(buffer->pool, &request, answer, op, err);
}

static gm_status place_take_pinned(const gm_buffer *buffer, gm_stream *stream, const char *op, gm__place *out,
                                   gm_error *err) {
  gm_request request;
  if (gm__place_served(place_take_block(buffer, stream, gm__pool_alloc_beside, &request, out))) {
    if (out->location == GM_LOCATION_PINNED) return GM_OK;
    gm__place_undo(buffer, out, stream);
  }
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "the device has no pinned memory for %" PRIu64 " bytes",
                  buffer->bytes);
}

gm_status gm__place_take(const gm_buffer *buffer, gm_location where, gm_stream *stream, const char *op, gm__place *out,
                         gm_error *err) {
  if (where == GM_LOCATION_HOST) return place_take_host(buffer, op, out, err);
  return where == GM_LOCATION_PINNED ? place_take_pinned(buffer, stream, op, out, err)
                                     : place_take_device(buffer, stream, op, out, err);
}

/* ---- copying ---- */

static gm_status place_copy_blocks(gm_buffer *buffer, const gm__place *to, gm_stream *stream, const char *op,
                                   gm_error *err) {
  gm__span_copy source = {.left = 0}, target = {.left = 0};
  const gm__place *from = &buffer->at;
  gm_pool *pool = buffer->pool;
  gm_status status = GM_OK;
  if (!from->host) status = gm__span_copy_open(pool, &from->block, 0, buffer->bytes, op, &source, err);
  if (!status && !to->host) status = gm__span_copy_open(pool, &to->block, 0, buffer->bytes, op, &target, err);
  if (status) return status;
  const gm__transfer up = {.kind = GM__TRANSFER_WRITE, .src = from->host, .pageable = true};
  const gm__transfer down = {.kind = GM__TRANSFER_READ, .dst = to->host, .pageable = true};
  if (from->host) return gm__span_copy_run(&target, &up, stream, NULL, err);
  if (to->host) return gm__span_copy_run(&source, &down, stream, NULL, err);
  return gm__span_copy_copy(&target, &source, stream, NULL, err);
}

/* The contents were dropped, or are. */
static bool place_is_nowhere(const gm__place *place) { return place->location == GM_LOCATION_HOST && !place->host; }

gm_status gm__place_copy(gm_buffer *buffer, const gm__place *to, gm_stream *stream, const char *op, gm_error *err) {
  if (place_is_nowhere(&buffer->at) || place_is_nowhere(to)) return GM_OK;
  if (buffer->at.host && to->host) {
    memcpy(to->host, buffer->at.host, (size_t)buffer->bytes);
    return GM_OK;
  }
  const gm_status status = stream ? gm_stream_barrier(stream, err) : GM_OK;
  return status ? status : place_copy_blocks(buffer, to, stream, op, err);
}

/* ---- leaving ---- */

/* Debug builds leave a pattern behind, for a host pointer that somebody kept. */
static void place_release_host(const gm_buffer *buffer, void *host) {
#ifndef NDEBUG
  if (host) memset(host, PLACE_LEFT, (size_t)buffer->bytes);
#endif
  gm__release(gm__context_services(buffer->pool->ctx), host, (size_t)buffer->bytes);
}

void gm__place_scramble(const gm_buffer *buffer, gm__place *place) {
#ifdef NDEBUG
  (void)buffer, (void)place;
#else
  void *other = gm__alloc(gm__context_services(buffer->pool->ctx), (size_t)buffer->bytes);
  if (!other) return;
  memcpy(other, place->host, (size_t)buffer->bytes);
  place_release_host(buffer, place->host);
  place->host = other;
#endif
}

static void place_leave_host(const gm_buffer *buffer, gm__place *place) {
  if (!gm__pool_lives(buffer->pool)) place->track_id = 0; /* the tracker went with the pool */
  place_release_host(buffer, place->host);
  if (place->track_id) gm_tracker_untrack(buffer->pool->heap.observers.tracker, place->track_id);
  *place = (gm__place){.location = GM_LOCATION_HOST};
}

gm_status gm__place_leave(const gm_buffer *buffer, gm__place *place, gm_stream *stream) {
  gm_pool *pool = buffer->pool;
  if (place->location == GM_LOCATION_HOST) {
    place_leave_host(buffer, place);
    return GM_OK;
  }
  if (!gm__pool_lives(pool)) return GM_OK; /* which was ended by force, with the block */
  const gm_status status = gm__free_waiting(pool, &place->block, stream, gm_free);
  /* a stream that is closed, or another device's, has no work left on the block: host order is its order */
  return status == GM_ERR_INVALID_ARGUMENT && stream ? gm_free(pool, &place->block, NULL) : status;
}

void gm__place_undo(const gm_buffer *buffer, gm__place *place, gm_stream *stream) {
  if (place->location == GM_LOCATION_HOST) {
    place_leave_host(buffer, place);
  } else {
    gm__block_free_unused(buffer->pool, &place->block, stream);
  }
}
