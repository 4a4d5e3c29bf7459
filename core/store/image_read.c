#include <inttypes.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/little.h"
#include "core/base/saturate.h"
#include "core/store/image.h"

/* Invariants. `at` never passes `tree_end`, nor `data` `data_end`. Nothing is allocated for a count that the bytes that
 * are left could not hold. */

typedef struct image_reader {
  gm_context *ctx;
  const gm__image_maker *maker;
  const unsigned char *at, *tree_end, *data, *data_end;
  bool pageable; /* `data` is */
  gm_error *err;
} image_reader;

static gm_status image_wrong(gm_error *err, const char *what) {
  return gm__fail(err, GM_ERR_FORMAT, "gm_store", "the bytes are no value of gm: %s", what);
}

static bool image_has(const image_reader *reader, uint64_t bytes) {
  return bytes <= (uint64_t)(reader->tree_end - reader->at);
}

static uint64_t image_take(image_reader *reader, unsigned bytes) {
  const uint64_t number = gm__le_get(reader->at, bytes);
  reader->at += bytes;
  return number;
}

typedef struct image_node {
  uint64_t kind, rank, zero, dtype, number;
} image_node;

static gm_status image_tensor(image_reader *reader, const image_node *node, gm_value **out) {
  gm_tensor_desc desc = {.struct_size = sizeof desc, .dtype = (gm_dtype)node->dtype, .rank = (uint32_t)node->rank};
  uint64_t bytes = 0;
  if (node->rank > GM_VALUE_RANK_MOST || !image_has(reader, 8 * node->rank)) {
    return image_wrong(reader->err, "a tensor has too many dimensions");
  }
  for (uint64_t i = 0; i < node->rank; i++) desc.shape[i] = image_take(reader, 8);
  if (gm_tensor_bytes(&desc, &bytes, NULL) || bytes != node->number) {
    return image_wrong(reader->err, "the type or shape of a tensor");
  }
  const uint64_t room = gm__round_up(bytes, GM__IMAGE_ALIGN);
  if (room > (uint64_t)(reader->data_end - reader->data)) return image_wrong(reader->err, "a tensor is cut short");
  const gm__transfer from = {.kind = GM__TRANSFER_WRITE, .src = reader->data, .pageable = reader->pageable};
  const gm_status status = reader->maker->tensor(reader->maker->user, &desc, bytes, &from, out, reader->err);
  reader->data += room;
  return status;
}

static gm_status image_any(image_reader *reader, uint32_t depth, gm_value **out);

