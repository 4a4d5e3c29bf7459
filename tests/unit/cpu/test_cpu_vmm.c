/* Virtual memory of the CPU backend: what goes back to the system and when, misuse, and the limits of a process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/thread.h"
#include "support/cpu_vmm.h"

/* The block in the middle stays where it is, with what is in it, while its neighbours go back. */
static void test_memory_goes_back_around_a_live_block(void **state) {
  (void)state;
  enum { PIECES = 3, GRANULES = 4 };
  cpu_fixture f;
  cpu_begin(&f);
  const uint64_t bytes = GRANULES * f.granule, address = cpu_reserve(&f, PIECES * bytes);
  const long before = shared_kib(), piece = (long)(bytes / 1024);
  uint64_t handles[PIECES];
  for (unsigned i = 0; i < PIECES; i++) {
    handles[i] = cpu_physical(&f, bytes, false);
    map(&f, address + i * bytes, bytes, handles[i], 0);
    memset((void *)(uintptr_t)(address + i * bytes), (int)(i + 1), bytes);
  }
  assert_int_equal(shared_kib(), before + 3 * piece);
  for (unsigned i = 0; i < PIECES; i += 2) {
    assert_int_equal(unmap(&f, address + i * bytes, bytes), GM_OK);
    destroy(&f, handles[i]);
  }
  assert_int_equal(shared_kib(), before + piece);
  const unsigned char *live = (const unsigned char *)(uintptr_t)(address + bytes);
  for (uint64_t i = 0; i < bytes; i += 997) assert_int_equal(live[i], 2);
  assert_int_equal(unmap(&f, address + bytes, bytes), GM_OK);
  destroy(&f, handles[1]);
  assert_int_equal(unreserve(&f, address, PIECES * bytes), GM_OK);
  cpu_end(&f);
}

/* Taken when it is made, as with CUDA: no access later can lack it. */
static void test_physical_memory_is_there_from_the_start(void **state) {
  (void)state;
  cpu_fixture f;
  gm_shared shared = {.struct_size = sizeof shared};
  struct stat got;
  cpu_begin(&f);
  const uint64_t bytes = 40 * f.granule, handle = cpu_physical(&f, bytes, true);
  assert_int_equal(f.ops->share_export_vmm(f.device, handle, bytes, &shared, &f.err), GM_OK);
  assert_int_equal(fstat(shared.fd, &got), 0);
  assert_int_equal((uint64_t)got.st_size, bytes);
  assert_true((uint64_t)got.st_blocks * 512 >= bytes);
  assert_int_not_equal(ftruncate(shared.fd, 0), 0);
  assert_int_equal(close(shared.fd), 0);
  destroy(&f, handle);
  cpu_end(&f);
}

static void test_part_of_it_at_another_address(void **state) {
  (void)state;
  cpu_fixture f;
  cpu_begin(&f);
  const uint64_t granule = f.granule, address = cpu_reserve(&f, 4 * granule);
  const uint64_t handle = cpu_physical(&f, 3 * granule, false);
  map(&f, address, 2 * granule, handle, 0);
  map(&f, address + 3 * granule, granule, handle, granule);
  unsigned char *first = (unsigned char *)(uintptr_t)address;
  first[granule + 77] = 42;
  assert_int_equal(first[3 * granule + 77], 42);
  assert_int_equal(unmap(&f, address, 2 * granule), GM_OK);
  assert_int_equal(first[3 * granule + 77], 42);
  destroy(&f, handle);
  assert_int_equal(first[3 * granule + 77], 42);
  assert_int_equal(unmap(&f, address + 3 * granule, granule), GM_OK);
  assert_int_equal(unreserve(&f, address, 4 * granule), GM_OK);
  cpu_end(&f);
}

