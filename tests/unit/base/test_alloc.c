/* Host memory: zeroed, aligned, sizes checked, every request may fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <sys/mman.h>

#include "core/base/alloc.h"
#include "core/base/shadow.h"
#include "support/counted_services.h"

static int is_zero(const unsigned char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (bytes[i]) return 0;
  }
  return 1;
}

static void check_allocation(const gm_services *services, size_t bytes) {
  unsigned char *ptr = gm__alloc(services, bytes);
  assert_non_null(ptr);
  assert_int_equal((uintptr_t)ptr % (bytes < 256 ? 16 : 64), 0);
  assert_true(is_zero(ptr, bytes));
  memset(ptr, 0xff, bytes);
  gm__release(services, ptr, bytes);
}

static void test_memory_is_aligned_and_zero(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  static const size_t sizes[] = {0, 1, 15, 16, 17, 256, 1040, 4096, 1000003};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    check_allocation(&host.services, sizes[i]);
    check_allocation(NULL, sizes[i]);
    check_allocation(gm__default_services(), sizes[i]);
  }
  counted_services_check(&host);
}

static void test_services_without_an_allocator_use_the_c_library(void **state) {
  (void)state;
  gm_services services = {0};
  check_allocation(&services, 100);
  assert_int_equal(gm__services_check(&services, NULL), GM_OK);
}

static void test_impossible_sizes_are_refused_before_the_host_is_asked(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  assert_null(gm__alloc(&host.services, SIZE_MAX));
  assert_null(gm__alloc(&host.services, (size_t)PTRDIFF_MAX + 1));
  assert_null(gm__alloc_array(&host.services, SIZE_MAX, 2));
  assert_null(gm__alloc_array(&host.services, SIZE_MAX / 8 + 1, 8));
  assert_null(gm__alloc_array(&host.services, 2, SIZE_MAX / 2 + 1));
  assert_int_equal(host.calls, 0);
}

static void *refuse(void *user, size_t bytes, size_t align) {
  (void)align;
  *(size_t *)user = bytes;
  return NULL;
}

static void forget(void *user, void *ptr, size_t bytes) {
  (void)user;
  (void)ptr;
  (void)bytes;
}

static void test_the_largest_size_is_asked_for(void **state) {
  (void)state;
  size_t asked = 0;
  const gm_services services = {.alloc = refuse, .release = forget, .user = &asked};
  assert_null(gm__alloc(&services, (size_t)PTRDIFF_MAX));
  assert_true(asked == (size_t)PTRDIFF_MAX);
}

static void test_arrays(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  uint32_t *numbers = gm__alloc_array(&host.services, 10, sizeof *numbers);
  assert_non_null(numbers);
  assert_int_equal(host.live_bytes, 40);
  gm__release(&host.services, numbers, 40);
  void *empty = gm__alloc_array(&host.services, 0, 8);
  assert_non_null(empty);
  gm__release(&host.services, empty, 0);
  counted_services_check(&host);
}

static void test_release_of_null_is_nothing(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  gm__release(&host.services, NULL, 77);
  gm__release(NULL, NULL, 77);
  counted_services_check(&host);
}

static void test_grow_keeps_contents_and_zeroes_the_rest(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  unsigned char *bytes = NULL;
  assert_true(gm__grow(&host.services, &bytes, 0, 8));
  memcpy(bytes, "12345678", 8);
  assert_true(gm__grow(&host.services, &bytes, 8, 64));
  assert_memory_equal(bytes, "12345678", 8);
  assert_true(is_zero(bytes + 8, 56));
  assert_true(gm__grow(&host.services, &bytes, 64, 4));
  assert_memory_equal(bytes, "1234", 4);
  gm__release(&host.services, bytes, 4);
  counted_services_check(&host);
}

static void test_grow_that_fails_changes_nothing(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  char *text = gm__alloc(&host.services, 8);
  assert_non_null(text);
  memcpy(text, "kept", 5);
  host.fail_at = 2;
  char *before = text;
  assert_false(gm__grow(&host.services, &text, 8, 16));
  assert_false(gm__grow(&host.services, &text, 8, SIZE_MAX));
  assert_ptr_equal(text, before);
  assert_string_equal(text, "kept");
  gm__release(&host.services, text, 8);
  counted_services_check(&host);
}

/* ---- large memory ---- */

enum { LARGE = 3 << 20 };

static struct {
  int calls;
  bool refuse;
} played_mremap;

void *__real_mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...);
void *__wrap_mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...);

void *__wrap_mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...) {
  played_mremap.calls++;
  return played_mremap.refuse ? MAP_FAILED : __real_mremap(old, old_bytes, bytes, flags);
}

static void check_large(unsigned char *bytes, size_t written, size_t count) {
  for (size_t i = 0; i < written; i++) assert_int_equal(bytes[i], i % 251);
  assert_true(is_zero(bytes + written, count - written));
}