/* Reads a name into `out`, as a C string that the caller releases. */
static gm_status image_name(image_reader *reader, char **out) {
  if (!image_has(reader, 4)) return image_wrong(reader->err, "a name is cut short");
  const uint64_t bytes = image_take(reader, 4);
  if (bytes > GM_VALUE_NAME_MOST || !image_has(reader, bytes) || memchr(reader->at, '\0', (size_t)bytes)) {
    return image_wrong(reader->err, "a name");
  }
  *out = gm__alloc(gm__context_services(reader->ctx), (size_t)bytes + 1);
  if (!*out) return gm__fail(reader->err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_store", "no host memory for a name");
  memcpy(*out, reader->at, (size_t)bytes);
  reader->at += bytes;
  return GM_OK;
}

typedef struct image_items {
  size_t count;
  gm_value **values;
  char **names; /* NULL: of a list */
} image_items;

static gm_status image_items_read(image_reader *reader, image_items *items, uint32_t depth) {
  gm_status status = GM_OK;
  for (size_t i = 0; i < items->count && !status; i++) {
    if (items->names) status = image_name(reader, &items->names[i]);
    if (!status) status = image_any(reader, depth + 1, &items->values[i]);
  }
  return status;
}

static void image_items_end(const image_reader *reader, const image_items *items) {
  const gm_services *services = gm__context_services(reader->ctx);
  for (size_t i = 0; items->values && i < items->count; i++) gm_value_release(items->values[i], NULL);
  for (size_t i = 0; items->names && i < items->count; i++) {
    if (items->names[i]) gm__release(services, items->names[i], strlen(items->names[i]) + 1);
  }
  gm__release(services, items->values, items->count * sizeof(gm_value *));
  gm__release(services, items->names, items->count * sizeof(char *));
}

static gm_status image_make_tree(image_reader *reader, const image_items *items, gm_value **out) {
  const gm_status status = items->names ? gm_value_dict(reader->ctx, (const char *const *)items->names, items->values,
                                                        items->count, out, reader->err)
                                        : gm_value_list(reader->ctx, items->values, items->count, out, reader->err);
  return status == GM_ERR_INVALID_ARGUMENT ? image_wrong(reader->err, "a list or dictionary") : status;
}

static gm_status image_tree(image_reader *reader, const image_node *node, uint32_t depth, gm_value **out) {
  const gm_services *services = gm__context_services(reader->ctx);
  if (node->rank || node->dtype || depth >= GM_VALUE_DEPTH_MOST) return image_wrong(reader->err, "a node");
  if (node->number > (uint64_t)(reader->tree_end - reader->at) / GM__IMAGE_NODE) {
    return image_wrong(reader->err, "a list is cut short");
  }
  image_items items = {.count = (size_t)node->number};
  items.values = gm__alloc_array(services, items.count, sizeof(gm_value *));
  if (node->kind == GM_VALUE_DICT) items.names = gm__alloc_array(services, items.count, sizeof(char *));
  gm_status status = GM_OK;
  if (!items.values || (node->kind == GM_VALUE_DICT && !items.names)) {
    status = gm__fail(reader->err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_store", "no host memory for a value");
  }
  if (!status) status = image_items_read(reader, &items, depth);
  if (!status) status = image_make_tree(reader, &items, out);
  image_items_end(reader, &items);
  return status;
}

static gm_status image_any(image_reader *reader, uint32_t depth, gm_value **out) {
  image_node node;
  if (!image_has(reader, GM__IMAGE_NODE)) return image_wrong(reader->err, "a node is cut short");
  node.kind = image_take(reader, 1);
  node.rank = image_take(reader, 1);
  node.zero = image_take(reader, 2);
  node.dtype = image_take(reader, 4);
  node.number = image_take(reader, 8);
  if (!node.zero && node.kind == GM_VALUE_TENSOR) return image_tensor(reader, &node, out);
  if (!node.zero && (node.kind == GM_VALUE_LIST || node.kind == GM_VALUE_DICT)) {
    return image_tree(reader, &node, depth, out);
  }
  return image_wrong(reader->err, "a node of another kind");
}

/* Checks the head, and sets the ranges of tree and data. */
static gm_status image_open(image_reader *reader, const gm__image *image) {
  const unsigned char *data = image->data;
  if (image->bytes < GM__IMAGE_HEAD || memcmp(data, GM__IMAGE_MAGIC, 8) != 0) {
    return image_wrong(reader->err, "it has another beginning");
  }
  if (gm__le_get(data + 8, 4) != GM__IMAGE_VERSION) {
    return gm__fail(reader->err, GM_ERR_FORMAT, "gm_store", "the value is of version %" PRIu64 ", this gm reads %d",
                    gm__le_get(data + 8, 4), GM__IMAGE_VERSION);
  }
  const uint64_t tree = gm__le_get(data + 16, 8), bytes = gm__le_get(data + 24, 8);
  const uint64_t begin = gm__round_up(gm__add_sat(GM__IMAGE_HEAD, tree), GM__IMAGE_ALIGN);
  if (begin > image->bytes || bytes != image->bytes - begin) return image_wrong(reader->err, "it is cut short");
  if (gm__le_get(data + 32, 8) != gm__image_checksum(data, tree)) return image_wrong(reader->err, "its checksum");
  reader->at = data + GM__IMAGE_HEAD;
  reader->tree_end = reader->at + tree;
  reader->data = data + begin;
  reader->data_end = reader->data + bytes;
  return GM_OK;
}

gm_status gm__image_read(gm_context *ctx, const gm__image *image, const gm__image_maker *maker, gm_value **out,
                         gm_error *err) {
  image_reader reader = {.ctx = ctx, .maker = maker, .pageable = !image->pool, .err = err};
  gm_value *value = NULL;
  gm_status status = image_open(&reader, image);
  if (!status) status = image_any(&reader, 0, &value);
  if (!status && (reader.at != reader.tree_end || reader.data != reader.data_end)) {
    status = image_wrong(err, "there are bytes behind it");
  }
  if (status) {
    gm_value_release(value, NULL);
    return status;
  }
  *out = value;
  return GM_OK;
}
