/* Invariants: an array is accepted when its shape and type give the bytes behind its header, no more and no fewer. The
 * header is a literal of Python, of which three keys are read; nothing of it is run. */
#include "core/model/npy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/little.h"
#include "core/model/model_memory.h"

enum { NPY_VERSION_BYTES = 2, NPY_HEADER_MOST = 65535, NPY_KEYS = 3 };

/* The literal that is read. The first problem is kept; from then on every reader answers false. */
typedef struct npy_scan {
  const char *text;
  uint64_t length;
  uint64_t at;
  const char *problem; /* static text */
  gm_status status;    /* of the problem */
} npy_scan;

typedef struct npy_array {
  char type[8]; /* as the header has it, such as "<f4" */
  bool columns_first;
  uint32_t rank;
  uint64_t dims[GM_TENSOR_MAX_RANK];
} npy_array;

bool gm__npy_is(const unsigned char first[GM__NPY_MAGIC_BYTES]) {
  return memcmp(first, "\223NUMPY", GM__NPY_MAGIC_BYTES) == 0;
}

gm_status gm__npy_take(const gm__npy_source *source, uint64_t at, void *out, uint64_t bytes, gm_error *err) {
  if (source->file) return gm__input_file_read_at(source->file, source->path, at, out, bytes, err);
  if (bytes) memcpy(out, source->bytes + at, bytes);
  return GM_OK;
}

/* ---- the literal ---- */

static bool npy_problem(npy_scan *scan, gm_status status, const char *problem) {
  if (!scan->problem) {
    scan->problem = problem;
    scan->status = status;
  }
  return false;
}

static char npy_next(npy_scan *scan) {
  while (scan->at < scan->length && strchr(" \t\r\n", scan->text[scan->at]) && scan->text[scan->at]) scan->at++;
  return scan->at < scan->length ? scan->text[scan->at] : '\0';
}

/* Read over `wanted` where it comes next. */
static bool npy_maybe(npy_scan *scan, char wanted) {
  if (npy_next(scan) != wanted) return false;
  scan->at++;
  return true;
}

static bool npy_expect(npy_scan *scan, char wanted, const char *problem) {
  return npy_maybe(scan, wanted) || npy_problem(scan, GM_ERR_FORMAT, problem);
}

/* A string without escapes; one that is too long for `out` is cut. */
static bool npy_string(npy_scan *scan, char *out, size_t room) {
  const char quote = npy_next(scan);
  if (quote != '\'' && quote != '"') return npy_problem(scan, GM_ERR_FORMAT, "a string must come here");
  const char *begin = scan->text + scan->at + 1, *end = memchr(begin, quote, scan->length - scan->at - 1);
  if (!end) return npy_problem(scan, GM_ERR_FORMAT, "a string does not end");
  size_t bytes = (size_t)(end - begin);
  if (memchr(begin, '\\', bytes) || memchr(begin, '\0', bytes)) {
    return npy_problem(scan, GM_ERR_FORMAT, "a string has a backslash or a NUL");
  }
  scan->at += bytes + 2;
  bytes = bytes < room ? bytes : room - 1;
  memcpy(out, begin, bytes);
  out[bytes] = '\0';
  return true;
}

static bool npy_word(npy_scan *scan, const char *word) {
  const size_t bytes = strlen(word);
  if (npy_next(scan) != word[0] || scan->length - scan->at < bytes) return false;
  if (memcmp(scan->text + scan->at, word, bytes) != 0) return false;
  scan->at += bytes;
  return true;
}

static bool npy_bool(npy_scan *scan, bool *out) {
  *out = npy_word(scan, "True");
  return *out || npy_word(scan, "False") || npy_problem(scan, GM_ERR_FORMAT, "True or False must come here");
}

/* Digits; Python 2 wrote an L behind them. */
static bool npy_integer(npy_scan *scan, uint64_t *out) {
  const char first = npy_next(scan);
  if (first < '0' || first > '9') return npy_problem(scan, GM_ERR_FORMAT, "a dimension must be a number without sign");
  *out = 0;
  for (; scan->at < scan->length && scan->text[scan->at] >= '0' && scan->text[scan->at] <= '9'; scan->at++) {
    const uint64_t digit = (uint64_t)(scan->text[scan->at] - '0');
    if (*out > (UINT64_MAX - digit) / 10) return npy_problem(scan, GM_ERR_FORMAT, "a dimension is 2^64 or more");
    *out = *out * 10 + digit;
  }
  if (scan->at < scan->length && scan->text[scan->at] == 'L') scan->at++;
  return true;
}

static bool npy_shape(npy_scan *scan, npy_array *array) {
  array->rank = 0;
  if (!npy_expect(scan, '(', "the shape must begin with '('")) return false;
  while (!npy_maybe(scan, ')')) {
    uint64_t dim = 0;
    if (!npy_integer(scan, &dim)) return false;
    if (array->rank == GM_TENSOR_MAX_RANK) return npy_problem(scan, GM_ERR_NOT_SUPPORTED, "too many dimensions");
    array->dims[array->rank++] = dim;
    if (!npy_maybe(scan, ',') && npy_next(scan) != ')') return npy_expect(scan, ')', "the shape must end with ')'");
  }
  return true;
}

