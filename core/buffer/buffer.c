#include "core/buffer/buffer.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/sized.h"
#include "core/block/span_copy.h"
#include "core/context/config.h"
#include "core/host/host_info.h"
#include "core/manage/explain.h"
#include "core/manage/tracked.h"
#include "core/pool/alloc.h"
#include "core/pool/free.h"
#include "gm/size.h"

/* Invariants. A buffer has its bytes in exactly one place: a block of its pool, or plain host memory. The pool's
 * statistics count a buffer that is not where it was wanted, for as long as it stays there; the log was told once.
 * The pool knows how many buffers there are, so it is not destroyed under one that lives in host memory. */

static gm_status buffer_check(const gm_pool *pool, const gm_buffer_params *params, gm_buffer *const *out,
                              gm_buffer_params *asked, gm_error *err) {
  static const char op[] = "gm_buffer_create";
  gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  status = gm__sized_in(asked, sizeof *asked, params, op, "params", err);
  if (status || (unsigned)asked->fallback <= GM_FALLBACK_HOST) return status;
  return gm__bad_argument(err, op, "`params->fallback` is %u, none of gm_fallback", (unsigned)asked->fallback);
}

static gm_fallback buffer_policy(const gm_pool *pool, gm_fallback asked) {
  if (asked != GM_FALLBACK_CONFIG) return asked;
  return gm__config_bool(pool->ctx, "cpu_fallback") ? GM_FALLBACK_HOST : GM_FALLBACK_REFUSE;
}

static bool buffer_served(gm_acquire answer) { return answer == GM_ACQUIRE_OK || answer == GM_ACQUIRE_FRESH; }

static void buffer_settle_in(gm_buffer *buffer, const gm_block *block) {
  gm__span_copy copy;
  gm_pool *pool = buffer->pool;
  buffer->block = *block;
  buffer->location = GM_LOCATION_DEVICE;
  gm_status status = gm__span_copy_open(pool, block, 0, block->bytes, "gm_buffer_create", &copy, NULL);
  while (!status && buffer->location == GM_LOCATION_DEVICE && copy.here.bytes) {
    buffer->location = gm__heap_location(
        &pool->heap, &copy.here.memory); /* a block of several memories counts as there if all parts are */
    status = gm__span_copy_pass(&copy, copy.here.bytes, NULL);
  }
  gm__tracked_annotate(pool, block, buffer->elements, buffer->location);
}

/* Has the machine so much host memory? It grants a large block long before it has the memory. */
static bool buffer_host_has(const gm_context *ctx, uint64_t bytes) {
  gm_host_info host = {.struct_size = sizeof host};
  if (bytes > PTRDIFF_MAX) return false;
  gm__host_memory_read(ctx->host_root, &host);
  return host.free_bytes == GM_UNKNOWN_BYTES || bytes <= host.free_bytes;
}

static gm_status buffer_alloc_host(gm_buffer *buffer, gm_error *err) {
  gm_pool *pool = buffer->pool;
  gm_context *ctx = pool->ctx;
  if (buffer_host_has(ctx, buffer->bytes)) buffer->host = gm__alloc(gm__context_services(ctx), (size_t)buffer->bytes);
  if (!buffer->host) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_buffer_create",
                    "neither the device nor the host has %" PRIu64 " bytes", buffer->bytes);
  }
  buffer->location = GM_LOCATION_HOST;
  gm_track_entry entry = {.bytes = buffer->bytes,
                          .elements = buffer->elements,
                          .pool = pool->heap.id,
                          .tag = buffer->wanted.tag,
                          .location = GM_LOCATION_HOST};
  buffer->track_id = gm__tracked_beside(pool, &entry);
  return GM_OK;
}

static void buffer_report(gm_buffer *buffer, gm_acquire answer) {
  gm_context *ctx = buffer->pool->ctx;
  char bytes[16];
  gm_format_bytes(buffer->bytes, bytes, sizeof bytes);
  buffer->fell_back = true;
  gm__stats_count(&buffer->pool->heap.provider.stats.fallbacks, 1);
  gm__stats_count(&buffer->pool->heap.provider.stats.fallback_bytes, buffer->bytes);
  gm__log(gm__context_services(ctx), GM_LOG_WARN,
          "buffer %" PRIu64 " of pool \"%s\" (%s, tag \"%s\") fell back to %s memory: %s", buffer->id,
          buffer->pool->heap.provider.name, bytes, gm_tag_name(ctx, buffer->wanted.tag),
          buffer->location == GM_LOCATION_HOST ? "host" : "pinned host",
          answer == GM_ACQUIRE_OVER_LIMIT ? "a limit of gm refused" : "the device has none");
}

