/* Invariant: a block with bytes is one that the pool handed out and has not got back; releasing gives each back once.
 */
#include "core/load/loaded_model.h"

#include "core/base/error.h"
#include "core/model/model_memory.h"
#include "core/pool/free.h"

gm_status gm__loaded_model_create(const gm_services *services, gm_pool *pool, uint64_t count, gm_loaded_model **out,
                                  gm_error *err) {
  void *memory = NULL, *blocks = NULL;
  gm_status status = gm__model_alloc(services, 1, sizeof(gm_loaded_model), &memory, err);
  if (status != GM_OK) return status;
  status = gm__model_alloc(services, count, sizeof(gm_block), &blocks, err);
  if (status != GM_OK) {
    gm__model_release(services, memory, 1, sizeof(gm_loaded_model));
    return status;
  }
  gm_loaded_model *loaded = memory;
  *loaded = (gm_loaded_model){.services = *services, .pool = pool, .blocks = blocks, .count = count};
  *out = loaded;
  return GM_OK;
}

static void loaded_model_end(gm_loaded_model *loaded) {
  gm_services services = loaded->services;
  gm__model_release(&services, loaded->blocks, loaded->count, sizeof(gm_block));
  gm__model_release(&services, loaded, 1, sizeof *loaded);
}

/* In the order of its stream: a block may have come with a wait for work of another one. */
void gm__loaded_model_undo(gm_loaded_model *loaded, gm_stream *stream) {
  if (!loaded) return;
  for (uint64_t i = 0; i < loaded->count; i++) {
    if (loaded->blocks[i].bytes) gm__block_free_unused(loaded->pool, &loaded->blocks[i], stream);
  }
  loaded_model_end(loaded);
}

gm_status gm_loaded_model_release(gm_loaded_model *loaded, gm_stream *stream) {
  if (!loaded) return GM_OK;
  gm_status first = GM_OK;
  for (uint64_t i = 0; i < loaded->count; i++) {
    if (loaded->blocks[i].bytes == 0) continue;
    gm_status status = gm_free(loaded->pool, &loaded->blocks[i], stream);
    if (first == GM_OK) first = status;
  }
  loaded_model_end(loaded);
  return first;
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
