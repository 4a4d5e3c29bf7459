#include "core/store/value.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/sized.h"
#include "core/buffer/buffer.h"

/* Invariants. A node never changes between its making and its end, but for its counts. It holds one reference of each
 * item and of its buffer. A tree is at most GM_VALUE_DEPTH_MOST deep, so its end may recurse. */

gm_status gm__value_check(const gm_value *value, const char *op, gm_error *err) {
  if (!value) return gm__bad_argument(err, op, "`value` is NULL");
  if (!gm__object_is(&value->head, GM__KIND_VALUE)) return gm__bad_argument(err, op, "`value` is released");
  return gm__context_check(value->ctx, op, err);
}

gm_value *gm__value_new(gm_context *ctx, gm_value_form form, uint32_t rank) {
  gm_value *value = gm__object_new(ctx, GM__KIND_VALUE, sizeof *value + rank * sizeof *value->shape);
  if (!value) return NULL;
  value->ctx = ctx;
  value->references = 1;
  value->form = form;
  value->depth = value->nodes = 1;
  atomic_fetch_add(&ctx->children, 1);
  return value;
}

/* ---- what a tensor is ---- */

gm_status gm__tensor_read(const gm_tensor_desc *desc, gm_tensor_desc *out, uint64_t *out_bytes, const char *op,
                          gm_error *err) {
  uint32_t block = 1;
  uint64_t elements = 1, bytes = 0;
  bool none = false;
  const gm_status status = gm__sized_in(out, sizeof *out, desc, op, "desc", err);
  if (status) return status;
  if (gm_dtype_block(out->dtype, &block, NULL)) {
    return gm__bad_argument(err, op, "`desc->dtype` is %u, none of gm_dtype", (unsigned)out->dtype);
  }
  if (out->rank > GM_VALUE_RANK_MOST) {
    return gm__bad_argument(err, op, "`desc->rank` is %u, above %d", out->rank, GM_VALUE_RANK_MOST);
  }
  for (uint32_t i = out->rank; i < GM_VALUE_RANK_MOST; i++) out->shape[i] = 0;
  for (uint32_t i = 0; i < out->rank; i++) none = none || !out->shape[i];
  for (uint32_t i = 0; i < out->rank && !none; i++) {
    if (out->shape[i] > INT64_MAX / elements) return gm__bad_argument(err, op, "the elements of `desc` exceed 2^63-1");
    elements *= out->shape[i];
  }
  if ((out->rank ? out->shape[out->rank - 1] : 1) % block) {
    return gm__bad_argument(err, op, "the last dimension is no whole number of blocks of %s, which have %u elements",
                            gm_dtype_name(out->dtype), block);
  }
  if (!none && (gm_dtype_bytes(out->dtype, elements, &bytes) || bytes > INT64_MAX)) {
    return gm__bad_argument(err, op, "the bytes of `desc` exceed 2^63-1");
  }
  *out_bytes = bytes;
  return GM_OK;
}

gm_status gm_tensor_bytes(const gm_tensor_desc *desc, uint64_t *out, gm_error *err) {
  gm_tensor_desc asked;
  uint64_t bytes;
  const gm_status status = gm__tensor_read(desc, &asked, &bytes, "gm_tensor_bytes", err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, "gm_tensor_bytes", "`out` is NULL");
  *out = bytes;
  return GM_OK;
}

/* ---- making tensors ---- */

static gm_status value_no_memory(const char *op, gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a value");
}

static gm_value *value_tensor_new(gm_context *ctx, const gm_tensor_desc *desc, uint64_t bytes) {
  gm_value *value = gm__value_new(ctx, GM_VALUE_TENSOR, desc->rank);
  if (!value) return NULL;
  value->dtype = desc->dtype;
  value->rank = desc->rank;
  memcpy(value->shape, desc->shape, desc->rank * sizeof *value->shape);
  value->bytes = bytes;
  return value;
}

gm_tensor_desc gm__value_desc(const gm_value *value) {
  gm_tensor_desc desc = {.struct_size = sizeof desc, .dtype = value->dtype, .rank = value->rank};
  memcpy(desc.shape, value->shape, value->rank * sizeof *value->shape);
  return desc;
}

gm_status gm__value_host_tensor(gm_context *ctx, const gm_tensor_desc *desc, uint64_t bytes, gm_value **out,
                                gm_error *err) {
  static const char op[] = "gm_value_tensor_on_host";
  gm_value *value = value_tensor_new(ctx, desc, bytes);
  if (!value) return value_no_memory(op, err);
  if (bytes && bytes <= SIZE_MAX) value->host = gm__alloc(gm__context_services(ctx), (size_t)bytes);
  if (bytes && !value->host) {
    gm_value_release(value, NULL);
    return value_no_memory(op, err);
  }
  *out = value;
  return GM_OK;
}

