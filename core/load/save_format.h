/* The formats in which gm saves tensors: safetensors, an array of NumPy, and an archive of arrays. A format says what
 * it cannot hold, and writes a file of all tensors; the caller brings their data. One thread. */
#ifndef GM_CORE_LOAD_SAVE_FORMAT_H
#define GM_CORE_LOAD_SAVE_FORMAT_H

#include "core/load/save_file.h"
#include "core/model/file_tensor.h"
#include "gm/services.h"

/* The file's bytes, one piece after the other. */
typedef struct gm__save_sink {
  gm__save_file *file;
  uint64_t at;
  uint32_t crc; /* of what was written since somebody set it to 0 */
} gm__save_sink;

/* Write the next bytes. */
gm_status gm__save_sink_write(gm__save_sink *sink, const void *bytes, uint64_t count, gm_error *err);

/* The tensors to save. `data` writes all bytes of tensor `row` to the sink. */
typedef struct gm__save_source {
  const gm_services *services;
  gm__file_tensor *rows;
  size_t count;
  gm_status (*data)(void *user, size_t row, gm__save_sink *sink, gm_error *err);
  void *user;
} gm__save_source;

typedef struct gm__save_format {
  const char *end; /* of the names of its files */
  /* Why the format cannot hold a tensor, for the end of a sentence. NULL: it can. */
  const char *(*refuses)(const char *name, gm_dtype dtype);
  /* Write the whole file. May bring the rows into another order. Errors: those of `data` and of the file,
   * NOT_SUPPORTED: the tensors together are too much for the format. OUT_OF_HOST_MEMORY. */
  gm_status (*write)(const gm__save_source *source, gm__save_sink *sink, gm_error *err);
} gm__save_format;

/* The format of a path, by its end; safetensors where it has none of the others. */
const gm__save_format *gm__save_format_of(const char *path);

#endif
