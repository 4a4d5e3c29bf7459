#include "core/buffer/buffer.h"

#include <inttypes.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/sized.h"
#include "core/block/span_copy.h"
#include "core/buffer/compact_rung.h"
#include "core/buffer/hold.h"
#include "core/buffer/move.h"
#include "core/context/config.h"
#include "core/device/point.h"
#include "core/manage/explain.h"
#include "core/pool/alloc.h"
#include "core/staging/range_host.h"
#include "gm/size.h"

/* Invariants. A buffer has its bytes in exactly one place: a block of its pool, or plain host memory. The pool's
 * statistics count a buffer that is not where it was wanted, as long as it stays there. The log is told of one that
 * fell back. The pool knows how many buffers there are, so it is not destroyed under one that lives in host memory. */

enum {
  BUFFER_MOVES = GM_RELOCATABLE | GM_EVICTABLE,
  BUFFER_STAYS = GM_MAPPED | GM_ALLOW_SPANS | GM_SHAREABLE /* flags of memory that others see where it is */
};

static gm_status buffer_check(const gm_pool *pool, const gm_buffer_params *params, gm_buffer *const *out,
                              gm_buffer_params *asked, gm_error *err) {
  static const char op[] = "gm_buffer_create";
  gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  status = gm__sized_in(asked, sizeof *asked, params, op, "params", err);
  if (status) return status;
  if ((unsigned)asked->fallback > GM_FALLBACK_HOST) {
    return gm__bad_argument(err, op, "`params->fallback` is %u, none of gm_fallback", (unsigned)asked->fallback);
  }
  if (!(asked->request.flags & BUFFER_MOVES) || !(asked->request.flags & BUFFER_STAYS)) return GM_OK;
  return gm__bad_argument(err, op,
                          "GM_RELOCATABLE and GM_EVICTABLE go with none of GM_MAPPED, GM_ALLOW_SPANS, GM_SHAREABLE");
}

static gm_fallback buffer_policy(const gm_pool *pool, gm_fallback asked) {
  if (asked != GM_FALLBACK_CONFIG) return asked;
  return gm__config_bool(pool->ctx, "cpu_fallback") ? GM_FALLBACK_HOST : GM_FALLBACK_REFUSE;
}

static void buffer_report(const gm_buffer *buffer, gm_acquire answer) {
  gm_context *ctx = buffer->pool->ctx;
  char bytes[16];
  gm_format_bytes(buffer->bytes, bytes, sizeof bytes);
  gm__stats_count(&buffer->pool->heap.provider.stats.fallbacks, 1);
  gm__log(gm__context_services(ctx), GM_LOG_WARN,
          "buffer %" PRIu64 " of pool \"%s\" (%s, tag \"%s\") fell back to %s memory: %s", buffer->id,
          buffer->pool->heap.provider.name, bytes, gm_tag_name(ctx, buffer->wanted.tag),
          buffer->at.location == GM_LOCATION_HOST ? "host" : "pinned host",
          answer == GM_ACQUIRE_OVER_LIMIT ? "a limit of gm refused" : "the device has none");
}

static gm_status buffer_fall_back(gm_buffer *buffer, const gm_request *request, gm_fallback policy, gm_acquire answer,
                                  gm_error *err) {
  gm_block block;
  bool short_of_memory = answer == GM_ACQUIRE_EXHAUSTED || answer == GM_ACQUIRE_OVER_LIMIT;
  if (policy == GM_FALLBACK_REFUSE || !short_of_memory)
    return gm__explain_refusal(buffer->pool, request, answer, "gm_buffer_create", err);
  gm_status status = gm__buffer_queues_begin(buffer->pool, err);
  if (status) return status;
  if (gm__place_served(gm__pool_alloc_beside(buffer->pool, request, &block))) {
    gm__place_of_block(buffer, &block, &buffer->at);
  } else if (policy == GM_FALLBACK_PINNED) {
    return gm__explain_refusal(buffer->pool, request, answer, "gm_buffer_create", err);
  } else {
    status = gm__place_take(buffer, GM_LOCATION_HOST, NULL, "gm_buffer_create", &buffer->at, err);
    if (status) return status;
  }
  gm__buffer_note_place(buffer);
  if (buffer->fell_back) buffer_report(buffer, answer);
  return GM_OK;
}

