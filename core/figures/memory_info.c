/* The answer obeys these, whatever the rules of an API say: free <= total; free <= total - what gm holds. The state is
 * unknown exactly when there is no free figure. No arithmetic wraps. */
#include "core/figures/memory_info.h"

#include "core/base/saturate.h"
#include "core/figures/figures.h"
#include "core/figures/figures_rules.h"

/* For an API that gm has no rules for. A total alone leaves what gm does not hold as the upper bound. */
static void figures_driver(const gm__figures_input *input, gm_memory_info *draft) {
  const gm_raw_reply *driver = &input->raw->driver;
  uint64_t total = gm__figures_total(driver);
  if (total == GM_UNKNOWN_BYTES) total = gm__figures_total(&input->raw->device_total);
  gm__figures_set_total(draft, total, GM_SOURCE_DRIVER);
  if (gm__figures_answered(driver)) {
    gm__figures_set_free(draft, driver->free_bytes, GM_SOURCE_DRIVER, GM_FIGURE_KNOWN);
  } else if (total != GM_UNKNOWN_BYTES && !input->listed) { /* of a list: gm__figures_estimate knows more */
    gm__figures_set_free(draft, gm__sub_sat(total, input->own_bytes), GM_SOURCE_OWN_ACCOUNTING, GM_FIGURE_ESTIMATED);
  }
}

static void figures_by_rules(const gm__figures_input *input, gm_memory_info *draft) {
  switch (input->raw->rules) {
    case GM_RAW_DRIVER: figures_driver(input, draft); break;
    case GM_RAW_HOST: gm__figures_set_host(input, draft); break;
    case GM_RAW_CUDA: gm__figures_cuda(input, draft); break;
    case GM_RAW_HIP: gm__figures_hip(input, draft); break;
    case GM_RAW_OPENCL: gm__figures_opencl(input, draft); break;
    case GM_RAW_VULKAN: gm__figures_vulkan(input, draft); break;
  }
}

/* D12: the driver's figure stands, but memory may be made resident elsewhere and residency fails earlier. */
static void figures_wddm(const gm__figures_input *input, gm_memory_info *draft) {
  if ((input->raw->flags & GM_RAW_WDDM) && draft->free_state == GM_FIGURE_KNOWN) {
    draft->free_state = GM_FIGURE_ESTIMATED;
  }
}

/* Bytes that others hold. With own accounting nothing was measured about them: free is the total less gm's own
 * bytes. */
static uint64_t figures_others(const gm__figures_input *input, const gm_memory_info *draft) {
  if (draft->total_bytes == GM_UNKNOWN_BYTES || draft->free_bytes == GM_UNKNOWN_BYTES) return GM_UNKNOWN_BYTES;
  if (draft->free_source == GM_SOURCE_OWN_ACCOUNTING && !input->fdinfo.valid) return GM_UNKNOWN_BYTES;
  return gm__sub_sat(gm__sub_sat(draft->total_bytes, draft->free_bytes), input->own_bytes);
}

gm__figures_input gm__figures_input_of(const gm_raw_figures *raw) {
  return (gm__figures_input){
      .raw = raw,
      .sysfs = {GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES},
      .process = {GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES},
      .carve_out = {GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES},
  };
}

/* A device that is the host has its memory in this process's address space (D15). */
static void figures_process(const gm__figures_input *input, gm_memory_info *draft) {
  const gm_memory_part *process = &input->process;
  if (input->raw->rules != GM_RAW_HOST && input->raw->place != GM_RAW_CPU_DEVICE) return;
  if (process->total_bytes < draft->total_bytes) gm__figures_set_total(draft, process->total_bytes, GM_SOURCE_OS);
  gm__figures_bound_free(draft, process->free_bytes, GM_SOURCE_OS);
}

/* One bound of a group. It is as good as the figure that it lowers, unless it is an upper bound itself. */
static void figures_bound_by_group(gm_memory_info *draft, uint64_t total, uint64_t left, bool partly) {
  if (total < draft->total_bytes) gm__figures_set_total(draft, total, GM_SOURCE_GROUP);
  if (draft->free_state == GM_FIGURE_UNKNOWN || left >= draft->free_bytes) return;
  gm__figures_set_free(draft, left, GM_SOURCE_GROUP, partly ? GM_FIGURE_ESTIMATED : draft->free_state);
}

