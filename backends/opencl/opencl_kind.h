/* The kinds of memory that a device has, which of them come first, and what its memory types are. */
#ifndef GM_BACKENDS_OPENCL_KIND_H
#define GM_BACKENDS_OPENCL_KIND_H

#include "backends/opencl/opencl_syms.h"

typedef enum gm__opencl_kind {
  GM__OPENCL_BUFFER = 0,
  GM__OPENCL_BUFFER_HOST, /* CL_MEM_ALLOC_HOST_PTR */
  GM__OPENCL_SVM,         /* coarse-grained: the host maps it */
  GM__OPENCL_SVM_FINE,
  GM__OPENCL_USM_DEVICE, /* Intel's unified shared memory */
  GM__OPENCL_USM_HOST,
  GM__OPENCL_USM_SHARED
} gm__opencl_kind;

enum { GM__OPENCL_KINDS_MAX = GM__OPENCL_USM_SHARED + 1 };

static inline bool gm__opencl_kind_is_svm(gm__opencl_kind kind) {
  return kind == GM__OPENCL_SVM || kind == GM__OPENCL_SVM_FINE;
}

static inline bool gm__opencl_kind_is_usm(gm__opencl_kind kind) { return kind >= GM__OPENCL_USM_DEVICE; }

/* What an engine's kernels take, by the switch `memory=`. */
typedef enum gm__opencl_family { GM__OPENCL_BUFFERS = 0, GM__OPENCL_SVMS, GM__OPENCL_USMS } gm__opencl_family;

/* Immutable once asked for. The index of a kind is the index of its memory type. */
typedef struct gm__opencl_kinds {
  uint32_t count;
  uint32_t first; /* so many are of one family, the one that pools take; the others are GM_MEMORY_APART */
  gm__opencl_kind kinds[GM__OPENCL_KINDS_MAX];
  gm__opencl_usm usm;
} gm__opencl_kinds;

/* The family that `options` prefers ("", "memory=buffer", "memory=svm", "memory=usm"); INVALID_ARGUMENT for others. */
gm_status gm__opencl_family_read(const char *options, gm__opencl_family *out, gm_error *err);

/* Put the preferred family first, where the device has it, and say so in info->capabilities. `svm`: the device's
 * CL_DEVICE_SVM_CAPABILITIES; `usm`: bit 1 << kind for each of the last three. */
void gm__opencl_kinds_sort(gm__opencl_kinds *kinds, gm__opencl_family preferred, uint64_t svm, uint32_t usm,
                           gm_device_info *info);

/* The index of a kind; UINT32_MAX when the device does not have it. */
uint32_t gm__opencl_kinds_find(const gm__opencl_kinds *kinds, gm__opencl_kind kind);

/* Is memory of this kind the device's to count? Host memory of a discrete device is not. */
bool gm__opencl_kind_counts(gm__opencl_kind kind, const gm_device_info *info);

/* The memory type with this index, which is below kinds->count. */
gm_memory_type gm__opencl_kind_type(const gm__opencl_kinds *kinds, uint32_t index, const gm_device_info *info);

#endif