static gm_status value_buffer_make(gm_pool *pool, uint64_t bytes, uint64_t elements, gm_fallback fallback,
                                   gm_stream *stream, gm_buffer **out, gm_error *err) {
  const gm_buffer_params params = {.struct_size = sizeof params,
                                   .request = {.bytes = bytes, .tag = gm_tag(pool->ctx, "store"), .stream = stream},
                                   .fallback = fallback,
                                   .elements = elements};
  return gm_buffer_create(pool, &params, out, err);
}

gm_status gm__value_pool_tensor(gm_pool *pool, const gm_tensor_desc *desc, uint64_t bytes, const gm__transfer *from,
                                gm_fallback fallback, gm_stream *stream, gm_value **out, gm_error *err) {
  uint32_t block_elements = 1, block_bytes = 1;
  gm_value *value = value_tensor_new(pool->ctx, desc, bytes);
  gm_status status = value ? GM_OK : value_no_memory("gm_value_tensor", err);
  if (!status && bytes) {
    (void)gm_dtype_block(desc->dtype, &block_elements, &block_bytes);
    status =
        value_buffer_make(pool, bytes, bytes / block_bytes * block_elements, fallback, stream, &value->buffer, err);
    if (!status) value->fell = value->buffer->fell_back;
    if (!status) status = gm__buffer_copy(value->buffer, 0, bytes, from, stream, err);
  }
  if (status) {
    gm_value_release(value, stream);
    return status;
  }
  *out = value;
  return GM_OK;
}

gm_status gm_value_tensor(gm_pool *pool, const gm_tensor_desc *desc, const void *data, gm_fallback fallback,
                          gm_stream *stream, gm_value **out, gm_error *err) {
  static const char op[] = "gm_value_tensor";
  gm_tensor_desc asked;
  uint64_t bytes;
  gm_status status = gm__pool_alive(pool, op, err);
  if (!status) status = gm__tensor_read(desc, &asked, &bytes, op, err);
  if (status) return status;
  if (!out || (bytes && !data)) return gm__bad_argument(err, op, "`%s` is NULL", out ? "data" : "out");
  const gm__transfer from = {.kind = GM__TRANSFER_WRITE, .src = data};
  return gm__value_pool_tensor(pool, &asked, bytes, &from, fallback, stream, out, err);
}

gm_status gm_value_tensor_on_host(gm_context *ctx, const gm_tensor_desc *desc, const void *data, gm_value **out,
                                  gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_value_tensor_on_host";
  gm_tensor_desc asked;
  uint64_t bytes;
  gm_status status = gm__context_check(ctx, op, err);
  if (!status) status = gm__tensor_read(desc, &asked, &bytes, op, err);
  if (status) return status;
  if (!out || (bytes && !data)) return gm__bad_argument(err, op, "`%s` is NULL", out ? "data" : "out");
  status = gm__value_host_tensor(ctx, &asked, bytes, out, err);
  if (!status && bytes) memcpy((*out)->host, data, (size_t)bytes);
  return status;
}

gm_status gm_value_tensor_of(gm_buffer *buffer, uint64_t offset, const gm_tensor_desc *desc, gm_value **out,
                             gm_error *err) {
  static const char op[] = "gm_value_tensor_of";
  gm_tensor_desc asked;
  uint64_t bytes;
  if (!buffer || !out) return gm__bad_argument(err, op, "`%s` is NULL", buffer ? "out" : "buffer");
  const gm_pool *pool = buffer->pool;
  gm_status status = gm__pool_alive(pool, op, err);
  if (!status) status = gm__tensor_read(desc, &asked, &bytes, op, err);
  if (status) return status;
  const uint64_t has = gm_buffer_bytes(buffer);
  if (offset > has || bytes > has - offset) {
    return gm__bad_argument(err, op, "the tensor reaches beyond the buffer's bytes");
  }
  gm_value *value = value_tensor_new(pool->ctx, &asked, bytes);
  if (!value) return value_no_memory(op, err);
  gm_buffer_retain(buffer);
  value->buffer = buffer;
  value->offset = offset;
  *out = value;
  return GM_OK;
}

/* ---- counts ---- */

void gm_value_retain(gm_value *value) {
  if (value && gm__object_is(&value->head, GM__KIND_VALUE)) atomic_fetch_add(&value->references, 1);
}

