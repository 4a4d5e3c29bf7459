/* Which entries of the APIs are one physical device, and whose memory counts (rules I1 to I10). Pure: it works on
 * the caller's array alone. Names, sizes and the order of the APIs change nothing. */
#ifndef GM_CORE_DISCOVERY_IDENTITY_H
#define GM_CORE_DISCOVERY_IDENTITY_H

#include "core/host/pci.h"
#include "gm/device_info.h"

enum { GM__IDENTITY_UUID_SIZE = 64, GM__IDENTITY_LUID_SIZE = 24, GM__IDENTITY_NO_PARENT = -1 };

/* One entry of one API. Pointers are borrowed; NULL or "" where the API does not tell. */
typedef struct gm__identity {
  const char *api; /* "cuda", "hip", "sysfs", "nvml", "vulkan", "opencl", "cpu", … */
  const char *vendor;
  const char *driver;
  const char *pci;
  const char *partition;
  char uuid[GM__IDENTITY_UUID_SIZE]; /* in the API's form; gm__identity_group normalises it, "" if it is none */
  char luid[GM__IDENTITY_LUID_SIZE];
  gm_device_type type;
  int32_t parent;       /* index of the entry that this one is a partition of, or GM__IDENTITY_NO_PARENT */
  uint64_t total_bytes; /* GM_UNKNOWN_BYTES: unknown */

  /* Filled by gm__identity_group. */
  gm__pci address;
  uint32_t group; /* equal: one physical device; numbered from 0 by first entry */
  bool host_pool; /* its memory is host memory */
  bool counted;   /* false: its memory must not be added to anything */
} gm__identity;

/* The entry of a backend's device. Borrows strings of `info`; a UUID that gm made itself is left out. */
gm__identity gm__identity_of_device(const gm_device_info *info);

/* Group `count` entries. Returns how many groups there are. */
uint32_t gm__identity_group(gm__identity *entries, uint32_t count);

/* The sum of all devices' own memory, each device once. */
uint64_t gm__identity_device_memory(const gm__identity *entries, uint32_t count);

/* ---- proofs from two entries alone: rules I2 to I6 ---- */

/* The first: both strings are there and equal. The second: they are equal, or both missing. */
bool gm__identity_text_equal(const char *a, const char *b);
bool gm__identity_text_same(const char *a, const char *b);

bool gm__identity_is_gpu_of(const gm__identity *entry, const char *vendor);

/* Fill `address` and bring `uuid` into its normal form (rule I1). A second call changes nothing. */
void gm__identity_normalise(gm__identity *entry);

/* True: they are two devices for certain. This outweighs every proof of the contrary. Symmetric. */
bool gm__identity_differ(const gm__identity *a, const gm__identity *b);

/* True: they are one device for certain. Symmetric. */
bool gm__identity_equal(const gm__identity *a, const gm__identity *b);

#endif
