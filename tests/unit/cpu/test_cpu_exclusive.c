/* Exclusive virtual memory of the CPU backend: private pages that move; and what stands for a range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cpu_vmm.h"

static uint64_t exclusive(cpu_fixture *f, uint64_t bytes) {
  const gm_vmm_props props = {.exclusive = true};
  uint64_t handle = 0;
  assert_int_equal(f->ops->vmm_create(f->device, &props, bytes, &handle, &f->err), GM_OK);
  return handle;
}

/* The system may have no way to move pages: before Linux 5.7, and under valgrind. */
static void exclusive_begin(cpu_fixture *f, const char *options) {
  const gm_vmm_props props = {.exclusive = true};
  uint64_t granule;
  assert_int_equal(cpu_try(f, options, NULL), GM_OK);
  const gm_status status = f->ops->vmm_granularity(f->device, &props, &granule, &f->err);
  if (status == GM_OK) return;
  assert_int_equal(status, GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(f->err.message, "the system has no "));
  cpu_end(f);
  skip();
}

static void test_exclusive_memory_is_taken_at_first_use(void **state) {
  (void)state;
#ifdef GM_TEST_SANITIZED
  skip(); /* a sanitizer has memory of its own for each byte that is touched */
#endif
  enum { SLACK = 1024 };
  cpu_fixture f;
  exclusive_begin(&f, "");
  const uint64_t bytes = 16 * f.granule, address = cpu_reserve(&f, bytes), handle = exclusive(&f, bytes);
  const long before = private_kib(), shared = shared_kib(), all = (long)(bytes / 1024);
  map(&f, address, bytes, handle, 0);
  assert_true(private_kib() < before + SLACK);
  memset((void *)(uintptr_t)address, 1, bytes);
  assert_true(private_kib() > before + all - SLACK);
  assert_int_equal(unmap(&f, address, bytes), GM_OK);
  assert_true(private_kib() > before + all - SLACK); /* what is in it waits */
  destroy(&f, handle);
  assert_true(private_kib() < before + SLACK);
  assert_int_equal(shared_kib(), shared);
  assert_int_equal(unreserve(&f, address, bytes), GM_OK);
  cpu_end(&f);
}

static void test_exclusive_memory_is_at_one_place(void **state) {
  (void)state;
  cpu_fixture f;
  exclusive_begin(&f, "");
  const uint64_t g = f.granule, address = cpu_reserve(&f, 6 * g), handle = exclusive(&f, 2 * g);
  const gm_status wrong = GM_ERR_INVALID_ARGUMENT;
  unsigned char *first = (unsigned char *)(uintptr_t)address;
  assert_int_equal(f.ops->vmm_map(f.device, address, g, handle, 0, &f.err), wrong);
  assert_int_equal(f.ops->vmm_map(f.device, address, g, handle, g, &f.err), wrong);
  map(&f, address, 2 * g, handle, 0);
  assert_int_equal(f.ops->vmm_map(f.device, address + 2 * g, 2 * g, handle, 0, &f.err), wrong);
  first[g + 5] = 77;
  assert_int_equal(unmap(&f, address, 2 * g), GM_OK);
  map(&f, address + 3 * g, 2 * g, handle, 0);
  assert_int_equal(first[4 * g + 5], 77);
  const uint64_t other = exclusive(&f, g);
  map(&f, address + 5 * g, g, other, 0);
  first[5 * g] = 78;
  destroy(&f, handle); /* the mapping keeps the bytes */
  assert_int_equal(first[4 * g + 5], 77);
  assert_int_equal(unmap(&f, address + 3 * g, 3 * g), GM_OK);
  map(&f, address, g, other, 0);
  assert_int_equal(first[0], 78);
  destroy(&f, other);
  cpu_end(&f); /* what is left goes with the device */
}

/* A part that was locked is a mapping of its own, and the system moves no two at once. */
static void test_exclusive_memory_that_was_locked_in_part(void **state) {
  (void)state;
  cpu_fixture f;
  exclusive_begin(&f, "");
  const uint64_t g = f.granule, address = cpu_reserve(&f, 2 * g), handle = exclusive(&f, g);
  unsigned char *first = (unsigned char *)(uintptr_t)address;
  map(&f, address, g, handle, 0);
  memset(first, 3, g);
  const gm_status locked = f.ops->host_register(f.device, first + 65536, 4096, &f.err);
  assert_int_equal(unmap(&f, address, g), GM_OK);
  map(&f, address + g, g, handle, 0);
  for (uint64_t i = 0; i < g; i += 61) assert_int_equal(first[g + i], 3);
  if (locked == GM_OK) f.ops->host_unregister(f.device, first + 65536, GM_CLOSE_NORMAL, NULL);
  assert_int_equal(unmap(&f, address + g, g), GM_OK);
  destroy(&f, handle);
  assert_int_equal(unreserve(&f, address, 2 * g), GM_OK);
  cpu_end(&f);
}

