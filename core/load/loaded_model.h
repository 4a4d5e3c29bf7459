/* Insides of gm_loaded_model: one block per tensor, all zero where there is none (yet). */
#ifndef GM_CORE_LOAD_LOADED_MODEL_H
#define GM_CORE_LOAD_LOADED_MODEL_H

#include "core/load/load_places.h"

/* A file that blocks lie in. */
typedef struct gm__load_map {
  void *at;            /* NULL: it is not mapped */
  gm__input_file file; /* closed: its size */
} gm__load_map;

struct gm_loaded_model {
  gm_services services;
  gm_block *blocks; /* by the number of the tensor */
  gm_pool **pools;  /* by the number of the tensor; NULL: left out */
  uint64_t count;
  gm__load_map *maps; /* by shard; NULL: no block lies in a file */
  uint32_t map_count;
  bool slices; /* some blocks have a part of their tensor */
  /* A load that keeps what has arrived when it fails has these: */
  uint64_t *there;   /* by the number of the tensor: so many bytes of its block had arrived; NULL: it keeps nothing */
  uint64_t left;     /* bytes that have not arrived, of all tensors; 0: it is whole */
  uint64_t identity; /* of the files */
  gm__load_places places; /* while it is loaded, and where it is not whole */
  bool unfinished;        /* it is not whole, or nobody has said so yet */
};

/* A handle with room for `count` blocks. `keeps`: it may stay though its load failed. */
gm_status gm__loaded_model_create(const gm_services *services, uint64_t count, bool keeps, gm_loaded_model **out,
                                  gm_error *err);

/* Host memory of a handle. */
static inline uint64_t gm__loaded_model_host_bytes(uint64_t count, bool keeps) {
  return sizeof(gm_loaded_model) + count * (sizeof(gm_block) + sizeof(gm_pool *) + (keeps ? sizeof(uint64_t) : 0));
}

/* Undo a load that failed. */
void gm__loaded_model_undo(gm_loaded_model *loaded);

#endif
