#include "core/trace/trace_output.h"

#include "core/base/alloc.h"
#include "core/base/error.h"

gm_status gm__trace_output_open(const gm_services *services, const gm__output_file *file, const char *path, bool packed,
                                gm__trace_output *out, gm_error *err) {
  gm__trace_output output = {.file = file, .path = path, .services = services};
  gm_status status = packed ? gm__trace_pack_create(services, path, &output.pack, err) : GM_OK;
  if (status) return status;
  output.text = gm__alloc(services, (size_t)2 * GM__TRACE_OUTPUT_BYTES);
  if (!output.text) {
    gm__trace_pack_destroy(output.pack);
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_pool_record_end", "%.300s: no host memory to write it", path);
  }
  *out = output;
  return GM_OK;
}

static void output_write(gm__trace_output *output, const char *bytes, size_t count) {
  if (!output->failure.status) {
    gm__output_file_write_at(output->file, output->path, output->written, bytes, count, &output->failure);
  }
  output->written += count;
}

static void output_pack(gm__trace_output *output, bool last) {
  char *packed = output->text + GM__TRACE_OUTPUT_BYTES;
  size_t taken;
  gm__trace_pack_feed(output->pack, output->text, output->used);
  do {
    taken = gm__trace_pack_take(output->pack, packed, GM__TRACE_OUTPUT_BYTES, last);
    output_write(output, packed, taken);
  } while (taken == GM__TRACE_OUTPUT_BYTES);
}

static void output_flush(gm__trace_output *output, bool last) {
  if (output->pack) {
    output_pack(output, last);
  } else {
    output_write(output, output->text, output->used);
  }
  output->used = 0;
}

static void output_make_room(gm__trace_output *output, size_t bytes) {
  if (output->used + bytes > GM__TRACE_OUTPUT_BYTES) output_flush(output, false);
}

static char *output_decimal(char *at, uint64_t number) {
  char digits[20];
  int count = 0;
  do digits[count++] = (char)('0' + number % 10);
  while (number /= 10);
  while (count > 0) *at++ = digits[--count];
  return at;
}

void gm__trace_output_numbers(gm__trace_output *output, char kind, const uint64_t *numbers, uint32_t count) {
  output_make_room(output, GM__TRACE_OUTPUT_NUMBERS);
  char *at = output->text + output->used;
  *at++ = kind;
  for (uint32_t i = 0; i < count; i++) {
    *at++ = ' ';
    at = output_decimal(at, numbers[i]);
  }
  *at++ = '\n';
  output->used = (size_t)(at - output->text);
}

void gm__trace_output_text(gm__trace_output *output, const char *text, size_t length) {
  output_make_room(output, length + 1);
  char *at = output->text + output->used;
  for (size_t i = 0; i < length; i++) {
    const unsigned char c = (unsigned char)text[i];
    *at++ = c < ' ' || c == 0x7f ? '?' : (char)c;
  }
  *at++ = '\n';
  output->used = (size_t)(at - output->text);
}

gm_status gm__trace_output_end(gm__trace_output *output, gm_error *err) {
  output_flush(output, true);
  if (output->failure.status && err) *err = output->failure;
  return output->failure.status;
}

void gm__trace_output_close(gm__trace_output *output) {
  gm__release(output->services, output->text, (size_t)2 * GM__TRACE_OUTPUT_BYTES);
  gm__trace_pack_destroy(output->pack);
}