/* Frees the memory of a list or dictionary, but not its items. */
static void value_tree_end(gm_value *value) {
  const gm_services *services = gm__context_services(value->ctx);
  for (size_t i = 0; value->names && i < value->count; i++) {
    if (value->names[i]) gm__release(services, value->names[i], strlen(value->names[i]) + 1);
  }
  gm__release(services, value->names, value->count * sizeof(char *));
  gm__release(services, value->by_name, value->count * sizeof(gm__value_name));
  gm__release(services, value->items, value->count * sizeof(gm_value *));
}

/* The bytes of the device that go with the last reference of a buffer. */
static uint64_t value_buffer_release(gm_buffer *buffer, gm_stream *stream) {
  const bool last = buffer && atomic_load(&buffer->references) == 1;
  const bool there = last && gm_buffer_location(buffer) == GM_LOCATION_DEVICE;
  const uint64_t bytes = there ? gm_buffer_bytes(buffer) : 0;
  gm_buffer_release(buffer, stream);
  return bytes;
}

static uint64_t value_end(gm_value *value, gm_stream *stream) {
  gm_context *ctx = value->ctx;
  uint64_t freed = value_buffer_release(value->buffer, stream);
  if (value->host) gm__release(gm__context_services(ctx), value->host, (size_t)value->bytes);
  for (size_t i = 0; i < value->count; i++) freed += gm__value_release(value->items[i], stream);
  value_tree_end(value);
  gm__object_end(ctx, &value->head);
  atomic_fetch_sub(&ctx->children, 1);
  return freed;
}

/* The value lives on, and may be ended by somebody who does not know of that stream. */
static void value_use_on(gm_value *value, gm_stream *stream) {
  gm_block block;
  if (value->buffer && !gm_buffer_lock(value->buffer, &block, NULL)) {
    const gm_status status = gm_use_on(value->buffer->pool, &block, stream);
    if (status == GM_ERR_OUT_OF_HOST_MEMORY) (void)gm_stream_sync(stream, NULL); /* it cannot be noted */
    (void)gm_buffer_unlock(value->buffer, NULL, NULL);
  }
  for (size_t i = 0; i < value->count; i++) value_use_on(value->items[i], stream);
}

bool gm__value_watch_begin(gm_value *value, gm__value_watch *watch) {
  gm__value_watch *before = NULL;
  if (!atomic_compare_exchange_strong(&value->watch, &before, watch) && before != watch) return false;
  const uint64_t references = atomic_fetch_or(&value->references, GM__VALUE_WATCHED) & ~GM__VALUE_WATCHED;
  if (references > atomic_load(&value->stored)) return watch->used = true;
  if (!value->aside) gm__value_watch_end(value);
  return false;
}

void gm__value_watch_end(gm_value *value) {
  atomic_fetch_and(&value->references, ~GM__VALUE_WATCHED);
  atomic_store(&value->watch, NULL);
}

/* Gives up the caller's reference unless the value is watched. A child that was forked has no store to wake. */
static bool value_give_up(gm_value *value, uint64_t *out_left) {
  uint64_t now = atomic_load(&value->references);
  while (!(now & GM__VALUE_WATCHED) || gm__context_forked(value->ctx)) {
    if (!atomic_compare_exchange_weak(&value->references, &now, now - 1)) continue;
    *out_left = (now - 1) & ~GM__VALUE_WATCHED;
    return true;
  }
  return false;
}

/* While the caller has its reference, the value is there. The store that watches it is woken, and the reference given
 * up, in one step of the lock. So no store takes the value for held that is not. */
static uint64_t value_give_up_watched(gm_value *value) {
  uint64_t left = 0;
  while (!value_give_up(value, &left)) {
    gm__value_watch *watch = atomic_load(&value->watch);
    if (!watch) continue; /* it ended just now */
    gm__mutex_lock(&watch->lock);
    const bool mine = atomic_load(&value->watch) == watch;
    if (mine) watch->wake(watch->store, value);
    if (mine) left = atomic_fetch_sub(&value->references, 1) - 1;
    gm__mutex_unlock(&watch->lock);
    if (mine) break;
  }
  return left;
}

uint64_t gm__value_release(gm_value *value, gm_stream *stream) {
  uint64_t left;
  if (!value || !gm__object_is(&value->head, GM__KIND_VALUE)) return 0;
  if (stream && gm__value_references(value) > 1) value_use_on(value, stream);
  if (!value_give_up(value, &left)) left = value_give_up_watched(value);
  return left ? 0 : value_end(value, stream);
}

void gm_value_release(gm_value *value, gm_stream *stream) {
  GM__UNCANCELLED();
  (void)gm__value_release(value, stream);
}
