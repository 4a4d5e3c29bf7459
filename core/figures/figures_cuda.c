#include "core/base/saturate.h"
#include "core/figures/figures.h"
#include "core/figures/figures_rules.h"

/* D6: only NVML's figure of this very device or slice speaks of it. */
static bool figures_cuda_nvml_is_ours(const gm_raw_figures *raw) {
  bool slice = raw->flags & GM_RAW_PARTITION;
  return raw->nvml.handle == (slice ? GM_RAW_NVML_SLICE : GM_RAW_NVML_DEVICE);
}

/* D4. NVML's figure is an estimate because the context that is still to be made costs memory. */
static void figures_cuda_discrete(const gm__figures_input *input, gm_memory_info *draft) {
  const gm_raw_figures *raw = input->raw;
  if (gm__figures_answered(&raw->driver)) {
    gm__figures_set_total(draft, raw->driver.total_bytes, GM_SOURCE_DRIVER);
    gm__figures_set_free(draft, raw->driver.free_bytes, GM_SOURCE_DRIVER, GM_FIGURE_KNOWN);
    return;
  }
  bool nvml = figures_cuda_nvml_is_ours(raw) && gm__figures_answered(&raw->nvml.memory);
  gm__figures_set_total(draft, gm__figures_total(&raw->device_total), GM_SOURCE_DRIVER);
  if (!nvml) return;
  if (draft->total_bytes == GM_UNKNOWN_BYTES) {
    gm__figures_set_total(draft, raw->nvml.memory.total_bytes, GM_SOURCE_NVML);
  }
  gm__figures_set_free(draft, raw->nvml.memory.free_bytes, GM_SOURCE_NVML, GM_FIGURE_ESTIMATED);
}

/* D5. The driver gives MemFree here, where the page cache reads as used, or fails: it is only a last resort. Whether
 * its allocations are charged to a group is disputed, so a binding group makes the figure an estimate. */
static void figures_cuda_integrated(const gm__figures_input *input, gm_memory_info *draft) {
  const gm_raw_figures *raw = input->raw;
  gm__figures_set_host(input, draft);
  if (input->host && input->host->cgroup_limited && draft->free_state == GM_FIGURE_KNOWN) {
    draft->free_state = GM_FIGURE_ESTIMATED;
  }
  uint64_t total = gm__figures_total(&raw->device_total);
  if (total == GM_UNKNOWN_BYTES) total = gm__figures_total(&raw->driver);
  if (total < draft->total_bytes) gm__figures_set_total(draft, total, GM_SOURCE_DRIVER);
  if (draft->free_state == GM_FIGURE_UNKNOWN && gm__figures_answered(&raw->driver)) {
    gm__figures_set_free(draft, raw->driver.free_bytes, GM_SOURCE_DRIVER, GM_FIGURE_ESTIMATED);
  }
  /* free above the device's total is ordinary here, no repair: the host has more than the device may use. */
  if (draft->free_state != GM_FIGURE_UNKNOWN) draft->free_bytes = gm__min(draft->free_bytes, draft->total_bytes);
}

void gm__figures_cuda(const gm__figures_input *input, gm_memory_info *draft) {
  if (input->raw->place == GM_RAW_OWN_MEMORY) {
    figures_cuda_discrete(input, draft);
  } else {
    figures_cuda_integrated(input, draft);
  }
}
