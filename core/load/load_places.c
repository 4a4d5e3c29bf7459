/* Invariant: the callback sees each tensor once. What it chose is kept, so both steps of a load use it. */
#include "core/load/load_places.h"

#include "core/model/contents.h"
#include "core/model/model_memory.h"

static void places_count(gm__load_places *places, const gm__tensor *tensor) {
  places->tensors++;
  places->bytes += tensor->bytes;
  if (tensor->bytes > places->largest) places->largest = tensor->bytes;
}

static gm_status places_ask(gm__load_places *places, const gm_model *model, uint64_t index,
                            const gm_load_params *params, gm_error *err) {
  gm_tensor_info info = {.struct_size = sizeof info};
  const gm_status status = gm_model_tensor(model, index, &info, err);
  if (status) return status;
  gm_load_place *place = &places->each[index];
  *place = places->usual;
  place->request.bytes = info.bytes;
  params->place(params->user, index, &info, place);
  return GM_OK;
}

gm_status gm__load_places_make(gm__load_places *places, const gm_model *model, gm_pool *pool,
                               const gm_load_params *params, gm_error *err) {
  void *each = NULL;
  *places = (gm__load_places){.usual = {.pool = pool, .request = params->request}, .count = model->tensor_count};
  gm_status status = GM_OK;
  if (params->place) status = gm__model_alloc(&model->services, places->count, sizeof *places->each, &each, err);
  places->each = each;
  for (uint64_t i = 0; i < places->count && !status; i++) {
    if (places->each) status = places_ask(places, model, i, params, err);
    if (!status && gm__load_place_of(places, i)->pool) places_count(places, model->tensors[i]);
  }
  return status;
}

void gm__load_places_end(gm__load_places *places, const gm_services *services) {
  gm__model_release(services, places->each, places->count, sizeof *places->each);
  places->each = NULL;
}
