#include "core/discovery/known.h"

#include <string.h>

extern const gm_backend_ops gm__cpu_backend;
extern const gm_backend_ops gm__null_backend;

#ifdef GM_HAVE_BACKEND_CUDA
extern const gm_backend_ops gm__cuda_backend;
#define KNOWN_CUDA &gm__cuda_backend
#else
#define KNOWN_CUDA NULL
#endif

#ifdef GM_HAVE_BACKEND_HIP
extern const gm_backend_ops gm__hip_backend;
#define KNOWN_HIP &gm__hip_backend
#else
#define KNOWN_HIP NULL
#endif

#ifdef GM_HAVE_BACKEND_OPENCL
extern const gm_backend_ops gm__opencl_backend;
#define KNOWN_OPENCL &gm__opencl_backend
#else
#define KNOWN_OPENCL NULL
#endif

#ifdef GM_HAVE_BACKEND_VULKAN
extern const gm_backend_ops gm__vulkan_backend;
#define KNOWN_VULKAN &gm__vulkan_backend
#else
#define KNOWN_VULKAN NULL
#endif

static const char *const known_cuda[] = {"libcuda.so.1", "libcuda.so", NULL};
static const char *const known_hip[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so",
                                        NULL};
static const char *const known_opencl[] = {"libOpenCL.so.1", "libOpenCL.so", NULL};
static const char *const known_vulkan[] = {"libvulkan.so.1", "libvulkan.so", NULL};

static const gm__known_backend known_backends[] = {
    {"cpu", GM_API_CPU, &gm__cpu_backend, "CPU", NULL, "", true},
    {"cuda", GM_API_CUDA, KNOWN_CUDA, "CUDA", known_cuda, "install the NVIDIA driver", false},
    {"hip", GM_API_HIP, KNOWN_HIP, "HIP", known_hip, "install ROCm's HIP runtime", false},
    {"opencl", GM_API_OPENCL, KNOWN_OPENCL, "OpenCL", known_opencl,
     "install an OpenCL loader (ocl-icd-libopencl1) and a driver", false},
    {"vulkan", GM_API_VULKAN, KNOWN_VULKAN, "Vulkan", known_vulkan, "install a Vulkan loader (libvulkan1) and a driver",
     false},
    {"metal", GM_API_METAL, NULL, "Metal", NULL, "", false},
    {"null", GM_API_NULL, &gm__null_backend, "null", NULL, "", true},
};

const gm__known_backend *gm__known_backend_at(size_t index) {
  return index < sizeof known_backends / sizeof *known_backends ? &known_backends[index] : NULL;
}

const gm__known_backend *gm__known_backend_find(const char *name) {
  if (strcmp(name, "rocm") == 0) name = "hip";
  for (size_t i = 0; i < sizeof known_backends / sizeof *known_backends; i++) {
    if (strcmp(known_backends[i].name, name) == 0) return &known_backends[i];
  }
  return NULL;
}
