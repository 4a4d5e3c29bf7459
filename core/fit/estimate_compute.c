/* The exact method where the architecture has a row and all is on one device or on the host; the formula elsewhere. The
 * interval never narrows with the exact method: other versions of the engine order their operations otherwise. */
#include "core/base/saturate.h"
#include "core/fit/estimate_parts.h"

/* ---- terms ---- */

/* One activation of the residual stream for all tokens: X of the rules. */
static uint64_t compute_row(const gm__shape *shape) { return 4 * shape->hidden * shape->tokens; }

static bool compute_is_plain(const gm__shape *shape) { return shape->traits->plain; }

/* A decoder behind an encoder has a bias, too. */
static bool compute_is_biased(const gm__shape *shape) { return shape->encoder_decoder || shape->traits->biased; }

static bool compute_is_flash(const gm__shape *shape) { return shape->flash && !compute_is_biased(shape); }

static uint64_t compute_mask(const gm__shape *shape, uint64_t cells) {
  return cells * shape->tokens * (compute_is_flash(shape) ? 2 : 4);
}

/* M of the rules. Layers without a cache look at the tokens at hand, recurrent layers at nothing. */
static uint64_t compute_masks(const gm__shape *shape) {
  if (shape->recurrent) return 0;
  if (shape->uncached) return compute_mask(shape, shape->tokens);
  uint64_t caches = shape->window_cells ? 2 : 1;
  uint64_t keys = compute_is_flash(shape) ? 0 : 8 * shape->tokens * shape->key_width;
  uint64_t windows = shape->window_cells ? compute_mask(shape, shape->window_cells) : 0;
  return compute_mask(shape, shape->cells) + windows + caches * keys + gm__shape_decay_bytes(shape);
}

/* ---- the three stages ---- */

static uint64_t compute_logits(const gm__shape *shape) {
  uint64_t rows = 4 * shape->outputs * (shape->vocab + shape->hidden);
  bool late = shape->row && (shape->row->outputs_at_end || shape->row->outputs_normed);
  return shape->encoder_only ? 0 : rows + (late ? compute_row(shape) : 0);
}

static uint64_t compute_experts(const gm__shape *shape) {
  uint64_t width = 3 * shape->expert_width;
  if (shape->hidden > 2 * shape->expert_width) width += shape->hidden;
  return 4 * shape->tokens * shape->experts_used * width;
}

static uint64_t compute_feed_forward(const gm__shape *shape) {
  bool plain = compute_is_plain(shape) || shape->encoder_only;
  uint64_t dense = 4 * shape->tokens * shape->intermediate * (plain ? 1 : 3);
  if (shape->experts_used && !shape->has_dense_layers) dense = 0;
  return compute_masks(shape) + 2 * compute_row(shape) + gm__max(dense, compute_experts(shape));
}

/* Widths of the compressed attention of DeepSeek-V2 and V3: query, its compressed form, key. */
static uint64_t compute_compressed(const gm__shape *shape) {
  uint64_t key = shape->key_width, compressed = gm__sub_sat(key, 64), query = 192;
  uint64_t projecting = query + compressed + key;
  uint64_t scoring = key + compressed + (shape->flash ? 0 : shape->cells);
  uint64_t widest = shape->heads * (projecting > scoring ? projecting : scoring);
  return compute_masks(shape) + 2 * compute_row(shape) + 4 * shape->tokens * widest;
}

static uint64_t compute_copies(const gm__shape *shape) {
  uint64_t cells = shape->cells * shape->streams, bytes = shape->key_copies + shape->value_copies;
  if (!compute_is_flash(shape) || shape->uncached) return 0;
  if (shape->key_type == GM_DTYPE_F32) bytes += 2 * shape->key_width;
  if (shape->value_type == GM_DTYPE_F32) bytes += 2 * shape->value_width;
  return gm__mul_sat(cells, bytes);
}

/* The positions that a layer with an indexer of blocks reads, as engines plan them. */
static uint64_t compute_blocks(const gm__shape *shape) {
  return gm__shape_blocks_bytes(shape, gm__shape_block_positions(shape), gm__shape_block(shape));
}

/* Masks for each head of keys, twice, and the mask that they share. */
static uint64_t compute_sparse(const gm__shape *shape) {
  const uint64_t rows = 4 * shape->cells * shape->tokens;
  if (!gm__shape_is_sparse(shape) || !shape->head) return 0;
  return rows + 2 * (rows / shape->streams) * (shape->key_width / shape->head) + shape->layers * compute_blocks(shape);
}

