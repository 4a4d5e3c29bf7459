/* Structs of callers that are older or newer than gm: what is read of them, and what is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/shared/native.h"
#include "core/base/sized.h"
#include "gm/fit.h"
#include "gm/native_cuda.h"
#include "gm/pool.h"

typedef struct known { /* as gm knows it */
  uint32_t struct_size;
  uint32_t flags;
  uint64_t first, second;
} known;

typedef struct longer {
  known known;
  uint64_t third;
} longer;

static void test_an_older_caller_leaves_zero_behind(void **state) {
  (void)state;
  const known from = {.struct_size = 16, .flags = 1, .first = 2, .second = 3};
  known to;
  memset(&to, 0xab, sizeof to);
  assert_int_equal(gm__sized_in(&to, sizeof to, &from, "test", "from", NULL), GM_OK);
  assert_int_equal(to.struct_size, sizeof to);
  assert_int_equal(to.flags, 1);
  assert_int_equal(to.first, 2);
  assert_int_equal(to.second, 0); /* its own bytes end before it */
}

static void test_a_newer_caller_who_sets_nothing_new(void **state) {
  (void)state;
  const longer from = {.known = {.struct_size = sizeof from, .second = 3}};
  known to;
  assert_int_equal(gm__sized_in(&to, sizeof to, &from, "test", "from", NULL), GM_OK);
  assert_int_equal(to.struct_size, sizeof to);
  assert_int_equal(to.second, 3);
}

static void test_a_newer_caller_who_sets_something_new(void **state) {
  (void)state;
  const longer from = {.known = {.struct_size = sizeof from}, .third = UINT64_C(1) << 56};
  known to;
  gm_error err;
  assert_int_equal(gm__sized_in(&to, sizeof to, &from, "test", "from", &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "`from` has a member behind byte 24"));
}

static void test_sizes_that_are_none(void **state) {
  (void)state;
  const uint32_t wrong[] = {0, 4, 8, 15, 65537, UINT32_MAX};
  known from = {0}, to;
  gm_error err;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    from.struct_size = wrong[i];
    assert_int_equal(gm__sized_check(&from, sizeof from, "test", "from", &err), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm__sized_in(&to, sizeof to, &from, "test", "from", &err), GM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "`from->struct_size` is "));
    assert_non_null(strstr(err.message, "must be 24"));
  }
  assert_int_equal(gm__sized_in(&to, sizeof to, NULL, "test", "from", &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "`from` is NULL");
}

static void test_nothing_is_written_behind_an_older_caller(void **state) {
  (void)state;
  const known from = {.struct_size = sizeof from, .flags = 1, .first = 2, .second = 3};
  known to = {.struct_size = 20, .second = UINT64_MAX};
  gm__sized_out(&to, &from, sizeof from);
  assert_int_equal(to.struct_size, 20);
  assert_int_equal(to.first, 2);
  assert_int_equal(to.second, UINT64_C(0xffffffff00000000) | 3); /* half of it is the caller's struct */
}

static void test_a_newer_caller_gets_zero_in_what_gm_does_not_know(void **state) {
  (void)state;
  const known from = {.struct_size = sizeof from, .second = 3};
  longer to[2] = {{.known = {.struct_size = sizeof *to}, .third = 7}, {.third = 9}};
  gm__sized_out(to, &from, sizeof from);
  assert_int_equal(to[0].known.struct_size, sizeof *to);
  assert_int_equal(to[0].known.second, 3);
  assert_int_equal(to[0].third, 0);
  assert_int_equal(to[1].third, 9);
  assert_ptr_equal(gm__sized_at(to, 1), &to[1]);
}

static void test_statistics_of_callers_who_forgot_the_size(void **state) {
  (void)state;
  char text[2048];
  gm_stats sized = {.struct_size = sizeof sized, .allocs = 4, .stream_hits = 1}, none = {.allocs = 4};
  assert_true(gm_stats_hit_rate(&sized) == 0.25);
  assert_true(gm_stats_hit_rate(&none) == 1.0);
  gm_stats_add(&none, &sized);
  assert_int_equal(none.allocs, 4);
  gm_stats_add(&sized, &none);
  assert_int_equal(sized.allocs, 4);
  gm_stats_add(&sized, &sized);
  assert_int_equal(sized.allocs, 8);
  gm_stats_format(&none, text, sizeof text);
  assert_non_null(strstr(text, "allocs 0\n"));
}

