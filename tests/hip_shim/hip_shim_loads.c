/* The HIP backend on HIP's headers over CUDA's runtime: every required entry is found and called. Without a card that
 * is as far as it goes: over the simulated libcuda, CUDA's runtime says why. */
#include <stdio.h>
#include <string.h>

#include "backends/hip/hip_backend.h"
#include "core/base/alloc.h"

int main(void) {
  const gm_backend_host host = {
      .struct_size = sizeof host, .services = gm__default_services(), .options = "", .library = GM_HIP_SHIM};
  gm_driver_info info = {.struct_size = sizeof info};
  gm_error err = {0};
  const gm_status status = gm__hip_backend.probe(&host, GM_PROBE_ACTIVE, &info, &err);
  printf("%s: %s\n", gm_status_name(status), status == GM_OK ? info.version : err.message);
  if (status == GM_OK) return info.device_count == 0;
  return strcmp(err.op, "hipGetDeviceCount") != 0; /* hipInit and the version went well */
}
