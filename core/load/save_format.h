/* The formats in which gm saves tensors: safetensors, GGUF, an array of NumPy, and an archive of arrays. A format says
 * what it cannot hold, and writes a file of all tensors; the caller brings their data. One thread. */
#ifndef GM_CORE_LOAD_SAVE_FORMAT_H
#define GM_CORE_LOAD_SAVE_FORMAT_H

#include "core/base/inner.h"
#include "core/load/save_sink.h"
#include "core/model/file_tensor.h"

/* The source of a save. `data` writes all bytes of the table's tensor `row` to the sink. */
typedef struct gm__save_source {
  gm__file_table table;
  gm_status (*data)(void *user, size_t row, gm__save_sink *sink, gm_error *err);
  /* Called before the file gets its name, and after a failure: what `data` lent is what it was. Its failure is that of
   * the save. NULL: nobody asks. */
  gm_status (*stands)(void *user, gm_error *err);
  void *user;
  uint64_t piece_bytes; /* of one write; 0: GM__SAVE_PIECE_BYTES */
  gm__ring *ring;       /* gives the memory for them; NULL: the services */
  bool sums;            /* a checksum file is wanted */
} gm__save_source;

typedef struct gm__save_format {
  const char *end; /* of the names of its files */
  /* Why the format cannot hold a tensor, for the end of a sentence. NULL: it can. */
  const char *(*refuses)(const gm__file_tensor *tensor);
  /* Whether it can hold a value. */
  bool (*holds)(const gm__file_value *value);
  /* Write the whole file. May bring the tensors into another order. Errors: those of `data` and of the file,
   * NOT_SUPPORTED: the tensors together are too much for the format. OUT_OF_HOST_MEMORY. */
  gm_status (*write)(const gm__save_source *source, gm__save_sink *sink, gm_error *err);
} gm__save_format;

/* The format of a path, by its end; safetensors where it has none of the others. */
GM__INNER const gm__save_format *gm__save_format_of(const char *path);

typedef struct gm__save_figures {
  gm__save_writer_info writer;
  uint64_t file_bytes;
} gm__save_figures;

/* Write a source's file, on the disk, and give it the name `path`. Errors: those of the format and of side_file.h. */
GM__INNER gm_status gm__save_whole(const gm__save_source *source, const gm__save_format *format, const char *path,
                                   gm__save_figures *out, gm_error *err);

#endif
