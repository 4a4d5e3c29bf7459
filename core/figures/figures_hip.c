#include "core/base/saturate.h"
#include "core/figures/figures.h"
#include "core/figures/figures_rules.h"

/* total - used of a pool; unknown unless both files gave a number and the pool exists. */
static uint64_t figures_hip_left(uint64_t total, uint64_t used) {
  if (total == GM_UNKNOWN_BYTES || total == 0 || used == GM_UNKNOWN_BYTES) return GM_UNKNOWN_BYTES;
  return gm__sub_sat(total, used);
}

/* HIP's total, from whichever call gives one. */
static uint64_t figures_hip_total(const gm_raw_figures *raw) {
  uint64_t total = gm__figures_total(&raw->driver);
  return total == GM_UNKNOWN_BYTES ? gm__figures_total(&raw->device_total) : total;
}

/* D8. HIP does not see what other clients hold, the kernel's files see all; either alone is an estimate. */
static void figures_hip_discrete(const gm__figures_input *input, gm_memory_info *draft) {
  const gm_raw_figures *raw = input->raw;
  uint64_t left = figures_hip_left(input->sysfs.vram_total, input->sysfs.vram_used);
  bool files = left != GM_UNKNOWN_BYTES, answered = gm__figures_answered(&raw->driver);
  gm__figures_set_total(draft, figures_hip_total(raw), GM_SOURCE_DRIVER);
  if (draft->total_bytes == GM_UNKNOWN_BYTES && files) {
    gm__figures_set_total(draft, input->sysfs.vram_total, GM_SOURCE_SYSFS);
  }
  gm_figure_state state = files && answered ? GM_FIGURE_KNOWN : GM_FIGURE_ESTIMATED;
  if (files && (!answered || left < raw->driver.free_bytes)) {
    gm__figures_set_free(draft, left, GM_SOURCE_SYSFS, state);
  } else if (answered) {
    gm__figures_set_free(draft, raw->driver.free_bytes, GM_SOURCE_DRIVER, state);
  }
}

/* D9: the carve-out and the part of host RAM that the device may map. Neither is bounded by a group limit, since
 * ordinary allocations are not charged to the group. */
static void figures_hip_parts(const gm__figures_input *input, gm_memory_info *draft) {
  const gm_host_info *host = input->host;
  uint64_t left = figures_hip_left(input->sysfs.gtt_total, input->sysfs.gtt_used);
  draft->gtt.total_bytes = gm__min(input->sysfs.gtt_total, host ? host->mem_total_bytes : GM_UNKNOWN_BYTES);
  draft->gtt.free_bytes = gm__min(gm__min(left, draft->gtt.total_bytes), draft->free_by_os_bytes);
  uint64_t vram_left = figures_hip_left(input->sysfs.vram_total, input->sysfs.vram_used);
  bool carved = vram_left != GM_UNKNOWN_BYTES;
  if (carved) draft->vram = (gm_memory_part){input->sysfs.vram_total, vram_left};
  uint64_t total = gm__figures_sum(draft->gtt.total_bytes, carved ? draft->vram.total_bytes : 0);
  uint64_t free_bytes = gm__figures_sum(draft->gtt.free_bytes, carved ? draft->vram.free_bytes : 0);
  gm__figures_set_total(draft, total, GM_SOURCE_SYSFS);
  gm__figures_set_free(draft, free_bytes, GM_SOURCE_SYSFS, GM_FIGURE_ESTIMATED);
}

/* D9. HIP's own figures may be an aperture or half the RAM, and free above total: only when the files are missing. */
static void figures_hip_integrated(const gm__figures_input *input, gm_memory_info *draft) {
  const gm_raw_figures *raw = input->raw;
  if (input->host) draft->free_by_os_bytes = input->host->mem_available_bytes;
  if (figures_hip_left(input->sysfs.gtt_total, input->sysfs.gtt_used) != GM_UNKNOWN_BYTES) {
    figures_hip_parts(input, draft);
    return;
  }
  gm__figures_set_total(draft, figures_hip_total(raw), GM_SOURCE_DRIVER);
  if (!gm__figures_answered(&raw->driver)) return;
  gm__figures_set_free(draft, raw->driver.free_bytes, GM_SOURCE_DRIVER, GM_FIGURE_ESTIMATED);
  gm__figures_bound_free(draft, draft->free_by_os_bytes, GM_SOURCE_OS);
}

void gm__figures_hip(const gm__figures_input *input, gm_memory_info *draft) {
  if (input->raw->place == GM_RAW_OWN_MEMORY) {
    figures_hip_discrete(input, draft);
  } else if (input->managed) {
    gm__figures_set_host(input, draft);
  } else {
    figures_hip_integrated(input, draft);
  }
}
