/* Virtual memory of the CPU backend, for its own tests: calls that must succeed, and what the kernel counts. Include
 * cmocka.h first. */
#ifndef GM_TESTS_SUPPORT_CPU_VMM_H
#define GM_TESTS_SUPPORT_CPU_VMM_H

#include "support/cpu_fixture.h"
#include "support/kernel_kib.h"

/* Kilobytes of memory with a descriptor that this process has in use, as the kernel counts them page by page. */
static inline long shared_kib(void) { return kernel_kib("/proc/self/smaps_rollup", "Pss_Shmem:"); }

/* Kilobytes of private memory that this process has in use. */
static inline long private_kib(void) { return kernel_kib("/proc/self/smaps_rollup", "Pss_Anon:"); }

static inline void map(cpu_fixture *f, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset) {
  assert_int_equal(f->ops->vmm_map(f->device, address, bytes, handle, offset, &f->err), GM_OK);
  assert_int_equal(f->ops->vmm_access(f->device, address, bytes, &f->err), GM_OK);
}

static inline gm_status unmap(cpu_fixture *f, uint64_t address, uint64_t bytes) {
  return f->ops->vmm_unmap(f->device, address, bytes, &f->err);
}

static inline void destroy(cpu_fixture *f, uint64_t handle) {
  assert_int_equal(f->ops->vmm_destroy(f->device, handle, 0, GM_CLOSE_NORMAL, &f->err), GM_OK);
}

static inline gm_status unreserve(cpu_fixture *f, uint64_t address, uint64_t bytes) {
  return f->ops->vmm_unreserve(f->device, address, bytes, GM_CLOSE_NORMAL, &f->err);
}

#endif
