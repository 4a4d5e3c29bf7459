/* The index of a sharded model: which tensor is in which file. Read and checked here; the shards are the model's. */
#ifndef GM_CORE_MODEL_SHARD_INDEX_H
#define GM_CORE_MODEL_SHARD_INDEX_H

#include "core/model/json_scan.h"
#include "gm/services.h"
#include "gm/status.h"

enum { GM__SHARD_INDEX_MAX_BYTES = 100000000 }; /* the same bound as a header's */

typedef struct gm__shard_entry {
  gm__json_text tensor;
  gm__json_text file;
  uint32_t shard;
} gm__shard_entry;

typedef struct gm__shard_index {
  char *text; /* owns the strings */
  uint64_t text_bytes;
  gm__shard_entry *entries;
  uint64_t count, capacity;
  uint32_t *by_tensor; /* entries sorted by the tensor's name */
  uint32_t *by_file;   /* entries sorted by file; shards are numbered in this order */
  uint32_t shard_count;
} gm__shard_index;

/* Read the index file at `path`. GM_ERR_FORMAT refuses an index without a weight_map or with an empty one, and a
 * tensor that is there twice. It refuses a file name that is empty or leads out of the folder ("/", "\\", "." or
 * ".."). On failure *out is all zero. */
gm_status gm__shard_index_read(const gm_services *services, const char *path, gm__shard_index *out, gm_error *err);

/* Like gm__shard_index_read, from text in memory, which is copied. */
gm_status gm__shard_index_parse(const gm_services *services, const void *bytes, uint64_t length, const char *path,
                                gm__shard_index *out, gm_error *err);

void gm__shard_index_free(const gm_services *services, gm__shard_index *index);

#endif
