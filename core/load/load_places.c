/* Invariant: the callback sees each tensor once. gm keeps its choice, so both steps of a load use it. */
#include "core/load/load_places.h"

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/model/contents.h"
#include "core/model/model_memory.h"
#include "gm/dtype.h"

/* ---- parts of tensors ---- */

/* A slice as bytes. */
typedef struct place_part {
  uint64_t first; /* from that of the tensor on */
  uint64_t run, step, runs;
} place_part;

/* Says why a slice is none of its tensor. NULL: it is one. */
static const char *place_part_of(const gm_tensor_slice *slice, gm_dtype dtype, uint32_t rank, const uint64_t *shape,
                                 place_part *out) {
  uint64_t inner = 1;
  uint32_t elements = 1, bytes = 1;
  *out = (place_part){.runs = 1};
  if (slice->dim >= rank) return "the tensor has no such dimension";
  const uint64_t all = shape[slice->dim];
  if (slice->first > all || slice->count > all - slice->first) return "it ends behind the tensor";
  for (uint32_t i = 0; i < slice->dim; i++) out->runs *= shape[i];
  for (uint32_t i = slice->dim + 1; i < rank; i++) inner *= shape[i];
  (void)gm_dtype_block(dtype, &elements, &bytes);
  const uint64_t first = slice->first * inner, run = slice->count * inner, step = all * inner;
  if (first % elements || run % elements || (out->runs > 1 && step % elements)) {
    return "it does not begin and end at blocks of the tensor's type";
  }
  out->first = first / elements * bytes;
  out->run = run / elements * bytes;
  out->step = step / elements * bytes;
  return NULL;
}

static const uint64_t *place_shape(const gm_model *model, const gm__tensor *tensor) {
  return tensor->rank ? model->shards[tensor->shard].contents.dims + tensor->shape_at : NULL;
}

void gm__load_place_range(const gm__load_places *places, const gm_model *model, uint64_t index, gm__read_range *out) {
  const gm__tensor *tensor = model->tensors[index];
  const gm_tensor_slice *slice = &gm__load_place_of(places, index)->slice;
  place_part part;
  *out = (gm__read_range){.at = gm__model_file_offset(model, tensor), .bytes = tensor->bytes};
  if (!slice->count || !tensor->bytes) return;
  (void)place_part_of(slice, tensor->dtype, tensor->rank, place_shape(model, tensor), &part);
  out->at += part.first;
  out->bytes = part.run * part.runs;
  if (part.runs == 1 || part.run == part.step) return;
  out->run = part.run;
  out->step = part.step;
}

static gm_status places_check_slice(const gm_tensor_slice *slice, const gm_tensor_info *info, gm_error *err) {
  place_part part;
  const char *why = place_part_of(slice, info->dtype, info->rank, info->shape, &part);
  if (!why) return GM_OK;
  return gm__bad_argument(err, "gm_model_load", "the slice [%llu, %llu) of dimension %u of tensor \"%.150s\": %s",
                          (unsigned long long)slice->first, (unsigned long long)gm__add_sat(slice->first, slice->count),
                          slice->dim, info->name, why);
}

/* ---- all of them ---- */

static void places_count(gm__load_places *places, const gm_model *model, uint64_t index) {
  gm__read_range range;
  gm__load_place_range(places, model, index, &range);
  places->tensors++;
  places->bytes += range.bytes;
  if (range.bytes > places->largest) places->largest = range.bytes;
  if (gm__load_place_of(places, index)->slice.count) places->slices = true;
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
  return place->pool && place->slice.count ? places_check_slice(&place->slice, &info, err) : GM_OK;
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
    if (!status && gm__load_place_of(places, i)->pool) places_count(places, model, i);
  }
  return status;
}

void gm__load_places_end(gm__load_places *places, const gm_services *services) {
  gm__model_release(services, places->each, places->count, sizeof *places->each);
  places->each = NULL;
}
