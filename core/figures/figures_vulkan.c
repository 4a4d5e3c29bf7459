/* D11. A budget is a rough estimate for this process by its own definition, so the state is never "known". */
#include "core/base/saturate.h"
#include "core/figures/figures.h"
#include "core/figures/figures_rules.h"

enum { FIGURES_HEAP_DEVICE_LOCAL = 1 };

typedef struct figures_heap_sum {
  uint64_t total;
  uint64_t left;
  bool any;
} figures_heap_sum;

/* Four fifths, without overflow: what the driver lets others keep when it gives no budget. */
static uint64_t figures_vulkan_share(uint64_t bytes) { return bytes / 5 * 4 + bytes % 5 * 4 / 5; }

/* The budget counts what this process holds already. */
static uint64_t figures_vulkan_budget(const gm_raw_heap *heap, bool has_budget) {
  uint64_t budget = has_budget ? heap->budget_bytes : 0;
  if (budget >= UINT64_C(1) << 63) return 0; /* a negative number that wrapped */
  if (budget == 0) budget = figures_vulkan_share(heap->bytes);
  return gm__min(budget, heap->bytes);
}

static uint64_t figures_vulkan_heap_left(const gm_raw_heap *heap, bool has_budget) {
  const uint64_t usage = gm__max(has_budget ? heap->usage_bytes : 0, heap->own_bytes);
  return gm__sub_sat(figures_vulkan_budget(heap, has_budget), usage);
}

void gm__heaps_resolve(const gm_raw_figures *raw, gm__heap_figures *out) {
  const bool has_budget = raw->flags & GM_RAW_BUDGET;
  out->count = 0;
  for (uint32_t i = 0; raw->rules == GM_RAW_VULKAN && i < raw->heap_count && i < GM_RAW_HEAPS_MAX; i++) {
    const gm_raw_heap *heap = &raw->heaps[i];
    const bool local = raw->place != GM_RAW_OWN_MEMORY || heap->flags & FIGURES_HEAP_DEVICE_LOCAL;
    out->heaps[out->count++] = (gm_heap_info){.struct_size = sizeof(gm_heap_info),
                                              .flags = local ? GM_HEAP_DEVICE_LOCAL : GM_HEAP_HOST,
                                              .number = i,
                                              .free_state = GM_FIGURE_ESTIMATED,
                                              .free_source = has_budget ? GM_SOURCE_DRIVER : GM_SOURCE_OWN_ACCOUNTING,
                                              .total_bytes = heap->bytes,
                                              .budget_bytes = figures_vulkan_budget(heap, has_budget),
                                              .used_bytes = has_budget ? heap->usage_bytes : heap->own_bytes,
                                              .free_bytes = figures_vulkan_heap_left(heap, has_budget)};
  }
}

static bool figures_vulkan_counts(const gm_raw_figures *raw, const gm_raw_heap *heap) {
  return raw->place != GM_RAW_OWN_MEMORY || (heap->flags & FIGURES_HEAP_DEVICE_LOCAL);
}

/* Heaps add up, except where the smaller ones are windows on the largest. */
static void figures_vulkan_add(const gm_raw_figures *raw, const gm_raw_heap *heap, figures_heap_sum *sum) {
  uint64_t left = figures_vulkan_heap_left(heap, raw->flags & GM_RAW_BUDGET);
  bool windows = (raw->flags & GM_RAW_ONE_LOCAL_HEAP) && raw->place == GM_RAW_OWN_MEMORY;
  if (!windows || !sum->any) {
    sum->total = gm__figures_sum(sum->total, heap->bytes);
    sum->left = gm__figures_sum(sum->left, left);
  } else if (heap->bytes > sum->total) {
    sum->total = heap->bytes;
    sum->left = left;
  }
  sum->any = true;
}

/* Memory of an APU that is no part of host RAM; none where nobody tells. */
static gm_memory_part figures_vulkan_carve_out(const gm__figures_input *input) {
  gm_memory_part part = input->carve_out;
  if (part.total_bytes == GM_UNKNOWN_BYTES && input->sysfs.vram_used != GM_UNKNOWN_BYTES) {
    part.total_bytes = input->sysfs.vram_total;
    part.free_bytes = gm__sub_sat(input->sysfs.vram_total, input->sysfs.vram_used);
  }
  if (part.total_bytes == GM_UNKNOWN_BYTES) part = (gm_memory_part){0, 0};
  if (part.free_bytes == GM_UNKNOWN_BYTES) part.free_bytes = part.total_bytes;
  return part;
}

/* Heaps of a device that uses host memory may add up to more than the machine has. */
static void figures_vulkan_bound_by_host(const gm__figures_input *input, gm_memory_info *draft) {
  if (!draft->unified || !input->host) return;
  gm_memory_part carve_out = figures_vulkan_carve_out(input);
  uint64_t total = gm__figures_sum(input->host->total_bytes, carve_out.total_bytes);
  if (total < draft->total_bytes) gm__figures_set_total(draft, total, GM_SOURCE_OS);
  gm__figures_bound_free(draft, gm__figures_sum(input->host->free_bytes, carve_out.free_bytes), GM_SOURCE_OS);
}

void gm__figures_vulkan(const gm__figures_input *input, gm_memory_info *draft) {
  const gm_raw_figures *raw = input->raw;
  figures_heap_sum sum = {0};
  for (uint32_t i = 0; i < raw->heap_count && i < GM_RAW_HEAPS_MAX; i++) {
    if (figures_vulkan_counts(raw, &raw->heaps[i])) figures_vulkan_add(raw, &raw->heaps[i], &sum);
  }
  if (!sum.any || sum.total == 0) return;
  bool budget = raw->flags & GM_RAW_BUDGET;
  if (budget) draft->free_by_driver_bytes = sum.left;
  gm__figures_set_total(draft, sum.total, GM_SOURCE_DRIVER);
  gm__figures_set_free(draft, sum.left, budget ? GM_SOURCE_DRIVER : GM_SOURCE_OWN_ACCOUNTING, GM_FIGURE_ESTIMATED);
  figures_vulkan_bound_by_host(input, draft);
}
