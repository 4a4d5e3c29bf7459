/* The registered OpenCL drivers, read from files. No vendor code runs. */
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

/* Look where the loader looks: OCL_ICD_VENDORS (a directory, a manifest or a library), else /etc/OpenCL/vendors. A file
 * that gm cannot read counts as absent. */
void gm__opencl_icds_read(gm__opencl_icds *out);

/* GM_ERR_UNAVAILABLE when `icds` has PoCL and /sys below `root` (NULL: "") does not show the processors. PoCL would
 * then end the process with abort(). The loader starts every registered driver, so gm must not call it. */
gm_status gm__opencl_icds_check(const gm__opencl_icds *icds, const char *root, gm_error *err);

#endif
