/* The tensors of a BERT encoder: their names, their shapes, and where gm put them. */
#include <inttypes.h>
#include <stdio.h>

#include "minilm.h"

enum { HEAD_WIDTH = 32, LARGEST = 1 << 20 };

/* A tensor that the engine needs. A column count of 0 stands for a vector. */
typedef struct wanted {
  const char *name;
  uint32_t rows, columns;
  minilm_tensor *out;
} wanted;

static gm_status find(const gm_model *model, const char *name, uint64_t *index, gm_tensor_info *info, gm_error *err) {
  *info = (gm_tensor_info){.struct_size = sizeof *info};
  if (gm_model_find(model, name, index, NULL) != GM_OK) {
    return minilm_fail(err, GM_ERR_FORMAT, "minilm_open", "the model has no tensor %s", name);
  }
  const gm_status status = gm_model_tensor(model, *index, info, err);
  if (!status && info->dtype != GM_DTYPE_F32) {
    return minilm_fail(err, GM_ERR_FORMAT, "minilm_open", "%s: %s, and the engine reads f32", name,
                       gm_dtype_name(info->dtype));
  }
  return status;
}

static gm_status table_rows(const gm_model *model, const char *name, uint32_t *rows, uint32_t *columns, gm_error *err) {
  gm_tensor_info info;
  uint64_t index;
  const gm_status status = find(model, name, &index, &info, err);
  if (status) return status;
  if (info.rank != 2 || !info.shape[0] || info.shape[0] > LARGEST || !info.shape[1] || info.shape[1] > LARGEST) {
    return minilm_fail(err, GM_ERR_FORMAT, "minilm_open", "%s is no matrix of a size that the engine knows", name);
  }
  *rows = (uint32_t)info.shape[0];
  *columns = (uint32_t)info.shape[1];
  return GM_OK;
}

static gm_status check_shape(const wanted *want, const gm_tensor_info *info, gm_error *err) {
  const uint32_t rank = want->columns ? 2 : 1;
  if (info->rank == rank && info->shape[0] == want->rows && (rank == 1 || info->shape[1] == want->columns))
    return GM_OK;
  return minilm_fail(err, GM_ERR_FORMAT, "minilm_open",
                     "%s has %" PRIu32 " dimensions, the first of %" PRIu64 "; the engine needs %" PRIu32 " x %" PRIu32,
                     want->name, info->rank, info->shape[0], want->rows, want->columns ? want->columns : 1);
}

/* Before the model is loaded the tensor is only compared. */
static gm_status visit(minilm *m, const gm_model *model, const wanted *want, gm_error *err) {
  gm_tensor_info info;
  gm_block block;
  uint64_t index;
  gm_status status = find(model, want->name, &index, &info, err);
  if (!status) status = check_shape(want, &info, err);
  if (!status && m->loaded) status = gm_loaded_model_block(m->loaded, index, &block, err);
  if (!status && m->loaded) status = m->backend.calls->tensor(m->weights_pool, &block, want->out, err);
  return status;
}

static gm_status visit_layer(minilm *m, const gm_model *model, uint32_t layer, gm_error *err) {
  const uint32_t width = m->dims.width, inner = m->dims.inner;
  const wanted list[MINILM_LAYER_TENSORS] = {
      {"attention.self.query.weight", width, width, NULL},   {"attention.self.query.bias", width, 0, NULL},
      {"attention.self.key.weight", width, width, NULL},     {"attention.self.key.bias", width, 0, NULL},
      {"attention.self.value.weight", width, width, NULL},   {"attention.self.value.bias", width, 0, NULL},
      {"attention.output.dense.weight", width, width, NULL}, {"attention.output.dense.bias", width, 0, NULL},
      {"attention.output.LayerNorm.weight", width, 0, NULL}, {"attention.output.LayerNorm.bias", width, 0, NULL},
      {"intermediate.dense.weight", inner, width, NULL},     {"intermediate.dense.bias", inner, 0, NULL},
      {"output.dense.weight", width, inner, NULL},           {"output.dense.bias", width, 0, NULL},
      {"output.LayerNorm.weight", width, 0, NULL},           {"output.LayerNorm.bias", width, 0, NULL}};
  gm_status status = GM_OK;
  for (int i = 0; !status && i < MINILM_LAYER_TENSORS; i++) {
    char name[96];
    snprintf(name, sizeof name, "encoder.layer.%" PRIu32 ".%s", layer, list[i].name);
    const wanted want = {name, list[i].rows, list[i].columns, &m->weights.layers[layer][i]};
    status = visit(m, model, &want, err);
  }
  return status;
}

