/* Buffers: what ggml does with memory that it has. */
#include <ggml-impl.h>
#include <stdlib.h>
#include <string.h>

#include "ggml_gm.h"

static gm_ggml_buffer *of(ggml_backend_buffer_t buffer) { return buffer->context; }

uint64_t gm_ggml_offset(const gm_ggml_buffer *buffer, const struct ggml_tensor *tensor) {
  return (uint64_t)((const uint8_t *)tensor->data - buffer->base);
}

/* Copies touch the block itself. The host can write what is mapped, or no block at all. */
static bool is_device(const gm_ggml_buffer *buffer) {
  return buffer->place == GM_GGML_BLOCK || buffer->place == GM_GGML_SHADOW;
}

/* The bytes follow in the stream's order; ggml keeps the host's memory until it has waited for the queue. */
static void settle(gm_status status, const gm_error *err, gm_point *point) {
  gm_ggml_check(status, err);
  gm_point_release(gm_ggml_self.device, point);
}

void gm_ggml_buffer_write(gm_ggml_buffer *buffer, uint64_t at, const void *src, uint64_t bytes, gm_stream *stream) {
  if (bytes == 0) return;
  if (!is_device(buffer)) {
    memcpy(buffer->base + at, src, bytes);
    return;
  }
  gm_error err;
  gm_point point = {0};
  buffer->stale = buffer->place == GM_GGML_SHADOW;
  settle(gm_block_write(gm_ggml_self.pool, &buffer->block, at, src, bytes, stream, stream ? &point : NULL, &err), &err,
         &point);
}

void gm_ggml_buffer_read(gm_ggml_buffer *buffer, uint64_t at, void *dst, uint64_t bytes, gm_stream *stream) {
  if (bytes == 0) return;
  if (!is_device(buffer)) {
    memcpy(dst, buffer->base + at, bytes);
    return;
  }
  gm_error err;
  gm_point point = {0};
  settle(gm_block_read(gm_ggml_self.pool, &buffer->block, at, dst, bytes, stream, stream ? &point : NULL, &err), &err,
         &point);
}

static void copy_rows(uint8_t *dst, const uint8_t *src, const gm_rect *rect) {
  for (uint64_t i = 0; i < rect->rows; ++i)
    memcpy(dst + rect->dst_offset + i * rect->dst_row_pitch, src + rect->src_offset + i * rect->src_row_pitch,
           rect->row_bytes);
}

void gm_ggml_buffer_write_2d(gm_ggml_buffer *buffer, const gm_rect *rect, const void *src, gm_stream *stream) {
  if (!is_device(buffer)) {
    copy_rows(buffer->base, src, rect);
    return;
  }
  gm_error err;
  gm_point point = {0};
  buffer->stale = buffer->place == GM_GGML_SHADOW;
  settle(gm_block_write_rect(gm_ggml_self.pool, &buffer->block, src, rect, stream, stream ? &point : NULL, &err), &err,
         &point);
}

void gm_ggml_buffer_read_2d(gm_ggml_buffer *buffer, const gm_rect *rect, void *dst, gm_stream *stream) {
  if (!is_device(buffer)) {
    copy_rows(dst, buffer->base, rect);
    return;
  }
  gm_error err;
  gm_point point = {0};
  settle(gm_block_read_rect(gm_ggml_self.pool, &buffer->block, dst, rect, stream, stream ? &point : NULL, &err), &err,
         &point);
}

static void fill(gm_ggml_buffer *buffer, uint64_t at, uint64_t bytes, uint8_t value) {
  if (bytes == 0) return;
  if (!is_device(buffer)) {
    memset(buffer->base + at, value, bytes);
    return;
  }
  gm_error err;
  buffer->stale = buffer->place == GM_GGML_SHADOW;
  gm_ggml_check(gm_block_fill(gm_ggml_self.pool, &buffer->block, at, bytes, &value, 1, NULL, NULL, &err), &err);
}

static void free_buffer(ggml_backend_buffer_t lent) {
  gm_ggml_buffer *buffer = of(lent);
  gm_error err = {.status = GM_OK};
  if (buffer->place == GM_GGML_MAPPED)
    gm_ggml_check(gm_block_unmap(gm_ggml_self.pool, &buffer->block, buffer->base, gm_ggml_self.stream, &err), &err);
  if (buffer->place == GM_GGML_SHADOW || buffer->place == GM_GGML_FALLBACK) free(buffer->base);
  if (buffer->block.bytes && gm_free(gm_ggml_self.pool, &buffer->block, NULL) != GM_OK)
    GGML_LOG_ERROR("ggml-gm: a block could not be freed\n");
  gm_ggml_check_remove(buffer);
  free(buffer);
}

static void *get_base(ggml_backend_buffer_t lent) { return of(lent)->base; }

static void memset_tensor(ggml_backend_buffer_t lent, struct ggml_tensor *tensor, uint8_t value, size_t offset,
                          size_t size) {
  fill(of(lent), gm_ggml_offset(of(lent), tensor) + offset, size, value);
}