/* Grown twice, made smaller, and grown again: the contents stay, and the rest is zero. */
static void large_memory_keeps_contents(const gm_services *services) {
  unsigned char *bytes = NULL;
  assert_true(gm__grow(services, &bytes, 0, LARGE));
  for (size_t i = 0; i < LARGE; i++) bytes[i] = (unsigned char)(i % 251);
  assert_true(gm__grow(services, &bytes, LARGE, 2 * LARGE + 1));
  check_large(bytes, LARGE, 2 * LARGE + 1);
  assert_true(gm__grow(services, &bytes, 2 * LARGE + 1, 4 * LARGE));
  check_large(bytes, LARGE, 4 * LARGE);
  assert_true(gm__grow(services, &bytes, 4 * LARGE, LARGE - 5000));
  check_large(bytes, LARGE - 5000, LARGE - 5000);
  assert_true(gm__grow(services, &bytes, LARGE - 5000, LARGE));
  check_large(bytes, LARGE - 5000, LARGE);
  assert_true(gm__grow(services, &bytes, LARGE, 100));
  check_large(bytes, 100, 100);
  gm__release(services, bytes, 100);
}

static void test_large_memory_grows_without_a_copy(void **state) {
  (void)state;
  memset(&played_mremap, 0, sizeof played_mremap);
  large_memory_keeps_contents(NULL);
  assert_int_equal(played_mremap.calls, gm__shadow_present() ? 0 : 3);
}

static void test_large_memory_is_copied_where_the_system_refuses(void **state) {
  (void)state;
  memset(&played_mremap, 0, sizeof played_mremap);
  played_mremap.refuse = true;
  large_memory_keeps_contents(NULL);
  assert_int_equal(played_mremap.calls, gm__shadow_present() ? 0 : 3);
  unsigned char *bytes = gm__alloc(NULL, LARGE), *before = bytes;
  assert_non_null(bytes);
  assert_false(gm__grow(NULL, &bytes, LARGE, SIZE_MAX));
  assert_ptr_equal(bytes, before);
  gm__release(NULL, bytes, LARGE);
}

static void test_large_memory_of_a_host_program_is_asked_of_it(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  memset(&played_mremap, 0, sizeof played_mremap);
  large_memory_keeps_contents(&host.services);
  assert_int_equal(played_mremap.calls, 0);
  counted_services_check(&host);
}

/* Bytes that are zero stay so, whoever owns the memory. */
static void zero_memory_can_be_unbacked(const gm_services *services) {
  unsigned char *bytes = gm__alloc(services, LARGE);
  assert_non_null(bytes);
  memset(bytes, 7, LARGE);
  memset(bytes + (1 << 20), 0, 1 << 20);
  gm__alloc_unback(services, LARGE, bytes + (1 << 20), 1 << 20);
  for (size_t i = 0; i < LARGE; i++) assert_int_equal(bytes[i], i >> 20 == 1 ? 0 : 7);
  gm__release(services, bytes, LARGE);
}

static void test_zero_memory_can_be_unbacked(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  zero_memory_can_be_unbacked(NULL);
  zero_memory_can_be_unbacked(&host.services);
  counted_services_check(&host);
}

static void test_a_host_without_memory_is_null(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  host.fail_at = 1;
  assert_null(gm__alloc(&host.services, 1));
  assert_null(gm__alloc_array(&host.services, 1, 1));
}

static void test_half_an_allocator_is_an_error(void **state) {
  (void)state;
  gm_error err;
  gm_services only_alloc = {.alloc = counted_alloc};
  gm_services only_release = {.release = counted_release};
  assert_int_equal(gm__services_check(&only_alloc, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "no release"));
  assert_int_equal(gm__services_check(&only_release, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "no alloc"));
  assert_int_equal(gm__services_check(NULL, &err), GM_OK);
  assert_int_equal(gm__services_check(gm__default_services(), &err), GM_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_memory_is_aligned_and_zero),
      cmocka_unit_test(test_services_without_an_allocator_use_the_c_library),
      cmocka_unit_test(test_impossible_sizes_are_refused_before_the_host_is_asked),
      cmocka_unit_test(test_the_largest_size_is_asked_for),
      cmocka_unit_test(test_arrays),
      cmocka_unit_test(test_release_of_null_is_nothing),
      cmocka_unit_test(test_grow_keeps_contents_and_zeroes_the_rest),
      cmocka_unit_test(test_grow_that_fails_changes_nothing),
      cmocka_unit_test(test_large_memory_grows_without_a_copy),
      cmocka_unit_test(test_large_memory_is_copied_where_the_system_refuses),
      cmocka_unit_test(test_large_memory_of_a_host_program_is_asked_of_it),
      cmocka_unit_test(test_zero_memory_can_be_unbacked),
      cmocka_unit_test(test_a_host_without_memory_is_null),
      cmocka_unit_test(test_half_an_allocator_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
