#include "backends/hip/hip_range.h"

#include "core/base/alloc.h"
#include "core/base/error.h"

/* Invariants: `mapped` of a range says what HIP has mapped in it. A range that is not lost is reserved. */

gm_status gm__hip_range_take(gm__hip_device *device, uint64_t bytes, uint64_t align, gm__hip_range **out,
                             gm_error *err) {
  void *address = NULL;
  gm__hip_range *range = gm__alloc(device->base.services, sizeof *range);
  if (!range) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "hip", "no host memory for the range's record");
  *range = (gm__hip_range){.bytes = bytes, .align = align};
  gm__map_init(&range->mapped, device->base.services);
  const hipError_t code = gm__hip_of(device)->hipMemAddressReserve(&address, (size_t)bytes, (size_t)align, NULL, 0);
  gm_status status = GM_OK;
  if (code != hipSuccess) {
    status = gm__runtime_fail(&device->base, (int)code, "hipMemAddressReserve", err);
  } else if (!address) {
    status = gm__runtime_nonsense(&device->base, "hipMemAddressReserve", "gave no address", err);
  }
  if (status != GM_OK) {
    gm__hip_range_discard(device, range);
    return status;
  }
  range->address = (uintptr_t)address;
  *out = range;
  return GM_OK;
}

void gm__hip_range_add(gm__hip_device *device, gm__hip_range *range) {
  range->next = device->ranges;
  device->ranges = range;
}

gm__hip_range *gm__hip_range_remove(gm__hip_device *device, uint64_t address) {
  gm__hip_range **at = &device->ranges;
  while (*at && (*at)->address != address) at = &(*at)->next;
  gm__hip_range *range = *at;
  if (range) *at = range->next;
  return range;
}

void gm__hip_range_discard(gm__hip_device *device, gm__hip_range *range) {
  if (!range) return;
  gm__map_clear(&range->mapped);
  gm__release(device->base.services, range, sizeof *range);
}

static gm_status hip_range_find(const gm__hip_device *device, uint64_t address, uint64_t bytes, gm__hip_range **out,
                                gm_error *err) {
  gm__hip_range *range = device->ranges;
  while (range && (address < range->address || address - range->address >= range->bytes)) range = range->next;
  if (!range || bytes == 0 || bytes > range->bytes - (address - range->address)) {
    return gm__bad_argument(err, "hip", "%llu bytes at %#llx are in no range that was reserved",
                            (unsigned long long)bytes, (unsigned long long)address);
  }
  *out = range;
  return GM_OK;
}

gm_status gm__hip_range_map(gm__hip_device *device, const gm__hip_mapping *mapping, gm_error *err) {
  gm__hip_range *range = NULL;
  gm_status status = hip_range_find(device, mapping->address, mapping->bytes, &range, err);
  if (status != GM_OK) return status;
  if (range->lost) {
    return gm__fail(err, GM_ERR_DRIVER, "hipMemAddressReserve",
                    "HIP did not give the range at %#llx again after it was emptied: reserve another",
                    (unsigned long long)range->address);
  }
  status = gm__map_reserve(&range->mapped, range->mapped.count + 1);
  if (status != GM_OK) return gm__fail(err, status, "hipMemMap", "no host memory for the mapping's record");
  const hipError_t code =
      gm__hip_of(device)->hipMemMap(gm__hip_at(mapping->address), (size_t)mapping->bytes, (size_t)mapping->offset,
                                    (hipMemGenericAllocationHandle_t)(uintptr_t)mapping->handle, 0);
  if (code != hipSuccess) return gm__runtime_fail(&device->base, (int)code, "hipMemMap", err);
  return gm__map_insert(&range->mapped, mapping->address, mapping->bytes); /* has room */
}

/* [address, address + bytes) is a row of whole mappings. */
static gm_status hip_range_check_row(const gm__hip_range *range, uint64_t address, uint64_t bytes, gm_error *err) {
  uint64_t piece = 0;
  for (uint64_t done = 0; done < bytes; done += piece) {
    if (gm__map_find(&range->mapped, address + done, &piece) && piece <= bytes - done) continue;
    return gm__bad_argument(err, "hip", "%llu bytes at %#llx are not whole mappings", (unsigned long long)bytes,
                            (unsigned long long)address);
  }
  return GM_OK;
}

/* Give an empty range back and reserve it again at the same place. If that fails the range is lost, which the next map
 * says. */
static void hip_range_renew(gm__hip_device *device, gm__hip_range *range) {
  void *at = gm__hip_at(range->address), *got = NULL;
  const gm__hip_syms *hip = gm__hip_of(device);
  range->lost = true;
  if (hip->hipMemAddressFree(at, (size_t)range->bytes) != hipSuccess) return;
  if (hip->hipMemAddressReserve(&got, (size_t)range->bytes, (size_t)range->align, at, 0) != hipSuccess) return;
  range->lost = got != at;
  if (got && got != at) hip->hipMemAddressFree(got, (size_t)range->bytes);
}

/* A mapping that fails does not keep the others mapped. */
gm_status gm__hip_range_unmap(gm__hip_device *device, uint64_t address, uint64_t bytes, gm_error *err) {
  gm__hip_range *range = NULL;
  hipError_t failed = hipSuccess;
  gm_status status = hip_range_find(device, address, bytes, &range, err);
  if (status == GM_OK) status = hip_range_check_row(range, address, bytes, err);
  if (status != GM_OK) return status;
  for (uint64_t done = 0, piece = 0; done < bytes; done += piece) {
    gm__map_remove(&range->mapped, address + done, &piece);
    const hipError_t code = gm__hip_of(device)->hipMemUnmap(gm__hip_at(address + done), (size_t)piece);
    if (code != hipSuccess) failed = code;
  }
  if (range->mapped.count == 0 && failed == hipSuccess) hip_range_renew(device, range);
  return gm__runtime_released(&device->base, (int)failed, "hipMemUnmap", err);
}

gm_status gm__hip_range_access(gm__hip_device *device, int ordinal, uint64_t address, uint64_t bytes, gm_error *err) {
  gm__hip_range *range = NULL;
  hipMemAccessDesc access = {.flags = hipMemAccessFlagsProtReadWrite};
  access.location.type = hipMemLocationTypeDevice;
  access.location.id = ordinal;
  gm_status status = hip_range_find(device, address, bytes, &range, err);
  if (status == GM_OK) status = hip_range_check_row(range, address, bytes, err);
  for (uint64_t done = 0, piece = 0; status == GM_OK && done < bytes; done += piece) {
    gm__map_find(&range->mapped, address + done, &piece);
    const hipError_t code = gm__hip_of(device)->hipMemSetAccess(gm__hip_at(address + done), (size_t)piece, &access, 1);
    if (code != hipSuccess) status = gm__runtime_fail(&device->base, (int)code, "hipMemSetAccess", err);
  }
  return status;
}
