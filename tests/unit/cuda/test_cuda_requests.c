/* Requests of every sort on the simulated CUDA driver: gm_explain tells what gm_alloc did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/cuda_fixture.h"
#include "support/pool_bench.h"
#include "support/request_sweep.h"

static void test_the_report_tells_what_was_done(void **state) {
  (void)state;
  gm_context *ctx;
  gm_device *device;
  gm_stream *stream;
  const gm_context_params params = {.struct_size = sizeof params}; /* GM_CUDA_LIBRARY */
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  pool_bench_ok(gm_context_create(&params, &ctx, err));
  pool_bench_ok(gm_device_open_index(ctx, "cuda", 0, &device, err));
  pool_bench_ok(gm_stream_create(device, &stream, err));
  assert_in_range(sweep_device(device, stream, stream), 500, 6000);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_ok(gm_device_close(device, err));
  pool_bench_ok(gm_context_destroy(ctx, err));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_report_tells_what_was_done)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
