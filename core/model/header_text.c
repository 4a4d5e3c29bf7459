#include "core/model/header_text.h"

#include "core/base/alloc.h"
#include "core/base/error.h"

gm_status gm__header_make(const gm__file_table *table, uint64_t most,
                          void (*write)(gm__header_text *text, const gm__file_table *table), char **out,
                          uint64_t *out_bytes, gm_error *err) {
  gm__header_text text = {NULL, 0};
  write(&text, table);
  if (text.bytes > most) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, table->op,
                    "a header of this format has at most %llu bytes, this one has more", (unsigned long long)most);
  }
  text.at = gm__alloc(table->services, (size_t)text.bytes);
  if (!text.at) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, table->op, "no host memory for a file's header");
  *out = text.at;
  *out_bytes = text.bytes;
  text.bytes = 0;
  write(&text, table);
  return GM_OK;
}