/* D16. Borrowed memory only MPS takes back by force. NVML tells it where the kernel has no such files. */
static void figures_groups(const gm__figures_input *input, gm_memory_info *draft) {
  const gm_raw_figures *raw = input->raw;
  const gm_raw_limits *limits = &raw->limits;
  if (raw->place != GM_RAW_OWN_MEMORY || raw->rules == GM_RAW_HOST) return;
  if (input->dmem) {
    figures_bound_by_group(draft, input->dmem->total_bytes, input->dmem->free_bytes, input->dmem->partly);
    if (raw->rules == GM_RAW_CUDA) draft->borrowed_bytes = input->dmem->borrowed_bytes;
  }
  if (limits->state != GM_RAW_OK) return;
  if (limits->hard_bytes != UINT64_MAX) {
    figures_bound_by_group(draft, limits->hard_bytes, gm__sub_sat(limits->hard_bytes, limits->used_bytes), false);
  }
  const uint64_t borrowed = limits->soft_bytes ? gm__sub_sat(limits->used_bytes, limits->soft_bytes) : 0;
  draft->borrowed_bytes = gm__max(draft->borrowed_bytes, borrowed);
}

gm_memory_info gm__memory_info_resolve(const gm__figures_input *input) {
  const gm_raw_figures *raw = input->raw;
  gm_memory_part none = {GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES};
  gm_memory_info info = {
      .struct_size = sizeof info,
      .unified = raw->place != GM_RAW_OWN_MEMORY || raw->rules == GM_RAW_HOST,
      .total_bytes = GM_UNKNOWN_BYTES,
      .free_bytes = GM_UNKNOWN_BYTES,
      .free_by_driver_bytes = gm__figures_answered(&raw->driver) ? raw->driver.free_bytes : GM_UNKNOWN_BYTES,
      .used_by_us_bytes = input->own_bytes,
      .vram = none,
      .gtt = none,
      .read_at_ns = input->now_ns,
  };
  info.free_by_os_bytes = info.unified && input->host ? input->host->free_bytes : GM_UNKNOWN_BYTES;
  figures_by_rules(input, &info);
  const bool estimated = gm__figures_estimate(input, &info);
  figures_wddm(input, &info);
  figures_process(input, &info);
  figures_groups(input, &info);
  gm__figures_bound_free(&info, info.total_bytes, info.total_source);
  if (info.total_bytes != GM_UNKNOWN_BYTES) {
    gm__figures_bound_free(&info, gm__sub_sat(info.total_bytes, input->own_bytes), GM_SOURCE_OWN_ACCOUNTING);
  }
  info.used_by_others_bytes = estimated ? GM_UNKNOWN_BYTES : figures_others(input, &info);
  info.nvml_used_by_others_bytes = gm__figures_nvml_others(raw);
  return info;
}

uint64_t gm__effective_free(const gm_memory_info *memory) {
  if (memory->free_bytes == GM_UNKNOWN_BYTES) return 0;
  return gm__min(gm__add_sat(memory->free_bytes, memory->reclaimable_bytes), memory->total_bytes);
}

uint64_t gm__headroom(const gm_memory_info *memory, double fraction, uint64_t keep_free_bytes) {
  if (memory->total_bytes == GM_UNKNOWN_BYTES) return 0;
  uint64_t share = gm__scale_sat(memory->total_bytes, fraction);
  uint64_t used = memory->used_by_us_bytes == GM_UNKNOWN_BYTES ? 0 : memory->used_by_us_bytes;
  uint64_t by_share = gm__sub_sat(share, gm__sub_sat(used, memory->reclaimable_bytes));
  uint64_t by_free = gm__sub_sat(gm__effective_free(memory), keep_free_bytes);
  by_free = gm__sub_sat(by_free, memory->promised_by_others_bytes);
  return gm__sub_sat(gm__min(by_share, by_free), memory->promised_bytes);
}

uint64_t gm__margin_auto(uint64_t total_bytes) {
  const uint64_t share = total_bytes / 20, most = 512u << 20;
  return share < most ? share : most;
}
