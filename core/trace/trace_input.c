/* Invariants: a read gives bytes as long as there are any, so 0 bytes mean the end. The end inside a gzip member is an
 * error. At most one chunk of packed bytes is held. */
#include "core/trace/trace_lines.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"

/* ---- bytes as they are in the file ---- */

static gm_status input_raw(gm__trace_input *input, void *out, size_t capacity, size_t *out_bytes, gm_error *err) {
  uint64_t left = input->length - input->at;
  size_t bytes = left < capacity ? (size_t)left : capacity;
  if (input->memory) {
    if (bytes) memcpy(out, input->memory + input->at, bytes);
  } else if (bytes) {
    gm_status status = gm__input_file_read_at(&input->file, input->path, input->at, out, bytes, err);
    if (status != GM_OK) return status;
  }
  input->at += bytes;
  *out_bytes = bytes;
  return GM_OK;
}

/* ---- gzip ---- */

static gm_status input_refill(gm__trace_input *input, gm_error *err) {
  size_t bytes = 0;
  gm_status status = input_raw(input, input->packed, GM__TRACE_CHUNK_BYTES, &bytes, err);
  input->packed_from = 0;
  input->packed_to = bytes;
  return status;
}

/* One call of zlib. *out_done: there is nothing more to come. */
static gm_status input_step(gm__trace_input *input, gm__gzip_step *step, bool *out_done, gm_error *err) {
  if (input->packed_from == input->packed_to) {
    gm_status status = input_refill(input, err);
    if (status != GM_OK) return status;
  }
  step->in = input->packed + input->packed_from;
  step->in_bytes = input->packed_to - input->packed_from;
  gm_status status = gm__trace_gzip_step(input->gzip, input->path, step, err);
  if (status != GM_OK) return status;
  input->packed_from += step->taken;
  *out_done = step->given == 0 && step->taken == 0;
  if (!*out_done || step->at_end) return GM_OK;
  return gm__fail(err, GM_ERR_FORMAT, "gm_trace_next", "%.300s: the gzip file is cut", input->path);
}

static gm_status input_unpack(gm__trace_input *input, void *out, size_t capacity, size_t *out_bytes, gm_error *err) {
  gm__gzip_step step = {.out = out, .out_bytes = capacity};
  bool done = false;
  while (!done && step.given == 0) {
    gm_status status = input_step(input, &step, &done, err);
    if (status != GM_OK) return status;
  }
  *out_bytes = step.given;
  return GM_OK;
}

gm_status gm__trace_input_read(gm__trace_input *input, void *out, size_t capacity, size_t *out_bytes, gm_error *err) {
  return input->gzip ? input_unpack(input, out, capacity, out_bytes, err)
                     : input_raw(input, out, capacity, out_bytes, err);
}

/* ---- opening ---- */

static gm_status input_look(gm__trace_input *input, bool *out_packed, gm_error *err) {
  unsigned char head[2] = {0};
  size_t bytes = 0;
  gm_status status = input_raw(input, head, sizeof head, &bytes, err);
  input->at = 0;
  *out_packed = bytes == sizeof head && head[0] == 0x1f && head[1] == 0x8b;
  return status;
}

static gm_status input_begin(gm__trace_input *input, gm_error *err) {
  bool packed = false;
  gm_status status = input_look(input, &packed, err);
  if (status != GM_OK || !packed) return status;
  status = gm__trace_gzip_create(input->services, input->path, &input->gzip, err);
  if (status != GM_OK) return status;
  input->packed = gm__alloc(input->services, GM__TRACE_CHUNK_BYTES);
  if (input->packed) return GM_OK;
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_trace_open", "%.300s: no host memory to read it", input->path);
}

gm_status gm__trace_input_open(const gm_services *services, const char *path, const void *memory, uint64_t length,
                               gm__trace_input *out, gm_error *err) {
  gm__trace_input input = {.services = services, .path = path, .memory = memory, .length = length, .file = {.fd = -1}};
  if (!memory) {
    gm_status status = gm__input_file_open(path, &input.file, err);
    if (status != GM_OK) return status;
    input.length = input.file.bytes;
  }
  gm_status status = input_begin(&input, err);
  if (status == GM_OK) {
    *out = input;
  } else {
    gm__trace_input_close(&input);
  }
  return status;
}

void gm__trace_input_close(gm__trace_input *input) {
  gm__trace_gzip_destroy(input->gzip);
  gm__release(input->services, input->packed, GM__TRACE_CHUNK_BYTES);
  gm__input_file_close(&input->file);
  input->gzip = NULL;
  input->packed = NULL;
}
