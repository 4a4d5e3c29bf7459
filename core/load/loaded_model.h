/* Insides of gm_loaded_model: one block per tensor, all zero where there is none (yet). */
#ifndef GM_CORE_LOAD_LOADED_MODEL_H
#define GM_CORE_LOAD_LOADED_MODEL_H

#include "core/load/load_places.h"

struct gm_loaded_model {
  gm_services services;
  gm_block *blocks; /* by the number of the tensor */
  gm_pool **pools;  /* by the number of the tensor; NULL: left out */
  uint64_t count;
  bool slices; /* some blocks have a part of their tensor */
};

/* A handle with room for `count` blocks. */
gm_status gm__loaded_model_create(const gm_services *services, uint64_t count, gm_loaded_model **out, gm_error *err);

/* Host memory of a handle. */
static inline uint64_t gm__loaded_model_host_bytes(uint64_t count) {
  return sizeof(gm_loaded_model) + count * (sizeof(gm_block) + sizeof(gm_pool *));
}

/* Undo a load that failed. `places` has the streams of its requests. NULL is fine. */
void gm__loaded_model_undo(gm_loaded_model *loaded, const gm__load_places *places);

#endif
