#include "core/store/image.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/little.h"
#include "core/base/saturate.h"
#include "core/buffer/buffer.h"
#include "core/device/device_alloc.h"
#include "core/pool/alloc.h"
#include "gm/copy.h"

/* Invariant: gm__image_write writes exactly what image_size counted. */

enum { IMAGE_HEADER = (sizeof(gm__image) + 15) / 16 * 16 };

static gm__image *image_begin(const gm_context *ctx, uint64_t bytes, size_t behind) {
  const gm_services *services = gm__context_services(ctx);
  gm__image *image = gm__alloc(services, IMAGE_HEADER + behind);
  if (!image) return NULL;
  image->references = 1;
  image->services = services;
  image->bytes = bytes;
  image->behind = behind;
  image->data = (unsigned char *)image + IMAGE_HEADER;
  return image;
}

gm__image *gm__image_new(const gm_context *ctx, uint64_t bytes) {
  return bytes > PTRDIFF_MAX - IMAGE_HEADER ? NULL : image_begin(ctx, bytes, (size_t)bytes);
}

gm_status gm__image_pool(gm_device *device, uint64_t keep_bytes, gm_pool **out, gm_error *err) {
  const gm__device_request pinned = {.flags = GM_HOST_VISIBLE, .must_be = GM_ANYWHERE, .beside_device = true};
  const gm_pool_params params = {.struct_size = sizeof params,
                                 .name = "pinned memory of a store",
                                 .max_bytes = GM_NO_LIMIT,
                                 .red_zone_bytes = GM_NO_BYTES,
                                 .no_vmm = true,
                                 .keep_bytes = keep_bytes,
                                 .must_be = GM_ANYWHERE,
                                 .memory_types = gm__device_types(device, &pinned)};
  *out = NULL;
  return params.memory_types ? gm_pool_create(device, &params, out, err) : GM_OK;
}

/* NULL: the device pins no more. */
static gm__image *image_pinned(const gm_context *ctx, gm_pool *pool, uint64_t bytes) {
  const gm_request request = {.bytes = bytes, .flags = GM_MAPPED, .must_be = GM_ANYWHERE};
  void *data = NULL;
  gm__image *image = bytes > PTRDIFF_MAX ? NULL : image_begin(ctx, bytes, 0);
  if (!image) return NULL;
  if (gm_acquired(gm__pool_alloc_beside(pool, &request, &image->pinned))) image->pool = pool;
  if (image->pool && gm_block_host(pool, &image->pinned, &data, NULL) == GM_OK) {
    image->data = memset(data, 0, (size_t)bytes);
    return image;
  }
  gm__image_release(image);
  return NULL;
}

gm__image *gm__image_copy(const gm_context *ctx, const gm__image *image) {
  gm__image *copy = gm__image_new(ctx, image->bytes);
  if (copy) memcpy(copy->data, image->data, (size_t)image->bytes);
  return copy;
}

void gm__image_retain(gm__image *image) { atomic_fetch_add(&image->references, 1); }

void gm__image_release(gm__image *image) {
  if (!image || atomic_fetch_sub(&image->references, 1) != 1) return;
  if (image->pool) (void)gm_free(image->pool, &image->pinned, NULL);
  gm__release(image->services, image, IMAGE_HEADER + image->behind);
}

/* FNV-1a: an image outlives the build that wrote it, so the checksum may not depend on one. */
static uint64_t image_hash(uint64_t hash, const unsigned char *bytes, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
  return hash;
}

uint64_t gm__image_checksum(const unsigned char *data, uint64_t tree_bytes) {
  static const unsigned char zeros[8] = {0};
  uint64_t hash = image_hash(UINT64_C(0xcbf29ce484222325), data, 32);
  hash = image_hash(hash, zeros, sizeof zeros);
  return image_hash(hash, data + 40, GM__IMAGE_HEAD - 40 + tree_bytes);
}

/* ---- writing ---- */

typedef struct image_size {
  uint64_t tree, data;
} image_size;

static void image_count(const gm_value *value, image_size *size) {
  size->tree += GM__IMAGE_NODE + 8 * (uint64_t)value->rank;
  if (value->form == GM_VALUE_TENSOR) {
    size->data = gm__add_sat(size->data, gm__round_up(value->bytes, GM__IMAGE_ALIGN));
    return;
  }
  for (size_t i = 0; i < value->count; i++) {
    if (value->names) size->tree += 4 + strlen(value->names[i]);
    image_count(value->items[i], size);
  }
}

typedef struct image_writer {
  unsigned char *tree, *data;
  bool pageable; /* `data` is */
  gm_error *err;
} image_writer;

static void image_bytes(image_writer *writer, uint64_t number, unsigned bytes) {
  gm__le_put(writer->tree, number, bytes);
  writer->tree += bytes;
}

static void image_name(image_writer *writer, const char *name) {
  const size_t bytes = strlen(name);
  image_bytes(writer, bytes, 4);
  memcpy(writer->tree, name, bytes);
  writer->tree += bytes;
}

static gm_status image_tensor(image_writer *writer, const gm_value *value) {
  const gm__transfer to = {.kind = GM__TRANSFER_READ, .dst = writer->data, .pageable = writer->pageable};
  writer->data += gm__round_up(value->bytes, GM__IMAGE_ALIGN);
  if (value->buffer) return gm__buffer_copy(value->buffer, value->offset, value->bytes, &to, NULL, writer->err);
  if (value->bytes) memcpy(to.dst, value->host, (size_t)value->bytes);
  return GM_OK;
}

static gm_status image_node(image_writer *writer, gm_value *value) {
  const bool tensor = value->form == GM_VALUE_TENSOR;
  image_bytes(writer, value->form, 1);
  image_bytes(writer, value->rank, 1);
  image_bytes(writer, 0, 2);
  image_bytes(writer, value->dtype, 4);
  image_bytes(writer, tensor ? value->bytes : value->count, 8);
  for (uint32_t i = 0; i < value->rank; i++) image_bytes(writer, value->shape[i], 8);
  if (tensor) return image_tensor(writer, value);
  gm_status status = GM_OK;
  for (size_t i = 0; i < value->count && !status; i++) {
    if (value->names) image_name(writer, value->names[i]);
    status = image_node(writer, value->items[i]);
  }
  return status;
}

static void image_head(unsigned char *data, const image_size *size) {
  memcpy(data, GM__IMAGE_MAGIC, 8);
  gm__le_put(data + 8, GM__IMAGE_VERSION, 4);
  gm__le_put(data + 16, size->tree, 8);
  gm__le_put(data + 24, size->data, 8);
  gm__le_put(data + 32, gm__image_checksum(data, size->tree), 8);
}

gm_status gm__image_write(gm_value *value, gm_pool *pinned, gm__image **out, gm_error *err) {
  image_size size = {0, 0};
  image_count(value, &size);
  const uint64_t begin = gm__round_up(GM__IMAGE_HEAD + size.tree, GM__IMAGE_ALIGN);
  const uint64_t bytes = gm__add_sat(begin, size.data);
  gm__image *image = pinned ? image_pinned(value->ctx, pinned, bytes) : gm__image_new(value->ctx, bytes);
  if (!image) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_store", "no host memory for a value");
  image_writer writer = {image->data + GM__IMAGE_HEAD, image->data + begin, !image->pool, err};
  const gm_status status = image_node(&writer, value);
  if (status) {
    gm__image_release(image);
    return status;
  }
  image_head(image->data, &size);
  *out = image;
  return GM_OK;
}
