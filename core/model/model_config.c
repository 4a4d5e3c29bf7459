#include "core/model/model_config.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/model/model.h"
#include "core/model/model_memory.h"

static gm_status config_beside(const gm_model *model, const char *op, gm_model_config *out, gm_error *err) {
  const char *first = model->shards[0].path, *slash = strrchr(first, '/');
  char *path = NULL;
  uint64_t path_bytes = 0;
  gm_status status = gm__model_join(&model->services, first, slash ? (uint64_t)(slash - first) + 1 : 0, "config.json",
                                    &path, &path_bytes, err);
  if (status == GM_OK) status = gm__model_config_from_json(&model->services, path, op, out, err);
  gm__model_release(&model->services, path, path_bytes, 1);
  return status;
}

gm_status gm_model_read_config(const gm_model *model, gm_model_config *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_model_read_config";
  if (!model) return gm__bad_argument(err, op, "`model` is NULL");
  gm_status status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status != GM_OK) return status;
  gm_model_config config = {.struct_size = sizeof config};
  status = model->shards[0].contents.value_count > 0
               ? gm__model_config_from_gguf(model, &config, err)
               : gm__model_name_call(config_beside(model, op, &config, err), op, err);
  if (status == GM_OK) gm__sized_out(out, &config, sizeof config);
  return status;
}

gm_status gm_model_config_load(const gm_services *services, const char *path, gm_model_config *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_model_config_load";
  if (!path || !path[0]) return gm__bad_argument(err, op, "`path` is %s", path ? "empty" : "NULL");
  gm_model_config config = {.struct_size = sizeof config};
  gm_status status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status == GM_OK) status = gm__services_check(services, err);
  if (status == GM_OK) status = gm__model_config_from_json(services, path, op, &config, err);
  if (status == GM_OK) gm__sized_out(out, &config, sizeof config);
  return gm__model_name_call(status, op, err);
}

/* ---- a summary ---- */

static void config_raise(uint32_t *most, uint32_t number) { *most = number > *most ? number : *most; }

static void config_widen(gm_layer_kind *out, const gm_layer_kind *kind) {
  out->flags |= kind->flags;
  config_raise(&out->heads, kind->heads);
  config_raise(&out->kv_heads, kind->kv_heads);
  config_raise(&out->key_size, kind->key_size);
  config_raise(&out->value_size, kind->value_size);
  config_raise(&out->query_size, kind->query_size);
  config_raise(&out->result_size, kind->result_size);
  config_raise(&out->query_rank, kind->query_rank);
  config_raise(&out->rotated_size, kind->rotated_size);
  config_raise(&out->indexer_size, kind->indexer_size);
  config_raise(&out->indexer_value_size, kind->indexer_value_size);
  config_raise(&out->experts, kind->experts);
  config_raise(&out->experts_used, kind->experts_used);
  config_raise(&out->conv_kernel, kind->conv_kernel);
  config_raise(&out->state_size, kind->state_size);
  out->inner_size = gm__max(out->inner_size, kind->inner_size);
  out->window = gm__max(out->window, kind->window);
  out->intermediate = gm__max(out->intermediate, kind->intermediate);
  out->expert_intermediate = gm__max(out->expert_intermediate, kind->expert_intermediate);
  out->shared_intermediate = gm__max(out->shared_intermediate, kind->shared_intermediate);
  out->conv_elements = gm__max(out->conv_elements, kind->conv_elements);
  out->state_elements = gm__max(out->state_elements, kind->state_elements);
  out->parameters = gm__max(out->parameters, kind->parameters);
  out->expert_parameters = gm__max(out->expert_parameters, kind->expert_parameters);
}

gm_layer_kind gm_model_widest_layer(const gm_model_config *config) {
  gm_layer_kind out = {0};
  gm_model_config known;
  if (gm__sized_in(&known, sizeof known, config, "gm_model_widest_layer", "config", NULL) != GM_OK) return out;
  for (uint32_t i = 0; i < known.kind_count && i < GM_LAYER_KINDS_MAX; i++) {
    if (!(known.kinds[i].flags & GM_LAYER_UNUSED)) config_widen(&out, &known.kinds[i]);
  }
  return out;
}