/* One key and its value. *seen has a bit for each key. */
static bool npy_pair(npy_scan *scan, npy_array *array, uint32_t *seen) {
  static const char *const keys[NPY_KEYS] = {"descr", "fortran_order", "shape"};
  char key[16];
  uint32_t which = 0;
  if (!npy_string(scan, key, sizeof key) || !npy_expect(scan, ':', "a ':' must come here")) return false;
  while (which < NPY_KEYS && strcmp(key, keys[which]) != 0) which++;
  if (which == NPY_KEYS) return npy_problem(scan, GM_ERR_FORMAT, "a key that is not of the format");
  if (*seen & 1u << which) return npy_problem(scan, GM_ERR_FORMAT, "a key is there twice");
  *seen |= 1u << which;
  if (which == 1) return npy_bool(scan, &array->columns_first);
  if (which == 2) return npy_shape(scan, array);
  if (npy_next(scan) == '[') return npy_problem(scan, GM_ERR_NOT_SUPPORTED, "an array of structures");
  return npy_string(scan, array->type, sizeof array->type);
}

static bool npy_literal(npy_scan *scan, npy_array *array) {
  uint32_t seen = 0;
  if (!npy_expect(scan, '{', "the header must begin with '{'")) return false;
  while (!npy_maybe(scan, '}')) {
    if (!npy_pair(scan, array, &seen)) return false;
    if (!npy_maybe(scan, ',') && npy_next(scan) != '}') return npy_expect(scan, '}', "a ',' or '}' must come here");
  }
  if (seen != (1u << NPY_KEYS) - 1) return npy_problem(scan, GM_ERR_FORMAT, "descr, fortran_order or shape is missing");
  if (npy_next(scan) || scan->at < scan->length) return npy_problem(scan, GM_ERR_FORMAT, "something follows the '}'");
  return true;
}

/* ---- what the array is ---- */

/* Types of the format that gm has, without the byte order. */
static const struct npy_type {
  const char *name;
  gm_dtype dtype;
} npy_types[] = {{"f8", GM_DTYPE_F64}, {"f4", GM_DTYPE_F32}, {"f2", GM_DTYPE_F16}, {"i8", GM_DTYPE_I64},
                 {"i4", GM_DTYPE_I32}, {"i2", GM_DTYPE_I16}, {"i1", GM_DTYPE_I8},  {"u8", GM_DTYPE_U64},
                 {"u4", GM_DTYPE_U32}, {"u2", GM_DTYPE_U16}, {"u1", GM_DTYPE_U8},  {"b1", GM_DTYPE_BOOL},
                 {"c8", GM_DTYPE_C64}};
enum { NPY_TYPES = sizeof npy_types / sizeof *npy_types };

const char *gm__npy_type(gm_dtype dtype) {
  for (size_t i = 0; i < NPY_TYPES; i++) {
    if (npy_types[i].dtype == dtype) return npy_types[i].name;
  }
  return NULL;
}

static bool npy_dtype(const char *name, gm_dtype *out) {
  for (size_t i = 0; i < NPY_TYPES; i++) {
    if (strcmp(name, npy_types[i].name) != 0) continue;
    *out = npy_types[i].dtype;
    return true;
  }
  return false;
}

/* Why gm does not read an array that its format allows. NULL: it does. */
static const char *npy_refuses(const npy_array *array, gm_dtype *out) {
  uint32_t wide = 0;
  for (uint32_t i = 0; i < array->rank; i++) wide += array->dims[i] != 1;
  if (!strchr("<|>=", array->type[0]) || !array->type[0]) return "its type has no byte order";
  if (array->type[1] == 'O') return "it holds objects of Python, which are pickled; gm reads no pickles";
  if (array->type[1] == 'V') return "its elements have no type; NumPy writes bfloat16 so. Save it as safetensors";
  if (!npy_dtype(array->type + 1, out)) return "gm has no such type";
  if (array->type[0] == '>' && array->type[2] != '1') return "its numbers have the high byte first";
  if (array->columns_first && wide > 1) {
    return "its columns come first (Fortran's order); save numpy.ascontiguousarray of it";
  }
  return NULL;
}

/* ---- from a file ---- */

GM_PRINTF(5, 6)
static gm_status npy_fail(const gm__npy_source *source, gm_status status, uint64_t at, gm_error *err,
                          const char *format, ...) {
  char reason[256];
  va_list args;
  va_start(args, format);
  vsnprintf(reason, sizeof reason, format, args);
  va_end(args);
  return gm__model_fail(err, status, source->path, at, "a NumPy array: %s", reason);
}

