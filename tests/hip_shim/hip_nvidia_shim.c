/* The HIP runtime as HIP's own headers make it of CUDA's. It exports each entry that gm calls by its name, so that the
 * HIP backend can run on an NVIDIA card. It proves gm's use of HIP, and nothing of AMD's runtime. The lists of names
 * come from hip_syms.def (CMakeLists.txt). */
#include "hip_shim_rename.h"

#include <hip/hip_runtime_api.h>

#include "hip_shim_restore.h"

#define SHIM_LACKS(symbol, parameters, arguments)
#define SHIM_EXPORT(symbol, parameters, arguments) \
  hipError_t symbol parameters;                    \
  hipError_t symbol parameters { return nvidia_##symbol arguments; }
#define X(need, fault, symbol, parameters, arguments) SHIM_##symbol(symbol, parameters, arguments)
#include "backends/hip/hip_syms.def"
#undef X
