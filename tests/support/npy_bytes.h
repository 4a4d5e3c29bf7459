/* Files of NumPy for tests, made in memory. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_NPY_BYTES_H
#define GM_TESTS_SUPPORT_NPY_BYTES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/model.h"
#include "gm/model.h"

enum { NPY_BYTES_ROOM = 8192 };

typedef struct npy_bytes {
  unsigned char at[NPY_BYTES_ROOM];
  size_t length;
} npy_bytes;

static inline void npy_add(npy_bytes *file, const void *what, size_t count) {
  assert_true(count <= NPY_BYTES_ROOM - file->length);
  memcpy(file->at + file->length, what, count);
  file->length += count;
}

static inline void npy_add_number(npy_bytes *file, uint64_t number, size_t count) {
  for (size_t i = 0; i < count; i++, number >>= 8) {
    const unsigned char byte = (unsigned char)number;
    npy_add(file, &byte, 1);
  }
}

/* An array: its header, and `data` bytes 1, 2, 3, … */
static inline void npy_add_array(npy_bytes *file, unsigned version, const char *literal, size_t data) {
  npy_add(file, "\223NUMPY", 6);
  npy_add_number(file, version, 2);
  npy_add_number(file, strlen(literal), version == 1 ? 2 : 4);
  npy_add(file, literal, strlen(literal));
  for (size_t i = 1; i <= data; i++) npy_add_number(file, i, 1);
}

static inline gm_status npy_open(const gm_services *services, const npy_bytes *file, bool header_only, gm_model **out,
                                 gm_error *err) {
  void *exact = malloc(file->length ? file->length : 1); /* so that a read past the end is seen */
  assert_non_null(exact);
  memcpy(exact, file->at, file->length);
  const gm_status status =
      gm__model_open_memory(services, exact, file->length, "folder/wte.npy", header_only, out, err);
  free(exact);
  return status;
}

static inline gm_tensor_info npy_tensor_of(const gm_model *model, uint64_t index) {
  gm_tensor_info info = {.struct_size = sizeof info};
  assert_int_equal(gm_model_tensor(model, index, &info, NULL), GM_OK);
  return info;
}

static inline void npy_check_refused(const npy_bytes *file, gm_status wanted, const char *words) {
  gm_model *model = NULL;
  gm_error err = {0};
  const gm_status status = npy_open(NULL, file, false, &model, &err);
  if (status != wanted || !strstr(err.message, words)) fail_msg("%s: %s", gm_status_name(status), err.message);
  assert_null(model);
}

#endif
