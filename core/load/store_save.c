/* From a store into a file. Invariants: the file of the path is as it was until all bytes of the side file are on the
 * disk. All tensors are described before the file is opened. A value that no longer fits its description ends the call.
 */
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/load/save_format.h"
#include "core/store/look.h"
#include "gm/store_file.h"

enum { ROAD_ROWS_LEAST = 64 };

static const char road_op[] = "gm_store_save";

typedef struct road_out {
  gm_store *store;
  const gm_services *services;
  size_t prefix_bytes; /* with the slash behind it: where names begin in keys */
  gm__file_tensor *rows;
  size_t count, capacity;
  gm_status listed;
  const gm__save_format *format;
} road_out;

/* ---- which tensors ---- */

static char *road_out_copy(const road_out *road, const char *key) {
  const size_t bytes = strlen(key) + 1;
  char *copy = gm__alloc(road->services, bytes);
  if (copy) memcpy(copy, key, bytes);
  return copy;
}

/* The key that a name is the end of. */
static const char *road_out_key_of(const road_out *road, const gm__file_tensor *row) {
  return row->name - road->prefix_bytes;
}

static bool road_out_grow(road_out *road) {
  const size_t more = road->capacity ? 2 * road->capacity : ROAD_ROWS_LEAST;
  if (road->count < road->capacity) return true;
  if (!gm__grow(road->services, &road->rows, road->capacity * sizeof *road->rows, more * sizeof *road->rows)) {
    return false;
  }
  road->capacity = more;
  return true;
}

static bool road_out_visit(void *user, const char *key) {
  road_out *road = user;
  if (road->prefix_bytes && strlen(key) < road->prefix_bytes) { /* the prefix itself */
    road->listed = GM_ERR_NOT_SUPPORTED;
    return false;
  }
  char *copy = road_out_grow(road) ? road_out_copy(road, key) : NULL;
  if (!copy) {
    road->listed = GM_ERR_OUT_OF_HOST_MEMORY;
    return false;
  }
  road->rows[road->count++] = (gm__file_tensor){.name = copy + road->prefix_bytes};
  return true;
}

static gm_status road_out_list(road_out *road, const char *prefix, gm_error *err) {
  const gm_status status = gm_store_list(road->store, prefix, road_out_visit, road, err);
  if (status) return status;
  if (road->listed == GM_ERR_NOT_SUPPORTED) {
    return gm__fail(err, road->listed, road_op, "\"%.300s\" is a key itself, and would have no name in the file",
                    prefix);
  }
  if (road->listed) return gm__fail(err, road->listed, road_op, "no host memory for the keys");
  if (road->count) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_FOUND, road_op, "no key is below \"%.300s\"", prefix ? prefix : "");
}

static void road_out_drop(const road_out *road, const gm__file_tensor *row) {
  char *key = (char *)(uintptr_t)road_out_key_of(road, row);
  gm__release(road->services, key, strlen(key) + 1);
}

static void road_out_end(road_out *road) {
  for (size_t i = 0; i < road->count; i++) road_out_drop(road, &road->rows[i]);
  gm__release(road->services, road->rows, road->capacity * sizeof *road->rows);
}

/* ---- what they are ---- */

/* The reason in `inner`, with the key before it. */
static gm_status road_out_fail(const road_out *road, const gm__file_tensor *row, const gm_error *inner, gm_error *err) {
  return gm__fail_native(err, inner->status, inner->native_code, road_op, "key \"%.150s\": %s",
                         road_out_key_of(road, row), inner->message);
}

static gm_status road_out_describe(const road_out *road, const gm_value_info *info, gm__file_tensor *row,
                                   gm_error *err) {
  row->dtype = info->dtype;
  row->rank = info->rank;
  row->bytes = info->bytes;
  memcpy(row->shape, info->shape, sizeof row->shape);
  const char *why =
      info->form == GM_VALUE_TENSOR ? road->format->refuses(row) : "is a list or dictionary: a file has tensors alone";
  return why ? gm__fail(err, GM_ERR_NOT_SUPPORTED, road_op, "it %s", why) : GM_OK;
}

