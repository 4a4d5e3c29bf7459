#include "core/model/model_config.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
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
