/* Compute buffers of text encoders, as stable-diffusion.cpp plans them. They were measured for CLIP (L, and bigG) at 77
 * tokens, and for `T5` XXL at 77 to 512: every buffer is inside these intervals. */
#include <stdio.h>

#include "core/base/saturate.h"
#include "core/fit/component_parts.h"

enum { TEXT_CLIP_TOKENS = 77, TEXT_T5_MOST = 512, TEXT_HEAD = 64 };

/* Rows of numbers for each token, and scores of each token for each other one. */
static uint64_t text_buffer(uint64_t tokens, uint64_t row, uint64_t scores) {
  return gm__mul_sat(4 * tokens, gm__add_sat(row, gm__mul_sat(scores, tokens)));
}

static bool text_is_sane(const uint64_t *shape) {
  return shape[0] && shape[1] && shape[0] < 1 << 20 && shape[1] < 1 << 20;
}

/* One row of the feed-forward part and one of the width at least; at most four widths and two tables of scores. */
bool gm__component_clip(const gm__component_view *view, const gm_component_settings *run, gm_component *out) {
  static const char *const names[] = {
      "text_model.encoder.layers.0.mlp.fc1.weight", "transformer.text_model.encoder.layers.0.mlp.fc1.weight",
      "transformer.resblocks.0.mlp.c_fc.weight", "model.transformer.resblocks.0.mlp.c_fc.weight"};
  (void)run;
  if (gm__component_has(view, "vision_model.encoder.layers.0.mlp.fc1.weight")) return false; /* it sees, too */
  if (gm__component_has(view, "visual.transformer.resblocks.0.mlp.c_fc.weight")) return false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    uint64_t wide[2];
    if (!gm__component_shape(view, names[i], 2, wide) || !text_is_sane(wide)) continue;
    const uint64_t heads = wide[1] / TEXT_HEAD + 1;
    out->compute = gm__component_range(text_buffer(TEXT_CLIP_TOKENS, wide[0] + wide[1], 0),
                                       text_buffer(TEXT_CLIP_TOKENS, wide[0] + 4 * wide[1], 2 * heads),
                                       "the order of operations varies");
    return true;
  }
  return false;
}

/* The encoder of `T5`, for prompts of 77 to 512 tokens. Its tables of positions make three tables of scores. A decoder
 * makes it another model. */
bool gm__component_t5(const gm__component_view *view, const gm_component_settings *run, gm_component *out) {
  uint64_t wide[2], bias[2];
  char prefix[GM_COMPONENT_NAME_SIZE + 16];
  (void)run;
  snprintf(prefix, sizeof prefix, "%stransformer.", view->prefix);
  const gm__component_view inner = {view->model, prefix};
  const gm__component_view *in =
      gm__component_has(&inner, "encoder.block.0.layer.0.SelfAttention.q.weight") ? &inner : view;
  const bool gated = gm__component_shape(in, "encoder.block.0.layer.1.DenseReluDense.wi_0.weight", 2, wide);
  if (!gated && !gm__component_shape(in, "encoder.block.0.layer.1.DenseReluDense.wi.weight", 2, wide)) return false;
  if (gm__component_has(in, "decoder.block.0.layer.0.SelfAttention.q.weight")) return false;
  if (!gm__component_shape(in, "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 2, bias) ||
      !text_is_sane(wide) || !text_is_sane(bias)) {
    return false;
  }
  const uint64_t low = gm__max(text_buffer(TEXT_CLIP_TOKENS, (gated ? 3 : 2) * wide[0], 0),
                               text_buffer(TEXT_CLIP_TOKENS, 0, 3 * bias[1]));
  out->compute = gm__component_range(low, text_buffer(TEXT_T5_MOST, 2 * wide[0] + 3 * wide[1], 3 * bias[1]),
                                     "prompts have 77 to 512 tokens");
  return true;
}
