#include "backends/cuda/cuda_program.h"

#include "backends/cuda/cuda_program_copy_many.h"
#include "backends/cuda/cuda_program_expand.h"
#include "core/base/error.h"

/* Fills of CUDA need no program. */
static const char *const cuda_program_texts[GM__RUNTIME_PROGRAMS] = {
    [GM__RUNTIME_COPY_MANY] = cuda_program_copy_many,
    [GM__RUNTIME_EXPAND] = cuda_program_expand,
};

gm_status gm__cuda_program_code(gm__runtime_device *device, gm__runtime_program_id id, gm__runtime_code *out,
                                gm_error *err) {
  const gm__cuda_syms *cu = gm__cuda_of(device);
  if (!cu->cuModuleLoadData || !cu->cuModuleUnload || !cu->cuModuleGetFunction || !cu->cuLaunchKernel) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, "cuModuleLoadData", "the driver has no modules");
  }
  *out = (gm__runtime_code){.bytes = cuda_program_texts[id]};
  return GM_OK;
}
