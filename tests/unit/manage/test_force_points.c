/* A pool that is ended by force, and the points that its buffers have noted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gm/buffer.h"
#include "support/order_bench.h"

/* The point that gm_buffer_unlock noted goes back to the driver before the device closes. */
static void test_points_of_buffers_go_back(void **state) {
  (void)state;
  order_bench bench;
  gm_error err = {.status = GM_OK};
  gm_buffer *buffers[3];
  order_open(&bench, GM_STREAM_FIFO, 0);
  for (int i = 0; i < 3; i++) {
    const gm_buffer_params params = {.struct_size = sizeof params,
                                     .request = {.bytes = 1000, .flags = i == 1 ? GM_RELOCATABLE : 0}};
    assert_int_equal(gm_buffer_create(bench.base.pool, &params, &buffers[i], &err), GM_OK);
    for (int turn = 0; turn < 2; turn++) {
      assert_int_equal(gm_buffer_lock(buffers[i], NULL, &err), GM_OK);
      work(&bench, turn ? bench.a : bench.b);
      assert_int_equal(gm_buffer_unlock(buffers[i], turn ? bench.a : bench.b, &err), GM_OK);
    }
  }
  assert_int_equal(shape.records - shape.releases, 6);
  assert_int_equal(gm_pool_destroy_force(bench.base.pool, &err), GM_OK);
  assert_int_equal(shape.records, shape.releases);
  assert_int_equal(gm_stream_close(bench.a, &err), GM_OK);
  assert_int_equal(gm_stream_close(bench.b, &err), GM_OK);
  assert_int_equal(gm_device_close(bench.base.device, &err), GM_OK);
  for (int i = 0; i < 3; i++) gm_buffer_release(buffers[i], NULL);
  assert_int_equal(shape.records, shape.releases);
  assert_int_equal(gm_context_destroy(bench.base.ctx, &err), GM_OK);
  counted_services_check(&bench.base.host);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_points_of_buffers_go_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
