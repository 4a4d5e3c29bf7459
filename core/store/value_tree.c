#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/store/value.h"

/* Invariant: by_name has each name of a dictionary once, in the order of its bytes. */

/* ---- making ---- */

static gm_status tree_size(const gm_context *ctx, gm_value *const *items, size_t count, gm_value *value, const char *op,
                           gm_error *err) {
  for (size_t i = 0; i < count; i++) {
    const gm_status status = gm__value_check(items[i], op, err);
    if (status) return status;
    if (items[i]->ctx != ctx) return gm__bad_argument(err, op, "`items[%zu]` is of another context", i);
    if (items[i]->depth + 1 > value->depth) value->depth = items[i]->depth + 1;
    if (items[i]->bytes > INT64_MAX - value->bytes) return gm__bad_argument(err, op, "the items exceed 2^63-1 bytes");
    value->bytes += items[i]->bytes;
    value->nodes += items[i]->nodes;
    if (atomic_load(&items[i]->fell)) value->fell = true;
    if (value->depth > GM_VALUE_DEPTH_MOST || value->nodes > GM_VALUE_NODES_MOST) {
      return gm__bad_argument(err, op, "the tree has more than %d levels or %d nodes", GM_VALUE_DEPTH_MOST,
                              GM_VALUE_NODES_MOST);
    }
  }
  return GM_OK;
}

static gm_status tree_no_memory(const char *op, gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a value");
}

static int tree_name_order(const void *a, const void *b) {
  return strcmp(((const gm__value_name *)a)->text, ((const gm__value_name *)b)->text);
}

static gm_status tree_names(gm_value *value, const char *const *names, size_t count, const char *op, gm_error *err) {
  const gm_services *services = gm__context_services(value->ctx);
  value->names = gm__alloc_array(services, count, sizeof(char *));
  value->by_name = gm__alloc_array(services, count, sizeof(gm__value_name));
  if (!value->names || !value->by_name) return tree_no_memory(op, err);
  for (size_t i = 0; i < count; i++) {
    if (!names[i]) return gm__bad_argument(err, op, "`names[%zu]` is NULL", i);
    const size_t bytes = strnlen(names[i], GM_VALUE_NAME_MOST + 1);
    if (bytes > GM_VALUE_NAME_MOST) {
      return gm__bad_argument(err, op, "`names[%zu]` has more than %d bytes", i, GM_VALUE_NAME_MOST);
    }
    value->names[i] = gm__alloc(services, bytes + 1);
    if (!value->names[i]) return tree_no_memory(op, err);
    memcpy(value->names[i], names[i], bytes);
    value->by_name[i] = (gm__value_name){value->names[i], i};
  }
  if (count) qsort(value->by_name, count, sizeof(gm__value_name), tree_name_order);
  for (size_t i = 1; i < count; i++) {
    if (strcmp(value->by_name[i - 1].text, value->by_name[i].text) == 0) {
      return gm__bad_argument(err, op, "the name \"%.64s\" is there twice", value->by_name[i].text);
    }
  }
  return GM_OK;
}

/* Fills a new node. It holds no item after a failure. */
static gm_status tree_fill(gm_value *value, const char *const *names, gm_value *const *items, size_t count,
                           const char *op, gm_error *err) {
  gm_status status = tree_size(value->ctx, items, count, value, op, err);
  if (status) return status;
  value->items = gm__alloc_array(gm__context_services(value->ctx), count, sizeof(gm_value *));
  if (!value->items) return tree_no_memory(op, err);
  value->count = count;
  status = names ? tree_names(value, names, count, op, err) : GM_OK;
  for (size_t i = 0; i < count && !status; i++) {
    gm_value_retain(items[i]);
    value->items[i] = items[i];
  }
  return status;
}

static gm_status tree_make(gm_context *ctx, gm_value_form form, const char *const *names, gm_value *const *items,
                           size_t count, gm_value **out, const char *op, gm_error *err) {
  gm_status status = gm__context_check(ctx, op, err);
  if (status) return status;
  if (!out || (count && !items)) return gm__bad_argument(err, op, "`%s` is NULL", out ? "items" : "out");
  if (count >= GM_VALUE_NODES_MOST) return gm__bad_argument(err, op, "`count` is %zu, too many for a tree", count);
  gm_value *value = gm__value_new(ctx, form, 0);
  if (!value) return tree_no_memory(op, err);
  status = tree_fill(value, names, items, count, op, err);
  if (status) {
    gm_value_release(value, NULL);
    return status;
  }
  *out = value;
  return GM_OK;
}

gm_status gm_value_list(gm_context *ctx, gm_value *const *items, size_t count, gm_value **out, gm_error *err) {
  return tree_make(ctx, GM_VALUE_LIST, NULL, items, count, out, "gm_value_list", err);
}

gm_status gm_value_dict(gm_context *ctx, const char *const *names, gm_value *const *items, size_t count, gm_value **out,
                        gm_error *err) {
  static const char *const none[1] = {NULL};
  if (count && !names) return gm__bad_argument(err, "gm_value_dict", "`names` is NULL");
  return tree_make(ctx, GM_VALUE_DICT, names ? names : none, items, count, out, "gm_value_dict", err);
}

/* ---- items ---- */

gm_status gm_value_at(const gm_value *value, uint64_t index, const char **out_name, gm_value **out, gm_error *err) {
  static const char op[] = "gm_value_at";
  const gm_status status = gm__value_check(value, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  if (value->form == GM_VALUE_TENSOR) return gm__bad_argument(err, op, "`value` is a tensor");
  if (index >= value->count) {
    return gm__fail(err, GM_ERR_NOT_FOUND, op, "there is no item %llu of %zu", (unsigned long long)index, value->count);
  }
  if (out_name) *out_name = value->names ? value->names[index] : NULL;
  *out = value->items[index];
  return GM_OK;
}

gm_status gm_value_find(const gm_value *value, const char *name, gm_value **out, gm_error *err) {
  static const char op[] = "gm_value_find";
  const gm_status status = gm__value_check(value, op, err);
  if (status) return status;
  if (!name || !out) return gm__bad_argument(err, op, "`%s` is NULL", name ? "out" : "name");
  if (value->form != GM_VALUE_DICT) return gm__bad_argument(err, op, "`value` is no dictionary");
  const gm__value_name wanted = {name, 0};
  const gm__value_name *found =
      value->count ? bsearch(&wanted, value->by_name, value->count, sizeof wanted, tree_name_order) : NULL;
  if (!found) return gm__fail(err, GM_ERR_NOT_FOUND, op, "the dictionary has no \"%.200s\"", name);
  *out = value->items[found->index];
  return GM_OK;
}
