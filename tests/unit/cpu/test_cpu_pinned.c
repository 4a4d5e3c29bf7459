/* Registration of host memory with the CPU backend: pages shared by two ranges, refusals, what a limit answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/cpu/cpu_backend.h"
#include "core/base/alloc.h"
#include "support/kernel_kib.h"

static const gm_backend_ops *const ops = &gm__cpu_backend;

typedef struct fixture {
  void *driver, *device;
  unsigned char *memory; /* four pages */
} fixture;

/* The sanitizers replace mlock by nothing, so there is nothing to see. */
static void skip_if_sanitized(void) {
#ifdef GM_TEST_SANITIZED
  skip();
#endif
}

static size_t page(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static int set_up(void **state) {
  static fixture f;
  const gm_backend_host host = {.services = gm__default_services(), .options = ""};
  if (ops->init(&host, &f.driver, NULL) || ops->device_open(f.driver, 0, &f.device, NULL)) return -1;
  f.memory = mmap(NULL, 4 * page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *state = &f;
  return f.memory == MAP_FAILED ? -1 : 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  ops->device_close(f->device, GM_CLOSE_NORMAL);
  ops->fini(f->driver, GM_CLOSE_NORMAL);
  return munmap(f->memory, 4 * page());
}

/* Locked kilobytes of this process, as the kernel counts them. */
static long locked_kib(void) { return kernel_kib("/proc/self/status", "VmLck:"); }

static void test_a_page_stays_locked_until_its_last_range_goes(void **state) {
  skip_if_sanitized();
  fixture *f = *state;
  const long before = locked_kib(), kib = (long)page() / 1024;
  assert_int_equal(ops->host_register(f->device, f->memory, page() + 10, NULL), GM_OK);
  assert_int_equal(ops->host_register(f->device, f->memory + page() + 10, page(), NULL), GM_OK);
  assert_int_equal(locked_kib(), before + 3 * kib);
  assert_int_equal(ops->host_unregister(f->device, f->memory, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(locked_kib(), before + 2 * kib);
  assert_int_equal(ops->host_unregister(f->device, f->memory + page() + 10, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(locked_kib(), before);
}

static void test_wrong_ranges_are_refused(void **state) {
  fixture *f = *state;
  assert_int_equal(ops->host_register(f->device, NULL, 10, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->host_register(f->device, f->memory, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->host_register(f->device, f->memory, UINT64_MAX, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->host_register(f->device, f->memory, page(), NULL), GM_OK);
  assert_int_equal(ops->host_register(f->device, f->memory + 5, 1, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->host_unregister(f->device, f->memory + 5, GM_CLOSE_NORMAL, NULL), GM_ERR_NOT_FOUND);
}

static void test_what_is_left_is_unlocked_with_the_device(void **state) {
  fixture *f = *state;
  const long before = locked_kib();
  void *other;
  assert_int_equal(ops->device_open(f->driver, 0, &other, NULL), GM_OK);
  assert_int_equal(ops->host_register(other, f->memory + 2 * page(), page(), NULL), GM_OK);
  ops->device_close(other, GM_CLOSE_NORMAL);
  assert_int_equal(locked_kib(), before);
}

/* In a child, because the limit is for good; without rights, because root may lock what it likes. */
static void test_the_limit_is_its_own_answer(void **state) {
  skip_if_sanitized();
  fixture *f = *state;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    const struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_MEMLOCK, &none) != 0 || (geteuid() == 0 && seteuid(65534) != 0)) _exit(2);
    gm_error err;
    const gm_status status = ops->host_register(f->device, f->memory + 3 * page(), page(), &err);
    _exit(status == GM_ERR_PINNED_LIMIT && strstr(err.message, "RLIMIT_MEMLOCK") ? 0 : 1);
  }
  int result;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_page_stays_locked_until_its_last_range_goes),
      cmocka_unit_test(test_wrong_ranges_are_refused),
      cmocka_unit_test(test_what_is_left_is_unlocked_with_the_device),
      cmocka_unit_test(test_the_limit_is_its_own_answer),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
