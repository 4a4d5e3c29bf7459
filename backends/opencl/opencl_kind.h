/* The kinds of memory of a device, their order, and its memory types. */
#ifndef GM_BACKENDS_OPENCL_KIND_H
#define GM_BACKENDS_OPENCL_KIND_H

#include "backends/opencl/opencl_syms.h"

typedef enum gm__opencl_kind {
  GM__OPENCL_BUFFER = 0,
  GM__OPENCL_BUFFER_HOST,   /* CL_MEM_ALLOC_HOST_PTR */
  GM__OPENCL_BUFFER_SHARED, /* over fine-grained SVM: kernels take the buffer, and the host has its bytes always */
  GM__OPENCL_SVM,           /* coarse-grained: the host must map it */
  GM__OPENCL_SVM_FINE,
  GM__OPENCL_USM_DEVICE, /* Intel's unified shared memory */
  GM__OPENCL_USM_HOST,
  GM__OPENCL_USM_SHARED
} gm__opencl_kind;

enum { GM__OPENCL_KINDS_MAX = GM__OPENCL_USM_SHARED + 1 };

static inline bool gm__opencl_kind_is_svm(gm__opencl_kind kind) {
  return kind == GM__OPENCL_SVM || kind == GM__OPENCL_SVM_FINE;
}

/* Is there an address behind it: its own, or that of the SVM below a buffer? */
static inline bool gm__opencl_kind_has_address(gm__opencl_kind kind) { return kind >= GM__OPENCL_BUFFER_SHARED; }

static inline bool gm__opencl_kind_is_usm(gm__opencl_kind kind) { return kind >= GM__OPENCL_USM_DEVICE; }

/* The family of memory that the engine's kernels take: the option `memory=`. */
typedef enum gm__opencl_family { GM__OPENCL_BUFFERS = 0, GM__OPENCL_SVMS, GM__OPENCL_USMS } gm__opencl_family;

/* Immutable. The index of a kind is the index of its memory type. */
typedef struct gm__opencl_kinds {
  uint32_t count;
  uint32_t first; /* the first `first` kinds are the family that pools take; the others are GM_MEMORY_APART */
  gm__opencl_kind kinds[GM__OPENCL_KINDS_MAX];
  gm__opencl_usm usm;
} gm__opencl_kinds;

/* Read the preferred family from `options`: "", "memory=buffer", "memory=svm" or "memory=usm". Otherwise
 * INVALID_ARGUMENT.
 */
gm_status gm__opencl_family_read(const char *options, gm__opencl_family *out, gm_error *err);

/* Put the preferred family first, where the device has it, and set info->capabilities to match. `svm` is
 * CL_DEVICE_SVM_CAPABILITIES. A buffer over SVM needs a device whose memory is the host's (info->unified). `usm` has
 * the bit 1 << kind for each of the last three kinds. */
void gm__opencl_kinds_sort(gm__opencl_kinds *kinds, gm__opencl_family preferred, uint64_t svm, uint32_t usm,
                           gm_device_info *info);

/* The index of a kind. UINT32_MAX: the device does not have it. */
uint32_t gm__opencl_kinds_find(const gm__opencl_kinds *kinds, gm__opencl_kind kind);

/* Does memory of this kind count against the device's size? The host memory of a discrete device does not. */
bool gm__opencl_kind_counts(gm__opencl_kind kind, const gm_device_info *info);

/* The memory type with this index. REQUIRES: `index` is below kinds->count. */
gm_memory_type gm__opencl_kind_type(const gm__opencl_kinds *kinds, uint32_t index, const gm_device_info *info);

#endif
