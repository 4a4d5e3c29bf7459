/* The one place where "free" is made: raw figures of a device in, gm_memory_info out (rules D1 to D15). Pure: no file,
 * no driver, no lock, no allocation; the same input gives the same answer. Thread-safe. */
#ifndef GM_CORE_DEVICE_MEMORY_INFO_H
#define GM_CORE_DEVICE_MEMORY_INFO_H

#include "core/device/fdinfo.h"
#include "core/device/sysfs.h"
#include "gm/raw_figures.h"

typedef struct gm__figures_input {
  const gm_raw_figures *raw;
  const gm_host_info *host;   /* NULL: the host's figures are not known */
  const gm_memory_info *peer; /* of another API for the same physical device, or NULL */
  gm__sysfs_memory sysfs;     /* all unknown where there is none */
  gm__fdinfo_use fdinfo;      /* not valid where it was not read */
  uint64_t own_bytes;         /* held on the device by all gm contexts of the process */
  gm_memory_part carve_out;   /* memory of an APU that is no part of host RAM; unknown: `sysfs` is asked */
  bool managed;               /* the question is about managed allocations */
  uint64_t now_ns;
} gm__figures_input;

/* An input with nothing known but the raw figures. */
gm__figures_input gm__figures_input_of(const gm_raw_figures *raw);

gm_memory_info gm__memory_info_resolve(const gm__figures_input *input);

#endif