static uint64_t compute_attention(const gm__shape *shape) {
  if (shape->recurrent) return 0;
  uint64_t copies = compute_copies(shape);
  if (shape->mla) return gm__add_sat(compute_compressed(shape), copies);
  uint64_t widths = 2 * shape->heads * shape->head + shape->hidden + 2 * shape->key_width;
  uint64_t seen = shape->uncached ? shape->tokens : shape->cells;
  uint64_t scores = compute_is_flash(shape) ? 0 : 4 * shape->tokens * seen * shape->heads;
  uint64_t bytes = compute_masks(shape) + compute_row(shape) + 4 * shape->tokens * widths + scores;
  return gm__add_sat(bytes + compute_sparse(shape), copies);
}

/* A recurrent layer's projections in place of attention: their inner width is twice the residual's. In linear attention
 * all tokens score each other. */
static uint64_t compute_recurrent(const gm__shape *shape) {
  const uint64_t pairs = gm__shape_decay_bytes(shape), inner = 4 * shape->tokens * shape->heads * shape->head;
  if (pairs) return compute_masks(shape) + compute_row(shape) + 2 * pairs + 5 * inner;
  return shape->recurrent ? 14 * compute_row(shape) : 0;
}

uint64_t gm__compute_formula_inner(const gm__shape *shape) {
  uint64_t inner = gm__max(compute_feed_forward(shape), compute_recurrent(shape));
  return gm__max(inner, compute_attention(shape));
}

uint64_t gm__compute_formula(const gm__shape *shape) {
  return gm__max(compute_logits(shape), gm__compute_formula_inner(shape));
}

/* ---- host inputs ---- */

static uint64_t compute_padded(uint64_t bytes) { return gm__round_up(bytes, GM__ESTIMATE_HOST_ALIGNMENT); }

static uint64_t compute_cache_inputs(const gm__shape *shape, uint64_t cells, bool is_window) {
  uint64_t index = compute_padded(8 * shape->tokens);
  uint64_t values = compute_is_flash(shape) ? 1 : shape->widest_values;
  uint64_t keys = is_window ? shape->window_key_rotation : shape->key_rotation;
  uint64_t rotations =
      compute_padded(4 * keys * keys) + compute_padded(4 * shape->value_rotation * shape->value_rotation);
  uint64_t value_index = shape->mla ? 0 : compute_padded(8 * shape->tokens * values);
  return index + value_index + rotations + compute_padded(compute_mask(shape, cells));
}

static uint64_t compute_index_inputs(const gm__shape *shape) {
  const uint64_t side = gm__shape_indexer(shape);
  if (!side) return 0;
  const uint64_t rotation = shape->traits->index_unturned ? 0 : compute_padded(4 * side * side);
  return rotation + compute_padded(8 * shape->tokens) + compute_padded(2 * shape->cells * shape->tokens);
}

/* Numbers of tokens, their positions, and which of them have logits. */
static uint64_t compute_ids(const gm__shape *shape) {
  const gm__op_row *row = shape->row;
  uint64_t tokens = compute_padded(4 * shape->tokens), outputs = compute_padded(4 * shape->outputs);
  if (!row) return 2 * tokens + outputs;
  uint64_t positions = gm__op_row_has_no_positions(row, shape->layers) ? 0 : row->sections ? 4 * tokens : tokens;
  return tokens + positions + (row->temperature ? tokens : 0) + (row->no_choice ? 0 : outputs);
}

/* The inputs of linear attention: a slope for each head, and decays of queries, of keys, and between tokens. */
static uint64_t compute_decays(const gm__shape *shape) {
  const uint64_t pairs = gm__shape_decay_bytes(shape);
  if (!pairs) return 0;
  return compute_padded(4 * shape->heads) + 2 * compute_padded(4 * shape->heads * shape->tokens) +
         compute_padded(pairs);
}

uint64_t gm__compute_host_inputs(const gm__shape *shape) {
  uint64_t row = compute_padded(compute_row(shape));
  bool adds_positions = shape->encoder_only || (shape->row && shape->row->added_positions);
  uint64_t bytes = (adds_positions ? 3 : 2) * row + compute_ids(shape);
  if (shape->traits->tokens_alone) bytes -= row;
  /* The embeddings come late, into the place of inputs that are read by then. */
  if (shape->traits->adapters) bytes += 3 * compute_padded(4 * shape->tokens) - 2 * row;
  bytes += compute_padded(4 * shape->tokens * shape->layers * shape->layer_embedding);
  if (shape->recurrent) return bytes;
  if (shape->uncached) return bytes + compute_padded(compute_masks(shape));
  if (shape->mixes) bytes += compute_padded(4 * shape->sequences);
  if (shape->row) bytes += compute_index_inputs(shape);
  bytes += compute_decays(shape);
  if (gm__shape_is_sparse(shape)) bytes += compute_padded(8 * shape->tokens);
  bytes += compute_padded(compute_blocks(shape));
  if (shape->layer_embedding) bytes += compute_padded(4 * shape->tokens);
  if (shape->window_cells) bytes += compute_cache_inputs(shape, shape->window_cells, true);
  return bytes + compute_cache_inputs(shape, shape->cells, false);
}

