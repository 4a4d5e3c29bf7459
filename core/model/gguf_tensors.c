/* Invariants: a tensor that is kept has a known type, whole blocks in each row, fewer than 2^64 bytes and an aligned
 * place. In the order of by_place each begins at or behind the end of the one before. */
#include "core/model/gguf_values.h"

#include <string.h>

enum { GGUF_RANK_MAX = 4 };                 /* of ggml */
enum { GGUF_NAME_MAX = 65535 };             /* ggml has 63, the format no limit */
enum { GGUF_TENSOR_LEAST = 4 + 4 + 4 + 8 }; /* a name's length, a rank, a type, an offset */

typedef struct gguf_tensor_type {
  const char *removed; /* its name where the format has taken it out */
  gm_dtype dtype;
  bool known;
} gguf_tensor_type;

/* The type with each of ggml's numbers. */
static const gguf_tensor_type gguf_tensor_types[] = {
    [0] = {NULL, GM_DTYPE_F32, true},
    [1] = {NULL, GM_DTYPE_F16, true},
    [2] = {NULL, GM_DTYPE_Q4_0, true},
    [3] = {NULL, GM_DTYPE_Q4_1, true},
    [4] = {"Q4_2", 0, false},
    [5] = {"Q4_3", 0, false},
    [6] = {NULL, GM_DTYPE_Q5_0, true},
    [7] = {NULL, GM_DTYPE_Q5_1, true},
    [8] = {NULL, GM_DTYPE_Q8_0, true},
    [9] = {NULL, GM_DTYPE_Q8_1, true},
    [10] = {NULL, GM_DTYPE_Q2_K, true},
    [11] = {NULL, GM_DTYPE_Q3_K, true},
    [12] = {NULL, GM_DTYPE_Q4_K, true},
    [13] = {NULL, GM_DTYPE_Q5_K, true},
    [14] = {NULL, GM_DTYPE_Q6_K, true},
    [15] = {NULL, GM_DTYPE_Q8_K, true},
    [16] = {NULL, GM_DTYPE_IQ2_XXS, true},
    [17] = {NULL, GM_DTYPE_IQ2_XS, true},
    [18] = {NULL, GM_DTYPE_IQ3_XXS, true},
    [19] = {NULL, GM_DTYPE_IQ1_S, true},
    [20] = {NULL, GM_DTYPE_IQ4_NL, true},
    [21] = {NULL, GM_DTYPE_IQ3_S, true},
    [22] = {NULL, GM_DTYPE_IQ2_S, true},
    [23] = {NULL, GM_DTYPE_IQ4_XS, true},
    [24] = {NULL, GM_DTYPE_I8, true},
    [25] = {NULL, GM_DTYPE_I16, true},
    [26] = {NULL, GM_DTYPE_I32, true},
    [27] = {NULL, GM_DTYPE_I64, true},
    [28] = {NULL, GM_DTYPE_F64, true},
    [29] = {NULL, GM_DTYPE_IQ1_M, true},
    [30] = {NULL, GM_DTYPE_BF16, true},
    [31] = {"Q4_0_4_4", 0, false},
    [32] = {"Q4_0_4_8", 0, false},
    [33] = {"Q4_0_8_8", 0, false},
    [34] = {NULL, GM_DTYPE_TQ1_0, true},
    [35] = {NULL, GM_DTYPE_TQ2_0, true},
    [36] = {"IQ4_NL_4_4", 0, false},
    [37] = {"IQ4_NL_4_8", 0, false},
    [38] = {"IQ4_NL_8_8", 0, false},
    [39] = {NULL, GM_DTYPE_MXFP4, true},
    [40] = {NULL, GM_DTYPE_NVFP4, true},
    [41] = {NULL, GM_DTYPE_Q1_0, true},
    [42] = {NULL, GM_DTYPE_Q2_0, true},
};

enum { GGUF_TENSOR_TYPES = sizeof gguf_tensor_types / sizeof *gguf_tensor_types };

bool gm__gguf_tensor_type(gm_dtype dtype, uint32_t *out) {
  for (uint32_t i = 0; i < GGUF_TENSOR_TYPES; i++) {
    *out = i;
    if (gguf_tensor_types[i].known && gguf_tensor_types[i].dtype == dtype) return true;
  }
  return false;
}

typedef struct gguf_tensor {
  gm__tensor tensor;
  uint64_t dims[GGUF_RANK_MAX]; /* outermost first, as gm has them; the file has the innermost first */
} gguf_tensor;

/* `text` in the header now: it may have moved since the name was read. */
static const char *tensor_name(const gm__gguf_reader *reader, const gguf_tensor *entry) {
  return reader->contents->header + entry->tensor.name.at;
}

/* ---- one tensor ---- */

static bool tensor_read_shape(gm__gguf_reader *reader, gguf_tensor *entry) {
  uint64_t start = reader->at;
  uint32_t rank = 0;
  if (!gm__gguf_u32(reader, "the rank of a tensor", &rank)) return false;
  if (rank > GGUF_RANK_MAX) {
    return gm__gguf_fail(reader, GM_ERR_NOT_SUPPORTED, start, "tensor \"%.80s\" has %u dimensions, more than %d",
                         tensor_name(reader, entry), rank, (int)GGUF_RANK_MAX);
  }
  entry->tensor.rank = rank;
  for (uint32_t i = rank; i-- > 0;) {
    if (!gm__gguf_size(reader, "a dimension", &entry->dims[i])) return false;
  }
  return true;
}

