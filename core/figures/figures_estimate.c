/* D17. A device that is not open yet, and of which no source tells what is free. */
#include "core/base/saturate.h"
#include "core/figures/figures.h"
#include "core/figures/figures_rules.h"

/* An open tells how much it takes only when it was done. Until then gm reckons with a twentieth, and at most with this.
 */
enum { ESTIMATE_OPENING_MOST = 512 << 20 };

static uint64_t estimate_opening(uint64_t total) { return gm__min(total / 20, ESTIMATE_OPENING_MOST); }

/* Bytes that others are seen to hold: a lower bound. */
static uint64_t estimate_others(const gm__figures_input *input) {
  const gm__fdinfo_use *use = &input->fdinfo;
  const bool host = input->raw->place != GM_RAW_OWN_MEMORY;
  const uint64_t seen = use->valid ? gm__add_sat(use->vram_others, host ? use->gtt_others : 0) : 0;
  const uint64_t counted = gm__figures_nvml_others(input->raw);
  return counted == GM_UNKNOWN_BYTES ? seen : gm__max(seen, counted);
}

/* A driver that was asked and did not answer may have lost the device: that is no reason to recommend it. */
static bool estimate_may(const gm__figures_input *input, const gm_memory_info *draft) {
  return input->listed && input->raw->rules != GM_RAW_HOST && input->raw->driver.state == GM_RAW_ABSENT &&
         draft->free_state == GM_FIGURE_UNKNOWN && draft->total_bytes != GM_UNKNOWN_BYTES;
}

bool gm__figures_estimate(const gm__figures_input *input, gm_memory_info *draft) {
  if (!estimate_may(input, draft)) return false;
  const uint64_t opening = estimate_opening(draft->total_bytes);
  const uint64_t taken = gm__add_sat(gm__add_sat(estimate_others(input), input->own_bytes), opening);
  const gm_memory_info *peer = input->peer;
  gm__figures_set_free(draft, gm__sub_sat(draft->total_bytes, taken), GM_SOURCE_OWN_ACCOUNTING, GM_FIGURE_ESTIMATED);
  if (peer && peer->free_state != GM_FIGURE_UNKNOWN) {
    gm__figures_bound_free(draft, gm__sub_sat(peer->free_bytes, opening), GM_SOURCE_PEER_API);
  }
  if (draft->unified && input->host) gm__figures_bound_free(draft, input->host->free_bytes, GM_SOURCE_OS);
  return true;
}
