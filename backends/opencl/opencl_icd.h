/* Which OpenCL drivers are registered, told from files: no vendor code runs. */
#ifndef GM_BACKENDS_OPENCL_ICD_H
#define GM_BACKENDS_OPENCL_ICD_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/status.h"

typedef struct gm__opencl_icds {
  uint32_t count; /* manifests, or the one driver that OCL_ICD_VENDORS names */
  bool pocl;      /* PoCL is among them */
  char where[160];
} gm__opencl_icds;

/* Look where the loader looks: OCL_ICD_VENDORS (a directory, a manifest or a library), else /etc/OpenCL/vendors. What
 * cannot be read counts as absent. */
void gm__opencl_icds_read(gm__opencl_icds *out);

/* GM_ERR_UNAVAILABLE when `icds` has PoCL and /sys below `root` (NULL: "") does not show the processors: its device
 * discovery then ends the process by abort(), so the loader, which starts every registered driver, must not be called.
 */
gm_status gm__opencl_icds_check(const gm__opencl_icds *icds, const char *root, gm_error *err);

#endif
