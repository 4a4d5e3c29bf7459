#include "fault/fault.h"

#include <stdlib.h>
#include <string.h>

fault_plan fault_now;
atomic_uint fault_host_calls;
unsigned fault_host_opened;
atomic_llong fault_host_live;

#if !GM_HAVE_BACKEND_CPU
fault_driver *const fault_cpu = NULL;
#endif
#if !GM_HAVE_BACKEND_CUDA
fault_driver *const fault_cuda = NULL;
#endif
#if !GM_HAVE_BACKEND_HIP
fault_driver *const fault_hip = NULL;
#endif
#if !GM_HAVE_BACKEND_OPENCL
fault_driver *const fault_opencl = NULL;
#endif
#if !GM_HAVE_BACKEND_VULKAN
fault_driver *const fault_vulkan = NULL;
#endif

static void *fault_alloc(void *user, size_t bytes, size_t align) {
  (void)user;
  if (atomic_fetch_add(&fault_host_calls, 1) + 1 == fault_now.host_call) return NULL;
  void *ptr = NULL;
  if (posix_memalign(&ptr, align < sizeof ptr ? sizeof ptr : align, bytes) != 0) return NULL;
  memset(ptr, 0xa5, bytes);
  atomic_fetch_add(&fault_host_live, (long long)bytes);
  return ptr;
}

static void fault_release(void *user, void *ptr, size_t bytes) {
  (void)user;
  memset(ptr, 0x5a, bytes); /* a wrong size, or a use after this, does not go unseen */
  atomic_fetch_sub(&fault_host_live, (long long)bytes);
  free(ptr);
}

const gm_services fault_services = {.alloc = fault_alloc, .release = fault_release};

fault_driver *fault_driver_of(const char *backend) {
  if (fault_cpu && strcmp(backend, fault_cpu->backend) == 0) return fault_cpu;
  if (fault_cuda && strcmp(backend, fault_cuda->backend) == 0) return fault_cuda;
  if (fault_hip && strcmp(backend, fault_hip->backend) == 0) return fault_hip;
  if (fault_opencl && strcmp(backend, fault_opencl->backend) == 0) return fault_opencl;
  if (fault_vulkan && strcmp(backend, fault_vulkan->backend) == 0) return fault_vulkan;
  return NULL;
}

static void fault_reset_driver(fault_driver *driver) {
  if (!driver) return;
  for (unsigned i = 0; i < driver->count; i++) {
    atomic_store(&driver->calls[i], 0);
    driver->opened[i] = 0;
  }
  atomic_store(&driver->all, 0);
  atomic_store(&driver->live, 0);
}

void fault_reset(void) {
  fault_reset_driver(fault_cpu);
  fault_reset_driver(fault_cuda);
  fault_reset_driver(fault_hip);
  fault_reset_driver(fault_opencl);
  fault_reset_driver(fault_vulkan);
  atomic_store(&fault_host_calls, 0);
  fault_host_opened = 0;
}

void fault_opened(void) {
  fault_driver *const drivers[] = {fault_cpu, fault_cuda, fault_hip, fault_opencl, fault_vulkan};
  for (unsigned k = 0; k < sizeof drivers / sizeof drivers[0]; k++) {
    for (unsigned i = 0; drivers[k] && i < drivers[k]->count; i++) {
      drivers[k]->opened[i] = atomic_load(&drivers[k]->calls[i]);
    }
  }
  fault_host_opened = atomic_load(&fault_host_calls);
}

bool fault_hits(fault_driver *driver, unsigned entry) {
  const unsigned call = atomic_fetch_add(&driver->calls[entry], 1) + 1;
  const unsigned of_all = atomic_fetch_add(&driver->all, driver->can_fail[entry]) + driver->can_fail[entry];
  if (driver == fault_now.driver && fault_now.lost_call) {
    return driver->can_fail[entry] && of_all >= fault_now.lost_call;
  }
  return driver == fault_now.driver && entry == fault_now.entry && call == fault_now.call;
}

void *fault_hook(void *user, const char *backend, const char *symbol, void *real) {
  (void)user;
  fault_driver *driver = fault_driver_of(backend);
  return driver && real ? driver->wrap(symbol, real) : real;
}
