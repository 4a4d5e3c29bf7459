#include "backends/opencl/opencl_kind.h"

#include <string.h>

#include "core/base/error.h"

/* A pool never mixes families: a kernel that takes a cl_mem cannot use an address, and the other way round. So one
 * family comes first, buffers unless the option says otherwise. The other families stand apart. */

gm_status gm__opencl_family_read(const char *options, gm__opencl_family *out, gm_error *err) {
  static const char *const words[] = {"memory=buffer", "memory=svm", "memory=usm"};
  *out = GM__OPENCL_BUFFERS;
  if (!options || !*options) return GM_OK;
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (strcmp(options, words[i]) != 0) continue;
    *out = (gm__opencl_family)i;
    return GM_OK;
  }
  return gm__bad_argument(err, "opencl",
                          "the OpenCL backend's one switch is memory=buffer, memory=svm or memory=usm, was given "
                          "`%.100s`",
                          options);
}

/* Fine-grained SVM below a buffer is the only memory that OpenCL lets a kernel take as a cl_mem while the host uses it.
 * On a device with memory of its own it would be far from the kernels. */
static bool kinds_share(uint64_t svm, const gm_device_info *info) {
  return info->unified && svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER;
}

static void kinds_add(gm__opencl_kinds *kinds, gm__opencl_family family, uint64_t svm, uint32_t usm,
                      const gm_device_info *info) {
  if (family == GM__OPENCL_BUFFERS) {
    kinds->kinds[kinds->count++] = GM__OPENCL_BUFFER;
    kinds->kinds[kinds->count++] = GM__OPENCL_BUFFER_HOST;
    if (kinds_share(svm, info)) kinds->kinds[kinds->count++] = GM__OPENCL_BUFFER_SHARED;
  } else if (family == GM__OPENCL_SVMS) {
    if (svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) kinds->kinds[kinds->count++] = GM__OPENCL_SVM;
    if (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) kinds->kinds[kinds->count++] = GM__OPENCL_SVM_FINE;
  } else {
    for (uint32_t kind = GM__OPENCL_USM_DEVICE; kind <= GM__OPENCL_USM_SHARED; kind++) {
      if (usm >> kind & 1) kinds->kinds[kinds->count++] = (gm__opencl_kind)kind;
    }
  }
}

void gm__opencl_kinds_sort(gm__opencl_kinds *kinds, gm__opencl_family preferred, uint64_t svm, uint32_t usm,
                           gm_device_info *info) {
  kinds->count = 0;
  kinds_add(kinds, preferred, svm, usm, info);
  if (kinds->count == 0) {
    preferred = GM__OPENCL_BUFFERS;
    kinds_add(kinds, preferred, svm, usm, info);
  }
  kinds->first = kinds->count;
  for (int family = GM__OPENCL_BUFFERS; family <= GM__OPENCL_USMS; family++) {
    if (family != (int)preferred) kinds_add(kinds, (gm__opencl_family)family, svm, usm, info);
  }
  if (preferred != GM__OPENCL_BUFFERS) info->capabilities |= GM_CAP_ADDRESS;
  if (preferred == GM__OPENCL_USMS) info->capabilities &= ~(uint64_t)GM_CAP_VIEW;
  const bool shared = gm__opencl_kinds_find(kinds, GM__OPENCL_USM_SHARED) != UINT32_MAX;
  if (shared && kinds->usm.clEnqueueMigrateMemINTEL) info->capabilities |= GM_CAP_MANAGED;
}

uint32_t gm__opencl_kinds_find(const gm__opencl_kinds *kinds, gm__opencl_kind kind) {
  for (uint32_t i = 0; i < kinds->count; i++) {
    if (kinds->kinds[i] == kind) return i;
  }
  return UINT32_MAX;
}

bool gm__opencl_kind_counts(gm__opencl_kind kind, const gm_device_info *info) {
  const bool host = kind == GM__OPENCL_BUFFER_HOST || kind == GM__OPENCL_SVM_FINE || kind == GM__OPENCL_USM_HOST;
  return info->unified || !host;
}

/* A mapping makes host and device agree, so nothing needs a flush. Drivers may take memory at its first use. */
static uint32_t kind_flags(gm__opencl_kind kind, bool unified) {
  const uint32_t mapped = GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_COHERENT;
  const uint32_t pointer = mapped | GM_MEMORY_HOST_POINTER | GM_MEMORY_PERSISTENT_MAP;
  const uint32_t own = GM_MEMORY_DEVICE_LOCAL | (unified ? GM_MEMORY_SYSTEM : 0u);
  const uint32_t local = own | (unified ? GM_MEMORY_HOST_CACHED : 0u);
  const uint32_t host = unified ? local : GM_MEMORY_HOST_CACHED | GM_MEMORY_PINNED | GM_MEMORY_SYSTEM;
  switch (kind) {
    case GM__OPENCL_BUFFER:
    case GM__OPENCL_SVM: return mapped | local | GM_MEMORY_LAZY;
    case GM__OPENCL_BUFFER_HOST: return mapped | host | GM_MEMORY_LAZY;
    case GM__OPENCL_BUFFER_SHARED:
    case GM__OPENCL_SVM_FINE:
    case GM__OPENCL_USM_HOST: return pointer | host | GM_MEMORY_LAZY;
    case GM__OPENCL_USM_DEVICE: return own | GM_MEMORY_LAZY;
    case GM__OPENCL_USM_SHARED: break;
  }
  return pointer | GM_MEMORY_HOST_CACHED | GM_MEMORY_MANAGED | GM_MEMORY_LAZY;
}

/* On a discrete device the host kinds lie in page-locked memory: another heap, of unknown size. */
gm_memory_type gm__opencl_kind_type(const gm__opencl_kinds *kinds, uint32_t index, const gm_device_info *info) {
  const gm__opencl_kind kind = kinds->kinds[index];
  const bool counts = gm__opencl_kind_counts(kind, info);
  return (gm_memory_type){.struct_size = sizeof(gm_memory_type),
                          .flags = kind_flags(kind, info->unified) | (index < kinds->first ? 0u : GM_MEMORY_APART),
                          .heap = counts ? 0 : 1,
                          .heap_bytes = counts ? info->total_bytes : 0,
                          .max_alloc_bytes = info->max_alloc_bytes,
                          .atom_bytes = 1};
}
