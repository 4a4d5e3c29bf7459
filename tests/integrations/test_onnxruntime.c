/* The allocator of host memory for ONNX Runtime, and its library of custom operators, without ONNX Runtime. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "integrations/onnxruntime/gm_onnxruntime.h"
#include "integrations/shared/engines.h"
#include "tests/integrations/played_ort.h"

static int begin(void **state) {
  (void)state;
  played_reset();
  return 0;
}

static struct OrtSessionOptions *some_options(void) { return (struct OrtSessionOptions *)(void *)&played; }

static void test_blocks(void **state) {
  (void)state;
  struct OrtAllocator *it = gm_ort_allocator_create(played_base(), NULL);
  assert_non_null(it);
  assert_null(played_alloc(it, 0));
  played_free(it, NULL);
  for (size_t bytes = 1; bytes < 100000; bytes = bytes * 3 + 1) {
    unsigned char *one = played_alloc(it, bytes), *other = played_reserve(it, bytes);
    assert_non_null(one);
    assert_non_null(other);
    assert_int_equal((uintptr_t)one % 64, 0);
    memset(one, 1, bytes);
    memset(other, 2, bytes);
    assert_int_equal(one[bytes - 1], 1);
    played_free(it, one);
    played_free(it, other);
  }
  assert_int_equal(gm_engines_host_figure("active"), 0);
  gm_ort_allocator_destroy(it);
  gm_ort_allocator_destroy(NULL);
  assert_int_equal(played.infos, 0);
}

static void test_statistics_and_shrinking(void **state) {
  (void)state;
  struct OrtAllocator *it = gm_ort_allocator_create(played_base(), NULL);
  const uint64_t allocs = played_figure(it, "NumAllocs");
  void *block = played_alloc(it, 5 << 20);
  assert_int_equal(played_figure(it, "NumAllocs"), allocs + 1);
  assert_in_range(played_figure(it, "InUse"), 5 << 20, 6 << 20);
  assert_in_range(played_figure(it, "MaxInUse"), 5 << 20, UINT32_MAX);
  assert_in_range(played_figure(it, "TotalAllocated"), 5 << 20, UINT32_MAX);
  assert_int_equal(played_figure(it, "no such key"), UINT64_MAX);
  played_free(it, block);
  played_shrink(it);
  assert_int_equal(played_figure(it, "TotalAllocated"), 0);
  assert_int_equal(played_figure(it, "NumArenaExtensions"), gm_engines_host_figure("driver_allocs"));
  assert_int_equal(played_figure(it, "NumArenaShrinkages"), gm_engines_host_figure("driver_frees"));
  gm_ort_allocator_destroy(it);
  assert_int_equal(played.statuses, 0);
}

/* A pool of the program's, with a cap. */
static void test_a_pool_of_the_programs_own(void **state) {
  (void)state;
  gm_context *context = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  assert_int_equal(gm_context_create(NULL, &context, NULL), GM_OK);
  assert_int_equal(gm_device_open_index(context, "cpu", 0, &device, NULL), GM_OK);
  assert_int_equal(gm_pool_create(device, NULL, &pool, NULL), GM_OK);
  assert_int_equal(gm_pool_set_max_bytes(pool, 4 << 20, NULL), GM_OK);
  struct OrtAllocator *it = gm_ort_allocator_create(played_base(), pool);
  void *block = played_alloc(it, 3 << 20);
  assert_non_null(block);
  assert_true(played_refuses(it, 3 << 20));
  assert_non_null(strstr(gm_engines_why(), "cap"));
  assert_true(played_refuses(it, SIZE_MAX));
  assert_true(played_refuses(it, SIZE_MAX - 30));
  assert_int_equal(gm_pool_destroy(pool, NULL), GM_ERR_BUSY);
  played_free(it, block);
  played_free(it, block); /* twice */
  gm_ort_allocator_destroy(it);
  assert_int_equal(gm_pool_destroy(pool, NULL), GM_OK);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(context, NULL), GM_OK);
}

