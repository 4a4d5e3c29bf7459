/* Sums saturate: dimensions may be anything. */
#include "core/base/saturate.h"
#include "core/fit/estimate_parts.h"

/* One tensor of a cache: `width` elements for each cell. */
static uint64_t kv_tensor(gm_dtype type, uint64_t width, uint64_t cells, uint64_t alignment, bool on_device) {
  uint32_t elements = 1, block = 0;
  if (width == 0 || gm_dtype_block(type, &elements, &block) != GM_OK) return 0;
  uint64_t bytes = gm__mul_sat(gm__mul_sat(width, cells) / elements, block);
  return gm__weights_padded(type, width, bytes, alignment, on_device);
}

static uint64_t kv_attention(const gm__shape *shape, uint64_t layer, bool on_device) {
  const gm_layer_kind *kind = gm__shape_layer(shape, layer);
  uint64_t alignment = on_device ? shape->alignment : GM__ESTIMATE_HOST_ALIGNMENT;
  bool window = gm__shape_has_window(shape, layer);
  uint64_t cells = gm__mul_sat(window ? shape->window_cells : shape->cells, shape->streams);
  uint64_t keys = gm__mul_sat(kind->kv_heads, kind->key_size), values = gm__mul_sat(kind->kv_heads, kind->value_size);
  if (!shape->flash && values > 0) values = shape->widest_values;
  uint64_t bytes = kv_tensor(shape->key_type, keys, cells, alignment, on_device);
  bytes = gm__add_sat(bytes, kv_tensor(shape->value_type, values, cells, alignment, on_device));
  bytes = gm__add_sat(bytes, kv_tensor(shape->key_type, kind->indexer_size, cells, alignment, on_device));
  return gm__add_sat(bytes, kv_tensor(shape->value_type, kind->indexer_value_size, cells, alignment, on_device));
}

/* The state of a recurrent layer: what its convolution remembers, and its state, in f32. */
static uint64_t kv_state(const gm__shape *shape, uint64_t layer, bool on_device) {
  const gm_layer_kind *kind = gm__shape_layer(shape, layer);
  uint64_t alignment = on_device ? shape->alignment : GM__ESTIMATE_HOST_ALIGNMENT;
  return gm__add_sat(kv_tensor(GM_DTYPE_F32, kind->conv_elements, shape->sequences, alignment, on_device),
                     kv_tensor(GM_DTYPE_F32, kind->state_elements, shape->sequences, alignment, on_device));
}

static uint64_t kv_layer(const gm__shape *shape, uint64_t layer, bool on_device) {
  const uint32_t flags = gm__shape_layer(shape, layer)->flags;
  const uint64_t attention = flags & GM_LAYER_ATTENDS ? kv_attention(shape, layer, on_device) : 0;
  return gm__add_sat(attention, flags & GM_LAYER_RECURRENT ? kv_state(shape, layer, on_device) : 0);
}

uint64_t gm__kv_layer(const gm__shape *shape, uint64_t layer) { return kv_layer(shape, layer, true); }

gm__kv_bytes gm__kv_estimate(const gm__shape *shape, const gm_estimate_settings *settings) {
  gm__kv_bytes sum = {.host = 0};
  uint64_t first = settings->kv_on_host ? UINT64_MAX : gm__weights_first_layer(shape, settings);
  for (uint64_t layer = 0; layer < shape->layers; layer++) {
    bool on_device = layer >= first;
    uint64_t bytes = kv_layer(shape, layer, on_device);
    uint64_t *where = on_device ? &sum.device : &sum.host;
    *where = gm__add_sat(*where, bytes);
    if (gm__shape_layer(shape, layer)->flags & GM_LAYER_RECURRENT) {
      sum.state = gm__add_sat(sum.state, kv_state(shape, layer, on_device));
    }
  }
  return sum;
}

uint64_t gm__output_estimate(const gm__shape *shape, const gm_estimate_settings *settings) {
  uint64_t width = shape->vocab;
  if (settings->embeddings || shape->encoder_decoder) width += shape->hidden;
  return gm__mul_sat(4 * shape->sequences, width);
}