/* Where the literal lies: behind the magic, the version, and a length of 2 or 4 bytes. */
static gm_status npy_find_literal(const gm__npy_source *source, uint64_t at, uint64_t end, uint64_t *out_at,
                                  uint64_t *out_bytes, gm_error *err) {
  unsigned char first[GM__NPY_MAGIC_BYTES + NPY_VERSION_BYTES + 4] = {0};
  const uint64_t there = end - at < sizeof first ? end - at : sizeof first;
  gm_status status = gm__npy_take(source, at, first, there, err);
  if (status != GM_OK) return status;
  if (!gm__npy_is(first)) return npy_fail(source, GM_ERR_FORMAT, at, err, "it does not begin with \"\\x93NUMPY\"");
  const unsigned version = first[GM__NPY_MAGIC_BYTES];
  if (there > GM__NPY_MAGIC_BYTES && (version < 1 || version > 3)) {
    return npy_fail(source, GM_ERR_NOT_SUPPORTED, at + GM__NPY_MAGIC_BYTES, err, "version %u, gm knows 1 to 3",
                    version);
  }
  const uint32_t length_bytes = version == 1 ? 2 : 4, begin = GM__NPY_MAGIC_BYTES + NPY_VERSION_BYTES;
  *out_at = at + begin + length_bytes;
  *out_bytes = gm__le_get(first + begin, length_bytes);
  if (there < begin + length_bytes || *out_bytes > end - *out_at) {
    return npy_fail(source, GM_ERR_FORMAT, at + begin, err, "its header is cut off");
  }
  if (*out_bytes <= NPY_HEADER_MOST) return GM_OK;
  return npy_fail(source, GM_ERR_NOT_SUPPORTED, at + begin, err, "a header of %llu bytes, gm reads %d",
                  (unsigned long long)*out_bytes, (int)NPY_HEADER_MOST);
}

static gm_status npy_read_literal(const gm__npy_source *source, uint64_t at, uint64_t bytes, npy_array *out,
                                  gm_error *err) {
  void *text = NULL;
  gm_status status = gm__model_alloc(source->services, bytes, 1, &text, err);
  if (status == GM_OK) status = gm__npy_take(source, at, text, bytes, err);
  npy_scan scan = {.text = text ? text : "", .length = bytes};
  if (status == GM_OK && !npy_literal(&scan, out)) {
    status = npy_fail(source, scan.status, at + scan.at, err, "%s", scan.problem);
  }
  gm__model_release(source->services, text, bytes, 1);
  return status;
}

/* Type, shape and bytes; the data begin at `at` and end at `end`. */
static gm_status npy_fill(const gm__npy_source *source, const npy_array *array, uint64_t at, uint64_t end, bool cut,
                          gm__tensor *out, gm_error *err) {
  uint64_t elements = 0, bytes = 0;
  const char *why = npy_refuses(array, &out->dtype);
  if (why) return npy_fail(source, GM_ERR_NOT_SUPPORTED, at, err, "%s (\"%s\")", why, array->type);
  if (!gm__shape_elements(array->dims, array->rank, &elements) || gm_dtype_bytes(out->dtype, elements, &bytes)) {
    return npy_fail(source, GM_ERR_FORMAT, at, err, "it has 2^64 bytes or more");
  }
  if (cut ? bytes > UINT64_MAX - at : bytes != end - at) {
    return npy_fail(source, GM_ERR_FORMAT, at, err, "its shape and type are %llu bytes, %llu follow",
                    (unsigned long long)bytes, (unsigned long long)(end - at));
  }
  out->rank = array->rank;
  out->begin = at;
  out->bytes = bytes;
  return GM_OK;
}

gm_status gm__npy_header(const gm__npy_source *source, uint64_t at, uint64_t end, bool cut, gm__tensor *out,
                         uint64_t dims[GM_TENSOR_MAX_RANK], gm_error *err) {
  npy_array array = {0};
  uint64_t text_at = 0, text_bytes = 0;
  gm_status status = npy_find_literal(source, at, end, &text_at, &text_bytes, err);
  if (status == GM_OK) status = npy_read_literal(source, text_at, text_bytes, &array, err);
  if (status == GM_OK) status = npy_fill(source, &array, text_at + text_bytes, end, cut, out, err);
  memcpy(dims, array.dims, sizeof array.dims);
  return status;
}

/* ---- a file of its own ---- */

/* The name of the file, without folder and ".npy". */
static gm__json_text npy_name(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  size_t length = strlen(name);
  if (length > 4 && strcmp(name + length - 4, ".npy") == 0) length -= 4;
  return (gm__json_text){.text = name, .length = length};
}

gm_status gm__npy_read(const gm__npy_source *source, bool header_only, gm__contents *out, gm_error *err) {
  gm__contents contents = {.header_only = header_only};
  gm__tensor tensor = {.name = npy_name(source->path)};
  uint64_t dims[GM_TENSOR_MAX_RANK];
  gm_status status = gm__npy_header(source, 0, source->length, header_only, &tensor, dims, err);
  if (status == GM_OK) status = gm__contents_only(source->services, &contents, &tensor, dims, err);
  return gm__contents_finish(source->services, status, &contents, out);
}
