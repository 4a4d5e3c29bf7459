/* The records are those of PKWARE's APPNOTE 6.3: 4.3.7 (member), 4.3.12 (list), 4.3.14 to 4.3.16 (ends), 4.5.3 (64
 * bits).
 */
#include "core/model/npy_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/model/npy.h"

enum {
  NPY_ALIGN = 64,
  NPY_FIRST = 10, /* magic, version 1.0, length of two bytes */
  NPZ_VERSION = 45,
  NPZ_NAMES_ARE_UTF8 = 0x800,
  NPZ_DATE = 0x21, /* 1 January 1980, so that equal tensors make equal files */
  NPZ_END64_REST = 44
};

typedef struct npz_out {
  char *at;
} npz_out;

const char *gm__npy_refuses(const gm__file_tensor *tensor) {
  return gm__npy_type(tensor->dtype) ? NULL : "has a type that NumPy does not know";
}

size_t gm__npy_begin(const gm__file_tensor *tensor, uint64_t at, char out[GM__NPY_BEGIN_MOST]) {
  char *text = out + NPY_FIRST;
  const char *type = gm__npy_type(tensor->dtype);
  const char order = type[1] == '1' ? '|' : '<'; /* one byte has no order */
  size_t length = (size_t)snprintf(text, GM__NPY_BEGIN_MOST - NPY_FIRST,
                                   "{'descr': '%c%s', 'fortran_order': False, 'shape': (", order, type);
  for (uint32_t i = 0; i < tensor->rank; i++) {
    length += (size_t)snprintf(text + length, GM__NPY_BEGIN_MOST - NPY_FIRST - length, "%s%" PRIu64 "%s", i ? " " : "",
                               tensor->shape[i], i + 1 < tensor->rank || tensor->rank == 1 ? "," : "");
  }
  length += (size_t)snprintf(text + length, GM__NPY_BEGIN_MOST - NPY_FIRST - length, "), }");
  while ((at + NPY_FIRST + length + 1) % NPY_ALIGN) text[length++] = ' ';
  text[length++] = '\n';
  memcpy(out, "\223NUMPY\001\000", NPY_FIRST - 2);
  out[NPY_FIRST - 2] = (char)(unsigned char)(length & 0xff);
  out[NPY_FIRST - 1] = (char)(unsigned char)(length >> 8);
  return NPY_FIRST + length;
}

/* ---- records ---- */

static void npz_number(npz_out *out, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; i++, number >>= 8) *out->at++ = (char)(unsigned char)number;
}

static void npz_text(npz_out *out, const char *text, size_t bytes) {
  memcpy(out->at, text, bytes);
  out->at += bytes;
}

/* Version, names in UTF-8, not compressed, date, checksum, sizes (elsewhere), and the length of the name. */
static void npz_common(npz_out *out, const gm__npz_member *member) {
  npz_number(out, NPZ_VERSION, 2);
  npz_number(out, NPZ_NAMES_ARE_UTF8, 2);
  npz_number(out, 0, 4);
  npz_number(out, NPZ_DATE, 2);
  npz_number(out, member->crc, 4);
  npz_number(out, UINT32_MAX, 4);
  npz_number(out, UINT32_MAX, 4);
  npz_number(out, strlen(member->name) + 4, 2);
}

static void npz_name(npz_out *out, const gm__npz_member *member) {
  npz_text(out, member->name, strlen(member->name));
  npz_text(out, ".npy", 4);
}

/* The head of the field of 64-bit numbers, and both sizes. */
static void npz_sizes(npz_out *out, const gm__npz_member *member, uint64_t field_bytes) {
  npz_number(out, 1, 2);
  npz_number(out, field_bytes, 2);
  npz_number(out, member->bytes, 8);
  npz_number(out, member->bytes, 8);
}

size_t gm__npz_record(const gm__npz_member *member, char out[GM__NPZ_RECORD_MOST]) {
  npz_out text = {out};
  npz_text(&text, "PK\003\004", 4);
  npz_common(&text, member);
  npz_number(&text, 20, 2);
  npz_name(&text, member);
  npz_sizes(&text, member, 16);
  return (size_t)(text.at - out);
}

size_t gm__npz_entry(const gm__npz_member *member, char out[GM__NPZ_RECORD_MOST]) {
  npz_out text = {out};
  npz_text(&text, "PK\001\002", 4);
  npz_number(&text, NPZ_VERSION, 2);
  npz_common(&text, member);
  npz_number(&text, 28, 2);
  npz_number(&text, 0, 2 + 2 + 2 + 4);
  npz_number(&text, UINT32_MAX, 4);
  npz_name(&text, member);
  npz_sizes(&text, member, 24);
  npz_number(&text, member->at, 8);
  return (size_t)(text.at - out);
}

size_t gm__npz_end(uint64_t count, uint64_t at, uint64_t bytes, char out[GM__NPZ_RECORD_MOST]) {
  npz_out text = {out};
  npz_text(&text, "PK\006\006", 4);
  npz_number(&text, NPZ_END64_REST, 8);
  npz_number(&text, NPZ_VERSION, 2);
  npz_number(&text, NPZ_VERSION, 2);
  npz_number(&text, 0, 4);
  npz_number(&text, 0, 4);
  npz_number(&text, count, 8);
  npz_number(&text, count, 8);
  npz_number(&text, bytes, 8);
  npz_number(&text, at, 8);
  npz_text(&text, "PK\006\007", 4);
  npz_number(&text, 0, 4);
  npz_number(&text, at + bytes, 8);
  npz_number(&text, 1, 4);
  npz_text(&text, "PK\005\006", 4);
  npz_number(&text, 0, 4);
  npz_number(&text, UINT16_MAX, 2);
  npz_number(&text, UINT16_MAX, 2);
  npz_number(&text, UINT32_MAX, 4);
  npz_number(&text, UINT32_MAX, 4);
  npz_number(&text, 0, 2);
  return (size_t)(text.at - out);
}
