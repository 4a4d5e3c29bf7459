/* Invariants: what is asked for is looked at before the header's text is; the table of a shard is read-only. */
#include "gm/model_value.h"

#include <string.h>

#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/model/gguf_values.h"
#include "core/model/model.h"

uint64_t gm_model_value_count(const gm_model *model, uint32_t shard) {
  return shard < gm_model_shard_count(model) ? model->shards[shard].contents.value_count : 0;
}

static gm_value_kind value_kind(uint32_t type) {
  switch (type) {
    case GM__GGUF_I8:
    case GM__GGUF_I16:
    case GM__GGUF_I32:
    case GM__GGUF_I64: return GM_VALUE_I64;
    case GM__GGUF_F32:
    case GM__GGUF_F64: return GM_VALUE_F64;
    case GM__GGUF_BOOL: return GM_VALUE_BOOL;
    case GM__GGUF_STRING: return GM_VALUE_STRING;
    case GM__GGUF_ARRAY: return GM_VALUE_ARRAY;
    default: return GM_VALUE_U64;
  }
}

static int64_t value_signed(uint64_t bits, uint32_t bytes) {
  uint64_t sign = 1ULL << (8 * bytes - 1);
  return bits & sign ? -(int64_t)(~bits & (sign - 1)) - 1 : (int64_t)bits;
}

static double value_float(uint64_t bits, uint32_t bytes) {
  uint32_t half = (uint32_t)bits;
  float single = 0;
  double full = 0;
  memcpy(&single, &half, sizeof single);
  memcpy(&full, &bits, sizeof full);
  return bytes == sizeof single ? (double)single : full;
}

/* One string or number; `index` is 0 for what is no array. */
static void value_fill(const gm__contents *contents, const gm__value *value, uint32_t type, uint64_t index,
                       gm_model_value *out) {
  *out = (gm_model_value){.struct_size = sizeof *out, .kind = value_kind(type)};
  if (type == GM__GGUF_STRING) {
    gm__json_text text = gm__value_string(contents, value, index);
    out->string = text.text;
    out->length = text.length;
    return;
  }
  uint64_t bits = gm__value_bits(contents, value, index);
  uint32_t bytes = gm__gguf_type_bytes(type);
  if (out->kind == GM_VALUE_U64 || out->kind == GM_VALUE_BOOL) out->u64 = bits;
  if (out->kind == GM_VALUE_I64) out->i64 = value_signed(bits, bytes);
  if (out->kind == GM_VALUE_F64) out->f64 = value_float(bits, bytes);
}

static void value_describe(const gm__contents *contents, const gm__value *value, gm_model_value *out) {
  if (value->type != GM__GGUF_ARRAY) {
    value_fill(contents, value, value->type, 0, out);
    return;
  }
  *out = (gm_model_value){.struct_size = sizeof *out,
                          .kind = GM_VALUE_ARRAY,
                          .element_kind = value_kind(value->element_type),
                          .length = value->count};
}

static gm_status value_check_out(const gm_model *model, const gm_model_value *out, const char *op, gm_error *err) {
  if (!model) return gm__bad_argument(err, op, "`model` is NULL");
  return gm__sized_check(out, sizeof *out, op, "out", err);
}

gm_status gm_model_value_at(const gm_model *model, uint32_t shard, uint64_t index, const char **out_key,
                            gm_model_value *out, gm_error *err) {
  static const char op[] = "gm_model_value_at";
  gm_status status = value_check_out(model, out, op, err);
  if (status != GM_OK) return status;
  if (shard >= model->shard_count) return gm__bad_argument(err, op, "`shard` is %u of %u", shard, model->shard_count);
  const gm__contents *contents = &model->shards[shard].contents;
  if (index >= contents->value_count) {
    return gm__bad_argument(err, op, "`index` is %llu, shard %u has %llu values", (unsigned long long)index, shard,
                            (unsigned long long)contents->value_count);
  }
  const gm__value *value = &contents->values[index];
  if (out_key) *out_key = value->key.text;
  gm_model_value told;
  value_describe(contents, value, &told);
  gm__sized_out(out, &told, sizeof told);
  return GM_OK;
}

static gm_status value_find(const gm_model *model, const char *key, const gm_model_value *out, const char *op,
                            const gm__value **out_value, gm_error *err) {
  gm_status status = value_check_out(model, out, op, err);
  if (status != GM_OK) return status;
  if (!key) return gm__bad_argument(err, op, "`key` is NULL");
  *out_value = gm__contents_find_value(&model->shards[0].contents, key);
  return *out_value ? GM_OK : gm__fail(err, GM_ERR_NOT_FOUND, op, "no value is named \"%.200s\"", key);
}

gm_status gm_model_find_value(const gm_model *model, const char *key, gm_model_value *out, gm_error *err) {
  const gm__value *value = NULL;
  gm_status status = value_find(model, key, out, "gm_model_find_value", &value, err);
  if (status != GM_OK) return status;
  gm_model_value told;
  value_describe(&model->shards[0].contents, value, &told);
  gm__sized_out(out, &told, sizeof told);
  return GM_OK;
}

gm_status gm_model_value_element(const gm_model *model, const char *key, uint64_t index, gm_model_value *out,
                                 gm_error *err) {
  static const char op[] = "gm_model_value_element";
  const gm__value *value = NULL;
  gm_status status = value_find(model, key, out, op, &value, err);
  if (status != GM_OK) return status;
  if (value->type != GM__GGUF_ARRAY) return gm__bad_argument(err, op, "`key`: \"%.200s\" is no array", key);
  if (index >= value->count) {
    return gm__bad_argument(err, op, "`index` is %llu, \"%.200s\" has %llu elements", (unsigned long long)index, key,
                            (unsigned long long)value->count);
  }
  gm_model_value told;
  value_fill(&model->shards[0].contents, value, value->element_type, index, &told);
  gm__sized_out(out, &told, sizeof told);
  return GM_OK;
}