/* As with plain memory: a forked child has its own from then on. */
static void test_exclusive_memory_in_a_forked_child(void **state) {
  (void)state;
  cpu_fixture f;
  exclusive_begin(&f, "");
  const uint64_t g = f.granule, address = cpu_reserve(&f, g), handle = exclusive(&f, g), parked = exclusive(&f, g);
  unsigned char *first = (unsigned char *)(uintptr_t)address;
  map(&f, address, g, parked, 0);
  first[0] = 9;
  assert_int_equal(unmap(&f, address, g), GM_OK);
  map(&f, address, g, handle, 0);
  first[0] = 5;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    const bool same = first[0] == 5;
    first[0] = 6;
    f.ops->vmm_destroy(f.device, handle, g, GM_CLOSE_ABANDON, NULL);
    f.ops->vmm_destroy(f.device, parked, g, GM_CLOSE_ABANDON, NULL);
    f.ops->vmm_unreserve(f.device, address, g, GM_CLOSE_ABANDON, NULL);
    f.ops->device_close(f.device, GM_CLOSE_ABANDON);
    f.ops->fini(f.driver, GM_CLOSE_ABANDON);
    _exit(same && atomic_load(&f.host.live_blocks) == 0 ? 0 : 1);
  }
  int result = -1;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
  assert_int_equal(first[0], 5);
  assert_int_equal(unmap(&f, address, g), GM_OK);
  destroy(&f, handle);
  map(&f, address, g, parked, 0);
  assert_int_equal(first[0], 9);
  assert_int_equal(unmap(&f, address, g), GM_OK);
  destroy(&f, parked);
  cpu_end(&f);
}

/* With the option it has a descriptor, as the rest: taken when it is made. */
static void test_exclusive_memory_with_a_descriptor(void **state) {
  (void)state;
  cpu_fixture f;
  exclusive_begin(&f, "memfd");
  const uint64_t g = f.granule, address = cpu_reserve(&f, 2 * g), handle = exclusive(&f, g);
  const long before = shared_kib();
  map(&f, address, g, handle, 0);
  memset((void *)(uintptr_t)address, 4, g);
  assert_int_equal(shared_kib(), before + (long)(g / 1024));
  assert_int_equal(unmap(&f, address, g), GM_OK);
  destroy(&f, handle);
  assert_int_equal(unreserve(&f, address, 2 * g), GM_OK);
  cpu_end(&f);
}

static void *stays(void *address, size_t old_bytes, size_t bytes, int flags, void *to) {
  (void)address, (void)old_bytes, (void)bytes, (void)flags, (void)to;
  errno = EINVAL; /* as before Linux 5.7 */
  return MAP_FAILED;
}

static void *hook_stays(void *user, const char *backend, const char *symbol, void *real) {
  (void)user, (void)backend;
  void *(*mine)(void *address, size_t old_bytes, size_t bytes, int flags, void *to) = stays;
  if (strcmp(symbol, "mremap") == 0) memcpy(&real, &mine, sizeof real);
  return real;
}

static int no_descriptors(const char *name, unsigned flags) {
  (void)name, (void)flags;
  errno = ENOSYS;
  return -1;
}

static void *hook_descriptors(void *user, const char *backend, const char *symbol, void *real) {
  (void)user, (void)backend;
  int (*mine)(const char *name, unsigned flags) = no_descriptors;
  if (strcmp(symbol, "memfd_create") == 0) memcpy(&real, &mine, sizeof real);
  return real;
}

static void test_a_system_without_exclusive_memory(void **state) {
  (void)state;
  const gm_vmm_props props = {.exclusive = true};
  const struct {
    const char *options;
    gm_symbol_hook hook;
    const char *why;
  } cases[] = {{"", hook_stays, "no way to move pages"},
               {"memfd", hook_descriptors, "no such memory with a descriptor"}};
  for (size_t i = 0; i < 2; i++) {
    cpu_fixture f;
    uint64_t granule = 0;
    assert_int_equal(cpu_try(&f, cases[i].options, cases[i].hook), GM_OK);
    assert_int_equal(f.ops->vmm_granularity(f.device, &props, &granule, &f.err), GM_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(f.err.message, cases[i].why));
    cpu_end(&f);
  }
}

/* A pool's ranges would be the host's last addresses. */
static void test_limited_addresses(void **state) {
  (void)state;
#ifdef GM_TEST_SANITIZED
  skip(); /* a sanitized process has more addresses than any limit */
#endif
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    const struct rlimit limit = {(rlim_t)8 << 30, (rlim_t)8 << 30};
    const gm_vmm_props props = {.exclusive = true};
    cpu_fixture f;
    uint64_t granule;
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    cpu_begin(&f);
    const gm_status status = f.ops->vmm_granularity(f.device, &props, &granule, &f.err);
    const bool said = status == GM_ERR_NOT_SUPPORTED && strstr(f.err.message, "RLIMIT_AS");
    cpu_end(&f);
    _exit(said ? 0 : 1);
  }
  int result = -1;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
}

static void test_the_memory_of_a_range(void **state) {
  (void)state;
  cpu_fixture f;
  gm_memory memory;
  cpu_begin(&f);
  const uint64_t g = f.granule, address = cpu_reserve(&f, 2 * g);
  assert_int_equal(f.ops->vmm_memory(f.device, address + g, g, 0, &memory, &f.err), GM_OK);
  assert_int_equal(memory.address, address + g);
  assert_ptr_equal(memory.host, (void *)(uintptr_t)(address + g));
  assert_true(memory.wrapped);
  assert_int_equal(f.ops->memory_free(f.device, &memory, GM_CLOSE_NORMAL, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_memory(f.device, address + g, 2 * g, 0, &memory, &f.err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(f.ops->vmm_memory(f.device, address, g, 1, &memory, &f.err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(unreserve(&f, address, 2 * g), GM_OK);
  cpu_end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_exclusive_memory_is_taken_at_first_use),
      cmocka_unit_test(test_exclusive_memory_is_at_one_place),
      cmocka_unit_test(test_exclusive_memory_that_was_locked_in_part),
      cmocka_unit_test(test_exclusive_memory_in_a_forked_child),
      cmocka_unit_test(test_exclusive_memory_with_a_descriptor),
      cmocka_unit_test(test_a_system_without_exclusive_memory),
      cmocka_unit_test(test_limited_addresses),
      cmocka_unit_test(test_the_memory_of_a_range),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
