/* Insides of gm_model: the tables of all shards and two orders over them. Read-only after opening, so thread-safe. */
#ifndef GM_CORE_MODEL_MODEL_H
#define GM_CORE_MODEL_MODEL_H

#include "core/base/inner.h"
#include "core/base/input_file.h"
#include "core/model/contents.h"
#include "gm/model.h"

typedef struct gm__shard {
  char *path; /* owned */
  uint64_t path_bytes;
  gm__input_file file; /* closed; says which file it was, and in which state */
  gm__contents contents;
} gm__shard;

struct gm_model {
  gm_services services;
  gm__shard *shards;
  uint32_t shard_count;
  uint32_t tensor_count;
  const gm__tensor **tensors; /* shard by shard, in the order of the data */
  uint32_t *by_name;          /* their numbers sorted by name */
  uint64_t bytes;
  bool header_only; /* data may lie past the end of its file */
};

/* An empty model with room for `shard_count` shards, all zero but for their closed files. */
gm_status gm__model_create(const gm_services *services, gm_model **out, gm_error *err);
gm_status gm__model_add_shards(gm_model *model, uint64_t shard_count, gm_error *err);

/* Read shard `number`, whose path is there; its format is known by its first bytes. */
gm_status gm__model_read_shard(gm_model *model, uint32_t number, gm_error *err);

/* Replace the only shard by `shard_count` shards of which it is number `number`. On failure it stays. */
gm_status gm__model_spread(gm_model *model, uint32_t number, uint64_t shard_count, gm_error *err);

/* When every shard's contents are there: number the tensors and sort them by name. GM_ERR_FORMAT: a name is there
 * twice, or their number or bytes do not fit. */
gm_status gm__model_index_tensors(gm_model *model, gm_error *err);

/* A model from one file in memory, which is not kept; `name` stands for its path. */
gm_status gm__model_open_memory(const gm_services *services, const void *bytes, uint64_t length, const char *name,
                                bool header_only, gm_model **out, gm_error *err);

/* Where a tensor's data is in the file of its shard. */
GM__INNER uint64_t gm__model_file_offset(const gm_model *model, const gm__tensor *tensor);

/* A copy of `head`, `tail` joined, from the model's services. */
gm_status gm__model_join(const gm_services *services, const char *head, uint64_t head_length, const char *tail,
                         char **out, uint64_t *out_bytes, gm_error *err);

#endif
