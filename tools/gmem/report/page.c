#include "tools/gmem/report/page.h"

#include "tools/gmem/report/page_data.h"
#include "tools/gmem/report/page_pack.h"
#include "tools/gmem/report/page_parts.h"

/* Three bytes become four signs. */
static void page_write_three(FILE *file, const unsigned char *in, size_t count) {
  static const char signs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  unsigned bits = (unsigned)in[0] << 16;
  if (count > 1) bits |= (unsigned)in[1] << 8;
  if (count > 2) bits |= in[2];
  char out[4] = {signs[bits >> 18], signs[bits >> 12 & 63], '=', '='};
  if (count > 1) out[2] = signs[bits >> 6 & 63];
  if (count > 2) out[3] = signs[bits & 63];
  fwrite(out, 1, sizeof out, file);
}

static void page_write_base64(FILE *file, const page_bytes *bytes) {
  for (size_t i = 0; i < bytes->used; i += 3) page_write_three(file, bytes->data + i, bytes->used - i);
}

/* The template ends in front of the word that says how the data is packed. */
static void page_write(FILE *file, const page_bytes *data, bool packed) {
  fwrite(page_before_data, 1, page_before_data_bytes, file);
  fputs(packed ? "deflate\">" : "none\">", file);
  page_write_base64(file, data);
  fwrite(page_after_data, 1, page_after_data_bytes, file);
}

gm_status report_page_write(FILE *file, const char *name, const report_events *events, gm_error *err) {
  page_bytes data, packed;
  gm_status status = page_data_make(name, events, &data, err);
  if (status == GM_OK && page_pack(&data, &packed)) {
    page_write(file, &packed, true);
    page_bytes_free(&packed);
  } else if (status == GM_OK) {
    page_write(file, &data, false);
  }
  page_bytes_free(&data);
  return status;
}
