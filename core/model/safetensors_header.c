/* Invariants: a tensor enters the table only when it has passed every check that needs no other tensor. The table grows
 * with the entries that were really there, never by a number that the header states. Keys of a tensor that the format
 * does not know are read over, as the reference reader does. */
#include "core/model/safetensors.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/model/model_memory.h"

typedef struct header_reader {
  const gm_services *services;
  const char *path;
  gm__contents *contents;
  gm__json_scan scan;
} header_reader;

typedef struct header_entry {
  gm__tensor tensor;
  gm__json_text dtype;
  uint64_t dims[GM_TENSOR_MAX_RANK];
  uint64_t offsets[2];
  uint64_t offsets_at;
  uint32_t seen; /* header_field bits */
  bool rank_too_high;
} header_entry;

typedef enum header_field { HEADER_DTYPE = 1, HEADER_SHAPE = 2, HEADER_OFFSETS = 4, HEADER_ALL = 7 } header_field;

typedef struct header_dtype {
  const char *name;
  gm_dtype dtype;
} header_dtype;

/* The types of the format (its reference reader at 0.8.0); gm_dtype has more. */
static const header_dtype header_dtypes[] = {
    {"BOOL", GM_DTYPE_BOOL},
    {"U8", GM_DTYPE_U8},
    {"I8", GM_DTYPE_I8},
    {"F8_E4M3", GM_DTYPE_F8_E4M3},
    {"F8_E5M2", GM_DTYPE_F8_E5M2},
    {"F8_E8M0", GM_DTYPE_F8_E8M0},
    {"F8_E4M3FNUZ", GM_DTYPE_F8_E4M3FNUZ},
    {"F8_E5M2FNUZ", GM_DTYPE_F8_E5M2FNUZ},
    {"F4", GM_DTYPE_F4},
    {"F6_E2M3", GM_DTYPE_F6_E2M3},
    {"F6_E3M2", GM_DTYPE_F6_E3M2},
    {"I16", GM_DTYPE_I16},
    {"U16", GM_DTYPE_U16},
    {"F16", GM_DTYPE_F16},
    {"BF16", GM_DTYPE_BF16},
    {"I32", GM_DTYPE_I32},
    {"U32", GM_DTYPE_U32},
    {"F32", GM_DTYPE_F32},
    {"I64", GM_DTYPE_I64},
    {"U64", GM_DTYPE_U64},
    {"F64", GM_DTYPE_F64},
    {"C64", GM_DTYPE_C64},
};

const char *gm__safetensors_dtype(gm_dtype dtype) {
  for (size_t i = 0; i < sizeof header_dtypes / sizeof header_dtypes[0]; i++) {
    if (header_dtypes[i].dtype == dtype) return header_dtypes[i].name;
  }
  return NULL;
}

/* Types below a byte are packed anywhere. */
uint64_t gm__safetensors_align(gm_dtype dtype) {
  uint32_t elements = 1, bytes = 1;
  gm_dtype_block(dtype, &elements, &bytes);
  return elements == 1 ? bytes : 1;
}

static uint64_t header_file_at(uint64_t at) { return GM__SAFETENSORS_LENGTH_BYTES + at; }

static gm_status header_problem(const header_reader *reader, gm_error *err) {
  return gm__model_fail(err, GM_ERR_FORMAT, reader->path, header_file_at(reader->scan.problem_at), "%s",
                        reader->scan.problem);
}

/* A failure about one tensor, at `at` in the header. */
GM_PRINTF(6, 7)
static gm_status header_fail(const header_reader *reader, const header_entry *entry, gm_status status, uint64_t at,
                             gm_error *err, const char *format, ...) {
  char reason[256];
  va_list args;
  va_start(args, format);
  vsnprintf(reason, sizeof reason, format, args);
  va_end(args);
  return gm__model_fail(err, status, reader->path, header_file_at(at), "tensor \"%.80s\": %s", entry->tensor.name.text,
                        reason);
}

/* ---- reading one tensor ---- */

