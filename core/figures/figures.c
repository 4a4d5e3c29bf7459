#include "core/figures/figures.h"

#include "core/base/saturate.h"

bool gm__figures_answered(const gm_raw_reply *reply) {
  return gm__figures_total(reply) != GM_UNKNOWN_BYTES && reply->free_bytes != GM_UNKNOWN_BYTES;
}

uint64_t gm__figures_total(const gm_raw_reply *reply) {
  return reply->state == GM_RAW_OK && reply->total_bytes != 0 ? reply->total_bytes : GM_UNKNOWN_BYTES;
}

void gm__figures_set_total(gm_memory_info *draft, uint64_t bytes, gm_figure_source source) {
  draft->total_bytes = bytes;
  draft->total_source = bytes == GM_UNKNOWN_BYTES ? GM_SOURCE_NONE : source;
}

void gm__figures_set_free(gm_memory_info *draft, uint64_t bytes, gm_figure_source source, gm_figure_state state) {
  bool known = bytes != GM_UNKNOWN_BYTES && state != GM_FIGURE_UNKNOWN;
  draft->free_bytes = known ? bytes : GM_UNKNOWN_BYTES;
  draft->free_source = known ? source : GM_SOURCE_NONE;
  draft->free_state = known ? state : GM_FIGURE_UNKNOWN;
}

void gm__figures_set_host(const gm__figures_input *input, gm_memory_info *draft) {
  if (!input->host) return;
  gm__figures_set_total(draft, input->host->total_bytes, GM_SOURCE_OS);
  gm__figures_set_free(draft, input->host->free_bytes, GM_SOURCE_OS, input->host->free_state);
}

void gm__figures_bound_free(gm_memory_info *draft, uint64_t bytes, gm_figure_source source) {
  if (draft->free_state == GM_FIGURE_UNKNOWN || bytes >= draft->free_bytes) return;
  gm__figures_set_free(draft, bytes, source, GM_FIGURE_ESTIMATED);
}

uint64_t gm__figures_sum(uint64_t a, uint64_t b) {
  if (a == GM_UNKNOWN_BYTES || b == GM_UNKNOWN_BYTES) return GM_UNKNOWN_BYTES;
  return gm__min(gm__add_sat(a, b), GM_UNKNOWN_BYTES - 1);
}

/* D7: one process that is not available makes the sum unknown; an integrated device's NVML is not read at all. */
uint64_t gm__figures_nvml_others(const gm_raw_figures *raw) {
  const gm_raw_nvml *nvml = &raw->nvml;
  if (raw->place != GM_RAW_OWN_MEMORY || nvml->process_count == 0) return GM_UNKNOWN_BYTES;
  if (nvml->process_count > GM_RAW_PROCESSES_MAX) return GM_UNKNOWN_BYTES;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < nvml->process_count; i++) sum = gm__figures_sum(sum, nvml->process_bytes[i]);
  return sum;
}