/* ---- intervals ---- */

static uint64_t compute_percent(uint64_t bytes, uint64_t percent) {
  return gm__add_sat(gm__mul_sat(bytes / 100, percent), bytes % 100 * percent / 100);
}

static void compute_widen(gm_memory_range *range, uint64_t bytes, uint64_t low_percent, uint64_t high_percent) {
  range->low = gm__min(range->bytes, compute_percent(bytes, low_percent));
  range->high = gm__max(range->bytes, compute_percent(bytes, high_percent));
}

/* The formula, and what the host adds when it computes everything: the embeddings' rows that the device gets as
 * copies. */
static uint64_t compute_on_host(const gm__shape *shape, uint64_t formula) {
  return gm__add_sat(formula, compute_row(shape) + 4 * shape->tokens);
}

uint64_t gm__compute_copied_weights(const gm__shape *shape, const gm__weights *weights) {
  return gm__max(weights->largest_layer, 5 * compute_row(shape));
}

/* Rule 5d: parts of the model on the host. For large batches their weights are copied to the device. The layers there
 * hand their keys and values over in host memory. */
static void compute_split(const gm__shape *shape, const gm_estimate_settings *settings, const gm__weights *weights,
                          gm__compute *out) {
  uint64_t row = compute_row(shape), widths = shape->heads * shape->head + shape->key_width + shape->value_width;
  uint64_t copied = gm__compute_copied_weights(shape, weights);
  if (settings->place == GM_ESTIMATE_SPLIT && settings->device_layers == 0) {
    copied = compute_percent(gm__max(weights->largest_layer, weights->output), 150);
    out->device.bytes = gm__add_sat(out->device.bytes, gm__max(weights->largest_layer, weights->output));
  }
  out->device.low = gm__sub_sat(out->device.low, 5 * row);
  out->device.high = gm__add_sat(out->device.high, copied);
  out->host.low = compute_percent(out->host.low, 90);
  out->host.high = gm__add_sat(out->host.high, 2 * row + 4 * shape->tokens * widths);
}

/* Architectures whose operations are not known: anything from a fraction to several times the formula. */
static void compute_unknown(const gm__shape *shape, gm__compute *out) {
  gm_memory_range *device = &out->device, *host = &out->host;
  out->method = GM_ESTIMATE_INTERVAL;
  compute_widen(device, device->bytes, 40, 250);
  compute_widen(host, host->bytes, 40, 250);
  if (!compute_is_biased(shape)) return;
  /* Scores and their bias; in an encoder-decoder two stacks, and scores in both and between them. */
  uint64_t scores = 4 * shape->tokens * (shape->uncached ? shape->tokens : shape->cells) * shape->heads;
  device->high = gm__add_sat(device->high, gm__mul_sat(3, scores));
  host->high = gm__add_sat(host->high, gm__mul_sat(3, host->bytes));
}

/* Logits that the host computes after the device has done the rest. The inputs have gone by then, but for the tensor of
 * embeddings that nobody reads. */
static void compute_head_on_host(const gm__shape *shape, gm_memory_range *host) {
  if (!shape->traits->host_head) return;
  uint64_t head =
      compute_padded(4 * shape->tokens) + compute_row(shape) + 4 * shape->outputs * (shape->vocab + shape->hidden);
  host->bytes = gm__max(host->bytes, head);
  host->low = gm__max(host->low, host->bytes);
  host->high = gm__max(host->high, host->bytes);
}

static gm_status compute_exact(const gm_services *services, const gm__shape *shape,
                               const gm_estimate_settings *settings, gm__compute *out, gm_error *err) {
  bool on_host = settings->place == GM_ESTIMATE_HOST;
  bool split = settings->place == GM_ESTIMATE_SPLIT || settings->kv_on_host;
  const bool other = shape->row_is_open || shape->fused_qkv != shape->row->fused_qkv;
  bool loose = shape->row->loose || shape->row->loose_rows || other;
  out->method = split ? GM_ESTIMATE_FORMULA : loose ? GM_ESTIMATE_INTERVAL : GM_ESTIMATE_EXACT;
  return gm__op_walk(services, shape, on_host, on_host ? &out->host.bytes : &out->device.bytes, err);
}

/* The engine leaves gaps between streams of the residual, and between what layers keep of it: up to all of these. */
static uint64_t compute_loose_rows(const gm__shape *shape) {
  const uint64_t period = shape->residual_period;
  const uint64_t kept = period ? (shape->layers + period - 1) / period : 0;
  return shape->row->loose_rows + shape->residual_streams + kept;
}