static gm_status buffer_alloc(gm_buffer *buffer, gm_fallback policy, gm_error *err) {
  gm_block block;
  const gm_request request = buffer->wanted;
  gm_acquire answer = gm_alloc(buffer->pool, &request, &block);
  if (!gm__place_served(answer)) return buffer_fall_back(buffer, &request, policy, answer, err);
  gm__place_of_block(buffer, &block, &buffer->at);
  return GM_OK;
}

gm_status gm_buffer_create(gm_pool *pool, const gm_buffer_params *params, gm_buffer **out, gm_error *err) {
  GM__UNCANCELLED();
  gm_buffer_params asked;
  gm_status status = buffer_check(pool, params, out, &asked, err);
  if (status) return status;
  const gm_fallback policy = buffer_policy(pool, asked.fallback);
  const bool moves = (asked.request.flags & BUFFER_MOVES) != 0;
  if (moves) status = gm__buffer_queues_begin(pool, err);
  if (!status && moves) status = gm__compact_rung_begin(pool, err);
  if (status) return status;
  gm_context *ctx = pool->ctx;
  gm_buffer *buffer = gm__object_new(ctx, GM__KIND_BUFFER, sizeof *buffer);
  if (!buffer) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_buffer_create", "no host memory for a buffer");
  buffer->pool = pool;
  buffer->references = 1;
  buffer->id = gm__context_next_id(ctx);
  buffer->bytes = asked.request.bytes;
  buffer->elements = asked.elements;
  buffer->wanted = asked.request;
  buffer->wanted.flags = (asked.request.flags & ~(uint32_t)BUFFER_MOVES) | GM_INSERT_WAIT;
  buffer->relocatable = (asked.request.flags & GM_RELOCATABLE) != 0;
  buffer->evictable = (asked.request.flags & GM_EVICTABLE) != 0;
  buffer->may_pin =
      policy != GM_FALLBACK_REFUSE && !gm__place_is_wanted(buffer, &(gm__place){.location = GM_LOCATION_PINNED});
  status = buffer_alloc(buffer, policy, err);
  if (status) {
    gm__object_end(ctx, &buffer->head);
    return status;
  }
  buffer->wanted.stream = NULL;
  buffer->wanted.deadline_ns = 0;
  atomic_fetch_add(&pool->guests, 1);
  gm__buffer_enlist(buffer);
  *out = buffer;
  return GM_OK;
}

void gm_buffer_retain(gm_buffer *buffer) {
  if (gm__buffer_is(buffer)) atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
}

/* Frees the place where a buffer is that nobody has any more. */
static void buffer_leave(gm_buffer *buffer, gm_stream *stream) {
  gm_pool *pool = buffer->pool;
  if (buffer->fell_back) gm__stats_uncount(&pool->heap.provider.stats.fallback_bytes, buffer->bytes);
  const gm_status status = gm__place_leave(buffer, &buffer->at, stream);
  if (status == GM_OK || status == GM_ERR_FORKED) return;
  gm__log(gm__context_services(pool->ctx), GM_LOG_ERROR, "buffer %" PRIu64 ": its block was not freed: %s", buffer->id,
          gm_status_name(status));
}

/* Work that streams were unlocked with may still use the block. */
static void buffer_follow(gm_buffer *buffer) {
  gm_pool *pool = buffer->pool;
  if (buffer->at.location == GM_LOCATION_HOST || !gm__pool_lives(pool) || gm__pool_forked(pool)) return;
  for (size_t i = 0; i < buffer->use_count; i++) {
    gm_stream *stream = gm__point_stream(pool->device, &buffer->uses[i]);
    if (stream) gm_use_on(pool, &buffer->at.block, stream);
  }
}

void gm_buffer_release(gm_buffer *buffer, gm_stream *stream) {
  GM__UNCANCELLED();
  if (!gm__buffer_is(buffer) || atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) != 1) return;
  gm_pool *pool = buffer->pool;
  gm__buffer_delist(buffer);
  buffer_follow(buffer);
  gm__buffer_forget_uses(buffer);
  buffer_leave(buffer, stream);
  atomic_fetch_sub(&pool->guests, 1);
  gm__object_end(pool->ctx, &buffer->head);
}

