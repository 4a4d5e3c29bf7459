/* D10. OpenCL has no free query of its own; the sources are tried in the rule's order. */
#include "core/base/saturate.h"
#include "core/figures/figures.h"
#include "core/figures/figures_rules.h"

/* (a) A CPU device's memory is the host's, and allocation is lazy, so its figure is an estimate. */
static void figures_opencl_cpu(const gm__figures_input *input, gm_memory_info *draft) {
  const gm_host_info *host = input->host;
  if (host && host->total_bytes < draft->total_bytes) {
    gm__figures_set_total(draft, host->total_bytes, GM_SOURCE_OS);
  }
  if (draft->total_bytes == GM_UNKNOWN_BYTES) return;
  uint64_t left = gm__sub_sat(draft->total_bytes, input->own_bytes);
  gm__figures_set_free(draft, left, GM_SOURCE_OWN_ACCOUNTING, GM_FIGURE_ESTIMATED);
  if (host) gm__figures_bound_free(draft, host->free_bytes, GM_SOURCE_OS);
}

/* (b) */
static bool figures_opencl_peer(const gm__figures_input *input, gm_memory_info *draft) {
  const gm_memory_info *peer = input->peer;
  if (!peer || peer->free_state == GM_FIGURE_UNKNOWN) return false;
  if (draft->total_bytes == GM_UNKNOWN_BYTES) gm__figures_set_total(draft, peer->total_bytes, GM_SOURCE_PEER_API);
  gm__figures_set_free(draft, peer->free_bytes, GM_SOURCE_PEER_API, peer->free_state);
  return true;
}

/* (c) The first value counts KiB; a second one would be the largest block. */
static bool figures_opencl_amd(const gm__figures_input *input, gm_memory_info *draft) {
  const gm_raw_amd_query *amd = &input->raw->amd;
  if (amd->state != GM_RAW_OK || amd->count == 0) return false;
  uint64_t bytes = gm__min(gm__mul_sat(amd->kib[0], 1024), GM_UNKNOWN_BYTES - 1);
  draft->free_by_driver_bytes = bytes;
  gm__figures_set_free(draft, bytes, GM_SOURCE_DRIVER, GM_FIGURE_ESTIMATED);
  return true;
}

/* (d), D13. No module, or modules without a size, is no figure. */
static bool figures_opencl_modules(const gm__figures_input *input, gm_memory_info *draft) {
  const gm_raw_figures *raw = input->raw;
  uint64_t size = 0, left = 0;
  for (uint32_t i = 0; i < raw->module_count && i < GM_RAW_MODULES_MAX; i++) {
    size = gm__figures_sum(size, raw->modules[i].bytes);
    left = gm__figures_sum(left, raw->modules[i].free_bytes);
  }
  if (size == 0 || left == GM_UNKNOWN_BYTES) return false;
  gm__figures_set_free(draft, left, GM_SOURCE_SYSMAN, GM_FIGURE_ESTIMATED);
  return true;
}

/* Bytes that clients of the card are seen to hold, and at least gm's own: fdinfo may not see all that gm holds. */
static uint64_t figures_opencl_in_use(const gm__figures_input *input) {
  const gm__fdinfo_use *use = &input->fdinfo;
  if (!use->valid) return input->own_bytes;
  bool host = input->raw->place != GM_RAW_OWN_MEMORY;
  uint64_t all = gm__add_sat(use->vram_bytes, host ? use->gtt_bytes : 0);
  uint64_t others = gm__add_sat(use->vram_others, host ? use->gtt_others : 0);
  return gm__max(all, gm__add_sat(others, input->own_bytes));
}

/* (e) An upper bound. */
static void figures_opencl_accounting(const gm__figures_input *input, gm_memory_info *draft) {
  if (draft->total_bytes == GM_UNKNOWN_BYTES) return;
  uint64_t left = gm__sub_sat(draft->total_bytes, figures_opencl_in_use(input));
  gm__figures_set_free(draft, left, GM_SOURCE_OWN_ACCOUNTING, GM_FIGURE_ESTIMATED);
  if (draft->unified && input->host) gm__figures_bound_free(draft, input->host->free_bytes, GM_SOURCE_OS);
}

void gm__figures_opencl(const gm__figures_input *input, gm_memory_info *draft) {
  gm__figures_set_total(draft, gm__figures_total(&input->raw->device_total), GM_SOURCE_DRIVER);
  if (input->raw->place == GM_RAW_CPU_DEVICE) {
    figures_opencl_cpu(input, draft);
  } else if (!figures_opencl_peer(input, draft) && !figures_opencl_amd(input, draft) &&
             !figures_opencl_modules(input, draft)) {
    figures_opencl_accounting(input, draft);
  }
}
