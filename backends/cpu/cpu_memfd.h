/* Physical memory with a file descriptor: pages that are really there, zeroed, at a size that is for good. */
#ifndef GM_BACKENDS_CPU_CPU_MEMFD_H
#define GM_BACKENDS_CPU_CPU_MEMFD_H

#include "backends/cpu/cpu_device.h"

/* `bytes`: whole pages, or whole huge pages with `hugetlb`. All pages are taken now, on the nodes of the device's
 * `numa`: a later access cannot fail, which would end the process. OUT_OF_DEVICE_MEMORY also when descriptors or
 * reserved huge pages have run out. */
gm_status gm__cpu_memfd_make(const gm__cpu_device *device, uint64_t bytes, bool hugetlb, int *out_fd, gm_error *err);

/* Does the system make such descriptors, with the device's options? False: errno says why not. */
bool gm__cpu_memfd_try(const gm__cpu_device *device);

/* A descriptor from elsewhere, not taken: *out_fd is another one for it. INVALID_ARGUMENT unless it is a memfd that can
 * be written, that nobody can shrink any more, and that has `bytes` really there. */
gm_status gm__cpu_memfd_adopt(const gm__cpu_device *device, int fd, uint64_t bytes, int *out_fd, gm_error *err);

/* Another descriptor for what `fd` stands for, to leave the backend. */
gm_status gm__cpu_memfd_give_out(const gm__cpu_device *device, int fd, int *out_fd, gm_error *err);

#endif
