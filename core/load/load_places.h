/* Where each tensor of a load goes: its pool, and the request for its block. */
#ifndef GM_CORE_LOAD_LOAD_PLACES_H
#define GM_CORE_LOAD_LOAD_PLACES_H

#include "core/file/read_range.h"
#include "core/model/model.h"
#include "gm/load.h"

typedef struct gm__load_places {
  gm_load_place usual;              /* of every tensor where there is no `each` */
  gm_load_place *each;              /* by tensor; NULL: nobody chose */
  uint64_t count;                   /* tensors of the model */
  uint64_t tensors, bytes, largest; /* of what is loaded */
  bool slices;                      /* there are some */
} gm__load_places;

/* Asks params->place about each tensor. gm__load_places_end ends what it filled in, also after a failure. Errors:
 * OUT_OF_HOST_MEMORY, and those of gm_model_tensor. INVALID_ARGUMENT: a slice that its tensor has not. */
gm_status gm__load_places_make(gm__load_places *places, const gm_model *model, gm_pool *pool,
                               const gm_load_params *params, gm_error *err);
void gm__load_places_end(gm__load_places *places, const gm_services *services);

/* The place of a tensor. Its pool is NULL where the tensor is left out. */
static inline const gm_load_place *gm__load_place_of(const gm__load_places *places, uint64_t index) {
  return places->each ? &places->each[index] : &places->usual;
}

/* The bytes of a tensor that are loaded: where they lie in its file, and how many they are. */
void gm__load_place_range(const gm__load_places *places, const gm_model *model, uint64_t index, gm__read_range *out);

/* Host memory that `places` hold. */
static inline uint64_t gm__load_places_host_bytes(const gm__load_places *places) {
  return places->each ? places->count * sizeof *places->each : 0;
}

#endif