static void test_versions(void **state) {
  (void)state;
  const struct {
    const char *text;
    uint32_t version;
  } cases[] = {{"1.19.2", 19}, {"1.22.0", 22}, {"1.23.1-rc1", 23}, {"1.25.0", 25}, {"1.32.0", 25}, {"1.400.0", 25}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    played.version = cases[i].text;
    struct OrtAllocator *it = gm_ort_allocator_create(played_base(), NULL);
    assert_non_null(it);
    assert_int_equal(played.asked, cases[i].version);
    assert_int_equal(played_version_of(it), cases[i].version);
    gm_ort_allocator_destroy(it);
  }
}

static void test_what_is_no_onnx_runtime_is_refused(void **state) {
  (void)state;
  const char *const strange[] = {"1.18.1", "1.7.0", "2.0.0",  "", "one", "1.", "1.-5.0", "1.99999999999999999999999.0",
                                 "1.32",   "1.x.0", "v1.32.0"};
  for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
    played.version = strange[i];
    assert_null(gm_ort_allocator_create(played_base(), NULL));
    assert_non_null(strstr(gm_engines_why(), "gm_ort_open"));
    struct OrtStatus *status = RegisterCustomOps(some_options(), played_base());
    assert_string_equal(played_message(status), gm_engines_why());
    played_release(status);
  }
  played_reset();
  played.table_is_wrong = 1;
  assert_null(gm_ort_allocator_create(played_base(), NULL));
  played_reset();
  played.no_table = 1;
  assert_null(gm_ort_allocator_create(played_base(), NULL));
  assert_null(RegisterCustomOps(some_options(), played_base())); /* nobody there can make a status */
  assert_int_equal(played.statuses + played.envs + played.configured + played.infos, 0);
  assert_null(played.registered);
}

static void test_each_call_is_refused(void **state) {
  (void)state;
  for (played_call call = PLAYED_CREATE_ENV; call < PLAYED_CALLS; call++) {
    played_reset();
    played.keeps_first = 1;
    played.registered = (struct OrtAllocator *)(void *)&played; /* somebody else's, so that it has to leave */
    played.refused = call;
    struct OrtStatus *status = RegisterCustomOps(some_options(), played_base());
    assert_string_equal(played_message(status), "refused");
    played_release(status);
    assert_int_equal(played.envs + played.configured + played.statuses, 0);
  }
}

static void test_custom_operators_put_gm_into_the_environment(void **state) {
  (void)state;
  assert_string_equal(played_message(RegisterCustomOps(some_options(), played_base())), "success");
  struct OrtAllocator *first = played.registered;
  assert_non_null(first);
  assert_int_equal(played.configured, 1);
  void *block = played_alloc(first, 1000);
  assert_int_equal(gm_engines_host_figure("active"), 1);
  for (played.keeps_first = 0; played.keeps_first < 2; played.keeps_first++) {
    assert_null(RegisterCustomOps(some_options(), played_base()));
    assert_ptr_equal(played.registered, first); /* one for each ONNX Runtime */
  }
  played.registered = NULL; /* the environment went, and another one came */
  assert_null(RegisterCustomOps(some_options(), played_base()));
  assert_ptr_equal(played.registered, first);
  played_free(first, block);
  assert_int_equal(gm_engines_host_figure("active"), 0);
  assert_int_equal(played.envs + played.statuses, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_blocks, begin),
      cmocka_unit_test_setup(test_statistics_and_shrinking, begin),
      cmocka_unit_test_setup(test_a_pool_of_the_programs_own, begin),
      cmocka_unit_test_setup(test_versions, begin),
      cmocka_unit_test_setup(test_what_is_no_onnx_runtime_is_refused, begin),
      cmocka_unit_test_setup(test_each_call_is_refused, begin),
      cmocka_unit_test_setup(test_custom_operators_put_gm_into_the_environment, begin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
