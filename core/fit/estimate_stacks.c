/* Encoder and decoder in one model, as llama.cpp runs `T5`. Its graph was measured in 123 runs of a published model,
 * and in five of a small one with other sizes. Each of these buffers is inside the intervals. */
#include "core/base/saturate.h"
#include "core/fit/estimate_parts.h"

/* The decoder looks at its own cells with scores, a bias and a mask. It looks at as many positions of the encoder as
 * the model was trained for, without a bias. Terms are in bytes of f32. */
typedef struct stacks_terms {
  uint64_t scores, mask;              /* of the cells */
  uint64_t cross_scores, cross_mask;  /* of the encoder; flash attention has no such scores */
  uint64_t encoded;                   /* the encoder's result */
  uint64_t inputs, row, rest, logits; /* `rest`: masks, rows, and keys and values of a layer */
} stacks_terms;

static stacks_terms stacks_make(const gm__shape *shape) {
  const uint64_t cells = gm__mul_sat(shape->tokens, shape->cells), trained = shape->config->context;
  const uint64_t layer = gm__mul_sat(4 * shape->cells, shape->key_width + shape->value_width);
  stacks_terms it = {.mask = gm__mul_sat(4, cells),
                     .cross_mask = gm__mul_sat(4 * shape->tokens, trained),
                     .encoded = gm__mul_sat(4 * shape->hidden, trained),
                     .row = 4 * shape->hidden * shape->tokens,
                     .logits = 4 * shape->outputs * (shape->vocab + shape->hidden)};
  it.scores = gm__mul_sat(it.mask, shape->heads);
  it.cross_scores = shape->flash ? 0 : gm__mul_sat(it.cross_mask, shape->heads);
  it.inputs = shape->flash ? it.mask + it.mask / 2 + it.cross_mask / 2 : 2 * it.mask + it.cross_mask;
  it.rest = gm__add_sat(2 * it.mask, gm__add_sat(layer, 8 * it.row));
  return it;
}

static gm_memory_range stacks_between(uint64_t low, uint64_t high) {
  return (gm_memory_range){low + (high - low) / 2, low, high};
}

/* The largest of three: logits, the decoder's view of its cells with `copies` of the scores, its view of the encoder.
 */
static gm_memory_range stacks_range(const stacks_terms *it, uint64_t copies) {
  const uint64_t own = gm__mul_sat(copies, it->scores);
  const uint64_t cross_low = gm__add_sat(it->cross_scores, gm__mul_sat(5, it->encoded));
  const uint64_t cross_high = gm__add_sat(it->cross_scores, gm__mul_sat(7, it->encoded));
  const uint64_t low = gm__max(gm__add_sat(own, it->encoded), cross_low);
  const uint64_t own_high = gm__add_sat(own, gm__add_sat(3 * it->mask, it->encoded + 2 * it->cross_mask));
  const uint64_t high = gm__max(own_high, gm__add_sat(cross_high, it->cross_mask));
  return stacks_between(gm__max(it->logits, low), gm__add_sat(gm__max(it->logits, high), it->rest));
}

bool gm__compute_stacks(const gm__shape *shape, const gm_estimate_settings *settings, gm__compute *out) {
  const bool whole = settings->place != GM_ESTIMATE_SPLIT && !settings->kv_on_host;
  const bool has_length = shape->config->context > 0 && shape->config->context <= UINT32_MAX;
  if (!shape->encoder_decoder || !whole || !has_length || shape->streams > 1) return false;
  const stacks_terms it = stacks_make(shape);
  const uint64_t inputs = gm__add_sat(it.inputs, it.encoded);
  out->method = GM_ESTIMATE_INTERVAL;
  out->bounded = true;
  if (settings->place == GM_ESTIMATE_HOST) { /* inputs lie in the same buffer */
    out->host = stacks_range(&it, 3);
    out->host = stacks_between(out->host.low, gm__add_sat(out->host.high, gm__add_sat(inputs, 6 * it.row)));
  } else {
    out->device = stacks_range(&it, 4);
    out->host = stacks_between(inputs, gm__add_sat(inputs, 6 * it.row));
  }
  return true;
}
