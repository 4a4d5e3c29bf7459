/* The files of a model while it is loaded. Those are opened of which something is loaded. One thread. */
#ifndef GM_CORE_LOAD_LOAD_FILES_H
#define GM_CORE_LOAD_LOAD_FILES_H

#include "core/base/inner.h"
#include "core/file/file.h"
#include "core/model/model.h"

typedef struct gm__load_files {
  const gm_model *model;
  gm_way way;
  gm_file **each; /* by shard; NULL: not open */
} gm__load_files;

/* None is open yet. gm__load_files_end ends what it filled in, also after a failure. OUT_OF_HOST_MEMORY. */
GM__INNER gm_status gm__load_files_make(gm__load_files *files, const gm_model *model, gm_way way, gm_error *err);
GM__INNER void gm__load_files_end(gm__load_files *files);

/* The file of a shard, which is opened if it is not open. IO: it is another than gm_model_open saw, or has changed
 * since. Other errors: those of gm_file_open. */
GM__INNER gm_status gm__load_files_get(gm__load_files *files, uint32_t shard, gm_file **out, gm_error *err);

/* How many are open. */
uint64_t gm__load_files_open(const gm__load_files *files);

/* A number that is another one when the files of a model are other ones, or have changed. */
uint64_t gm__load_files_identity(const gm_model *model);

/* Why a faster way was not taken; "": nothing to say. */
const char *gm__load_files_why(const gm__load_files *files);

/* Host memory that they take. */
uint64_t gm__load_files_host_bytes(const gm__load_files *files);

/* Fails for the reason in `inner`, with the tensor and its file before it. */
GM__INNER gm_status gm__load_fail(const gm_model *model, const gm__tensor *tensor, const gm_error *inner,
                                  gm_error *err);

#endif