/* A fixed mapping in the wrong place would take away the host's memory. */
static void test_misuse_is_refused(void **state) {
  (void)state;
  cpu_fixture f;
  cpu_begin(&f);
  const uint64_t g = f.granule, address = cpu_reserve(&f, 4 * g), handle = cpu_physical(&f, 2 * g, false);
  const gm_backend_ops *ops = f.ops;
  unsigned char *mine = aligned_alloc(g, g);
  const gm_status wrong = GM_ERR_INVALID_ARGUMENT;
  assert_int_equal(ops->vmm_map(f.device, (uintptr_t)mine, g, handle, 0, &f.err), wrong);
  free(mine);
  assert_int_equal(ops->vmm_map(f.device, address + 3 * g, 2 * g, handle, 0, &f.err), wrong);
  assert_int_equal(ops->vmm_map(f.device, address + g / 2, g, handle, 0, &f.err), wrong);
  assert_int_equal(ops->vmm_map(f.device, address, g, handle, g / 2, &f.err), wrong);
  assert_int_equal(ops->vmm_map(f.device, address, 2 * g, handle, g, &f.err), wrong);
  assert_int_equal(ops->vmm_map(f.device, address, g, handle, UINT64_MAX - g + 1, &f.err), wrong);
  map(&f, address, 2 * g, handle, 0);
  assert_int_equal(ops->vmm_map(f.device, address + g, g, handle, 0, &f.err), wrong);
  assert_int_equal(ops->vmm_access(f.device, address + g, 2 * g, &f.err), wrong);
  assert_int_equal(unmap(&f, address, g), wrong);
  assert_int_equal(unmap(&f, address, 3 * g), wrong);
  assert_int_equal(unreserve(&f, address, 4 * g), GM_ERR_BUSY);
  assert_int_equal(unmap(&f, address, 2 * g), GM_OK);
  assert_int_equal(unreserve(&f, address, 2 * g), wrong);
  assert_int_equal(unreserve(&f, address, 4 * g), GM_OK);
  assert_int_equal(unreserve(&f, address, 4 * g), wrong);
  uint64_t untouched = 7;
  assert_int_equal(ops->vmm_reserve(f.device, g, 3, &untouched, &f.err), wrong);
  assert_int_equal(ops->vmm_reserve(f.device, 0, 0, &untouched, &f.err), wrong);
  assert_int_equal(untouched, 7);
  destroy(&f, handle);
  cpu_end(&f);
}

static void test_what_is_left_goes_with_the_device(void **state) {
  (void)state;
  cpu_fixture f;
  cpu_begin(&f);
  const long before = shared_kib();
  const uint64_t address = cpu_reserve(&f, f.granule), handle = cpu_physical(&f, f.granule, false);
  map(&f, address, f.granule, handle, 0);
  memset((void *)(uintptr_t)address, 1, f.granule);
  destroy(&f, handle);
  cpu_end(&f);
  assert_int_equal(shared_kib(), before);
}

/* One piece at so many addresses that the process may have no more mappings. All of it can be given back. */
static void test_too_many_mappings(void **state) {
  (void)state;
#ifdef GM_TEST_SANITIZED
  skip(); /* the sanitizers end the process when they cannot map */
#endif
  cpu_fixture f;
  cpu_begin(&f);
  FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
  unsigned long most = 0;
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%lu", &most), 1);
  fclose(file);
  if (most > 200000) skip(); /* takes too long, and too many addresses */
  const uint64_t bytes = (most + 100) * f.granule;
  uint64_t address = 0;
  gm_status status = f.ops->vmm_reserve(f.device, bytes, 0, &address, &f.err);
  if (status != GM_OK) {
    cpu_end(&f);
    skip(); /* fewer addresses than mappings: valgrind */
  }
  const uint64_t handle = cpu_physical(&f, f.granule, false);
  uint64_t at = address;
  while (at < address + bytes && status == GM_OK) {
    status = f.ops->vmm_map(f.device, at, f.granule, handle, 0, &f.err);
    if (status == GM_OK) at += f.granule;
  }
  assert_int_equal(status, GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_non_null(strstr(f.err.message, "vm.max_map_count is"));
  for (uint64_t i = address; i < at; i += f.granule) assert_int_equal(unmap(&f, i, f.granule), GM_OK);
  map(&f, address, f.granule, handle, 0);
  assert_int_equal(unmap(&f, address, f.granule), GM_OK);
  destroy(&f, handle);
  assert_int_equal(unreserve(&f, address, bytes), GM_OK);
  cpu_end(&f);
}

/* In a child, because the limit is for good. */
static int child_result(bool (*in_child)(cpu_fixture *f)) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    cpu_fixture f;
    cpu_begin(&f);
    const bool good = in_child(&f);
    cpu_end(&f);
    _exit(good ? 0 : 1);
  }
  int result = -1;
  assert_int_equal(waitpid(child, &result, 0), child);
  return result;
}