uint64_t gm_buffer_id(const gm_buffer *buffer) { return gm__buffer_is(buffer) ? buffer->id : 0; }

uint64_t gm_buffer_bytes(const gm_buffer *buffer) { return gm__buffer_is(buffer) ? buffer->bytes : 0; }

gm_location gm_buffer_location(const gm_buffer *buffer) {
  return gm__buffer_is(buffer) ? gm__buffer_where(buffer) : GM_LOCATION_HOST;
}

gm_status gm_buffer_block(const gm_buffer *buffer, gm_block *out, gm_error *err) {
  static const char op[] = "gm_buffer_block";
  gm_status status = gm__buffer_check(buffer, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  if ((buffer->relocatable || buffer->evictable) && !gm__buffer_is_held(buffer)) {
    return gm__bad_argument(err, op, "gm may move the buffer, and it is not locked: gm_buffer_lock first");
  }
  if (gm__buffer_show((gm_buffer *)buffer, out)) return GM_OK; /* what is noted there is not the caller's */
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "the buffer lives in plain host memory");
}

gm_status gm_buffer_object(const gm_buffer *buffer, gm_native_memory *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_buffer_object";
  gm_block block;
  gm_status status = gm_buffer_block(buffer, &block, err);
  if (!status) status = gm_block_object(buffer->pool, &block, 0, block.bytes, out, err);
  return gm__error_of(op, status, err);
}

static gm_status buffer_check_range(const gm_buffer *buffer, uint64_t offset, uint64_t bytes, const char *op,
                                    gm_error *err) {
  gm_status status = gm__buffer_check(buffer, op, err);
  if (status || (offset <= buffer->bytes && bytes <= buffer->bytes - offset)) return status;
  return gm__bad_argument(err, op, "`offset` %" PRIu64 " and `bytes` %" PRIu64 " reach beyond the buffer's %" PRIu64,
                          offset, bytes, buffer->bytes);
}

gm_status gm__buffer_copy(gm_buffer *buffer, uint64_t offset, uint64_t bytes, const gm__transfer *what,
                          gm_stream *stream, gm_error *err) {
  const bool up = what->kind == GM__TRANSFER_WRITE;
  const char *op = up ? "gm_buffer_write" : "gm_buffer_read";
  gm__span_copy copy;
  gm_status status = buffer_check_range(buffer, offset, bytes, op, err);
  if (status) return status;
  if (!(up ? what->src : what->dst)) return gm__bad_argument(err, op, "`%s` is NULL", up ? "src" : "dst");
  gm__buffer_hold(buffer);
  if (buffer->at.host) {
    gm__host_move(what, (unsigned char *)buffer->at.host + offset, bytes);
  } else if (buffer->at.location == GM_LOCATION_HOST) {
    status = gm__fail(err, GM_ERR_BUSY, op, "the buffer sleeps without its contents: gm_pool_wake first");
  } else {
    status = gm__span_copy_open(buffer->pool, &buffer->at.block, offset, bytes, op, &copy, err);
    if (!status) status = gm__span_copy_run(&copy, what, stream, NULL, err);
  }
  gm__buffer_let_go(buffer);
  return status;
}

gm_status gm_buffer_write(gm_buffer *buffer, uint64_t offset, const void *src, uint64_t bytes, gm_stream *stream,
                          gm_error *err) {
  GM__UNCANCELLED();
  const gm__transfer what = {.kind = GM__TRANSFER_WRITE, .src = src};
  return gm__buffer_copy(buffer, offset, bytes, &what, stream, err);
}

gm_status gm_buffer_read(gm_buffer *buffer, uint64_t offset, void *dst, uint64_t bytes, gm_stream *stream,
                         gm_error *err) {
  GM__UNCANCELLED();
  const gm__transfer what = {.kind = GM__TRANSFER_READ, .dst = dst};
  return gm__buffer_copy(buffer, offset, bytes, &what, stream, err);
}