static bool tensor_read_type(gm__gguf_reader *reader, gguf_tensor *entry) {
  uint64_t start = reader->at;
  uint32_t type = 0;
  if (!gm__gguf_u32(reader, "the type of a tensor", &type)) return false;
  bool listed = type < GGUF_TENSOR_TYPES;
  if (!listed) {
    return gm__gguf_fail(reader, GM_ERR_FORMAT, start, "tensor \"%.80s\": unknown type %u", tensor_name(reader, entry),
                         type);
  }
  const gguf_tensor_type *row = &gguf_tensor_types[type];
  entry->tensor.dtype = row->dtype;
  if (row->known) return true;
  return gm__gguf_fail(reader, GM_ERR_NOT_SUPPORTED, start, "tensor \"%.80s\": type %s was taken out of the format",
                       tensor_name(reader, entry), row->removed);
}

static bool tensor_check_size(gm__gguf_reader *reader, gguf_tensor *entry) {
  gm__tensor *tensor = &entry->tensor;
  uint32_t block = 1;
  uint64_t elements = 0, row = tensor->rank > 0 ? entry->dims[tensor->rank - 1] : 1;
  gm_dtype_block(tensor->dtype, &block, NULL);
  bool whole = row % block == 0 && gm__shape_elements(entry->dims, tensor->rank, &elements) &&
               gm_dtype_bytes(tensor->dtype, elements, &tensor->bytes) == GM_OK;
  if (whole) return true;
  return gm__gguf_fail(reader, GM_ERR_FORMAT, tensor->name.at,
                       "tensor \"%.80s\": rows of %llu are no whole blocks of %u (%s), or it has 2^64 bytes or more",
                       tensor_name(reader, entry), (unsigned long long)row, block, gm_dtype_name(tensor->dtype));
}

static bool tensor_read_place(gm__gguf_reader *reader, gguf_tensor *entry, uint64_t alignment) {
  gm__tensor *tensor = &entry->tensor;
  uint64_t start = reader->at;
  if (!gm__gguf_u64(reader, "the offset of a tensor", &tensor->begin)) return false;
  if (tensor->begin % alignment == 0) return true;
  return gm__gguf_fail(reader, GM_ERR_FORMAT, start,
                       "tensor \"%.80s\" begins at %llu of the data, no multiple of the alignment %llu",
                       tensor_name(reader, entry), (unsigned long long)tensor->begin, (unsigned long long)alignment);
}

static bool tensor_read(gm__gguf_reader *reader, uint64_t alignment) {
  gguf_tensor entry = {0};
  bool good = gm__gguf_name(reader, "the name of a tensor", GGUF_NAME_MAX, &entry.tensor.name) &&
              tensor_read_shape(reader, &entry) && tensor_read_type(reader, &entry) &&
              tensor_check_size(reader, &entry) && tensor_read_place(reader, &entry, alignment);
  if (!good) return false;
  return gm__gguf_keep(
      reader, gm__contents_add_tensor(reader->services, reader->contents, &entry.tensor, entry.dims, reader->err));
}

bool gm__gguf_read_tensors(gm__gguf_reader *reader, uint64_t count, uint64_t alignment) {
  if (!gm__gguf_room(reader, count, GGUF_TENSOR_LEAST, "tensors")) return false;
  for (uint64_t i = 0; i < count; i++) {
    if (!tensor_read(reader, alignment)) return false;
  }
  for (uint64_t i = 0; i < count; i++) {
    gm__json_text *name = &reader->contents->tensors[i].name;
    name->text = reader->contents->header + name->at;
  }
  return true;
}

/* ---- all of them ---- */

static bool tensor_check_place(gm__gguf_reader *reader, const gm__tensor *tensor, uint64_t taken) {
  uint64_t data = reader->contents->data_bytes;
  if (tensor->bytes == 0) return true;
  if (tensor->begin > data || tensor->bytes > data - tensor->begin) {
    return gm__gguf_fail(reader, GM_ERR_FORMAT, tensor->name.at,
                         "tensor \"%.80s\" of %llu bytes at %llu ends outside the %llu bytes of data: it is cut off",
                         tensor->name.text, (unsigned long long)tensor->bytes, (unsigned long long)tensor->begin,
                         (unsigned long long)data);
  }
  if (tensor->begin >= taken) return true;
  return gm__gguf_fail(reader, GM_ERR_FORMAT, tensor->name.at,
                       "tensor \"%.80s\" begins at %llu of the data, inside the tensor that ends at %llu",
                       tensor->name.text, (unsigned long long)tensor->begin, (unsigned long long)taken);
}

bool gm__gguf_place_tensors(gm__gguf_reader *reader) {
  gm__contents *contents = reader->contents;
  uint64_t taken = 0;
  if (!gm__gguf_keep(reader, gm__contents_order(reader->services, contents, reader->err))) return false;
  for (uint64_t i = 0; i < contents->tensor_count; i++) {
    const gm__tensor *tensor = &contents->tensors[contents->by_place[i]];
    if (!tensor_check_place(reader, tensor, taken)) return false;
    if (tensor->bytes > 0) taken = tensor->begin + tensor->bytes;
    contents->tensor_bytes += tensor->bytes;
  }
  return true;
}