static bool header_read_shape(header_reader *reader, header_entry *entry) {
  gm__json_scan *scan = &reader->scan;
  if (!gm__json_array_begin(scan)) return false;
  while (gm__json_array_next(scan)) {
    uint64_t dim = 0;
    if (!gm__json_integer(scan, &dim)) return false;
    if (entry->tensor.rank == GM_TENSOR_MAX_RANK) {
      entry->rank_too_high = true;
      continue;
    }
    entry->dims[entry->tensor.rank++] = dim;
  }
  return !scan->problem;
}

static bool header_read_offsets(header_reader *reader, header_entry *entry) {
  gm__json_scan *scan = &reader->scan;
  entry->offsets_at = gm__json_next_at(scan);
  uint64_t count = 0, extra = 0;
  if (!gm__json_array_begin(scan)) return false;
  while (gm__json_array_next(scan)) {
    if (!gm__json_integer(scan, count < 2 ? &entry->offsets[count] : &extra)) return false;
    count++;
  }
  if (count == 2) return !scan->problem;
  return gm__json_problem(scan, entry->offsets_at, "data_offsets must be two numbers");
}

static header_field header_which_field(const gm__json_text *key) {
  if (gm__json_text_is(key, "dtype")) return HEADER_DTYPE;
  if (gm__json_text_is(key, "shape")) return HEADER_SHAPE;
  if (gm__json_text_is(key, "data_offsets")) return HEADER_OFFSETS;
  return (header_field)0;
}

static bool header_read_field(header_reader *reader, const gm__json_text *key, header_entry *entry) {
  header_field field = header_which_field(key);
  if (entry->seen & field) return gm__json_problem(&reader->scan, key->at, "a key of a tensor is there twice");
  entry->seen |= field;
  switch (field) {
    case HEADER_DTYPE: return gm__json_string(&reader->scan, &entry->dtype);
    case HEADER_SHAPE: return header_read_shape(reader, entry);
    case HEADER_OFFSETS: return header_read_offsets(reader, entry);
    default: return gm__json_skip(&reader->scan);
  }
}

static bool header_read_entry(header_reader *reader, header_entry *entry) {
  gm__json_text key;
  if (!gm__json_object_begin(&reader->scan)) return false;
  while (gm__json_object_next(&reader->scan, &key)) {
    if (!header_read_field(reader, &key, entry)) return false;
  }
  return !reader->scan.problem;
}

/* ---- checking one tensor ---- */

static gm_status header_check_dtype(const header_reader *reader, header_entry *entry, gm_error *err) {
  for (size_t i = 0; i < sizeof header_dtypes / sizeof header_dtypes[0]; i++) {
    if (!gm__json_text_is(&entry->dtype, header_dtypes[i].name)) continue;
    entry->tensor.dtype = header_dtypes[i].dtype;
    return GM_OK;
  }
  return header_fail(reader, entry, GM_ERR_FORMAT, entry->dtype.at, err, "unknown dtype \"%.40s\"", entry->dtype.text);
}

/* Bytes of the shape: false when they pass 2^64 - 1 or end within a byte. */
static bool header_shape_bytes(const header_entry *entry, uint64_t *out) {
  uint64_t elements = 0;
  return gm__shape_elements(entry->dims, entry->tensor.rank, &elements) &&
         gm_dtype_bytes(entry->tensor.dtype, elements, out) == GM_OK;
}

static gm_status header_check_size(const header_reader *reader, header_entry *entry, gm_error *err) {
  uint64_t bytes = 0, begin = entry->offsets[0], end = entry->offsets[1], data = reader->contents->data_bytes;
  uint64_t at = entry->offsets_at;
  if (begin > end || end > data) {
    return header_fail(reader, entry, GM_ERR_FORMAT, at, err,
                       "data_offsets %llu to %llu are outside the %llu bytes of data", (unsigned long long)begin,
                       (unsigned long long)end, (unsigned long long)data);
  }
  if (!header_shape_bytes(entry, &bytes)) {
    return header_fail(reader, entry, GM_ERR_FORMAT, at, err,
                       "its shape is no whole number of bytes below 2^64 (dtype %.40s)", entry->dtype.text);
  }
  if (bytes != end - begin) {
    return header_fail(reader, entry, GM_ERR_FORMAT, at, err, "dtype and shape make %llu bytes, data_offsets %llu",
                       (unsigned long long)bytes, (unsigned long long)(end - begin));
  }
  entry->tensor.begin = begin;
  entry->tensor.bytes = bytes;
  return GM_OK;
}

