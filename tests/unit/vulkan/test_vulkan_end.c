/* The end of a stream that waited for another. Mesa 22.3 touches the other's semaphore once more after the submission
 * that waited for it has signalled its end. So gm's last submission there must wait for nobody: its end says that the
 * one before is over altogether. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/vulkan_fixture.h"

static struct {
  PFN_vkQueueSubmit submit;
  uint32_t submissions, last_waits; /* semaphores that the last one waited for */
} seen;

static VKAPI_ATTR VkResult VKAPI_CALL seen_submit(VkQueue queue, uint32_t count, const VkSubmitInfo *info,
                                                  VkFence fence) {
  seen.submissions++;
  seen.last_waits = count ? info[count - 1].waitSemaphoreCount : 0;
  return seen.submit(queue, count, info, fence);
}

static void *seen_hook(void *user, const char *backend, const char *symbol, void *real) {
  (void)user, (void)backend;
  if (strcmp(symbol, "vkQueueSubmit") != 0) return real;
  PFN_vkQueueSubmit instead = seen_submit;
  void *function;
  memcpy(&seen.submit, &real, sizeof real);
  memcpy(&function, &instead, sizeof function);
  return function;
}

static void seen_open(vulkan_fixture *fixture) {
  gm_stream_kind kind;
  vulkan_fixture_host(fixture, "validation");
  fixture->host.symbol_hook = seen_hook;
  if (fixture->ops->init(&fixture->host, &fixture->driver, NULL) != GM_OK) vulkan_fixture_absent("init failed");
  assert_int_equal(fixture->ops->device_open(fixture->driver, 0, &fixture->device, NULL), GM_OK);
  assert_int_equal(fixture->ops->stream_create(fixture->device, &fixture->stream, &kind, NULL), GM_OK);
}

static void test_a_stream_that_waited(void **state) {
  (void)state;
  vulkan_fixture fixture;
  gm_stream_kind kind;
  gm_backend_point point = {0};
  void *other;
  seen_open(&fixture);
  const gm_backend_ops *ops = fixture.ops;
  assert_int_equal(ops->stream_create(fixture.device, &other, &kind, NULL), GM_OK);
  assert_int_equal(ops->stream_barrier(fixture.device, fixture.stream, NULL), GM_OK);
  assert_int_equal(ops->point_record(fixture.device, fixture.stream, &point, NULL), GM_OK);
  assert_int_equal(ops->point_wait_on(fixture.device, other, &point, NULL), GM_OK);
  assert_int_equal(seen.last_waits, 1);
  ops->stream_close(fixture.device, other, GM_CLOSE_NORMAL);
  assert_int_equal(seen.last_waits, 0);
  ops->point_release(fixture.device, &point, GM_CLOSE_NORMAL);
  vulkan_fixture_close(&fixture);
}

static void test_a_stream_that_did_not(void **state) {
  (void)state;
  vulkan_fixture fixture;
  seen_open(&fixture);
  assert_int_equal(fixture.ops->stream_barrier(fixture.device, fixture.stream, NULL), GM_OK);
  const uint32_t before = seen.submissions;
  vulkan_fixture_close(&fixture);
  assert_int_equal(seen.submissions, before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_stream_that_waited),
      cmocka_unit_test(test_a_stream_that_did_not),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
