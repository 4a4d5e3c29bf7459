/* Insides of gm_loaded_model: one block per tensor, all zero where there is none (yet). */
#ifndef GM_CORE_LOAD_LOADED_MODEL_H
#define GM_CORE_LOAD_LOADED_MODEL_H

#include "gm/load.h"

struct gm_loaded_model {
  gm_services services;
  gm_pool *pool;
  gm_block *blocks; /* by the number of the tensor */
  uint64_t count;
};

/* A handle with room for `count` blocks. */
gm_status gm__loaded_model_create(const gm_services *services, gm_pool *pool, uint64_t count, gm_loaded_model **out,
                                  gm_error *err);

/* Undo a load that failed. `stream`: the stream of its requests. NULL is fine. */
void gm__loaded_model_undo(gm_loaded_model *loaded, gm_stream *stream);

#endif
