/* The files of a model while it is loaded: one shard open at a time, its bytes by mapping or by reading. Not
 * thread-safe: one source, one thread. */
#ifndef GM_CORE_LOAD_LOAD_SOURCE_H
#define GM_CORE_LOAD_LOAD_SOURCE_H

#include "core/model/model.h"

typedef struct gm__load_source {
  const gm_model *model;
  bool mapped;    /* gm__load_source_get answers from a mapping, not from the buffer */
  uint32_t shard; /* the open one, valid when file.fd is not -1 */
  gm__input_file file;
  const void *mapping;   /* of `file`, NULL if not mapped */
  unsigned char *buffer; /* made when first needed */
  uint64_t buffer_bytes;
} gm__load_source;

/* Nothing is opened or allocated yet. `buffer_bytes` is the most that one call of get will ask for. */
void gm__load_source_init(gm__load_source *source, const gm_model *model, bool mapped, uint64_t buffer_bytes);

/* Give back file, mapping and buffer. Again is harmless. */
void gm__load_source_close(gm__load_source *source);

/* Make `shard` the open one. GM_ERR_IO when the file is another than gm_model_open saw, or has changed since. */
gm_status gm__load_source_open(gm__load_source *source, uint32_t shard, gm_error *err);

/* The bytes [at, at + bytes) of the open shard, valid until the next call. */
gm_status gm__load_source_get(gm__load_source *source, uint64_t at, uint64_t bytes, const void **out, gm_error *err);

/* As gm__load_source_get, into memory of the caller. */
gm_status gm__load_source_read(gm__load_source *source, uint64_t at, void *out, uint64_t bytes, gm_error *err);

/* The buffer, for the caller's own use until the next get. */
gm_status gm__load_source_buffer(gm__load_source *source, unsigned char **out, gm_error *err);

/* Fails for the reason in `inner`, with the tensor and its file before it. */
gm_status gm__load_fail(const gm_model *model, const gm__tensor *tensor, const gm_error *inner, gm_error *err);

/* Host memory this source holds. */
uint64_t gm__load_source_host_bytes(const gm__load_source *source);

#endif