static gm_status header_check_entry(const header_reader *reader, header_entry *entry, gm_error *err) {
  if (entry->seen != HEADER_ALL) {
    const char *missing = entry->seen & HEADER_DTYPE ? entry->seen & HEADER_SHAPE ? "data_offsets" : "shape" : "dtype";
    return header_fail(reader, entry, GM_ERR_FORMAT, entry->tensor.name.at, err, "has no %s", missing);
  }
  if (entry->rank_too_high) {
    return header_fail(reader, entry, GM_ERR_NOT_SUPPORTED, entry->tensor.name.at, err, "has more than %d dimensions",
                       (int)GM_TENSOR_MAX_RANK);
  }
  gm_status status = header_check_dtype(reader, entry, err);
  return status == GM_OK ? header_check_size(reader, entry, err) : status;
}

static gm_status header_tensor(header_reader *reader, const gm__json_text *name, gm_error *err) {
  header_entry entry = {.tensor = {.name = *name}};
  if (!header_read_entry(reader, &entry)) return header_problem(reader, err);
  gm_status status = header_check_entry(reader, &entry, err);
  return status == GM_OK ? gm__contents_add_tensor(reader->services, reader->contents, &entry.tensor, entry.dims, err)
                         : status;
}

/* ---- metadata ---- */

static gm_status header_read_metadata(header_reader *reader, gm_error *err) {
  gm__metadata pair;
  gm__json_scan *scan = &reader->scan;
  if (gm__json_null(scan)) return GM_OK; /* as the reference reader takes it: none */
  gm__json_object_begin(scan);
  while (gm__json_object_next(scan, &pair.key) && gm__json_string(scan, &pair.value)) {
    gm_status status = gm__contents_add_metadata(reader->services, reader->contents, &pair, err);
    if (status != GM_OK) return status;
  }
  return scan->problem ? header_problem(reader, err) : GM_OK;
}

static int metadata_compare(const void *items, uint32_t a, uint32_t b) {
  const gm__metadata *pairs = items;
  return gm__json_text_compare(&pairs[a].key, &pairs[b].key);
}

static gm_status header_check_metadata(const header_reader *reader, gm_error *err) {
  const gm__contents *contents = reader->contents;
  uint32_t *order = NULL, count = (uint32_t)contents->metadata_count;
  gm_status status = gm__model_order(reader->services, contents->metadata, count, metadata_compare, &order, err);
  if (status != GM_OK) return status;
  for (uint32_t i = 1; i < count && status == GM_OK; i++) {
    const gm__json_text *key = &contents->metadata[order[i]].key;
    if (metadata_compare(contents->metadata, order[i - 1], order[i]) != 0) continue;
    status = gm__model_fail(err, GM_ERR_FORMAT, reader->path, header_file_at(key->at), "key \"%.80s\" is there twice",
                            key->text);
  }
  gm__model_release(reader->services, order, count, sizeof(uint32_t));
  return status;
}

/* ---- the whole ---- */

static gm_status header_read_all(header_reader *reader, gm_error *err) {
  gm__json_scan *scan = &reader->scan;
  gm__json_text key;
  bool metadata_seen = false;
  gm__json_object_begin(scan);
  while (gm__json_object_next(scan, &key)) {
    bool is_metadata = gm__json_text_is(&key, "__metadata__");
    if (is_metadata && metadata_seen) gm__json_problem(scan, key.at, "__metadata__ is there twice");
    metadata_seen = metadata_seen || is_metadata;
    gm_status status = is_metadata ? header_read_metadata(reader, err) : header_tensor(reader, &key, err);
    if (status != GM_OK) return status;
  }
  return gm__json_end(scan) ? GM_OK : header_problem(reader, err);
}

gm_status gm__safetensors_header_parse(const gm_services *services, const char *path, gm__contents *contents,
                                       gm_error *err) {
  header_reader reader = {.services = services, .path = path, .contents = contents};
  gm__json_scan_init(&reader.scan, contents->header, contents->header_bytes);
  gm_status status = header_read_all(&reader, err);
  return status == GM_OK ? header_check_metadata(&reader, err) : status;
}
