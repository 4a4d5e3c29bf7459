/* A CUDA device that fails for good, a driver that is gone at exit, a child of a fork. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cuda/cuda_status.h"
#include "support/cuda_fixture.h"

/* Not cuda_end: a lost context keeps what was in it. */
static void lost_end(cuda_fixture *f) {
  f->ops->stream_close(f->device, f->stream, GM_CLOSE_NORMAL);
  f->ops->device_close(f->device, GM_CLOSE_NORMAL);
  f->ops->fini(f->driver, GM_CLOSE_NORMAL);
  cuda_say("reload");
}

static void test_a_lost_device_is_remembered(void **state) {
  (void)state;
  cuda_fixture f;
  gm_backend_point point = {0};
  static unsigned char host[4096];
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = 4096};
  gm_memory second;
  gm_raw_figures figures = {.struct_size = sizeof figures};
  cuda_begin(&f);
  cuda_open(&f);
  gm_memory memory = cuda_memory(&f, 0, 4096), pinned = cuda_memory(&f, 1, 4096);
  assert_int_equal(f.ops->host_register(f.device, host, sizeof host, &f.err), GM_OK);
  assert_int_equal(f.ops->point_record(f.device, f.stream, &point, &f.err), GM_OK);
  assert_int_equal(f.ops->device_state(f.device, &f.err), GM_OK);
  cuda_say("lose 700");
  assert_int_equal(f.ops->stream_sync(f.device, f.stream, &f.err), GM_ERR_DEVICE_LOST);
  assert_int_equal(f.err.native_code, 700);
  assert_non_null(strstr(f.err.message, "CUDA_ERROR_ILLEGAL_ADDRESS"));
  cuda_say("zero"); /* from here on the driver is not even asked */
  assert_int_equal(f.ops->device_state(f.device, &f.err), GM_ERR_DEVICE_LOST);
  assert_int_equal(f.err.native_code, 700);
  assert_int_equal(f.ops->memory_alloc(f.device, &params, &second, &f.err), GM_ERR_DEVICE_LOST);
  assert_int_equal(f.ops->point_wait(f.device, &point, UINT64_MAX, &f.err), GM_ERR_DEVICE_LOST);
  assert_int_equal(f.ops->figures(f.driver, 0, f.device, &figures, &f.err), GM_OK);
  assert_int_equal(figures.driver.state, GM_RAW_ERROR);
  cuda_free(&f, &memory); /* frees succeed */
  cuda_free(&f, &pinned);
  assert_int_equal(f.ops->host_unregister(f.device, host, GM_CLOSE_NORMAL, &f.err), GM_OK);
  f.ops->point_release(f.device, &point, GM_CLOSE_NORMAL);
  assert_int_equal(cuda_calls("cuMemFree_v2"), 0);
  lost_end(&f);
}

/* The first to notice may be a free: it succeeds, and the loss is known. */
static void test_a_free_that_finds_the_loss(void **state) {
  (void)state;
  cuda_fixture f;
  cuda_begin(&f);
  cuda_open(&f);
  gm_memory memory = cuda_memory(&f, 0, 4096);
  cuda_say("lose 719");
  cuda_free(&f, &memory);
  assert_int_equal(f.ops->device_state(f.device, &f.err), GM_ERR_DEVICE_LOST);
  lost_end(&f);
}

/* 999 says nothing by itself; where the device goes on answering it, it is lost. */
static void test_an_unknown_error_that_stays(void **state) {
  (void)state;
  cuda_fixture f;
  cuda_begin(&f);
  cuda_open(&f);
  cuda_say("fail cuStreamSynchronize:1:999");
  assert_int_equal(f.ops->stream_sync(f.device, f.stream, &f.err), GM_ERR_DRIVER);
  assert_int_equal(f.ops->device_state(f.device, &f.err), GM_OK);
  cuda_say("fail");
  cuda_say("lose 999");
  assert_int_equal(f.ops->device_state(f.device, &f.err), GM_ERR_DEVICE_LOST);
  assert_int_equal(f.ops->stream_sync(f.device, f.stream, &f.err), GM_ERR_DEVICE_LOST);
  lost_end(&f);
}