static void set_tensor(ggml_backend_buffer_t lent, struct ggml_tensor *tensor, const void *data, size_t offset,
                       size_t size) {
  gm_ggml_buffer_write(of(lent), gm_ggml_offset(of(lent), tensor) + offset, data, size, NULL);
}

static void get_tensor(ggml_backend_buffer_t lent, const struct ggml_tensor *tensor, void *data, size_t offset,
                       size_t size) {
  gm_ggml_buffer_read(of(lent), gm_ggml_offset(of(lent), tensor) + offset, data, size, NULL);
}

static void set_tensor_2d(ggml_backend_buffer_t lent, struct ggml_tensor *tensor, const void *data, size_t offset,
                          size_t size, size_t copies, size_t stride_tensor, size_t stride_data) {
  const gm_rect rect = {.row_bytes = size,
                        .rows = copies,
                        .slices = 1,
                        .src_row_pitch = stride_data,
                        .dst_offset = gm_ggml_offset(of(lent), tensor) + offset,
                        .dst_row_pitch = stride_tensor};
  gm_ggml_buffer_write_2d(of(lent), &rect, data, NULL);
}

static void get_tensor_2d(ggml_backend_buffer_t lent, const struct ggml_tensor *tensor, void *data, size_t offset,
                          size_t size, size_t copies, size_t stride_tensor, size_t stride_data) {
  const gm_rect rect = {.row_bytes = size,
                        .rows = copies,
                        .slices = 1,
                        .src_offset = gm_ggml_offset(of(lent), tensor) + offset,
                        .src_row_pitch = stride_tensor,
                        .dst_row_pitch = stride_data};
  gm_ggml_buffer_read_2d(of(lent), &rect, data, NULL);
}

/* False: ggml copies through host memory. */
static bool cpy_tensor(ggml_backend_buffer_t lent, const struct ggml_tensor *src, struct ggml_tensor *dst) {
  gm_ggml_buffer *to = of(lent), *from = gm_ggml_buffer_of(src);
  if (!from || !is_device(from) || !is_device(to)) return false;
  gm_error err;
  to->stale = to->place == GM_GGML_SHADOW;
  gm_ggml_check(gm_block_copy(gm_ggml_self.pool, &to->block, gm_ggml_offset(to, dst), gm_ggml_self.pool, &from->block,
                              gm_ggml_offset(from, src), ggml_nbytes(src), NULL, NULL, &err),
                &err);
  return true;
}

static void clear(ggml_backend_buffer_t lent, uint8_t value) { fill(of(lent), 0, of(lent)->bytes, value); }

gm_ggml_buffer *gm_ggml_buffer_of(const struct ggml_tensor *tensor) {
  const ggml_backend_buffer_t lent = tensor->view_src ? tensor->view_src->buffer : tensor->buffer;
  return lent && lent->iface.get_base == get_base ? of(lent) : NULL;
}

ggml_backend_buffer_t gm_ggml_buffer_lend(ggml_backend_buffer_type_t type, gm_ggml_buffer *buffer) {
  const struct ggml_backend_buffer_i face = {
      .free_buffer = free_buffer,
      .get_base = get_base,
      .memset_tensor = memset_tensor,
      .set_tensor = set_tensor,
      .get_tensor = get_tensor,
      .set_tensor_2d = set_tensor_2d,
      .get_tensor_2d = get_tensor_2d,
      .cpy_tensor = cpy_tensor,
      .clear = clear,
  };
  const ggml_backend_buffer_t lent = ggml_backend_buffer_init(type, face, buffer, (size_t)buffer->bytes);
  gm_ggml_check_add(lent, buffer);
  return lent;
}

static void pull(gm_ggml_buffer *buffer, gm_stream *stream) {
  if (!buffer || !buffer->stale) return;
  gm_ggml_buffer_read(buffer, 0, buffer->base, buffer->bytes, stream);
  buffer->stale = false;
}

void gm_ggml_graph_pull(struct ggml_cgraph *graph, gm_stream *stream) {
  for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
    struct ggml_tensor *node = ggml_graph_node(graph, i);
    pull(gm_ggml_buffer_of(node), stream);
    for (int s = 0; s < GGML_MAX_SRC; ++s)
      if (node->src[s]) pull(gm_ggml_buffer_of(node->src[s]), stream);
  }
}

void gm_ggml_graph_push(struct ggml_cgraph *graph, gm_stream *stream) {
  for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
    gm_ggml_buffer *buffer = gm_ggml_buffer_of(ggml_graph_node(graph, i));
    if (buffer && buffer->place == GM_GGML_SHADOW) buffer->written = true;
  }
  for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
    gm_ggml_buffer *buffer = gm_ggml_buffer_of(ggml_graph_node(graph, i));
    if (!buffer || !buffer->written) continue;
    gm_ggml_buffer_write(buffer, 0, buffer->base, buffer->bytes, stream);
    buffer->written = buffer->stale = false;
  }
}