/* Other versions of the engine order their operations otherwise. */
static void compute_doubt(const gm__shape *shape, uint64_t formula, gm_estimate_method method, gm_memory_range *out) {
  if (shape->row && method != GM_ESTIMATE_FORMULA) {
    compute_widen(out, out->bytes, 90, 110);
    out->high = gm__add_sat(out->high, compute_loose_rows(shape) * compute_row(shape));
  } else {
    compute_widen(out, formula, 78, shape->mla || shape->traits->outputs_at_end ? 135 : 125);
  }
}

/* The range of one more order. */
static gm_status compute_order(const gm_services *services, const gm__shape *shape, const gm__op_row *row, bool fused,
                               bool on_host, gm_memory_range *range, gm_error *err) {
  gm__shape other = *shape;
  gm_memory_range theirs = *range;
  other.row = other.traits = row;
  other.fused_qkv = fused;
  if (row == shape->row && fused == shape->fused_qkv) return GM_OK;
  const gm_status status = gm__op_walk(services, &other, on_host, &theirs.bytes, err);
  compute_widen(&theirs, theirs.bytes, 90, 110);
  range->low = gm__min(range->low, theirs.low);
  range->high = gm__max(range->high, theirs.high);
  return status;
}

/* Models of the same architecture may have another order, and nothing tells which one has. */
static gm_status compute_orders(const gm_services *services, const gm__shape *shape, bool on_host,
                                gm_memory_range *range, gm_error *err) {
  gm_status status = GM_OK;
  const gm__op_row *row = shape->row_is_open ? shape->row : NULL;
  for (; row && status == GM_OK; row = gm__op_row_next(row)) {
    status = compute_order(services, shape, row, row->fused_qkv, on_host, range, err);
    if (status != GM_OK || !gm__op_row_joins(row)) continue;
    status = compute_order(services, shape, row, !row->fused_qkv, on_host, range, err);
  }
  return status;
}

/* An engine that asks for sizes alone plans linear attention for all sequences, where fewer tokens see each other. One
 * that allocates plans a single sequence, too. */
static void compute_sequences(const gm__shape *shape, bool on_host, gm__compute *out) {
  const uint64_t pairs = gm__shape_decay_bytes(shape), less = pairs - pairs / shape->sequences;
  out->device.low = gm__sub_sat(out->device.low, 3 * less);
  out->host.low = gm__sub_sat(out->host.low, on_host ? 3 * less : less);
}

/* Blocks may be wider or narrower, and positions beyond those that were planned for add to the inputs. */
static void compute_grow(const gm__shape *shape, bool on_host, gm__compute *out) {
  const uint64_t positions = gm__shape_block_positions(shape), planned = compute_blocks(shape);
  const bool stated = shape->config->indexer_block > 0;
  const uint64_t least = stated ? planned : gm__shape_blocks_bytes(shape, positions, positions);
  const uint64_t most =
      gm__shape_blocks_bytes(shape, gm__max(shape->cells, positions), gm__shape_narrowest_block(shape));
  out->host.low = gm__sub_sat(out->host.low, planned - least);
  out->host.high = gm__add_sat(out->host.high, most - planned);
  if (!on_host) out->device.high = gm__add_sat(out->device.high, shape->layers * (most - planned));
}

gm_status gm__compute_estimate(const gm_services *services, const gm__shape *shape,
                               const gm_estimate_settings *settings, const gm__weights *weights, gm__compute *out,
                               gm_error *err) {
  uint64_t formula = gm__compute_formula(shape), inputs = gm__compute_host_inputs(shape);
  bool on_host = settings->place == GM_ESTIMATE_HOST;
  gm_status status = GM_OK;
  *out = (gm__compute){.method = GM_ESTIMATE_FORMULA};
  if (gm__compute_stacks(shape, settings, out)) return GM_OK;
  if (on_host) {
    formula = compute_on_host(shape, formula);
    out->host.bytes = formula;
  } else {
    out->device.bytes = formula;
    out->host.bytes = inputs;
  }
  if (shape->row) status = compute_exact(services, shape, settings, out, err);
  if (status != GM_OK) return status;
  compute_doubt(shape, formula, out->method, on_host ? &out->host : &out->device);
  if (shape->row) status = compute_orders(services, shape, on_host, on_host ? &out->host : &out->device, err);
  if (status != GM_OK) return status;
  if (!on_host) compute_widen(&out->host, inputs, 100, 100);
  if (!on_host && shape->traits->adapters) out->host.high = gm__add_sat(out->host.high, compute_row(shape));
  if (!shape->row && (!shape->mla || shape->mixes)) compute_unknown(shape, out);
  compute_sequences(shape, on_host, out);
  compute_grow(shape, on_host, out);
  if (!on_host) compute_head_on_host(shape, &out->host);
  if (!on_host && (settings->place == GM_ESTIMATE_SPLIT || settings->kv_on_host)) {
    compute_split(shape, settings, weights, out);
  }
  return GM_OK;
}
