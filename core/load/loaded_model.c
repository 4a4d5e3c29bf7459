/* Invariant: a block with bytes is one that its pool handed out and has not got back; releasing gives each back once.
 */
#include "core/load/loaded_model.h"

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/model/model_memory.h"
#include "core/pool/free.h"

gm_status gm__loaded_model_create(const gm_services *services, uint64_t count, bool keeps, gm_loaded_model **out,
                                  gm_error *err) {
  void *memory = NULL, *blocks = NULL, *pools = NULL, *there = NULL;
  gm_status status = gm__model_alloc(services, 1, sizeof(gm_loaded_model), &memory, err);
  if (!status) status = gm__model_alloc(services, count, sizeof(gm_block), &blocks, err);
  if (!status) status = gm__model_alloc(services, count, sizeof(gm_pool *), &pools, err);
  if (!status && keeps) status = gm__model_alloc(services, count, sizeof(uint64_t), &there, err);
  if (status) {
    gm__model_release(services, pools, count, sizeof(gm_pool *));
    gm__model_release(services, blocks, count, sizeof(gm_block));
    gm__model_release(services, memory, 1, sizeof(gm_loaded_model));
    return status;
  }
  gm_loaded_model *loaded = memory;
  *loaded = (gm_loaded_model){.services = *services, .blocks = blocks, .pools = pools, .there = there, .count = count};
  *out = loaded;
  return GM_OK;
}

/* REQUIRES: the blocks are free */
static void loaded_model_unmap(gm_loaded_model *loaded) {
  for (uint32_t i = 0; i < loaded->map_count; i++) gm__input_file_unmap(&loaded->maps[i].file, loaded->maps[i].at);
  gm__model_release(&loaded->services, loaded->maps, loaded->map_count, sizeof *loaded->maps);
}

static void loaded_model_end(gm_loaded_model *loaded) {
  gm_services services = loaded->services;
  loaded_model_unmap(loaded);
  gm__load_places_end(&loaded->places, &services);
  gm__model_release(&services, loaded->there, loaded->count, sizeof(uint64_t));
  gm__model_release(&services, loaded->pools, loaded->count, sizeof(gm_pool *));
  gm__model_release(&services, loaded->blocks, loaded->count, sizeof(gm_block));
  gm__model_release(&services, loaded, 1, sizeof *loaded);
}

/* In the order of its stream: a block may have come with a wait for work of another one. */
void gm__loaded_model_undo(gm_loaded_model *loaded) {
  for (uint64_t i = 0; i < loaded->count; i++) {
    gm_stream *stream = gm__load_place_of(&loaded->places, i)->request.stream;
    if (loaded->blocks[i].bytes) gm__block_free_unused(loaded->pools[i], &loaded->blocks[i], stream);
  }
  loaded_model_end(loaded);
}

static bool loaded_model_is_on(const gm_loaded_model *loaded, uint64_t index, const gm_device *device) {
  return loaded->blocks[index].bytes && gm_pool_device(loaded->pools[index]) == device;
}

/* Does some block belong to the stream's device? If none does, the stream is a mistake, and gm_free says so. */
static bool loaded_model_knows(const gm_loaded_model *loaded, const gm_stream *stream) {
  const gm_device *device = stream ? gm_stream_device(stream) : NULL;
  for (uint64_t i = 0; i < loaded->count && device; i++) {
    if (loaded_model_is_on(loaded, i, device)) return true;
  }
  return false;
}

gm_status gm_loaded_model_release(gm_loaded_model *loaded, gm_stream *stream) {
  GM__UNCANCELLED();
  if (!loaded) return GM_OK;
  const gm_device *device = loaded_model_knows(loaded, stream) ? gm_stream_device(stream) : NULL;
  gm_status first = GM_OK;
  for (uint64_t i = 0; i < loaded->count; i++) {
    if (loaded->blocks[i].bytes == 0) continue;
    const bool fits = !device || loaded_model_is_on(loaded, i, device);
    gm_status status = gm_free(loaded->pools[i], &loaded->blocks[i], fits ? stream : NULL);
    if (first == GM_OK) first = status;
  }
  loaded_model_end(loaded);
  return first;
}

uint64_t gm_loaded_model_left(const gm_loaded_model *loaded) { return loaded ? loaded->left : 0; }

gm_pool *gm_loaded_model_pool(const gm_loaded_model *loaded, uint64_t index) {
  return loaded && index < loaded->count ? loaded->pools[index] : NULL;
}

gm_status gm_loaded_model_block(const gm_loaded_model *loaded, uint64_t index, gm_block *out, gm_error *err) {
  static const char op[] = "gm_loaded_model_block";
  if (!loaded) return gm__bad_argument(err, op, "`loaded` is NULL");
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  if (index >= loaded->count) {
    return gm__bad_argument(err, op, "`index` is %llu, the model has %llu tensors", (unsigned long long)index,
                            (unsigned long long)loaded->count);
  }
  *out = loaded->blocks[index];
  return GM_OK;
}