static gm_status visit_all(minilm *m, const gm_model *model, gm_error *err) {
  const minilm_dims *dims = &m->dims;
  minilm_weights *weights = &m->weights;
  const wanted list[] = {
      {"embeddings.word_embeddings.weight", dims->words, dims->width, &weights->words},
      {"embeddings.position_embeddings.weight", dims->positions, dims->width, &weights->positions},
      {"embeddings.token_type_embeddings.weight", dims->types, dims->width, &weights->types},
      {"embeddings.LayerNorm.weight", dims->width, 0, &weights->norm[0]},
      {"embeddings.LayerNorm.bias", dims->width, 0, &weights->norm[1]},
  };
  gm_status status = GM_OK;
  for (size_t i = 0; !status && i < sizeof list / sizeof list[0]; i++) status = visit(m, model, &list[i], err);
  for (uint32_t i = 0; !status && i < dims->layers; i++) status = visit_layer(m, model, i, err);
  return status;
}

static uint32_t count_layers(const gm_model *model) {
  char name[96];
  uint64_t index;
  uint32_t layers = 0;
  do {
    snprintf(name, sizeof name, "encoder.layer.%" PRIu32 ".attention.self.query.weight", layers);
  } while (gm_model_find(model, name, &index, NULL) == GM_OK && ++layers <= MINILM_MAX_LAYERS);
  return layers;
}

/* No shape tells the number of heads. Without a config.json heads are 32 wide, as those of MiniLM. */
static gm_status read_heads(minilm_dims *dims, const gm_model *model, gm_error *err) {
  gm_model_config config = {.struct_size = sizeof config};
  const gm_status status = gm_model_read_config(model, &config, err);
  dims->heads = dims->width / HEAD_WIDTH;
  if (status == GM_ERR_NOT_FOUND) return GM_OK;
  if (status) return status;
  const uint32_t heads = gm_model_widest_layer(&config).heads;
  if (config.hidden != dims->width || config.layers != dims->layers || heads > dims->width) {
    return minilm_fail(err, GM_ERR_FORMAT, "minilm_open", "the config.json beside the model belongs to another model");
  }
  dims->heads = heads;
  return GM_OK;
}

static gm_status check_dims(const minilm_dims *dims, gm_error *err) {
  if (!dims->layers || dims->layers > MINILM_MAX_LAYERS || dims->width > MINILM_MAX_WIDTH) {
    return minilm_fail(err, GM_ERR_FORMAT, "minilm_open", "the engine takes 1 to %d layers of width up to %d",
                       MINILM_MAX_LAYERS, MINILM_MAX_WIDTH);
  }
  if (!dims->heads || dims->width % dims->heads || dims->width / dims->heads % 8 || dims->inner % 8) {
    return minilm_fail(err, GM_ERR_FORMAT, "minilm_open",
                       "width %" PRIu32 ", %" PRIu32 " heads, inner width %" PRIu32 ": the engine needs multiples of 8",
                       dims->width, dims->heads, dims->inner);
  }
  return GM_OK;
}

gm_status minilm_weights_check(minilm *m, const gm_model *model, gm_error *err) {
  minilm_dims *dims = &m->dims;
  uint32_t width;
  gm_status status = table_rows(model, "embeddings.word_embeddings.weight", &dims->words, &dims->width, err);
  if (!status) status = table_rows(model, "embeddings.position_embeddings.weight", &dims->positions, &width, err);
  if (!status) status = table_rows(model, "embeddings.token_type_embeddings.weight", &dims->types, &width, err);
  if (!status) status = table_rows(model, "encoder.layer.0.intermediate.dense.weight", &dims->inner, &width, err);
  dims->layers = count_layers(model);
  if (!status) status = read_heads(dims, model, err);
  if (!status) status = check_dims(dims, err);
  if (!status) status = visit_all(m, model, err);
  return status;
}

gm_status minilm_weights_bind(minilm *m, const gm_model *model, gm_error *err) { return visit_all(m, model, err); }