static gm_status buffer_fall_back(gm_buffer *buffer, const gm_request *request, gm_fallback policy, gm_acquire answer,
                                  gm_error *err) {
  gm_block block;
  bool short_of_memory = answer == GM_ACQUIRE_EXHAUSTED || answer == GM_ACQUIRE_OVER_LIMIT;
  if (policy == GM_FALLBACK_REFUSE || !short_of_memory)
    return gm__explain_refusal(buffer->pool, request, answer, "gm_buffer_create", err);
  if (buffer_served(gm__pool_alloc_beside(buffer->pool, request, &block))) {
    buffer_settle_in(buffer, &block);
  } else if (policy == GM_FALLBACK_PINNED) {
    return gm__explain_refusal(buffer->pool, request, answer, "gm_buffer_create", err);
  } else {
    gm_status status = buffer_alloc_host(buffer, err);
    if (status) return status;
  }
  buffer_report(buffer, answer);
  return GM_OK;
}

static gm_status buffer_alloc(gm_buffer *buffer, gm_fallback policy, gm_error *err) {
  gm_block block;
  const gm_request request = buffer->wanted;
  gm_acquire answer = gm_alloc(buffer->pool, &request, &block);
  if (!buffer_served(answer)) return buffer_fall_back(buffer, &request, policy, answer, err);
  buffer_settle_in(buffer, &block);
  return GM_OK;
}

gm_status gm_buffer_create(gm_pool *pool, const gm_buffer_params *params, gm_buffer **out, gm_error *err) {
  gm_buffer_params asked;
  gm_status status = buffer_check(pool, params, out, &asked, err);
  if (status) return status;
  gm_context *ctx = pool->ctx;
  gm_buffer *buffer = gm__object_new(ctx, GM__KIND_BUFFER, sizeof *buffer);
  if (!buffer) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_buffer_create", "no host memory for a buffer");
  buffer->pool = pool;
  buffer->references = 1;
  buffer->id = gm__context_next_id(ctx);
  buffer->bytes = asked.request.bytes;
  buffer->elements = asked.elements;
  buffer->wanted = asked.request;
  buffer->wanted.flags |= GM_INSERT_WAIT;
  status = buffer_alloc(buffer, buffer_policy(pool, asked.fallback), err);
  if (status) {
    gm__object_end(ctx, &buffer->head);
    return status;
  }
  buffer->wanted.stream = NULL;
  atomic_fetch_add(&pool->guests, 1);
  *out = buffer;
  return GM_OK;
}

/* True for a buffer that is not NULL and, in debug builds, not released for the last time. */
static bool buffer_is(const gm_buffer *buffer) { return buffer && gm__object_is(&buffer->head, GM__KIND_BUFFER); }

void gm_buffer_retain(gm_buffer *buffer) {
  if (buffer_is(buffer)) atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
}

static void buffer_free_host(gm_buffer *buffer) {
  if (!gm__pool_lives(buffer->pool)) buffer->track_id = 0; /* the tracker went with the pool */
  gm__release(gm__context_services(buffer->pool->ctx), buffer->host, (size_t)buffer->bytes);
  buffer->host = NULL;
  if (buffer->track_id) gm_tracker_untrack(buffer->pool->heap.observers.tracker, buffer->track_id);
  buffer->track_id = 0;
}

static void buffer_free_block(const gm_buffer *buffer, gm_stream *stream) {
  gm_pool *pool = buffer->pool;
  if (!gm__pool_lives(pool)) return; /* which was ended by force, with the block */
  gm_status status = gm_free(pool, &buffer->block, stream);
  /* a stream that is closed, or another device's, has no work left on the block: host order is its order */
  if (status == GM_ERR_INVALID_ARGUMENT && stream) status = gm_free(pool, &buffer->block, NULL);
  if (status == GM_OK || status == GM_ERR_FORKED) return;
  gm__log(gm__context_services(pool->ctx), GM_LOG_ERROR, "buffer %" PRIu64 ": its block was not freed: %s", buffer->id,
          gm_status_name(status));
}

/* Frees the place where the buffer is. */
static void buffer_leave(gm_buffer *buffer, gm_stream *stream) {
  if (buffer->fell_back) gm__stats_uncount(&buffer->pool->heap.provider.stats.fallback_bytes, buffer->bytes);
  buffer->fell_back = false;
  if (buffer->location == GM_LOCATION_HOST) {
    buffer_free_host(buffer);
  } else {
    buffer_free_block(buffer, stream);
  }
}

void gm_buffer_release(gm_buffer *buffer, gm_stream *stream) {
  if (!buffer_is(buffer) || atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) != 1) return;
  gm_pool *pool = buffer->pool;
  buffer_leave(buffer, stream);
  atomic_fetch_sub(&pool->guests, 1);
  gm__object_end(pool->ctx, &buffer->head);
}

uint64_t gm_buffer_id(const gm_buffer *buffer) { return buffer_is(buffer) ? buffer->id : 0; }

uint64_t gm_buffer_bytes(const gm_buffer *buffer) { return buffer_is(buffer) ? buffer->bytes : 0; }