static gm_status road_out_check(const gm_value_info *info, const gm__file_tensor *row, gm_error *err) {
  if (info->form == GM_VALUE_TENSOR && info->dtype == row->dtype && info->rank == row->rank &&
      !memcmp(info->shape, row->shape, sizeof row->shape)) {
    return GM_OK;
  }
  return gm__fail(err, GM_ERR_BUSY, road_op, "it got another type or shape during the call");
}

static gm_status road_out_look(road_out *road, gm__file_tensor *row, gm_value **out, gm_value_info *out_info,
                               gm_error *err) {
  gm_status status = gm__store_look(road->store, road_out_key_of(road, row), out, err);
  if (!status) status = gm_value_describe(*out, out_info, err);
  return status;
}

/* A key that was deleted after the list was made has no row. */
static gm_status road_out_describe_all(road_out *road, gm_error *err) {
  size_t kept = 0;
  gm_status status = GM_OK;
  for (size_t i = 0; i < road->count; i++) {
    gm__file_tensor *row = &road->rows[i];
    gm_value_info info = {.struct_size = sizeof info};
    gm_value *value = NULL;
    gm_error inner = {0};
    gm_status found = status ? GM_OK : road_out_look(road, row, &value, &info, &inner);
    if (!status && !found) found = road_out_describe(road, &info, row, &inner);
    gm_value_release(value, NULL);
    if (!status && found && found != GM_ERR_NOT_FOUND) status = road_out_fail(road, row, &inner, err);
    if (found == GM_ERR_NOT_FOUND) {
      road_out_drop(road, row);
    } else {
      road->rows[kept++] = *row;
    }
  }
  road->count = kept;
  if (status || kept) return status;
  return gm__fail(err, GM_ERR_NOT_FOUND, road_op, "the keys were deleted during the call");
}

/* ---- their bytes ---- */

static gm_status road_out_read(void *value, uint64_t at, void *to, uint64_t bytes, gm_error *err) {
  return gm_value_read(value, at, to, bytes, NULL, err);
}

static gm_status road_out_tensor(road_out *road, gm__file_tensor *row, gm__save_sink *sink, gm_error *err) {
  gm_value_info info = {.struct_size = sizeof info};
  gm_value *value = NULL;
  gm_status status = road_out_look(road, row, &value, &info, err);
  if (status == GM_ERR_NOT_FOUND) status = gm__fail(err, GM_ERR_BUSY, road_op, "it was deleted during the call");
  if (!status) status = road_out_check(&info, row, err);
  if (!status) status = gm__save_sink_fill(sink, info.bytes, road_out_read, value, err);
  gm_value_release(value, NULL);
  return status;
}

static gm_status road_out_data(void *user, size_t row, gm__save_sink *sink, gm_error *err) {
  road_out *road = user;
  gm_error inner = {0};
  const gm_status status = road_out_tensor(road, &road->rows[row], sink, &inner);
  return status ? road_out_fail(road, &road->rows[row], &inner, err) : GM_OK;
}

static gm_status road_out_file(road_out *road, const char *path, gm_error *err) {
  gm__save_figures figures;
  const gm__save_source source = {
      .table = {.services = road->services, .op = road_op, .tensors = road->rows, .count = road->count},
      .data = road_out_data,
      .user = road};
  return gm__save_whole(&source, road->format, path, &figures, err);
}

gm_status gm_store_save(gm_store *store, const char *prefix, const char *path, gm_error *err) {
  GM__UNCANCELLED();
  char normal[GM_STORE_KEY_MOST + 1];
  gm_status status = gm__store_look_prefix(store, prefix, normal, road_op, err);
  if (status) return status;
  if (!path || !*path) return gm__bad_argument(err, road_op, "`path` is %s", path ? "empty" : "NULL");
  road_out road = {.store = store, .services = gm__store_look_services(store), .format = gm__save_format_of(path)};
  road.prefix_bytes = *normal ? strlen(normal) + 1 : 0;
  status = road_out_list(&road, normal, err);
  if (!status) status = road_out_describe_all(&road, err);
  if (!status) status = road_out_file(&road, path, err);
  road_out_end(&road);
  return status;
}
