/* Physical memory with a file descriptor: zeroed pages that are really there, of a size that never changes. */
#ifndef GM_BACKENDS_CPU_CPU_MEMFD_H
#define GM_BACKENDS_CPU_CPU_MEMFD_H

#include "backends/cpu/cpu_device.h"

/* Make a memfd of `bytes`: whole pages, or whole huge pages with `hugetlb`. The call takes all pages now, on the nodes
 * of the device's `numa`: a later access that fails would end the process. OUT_OF_DEVICE_MEMORY also when descriptors
 * or reserved huge pages have run out. */
gm_status gm__cpu_memfd_make(const gm__cpu_device *device, uint64_t bytes, bool hugetlb, int *out_fd, gm_error *err);

/* Can the system make such a descriptor, and give it pages? False: errno says why not. */
bool gm__cpu_memfd_try(const gm__cpu_device *device, bool hugetlb);

/* Duplicate a descriptor of another process; `fd` stays the caller's. INVALID_ARGUMENT unless it is a memfd that can be
 * written, that nobody can shrink, and that has `bytes` really there. */
gm_status gm__cpu_memfd_adopt(const gm__cpu_device *device, int fd, uint64_t bytes, int *out_fd, gm_error *err);

/* Duplicate `fd` for somebody outside the backend. */
gm_status gm__cpu_memfd_give_out(const gm__cpu_device *device, int fd, int *out_fd, gm_error *err);

#endif