static void test_native_structs(void **state) {
  (void)state;
  gm_cuda_memory lent = {{sizeof lent, GM_API_CUDA}, 1, 2}, to;
  gm_error err;
  assert_int_equal(gm__native_in(&to, sizeof to, &lent, GM_API_CUDA, "test", "native", &err), GM_OK);
  assert_int_equal(to.bytes, 2);
  lent.head.struct_size = 16; /* older: without `bytes` */
  assert_int_equal(gm__native_in(&to, sizeof to, &lent, GM_API_CUDA, "test", "native", &err), GM_OK);
  assert_int_equal(to.head.struct_size, sizeof to);
  assert_int_equal(to.pointer, 1);
  assert_int_equal(to.bytes, 0);
  lent.head.struct_size = 8; /* a pointer's */
  assert_int_equal(gm__native_in(&to, sizeof to, &lent, GM_API_CUDA, "test", "native", &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "struct_size"));
  lent.head = (gm_native_memory){sizeof lent, GM_API_HIP};
  assert_int_equal(gm__native_check(&lent, sizeof to, GM_API_CUDA, "test", "native", &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "cuda"));
  assert_int_equal(gm__native_check(NULL, sizeof to, GM_API_CUDA, "test", "native", &err), GM_ERR_INVALID_ARGUMENT);
}

#define SET ((void (*)(void))gm__sized_out)

/* A name that a later version may give a meaning must be 0 today: each entry of it. */
static void test_reserves_of_services(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    gm_services services = {.log = NULL};
    const gm_context_params params = {.struct_size = sizeof params, .services = &services, .ignore_environment = true};
    gm_context *ctx = NULL;
    gm_error err;
    services.reserved[i] = SET;
    assert_int_equal(gm_context_create(&params, &ctx, &err), GM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "reserved"));
  }
}

static void test_reserves_of_layers_and_devices(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    gm_fit_layer layers[2] = {{.weight_bytes = 1}, {.weight_bytes = 1}};
    gm_fit_device devices[2] = {{.free_bytes = 9}, {.free_bytes = 9}};
    const gm_fit_request request = {.struct_size = sizeof request,
                                    .layers = layers,
                                    .layer_count = 2,
                                    .devices = devices,
                                    .device_count = 2,
                                    .host_free_bytes = GM_UNKNOWN_BYTES};
    gm_fit_plan plan = {.struct_size = sizeof plan};
    gm_error err;
    assert_int_equal(gm_place_layers(NULL, &request, NULL, &plan, &err), GM_OK);
    (i < 2 ? layers[1].reserved : devices[1].reserved)[i % 2] = 1;
    assert_int_equal(gm_place_layers(NULL, &request, NULL, &plan, &err), GM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, i < 2 ? "layer 1" : "device 1"));
  }
}

static void test_reserves_of_pools_and_requests(void **state) {
  (void)state;
  const gm_context_params params = {.struct_size = sizeof params, .ignore_environment = true};
  const gm_upstream upstreams[] = {{.reserved = {SET, NULL}}, {.reserved = {NULL, SET}}};
  const gm_request request = {.bytes = 64, .reserved = {1}};
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  gm_block block;
  gm_error err;
  assert_int_equal(gm_context_create(&params, &ctx, &err), GM_OK);
  assert_int_equal(gm_device_open_index(ctx, "null", 0, &device, &err), GM_OK);
  for (int i = 0; i < 2; i++) {
    const gm_pool_params above = {.struct_size = sizeof above, .upstream = &upstreams[i]};
    assert_int_equal(gm_pool_create(device, &above, &pool, &err), GM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "upstream->reserved"));
  }
  assert_int_equal(gm_pool_create(device, NULL, &pool, &err), GM_OK);
  assert_int_equal(gm_alloc(pool, &request, &block), GM_ACQUIRE_INVALID); /* the first is never a quick one */
  assert_int_equal(gm_pool_destroy(pool, &err), GM_OK);
  assert_int_equal(gm_device_close(device, &err), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, &err), GM_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_older_caller_leaves_zero_behind),
      cmocka_unit_test(test_a_newer_caller_who_sets_nothing_new),
      cmocka_unit_test(test_a_newer_caller_who_sets_something_new),
      cmocka_unit_test(test_sizes_that_are_none),
      cmocka_unit_test(test_nothing_is_written_behind_an_older_caller),
      cmocka_unit_test(test_a_newer_caller_gets_zero_in_what_gm_does_not_know),
      cmocka_unit_test(test_native_structs),
      cmocka_unit_test(test_reserves_of_services),
      cmocka_unit_test(test_reserves_of_layers_and_devices),
      cmocka_unit_test(test_reserves_of_pools_and_requests),
      cmocka_unit_test(test_statistics_of_callers_who_forgot_the_size),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