gm_location gm_buffer_location(const gm_buffer *buffer) {
  return buffer_is(buffer) ? buffer->location : GM_LOCATION_HOST;
}

static gm_status buffer_open(const gm_buffer *buffer, const char *op, gm_error *err) {
  if (!buffer) return gm__bad_argument(err, op, "`buffer` is NULL");
  if (!buffer_is(buffer)) return gm__bad_argument(err, op, "`buffer` is released");
  return gm__pool_alive(buffer->pool, op, err);
}

gm_status gm_buffer_block(const gm_buffer *buffer, gm_block *out, gm_error *err) {
  gm_status status = buffer_open(buffer, "gm_buffer_block", err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, "gm_buffer_block", "`out` is NULL");
  if (buffer->location == GM_LOCATION_HOST) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "gm_buffer_block", "the buffer lives in plain host memory");
  }
  *out = buffer->block;
  return GM_OK;
}

gm_status gm_buffer_object(const gm_buffer *buffer, gm_native_memory *out, gm_error *err) {
  static const char op[] = "gm_buffer_object";
  gm_block block;
  gm_status status = gm_buffer_block(buffer, &block, err);
  if (!status) status = gm_block_object(buffer->pool, &block, 0, block.bytes, out, err);
  return gm__error_of(op, status, err);
}

/* Finds a range of a buffer: in its block, or as a host pointer. */
static gm_status buffer_range(gm_buffer *buffer, uint64_t offset, uint64_t bytes, const char *op, gm__span_copy *range,
                              char **host, gm_error *err) {
  gm_status status = buffer_open(buffer, op, err);
  if (status) return status;
  if (offset > buffer->bytes || bytes > buffer->bytes - offset) {
    return gm__bad_argument(err, op, "`offset` %" PRIu64 " and `bytes` %" PRIu64 " reach beyond the buffer's %" PRIu64,
                            offset, bytes, buffer->bytes);
  }
  *host = buffer->host ? (char *)buffer->host + offset : NULL;
  return *host ? GM_OK : gm__span_copy_open(buffer->pool, &buffer->block, offset, bytes, op, range, err);
}

gm_status gm_buffer_write(gm_buffer *buffer, uint64_t offset, const void *src, uint64_t bytes, gm_stream *stream,
                          gm_error *err) {
  gm__span_copy copy;
  char *host = NULL;
  gm_status status = buffer_range(buffer, offset, bytes, "gm_buffer_write", &copy, &host, err);
  if (status) return status;
  if (!src) return gm__bad_argument(err, "gm_buffer_write", "`src` is NULL");
  if (!host) return gm__span_copy_write(&copy, src, stream, NULL, err);
  memcpy(host, src, (size_t)bytes);
  return GM_OK;
}

gm_status gm_buffer_read(gm_buffer *buffer, uint64_t offset, void *dst, uint64_t bytes, gm_stream *stream,
                         gm_error *err) {
  gm__span_copy copy;
  char *host = NULL;
  gm_status status = buffer_range(buffer, offset, bytes, "gm_buffer_read", &copy, &host, err);
  if (status) return status;
  if (!dst) return gm__bad_argument(err, "gm_buffer_read", "`dst` is NULL");
  if (!host) return gm__span_copy_read(&copy, dst, stream, NULL, err);
  memcpy(dst, host, (size_t)bytes);
  return GM_OK;
}

/* Copies all bytes of the buffer into `block`. They have arrived on return. */
static gm_status buffer_copy_to(gm_buffer *buffer, const gm_block *block, gm_stream *stream, gm_error *err) {
  gm__span_copy from = {.left = 0}, to;
  char *host = NULL;
  gm_status status = stream ? gm_stream_barrier(stream, err) : GM_OK;
  if (!status) status = buffer_range(buffer, 0, buffer->bytes, "gm_buffer_promote", &from, &host, err);
  if (!status) status = gm__span_copy_open(buffer->pool, block, 0, buffer->bytes, "gm_buffer_promote", &to, err);
  if (status) return status;
  return host ? gm__span_copy_write(&to, host, stream, NULL, err) : gm__span_copy_copy(&to, &from, stream, NULL, err);
}

gm_status gm_buffer_promote(gm_buffer *buffer, gm_stream *stream, gm_error *err) {
  gm_block block;
  gm_status status = buffer_open(buffer, "gm_buffer_promote", err);
  if (status || !buffer->fell_back) return status;
  gm_request request = buffer->wanted;
  request.stream = stream;
  gm_acquire answer = gm_alloc(buffer->pool, &request, &block);
  if (!buffer_served(answer)) return gm__explain_refusal(buffer->pool, &request, answer, "gm_buffer_create", err);
  status = buffer_copy_to(buffer, &block, stream, err);
  if (status) {
    gm__block_free_unused(buffer->pool, &block, stream);
    return status;
  }
  buffer_leave(buffer, stream);
  buffer_settle_in(buffer, &block);
  return GM_OK;
}
