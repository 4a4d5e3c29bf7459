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

/* It is as with plain memory: a forked child has its own from then on. */
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

/* ---- a process that may have no more mappings (vm.max_map_count) ---- */

enum { STAY_FLAG = 4 }; /* MREMAP_DONTUNMAP: the call needs a mapping more */

static bool no_mapping_left, no_split_left;
static void *(*real_mremap)(void *address, size_t old_bytes, size_t bytes, int flags, void *to);
static void *(*real_mmap)(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);

static void *mremap_refused(void *address, size_t old_bytes, size_t bytes, int flags, void *to) {
  if (!no_mapping_left || !(flags & STAY_FLAG)) return real_mremap(address, old_bytes, bytes, flags, to);
  errno = ENOMEM;
  return MAP_FAILED;
}

static void *mmap_refused(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (!no_split_left || !(flags & MAP_FIXED)) return real_mmap(address, bytes, protection, flags, fd, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}

static void *hook_mappings(void *user, const char *library, const char *symbol, void *real) {
  void *(*moves)(void *, size_t, size_t, int, void *) = mremap_refused;
  void *(*maps)(void *, size_t, int, int, int, off_t) = mmap_refused;
  (void)user, (void)library;
  if (strcmp(symbol, "mremap") == 0) {
    memcpy(&real_mremap, &real, sizeof real);
    memcpy(&real, &moves, sizeof real);
  } else if (strcmp(symbol, "mmap") == 0) {
    memcpy(&real_mmap, &real, sizeof real);
    memcpy(&real, &maps, sizeof real);
  }
  return real;
}

static void mappings_begin(cpu_fixture *f) {
  const gm_vmm_props props = {.exclusive = true};
  uint64_t granule;
  no_mapping_left = no_split_left = false;
  assert_int_equal(cpu_try(f, "", hook_mappings), GM_OK);
  if (f->ops->vmm_granularity(f->device, &props, &granule, &f->err) == GM_OK) return;
  cpu_end(f); /* before Linux 5.7, and under valgrind */
  skip();
}

static void assert_all(const unsigned char *at, uint64_t bytes, unsigned char want) {
  for (uint64_t i = 0; i < bytes; i += 509) assert_int_equal(at[i], want);
}

static void test_unmapping_without_a_mapping_to_spare(void **state) {
  (void)state;
  cpu_fixture f;
  mappings_begin(&f);
  const uint64_t g = f.granule, address = cpu_reserve(&f, 6 * g), a = exclusive(&f, 2 * g), b = exclusive(&f, g);
  unsigned char *first = (unsigned char *)(uintptr_t)address;
  map(&f, address, 2 * g, a, 0);
  memset(first, 7, 2 * g);
  no_mapping_left = true;
  assert_int_equal(unmap(&f, address, 2 * g), GM_OK);
  map(&f, address, 2 * g, a, 0); /* back where it was: nothing has to move */
  assert_all(first, 2 * g, 7);
  assert_int_equal(unmap(&f, address, 2 * g), GM_OK);
  assert_int_equal(f.ops->vmm_map(f.device, address + g, g, b, 0, &f.err), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(unreserve(&f, address, 6 * g), GM_ERR_OUT_OF_DEVICE_MEMORY);
  no_mapping_left = false;
  map(&f, address + g, g, b, 0); /* what stayed there leaves */
  memset(first + g, 8, g);
  map(&f, address + 3 * g, 2 * g, a, 0);
  assert_all(first + 3 * g, 2 * g, 7);
  assert_all(first + g, g, 8);
  no_mapping_left = true;
  assert_int_equal(unmap(&f, address + 3 * g, 2 * g), GM_OK);
  no_mapping_left = false;
  map(&f, address + 4 * g, 2 * g, a, 0); /* across the place where it stayed */
  assert_all(first + 4 * g, 2 * g, 7);
  no_mapping_left = true;
  assert_int_equal(unmap(&f, address + 4 * g, 2 * g), GM_OK);
  no_mapping_left = false;
  map(&f, address + 2 * g, 2 * g, a, 0); /* from where it stayed */
  assert_all(first + 2 * g, 2 * g, 7);
  assert_int_equal(unmap(&f, address + g, 3 * g), GM_OK);
  destroy(&f, a);
  destroy(&f, b);
  assert_int_equal(unreserve(&f, address, 6 * g), GM_OK);
  cpu_end(&f);
}

/* The pages go back to the system all the same. */
static void test_memory_goes_back_without_a_mapping_to_spare(void **state) {
  (void)state;
#ifdef GM_TEST_SANITIZED
  skip(); /* a sanitizer has memory of its own for each byte that is touched */
#endif
  enum { SLACK = 1024 };
  for (int split = 0; split < 2; split++) {
    cpu_fixture f;
    mappings_begin(&f);
    const uint64_t bytes = 16 * f.granule, address = cpu_reserve(&f, bytes), handle = exclusive(&f, bytes);
    const long before = private_kib(), all = (long)(bytes / 1024);
    map(&f, address, bytes, handle, 0);
    memset((void *)(uintptr_t)address, 1, bytes);
    assert_true(private_kib() > before + all - SLACK);
    no_mapping_left = true;
    no_split_left = split;
    assert_int_equal(unmap(&f, address, bytes), GM_OK);
    destroy(&f, handle);
    assert_true(private_kib() < before + SLACK);
    no_mapping_left = no_split_left = false;
    const uint64_t next = exclusive(&f, bytes);
    map(&f, address, bytes, next, 0);
    assert_all((unsigned char *)(uintptr_t)address, bytes, 0);
    destroy(&f, next); /* mapped: the mapping keeps it */
    memset((void *)(uintptr_t)address, 1, bytes);
    no_split_left = split;
    assert_int_equal(unmap(&f, address, bytes), GM_OK);
    assert_true(private_kib() < before + SLACK);
    no_split_left = false;
    assert_int_equal(unreserve(&f, address, bytes), GM_OK);
    cpu_end(&f);
  }
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
      cmocka_unit_test(test_unmapping_without_a_mapping_to_spare),
      cmocka_unit_test(test_memory_goes_back_without_a_mapping_to_spare),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