/* At exit the driver may be gone before gm's objects: giving back is done then. */
static void test_a_driver_that_has_shut_down(void **state) {
  (void)state;
  cuda_fixture f;
  static unsigned char host[4096];
  cuda_begin(&f);
  cuda_open(&f);
  gm_memory memory = cuda_memory(&f, 0, 4096), pinned = cuda_memory(&f, 1, 4096);
  assert_int_equal(f.ops->host_register(f.device, host, sizeof host, &f.err), GM_OK);
  cuda_say("fail cuMemFree:1:4,cuMemFreeHost:1:4,cuMemHostUnregister:1:4");
  cuda_free(&f, &memory);
  cuda_free(&f, &pinned);
  assert_int_equal(f.ops->host_unregister(f.device, host, GM_CLOSE_NORMAL, &f.err), GM_OK);
  assert_int_equal(f.ops->device_state(f.device, &f.err), GM_OK);
  cuda_say("fail cuCtxGetCurrent:*:4,cuCtxPushCurrent:*:4,cuCtxSetCurrent:*:4");
  cuda_free(&f, &memory); /* not even the context can be entered any more */
  cuda_say("fail");
  lost_end(&f);
}

static void test_a_forked_child_calls_nothing(void **state) {
  (void)state;
  cuda_fixture f;
  gm_backend_point point = {0};
  uint64_t granule = 0, handle = 0;
  const gm_vmm_props props = {0};
  cuda_begin(&f);
  cuda_open(&f);
  gm_memory memory = cuda_memory(&f, 0, 4096);
  assert_int_equal(f.ops->point_record(f.device, f.stream, &point, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_granularity(f.device, &props, &granule, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_create(f.device, &props, granule, &handle, &f.err), GM_OK);
  const pid_t child = fork();
  if (child == 0) {
    cuda_say("zero");
    int bad = f.ops->memory_free(f.device, &memory, GM_CLOSE_ABANDON, NULL) != GM_OK;
    bad |= f.ops->vmm_destroy(f.device, handle, granule, GM_CLOSE_ABANDON, NULL) != GM_OK;
    f.ops->point_release(f.device, &point, GM_CLOSE_ABANDON);
    f.ops->stream_close(f.device, f.stream, GM_CLOSE_ABANDON);
    f.ops->device_close(f.device, GM_CLOSE_ABANDON);
    f.ops->fini(f.driver, GM_CLOSE_ABANDON);
    _exit(bad || cuda_count("calls") != 0);
  }
  int result = -1;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
  f.ops->point_release(f.device, &point, GM_CLOSE_NORMAL);
  assert_int_equal(f.ops->vmm_destroy(f.device, handle, granule, GM_CLOSE_NORMAL, &f.err), GM_OK);
  cuda_free(&f, &memory);
  cuda_end(&f);
}

static void test_codes(void **state) {
  (void)state;
  static const int lost[] = {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911};
  gm_error err;
  for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
    assert_int_equal(gm__code_find(&gm__cuda_codes, lost[i])->status, GM_ERR_DEVICE_LOST);
  }
  assert_int_equal(gm__code_find(&gm__cuda_codes, 0)->status, GM_OK);
  assert_int_equal(gm__code_find(&gm__cuda_codes, 2)->status, GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(gm__code_find(&gm__cuda_codes, 600)->status, GM_ERR_DRIVER);
  assert_int_equal(gm__code_find(&gm__cuda_codes, 123456)->status, GM_ERR_DRIVER);
  assert_string_equal(gm__code_find(&gm__cuda_codes, 123456)->name, "unknown code");
  assert_int_equal(gm__code_fail(&gm__cuda_codes, &err, 123456, "cuAnything"), GM_ERR_DRIVER);
  assert_int_equal(err.native_code, 123456);
  assert_non_null(strstr(err.message, "123456"));
  assert_int_equal(gm__code_fail(&gm__cuda_codes, NULL, CUDA_SUCCESS, "cuAnything"),
                   GM_ERR_DRIVER); /* a failure is never GM_OK */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_lost_device_is_remembered),  cmocka_unit_test(test_a_free_that_finds_the_loss),
      cmocka_unit_test(test_an_unknown_error_that_stays),  cmocka_unit_test(test_a_driver_that_has_shut_down),
      cmocka_unit_test(test_a_forked_child_calls_nothing), cmocka_unit_test(test_codes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
