#include "backends/null/null_range.h"

#include "core/base/alloc.h"
#include "core/base/error.h"

/* A free range serves only its own order again. This wastes addresses, and there are plenty: all orders together never
 * hold more than 2 * 48 times the capacity. Take and free are O(1), whatever is live. */

#define RANGE_ADDRESSES (UINT64_C(1) << 47)

void gm__null_ranges_init(gm__null_ranges *ranges, const gm_services *services, uint32_t index) {
  *ranges = (gm__null_ranges){.services = services, .next = (UINT64_C(1) << 48) + index * RANGE_ADDRESSES};
  ranges->end = ranges->next + RANGE_ADDRESSES;
}

void gm__null_ranges_clear(gm__null_ranges *ranges) {
  for (uint32_t order = 0; order < GM__NULL_RANGE_CLASSES; order++) {
    while (ranges->unused[order]) {
      gm__null_range *range = ranges->unused[order];
      ranges->unused[order] = range->next;
      gm__release(ranges->services, range, sizeof *range);
    }
  }
}

static uint32_t range_order(uint64_t bytes) {
  uint32_t order = 0;
  while ((UINT64_C(1) << order) < bytes) order++;
  return order;
}

static gm_status range_make(gm__null_ranges *ranges, uint32_t order, gm__null_range **out, gm_error *err) {
  const uint64_t size = UINT64_C(1) << order;
  const uint64_t address = (ranges->next + size - 1) & ~(size - 1);
  if (address > ranges->end || size > ranges->end - address) {
    return gm__fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, "null memory", "no range of 2^%u addresses is left", order);
  }
  gm__null_range *range = gm__alloc(ranges->services, sizeof *range);
  if (!range) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "null memory", "no host memory for the record");
  range->address = address;
  range->order = order;
  ranges->next = address + size;
  *out = range;
  return GM_OK;
}

gm_status gm__null_range_take(gm__null_ranges *ranges, uint64_t bytes, uint64_t align, gm__null_range **out,
                              gm_error *err) {
  const uint32_t order = range_order(bytes > align ? bytes : align);
  gm__null_range *range = ranges->unused[order];
  if (!range) return range_make(ranges, order, out, err);
  ranges->unused[order] = range->next;
  *out = range;
  return GM_OK;
}

void gm__null_range_free(gm__null_ranges *ranges, gm__null_range *range) {
  range->next = ranges->unused[range->order];
  ranges->unused[range->order] = range;
}