static void child_limit(int resource, rlim_t bytes) {
  const struct rlimit limit = {bytes, bytes};
  if (setrlimit((__rlimit_resource_t)resource, &limit) != 0) _exit(2);
}

static bool child_addresses(cpu_fixture *f) {
  uint64_t address;
  child_limit(RLIMIT_AS, (rlim_t)1 << 30);
  const gm_status status = f->ops->vmm_reserve(f->device, UINT64_C(2) << 30, 0, &address, &f->err);
  return status == GM_ERR_OUT_OF_DEVICE_MEMORY && strstr(f->err.message, "RLIMIT_AS is 1073741824");
}

static bool child_descriptors(cpu_fixture *f) {
  const gm_vmm_props props = {0};
  uint64_t handles[20];
  gm_status status = GM_OK;
  unsigned made = 0;
  child_limit(RLIMIT_NOFILE, 20);
  while (made < 20 && status == GM_OK) {
    status = f->ops->vmm_create(f->device, &props, f->granule, &handles[made], &f->err);
    if (status == GM_OK) made++;
  }
  while (made) destroy(f, handles[--made]);
  return status == GM_ERR_OUT_OF_DEVICE_MEMORY && strstr(f->err.message, "RLIMIT_NOFILE is 20");
}

static void test_the_limits_are_named(void **state) {
  (void)state;
#ifdef GM_TEST_SANITIZED
  skip(); /* a sanitized process has more addresses than any limit */
#endif
  const char *preload = getenv("LD_PRELOAD");
  if (preload && strstr(preload, "vgpreload")) skip(); /* valgrind keeps the limits to itself */
  assert_int_equal(child_result(child_addresses), 0);
  assert_int_equal(child_result(child_descriptors), 0);
}

enum { THREADS = 4, ROUNDS = 40 };

typedef struct worker {
  cpu_fixture *f;
  uint64_t handle;
  unsigned number;
  gm_status status;
} worker;

static void work(void *user) {
  worker *w = user;
  const gm_backend_ops *ops = w->f->ops;
  void *device = w->f->device;
  const uint64_t g = w->f->granule;
  for (int i = 0; i < ROUNDS && w->status == GM_OK; i++) {
    uint64_t address = 0;
    w->status = ops->vmm_reserve(device, 2 * g, 0, &address, NULL);
    if (w->status == GM_OK) w->status = ops->vmm_map(device, address + g, g, w->handle, w->number * g, NULL);
    if (w->status == GM_OK) ((unsigned char *)(uintptr_t)address)[g + 5] = (unsigned char)i;
    if (w->status == GM_OK) w->status = ops->vmm_access(device, address + g, g, NULL);
    if (w->status == GM_OK) w->status = ops->vmm_unmap(device, address + g, g, NULL);
    if (w->status == GM_OK) w->status = ops->vmm_unreserve(device, address, 2 * g, GM_CLOSE_NORMAL, NULL);
  }
}

static void test_threads(void **state) {
  (void)state;
  cpu_fixture f;
  worker workers[THREADS];
  gm__thread threads[THREADS];
  cpu_begin(&f);
  const uint64_t handle = cpu_physical(&f, THREADS * f.granule, false);
  for (unsigned i = 0; i < THREADS; i++) {
    workers[i] = (worker){&f, handle, i, GM_OK};
    assert_int_equal(gm__thread_create(&threads[i], "vmm", work, &workers[i], NULL), GM_OK);
  }
  for (unsigned i = 0; i < THREADS; i++) {
    gm__thread_join(&threads[i]);
    assert_int_equal(workers[i].status, GM_OK);
  }
  destroy(&f, handle);
  cpu_end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_memory_goes_back_around_a_live_block),
      cmocka_unit_test(test_physical_memory_is_there_from_the_start),
      cmocka_unit_test(test_part_of_it_at_another_address),
      cmocka_unit_test(test_misuse_is_refused),
      cmocka_unit_test(test_what_is_left_goes_with_the_device),
      cmocka_unit_test(test_too_many_mappings),
      cmocka_unit_test(test_the_limits_are_named),
      cmocka_unit_test(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
