/* The CPU backend through the seam, for its own tests: counted host memory, options, a hook. Include cmocka.h first. */
#ifndef GM_TESTS_SUPPORT_CPU_FIXTURE_H
#define GM_TESTS_SUPPORT_CPU_FIXTURE_H

#include "backends/cpu/cpu_backend.h"
#include "support/counted_services.h"

typedef struct cpu_fixture {
  counted_services host;
  const gm_backend_ops *ops;
  void *driver, *device;
  uint64_t granule;
  gm_error err;
} cpu_fixture;

/* The status of init; then the device is open. */
static inline gm_status cpu_try(cpu_fixture *f, const char *options, gm_symbol_hook hook) {
  const gm_vmm_props props = {0};
  memset(f, 0, sizeof *f);
  counted_services_init(&f->host);
  f->ops = &gm__cpu_backend;
  const gm_backend_host host = {
      .struct_size = sizeof host, .services = &f->host.services, .options = options, .symbol_hook = hook};
  const gm_status status = f->ops->init(&host, &f->driver, &f->err);
  if (status != GM_OK) return status;
  assert_int_equal(f->ops->device_open(f->driver, 0, &f->device, &f->err), GM_OK);
  assert_int_equal(f->ops->vmm_granularity(f->device, &props, &f->granule, &f->err), GM_OK);
  return GM_OK;
}

static inline void cpu_begin(cpu_fixture *f) { assert_int_equal(cpu_try(f, "", NULL), GM_OK); }

static inline void cpu_end(cpu_fixture *f) {
  f->ops->device_close(f->device, GM_CLOSE_NORMAL);
  f->ops->fini(f->driver, GM_CLOSE_NORMAL);
  counted_services_check(&f->host);
}

static inline uint64_t cpu_reserve(cpu_fixture *f, uint64_t bytes) {
  uint64_t address = 0;
  assert_int_equal(f->ops->vmm_reserve(f->device, bytes, 0, &address, &f->err), GM_OK);
  return address;
}

static inline uint64_t cpu_physical(cpu_fixture *f, uint64_t bytes, bool shareable) {
  const gm_vmm_props props = {.shareable = shareable};
  uint64_t handle = 0;
  assert_int_equal(f->ops->vmm_create(f->device, &props, bytes, &handle, &f->err), GM_OK);
  return handle;
}

#endif
