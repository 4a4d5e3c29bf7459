/* Negative controls: the validation layers that must stay silent elsewhere do speak when something is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "backends/vulkan/vulkan_command.h"
#include "backends/vulkan/vulkan_mem.h"
#include "support/vulkan_fixture.h"

/* Closes as the fixture does, and wants messages. */
static void close_with_messages(vulkan_fixture *fixture) {
  fixture->ops->stream_close(fixture->device, fixture->stream, GM_CLOSE_NORMAL);
  fixture->ops->device_close(fixture->device, GM_CLOSE_NORMAL);
  uint32_t messages = gm__vulkan_validation_messages(fixture->driver);
  fixture->ops->fini(fixture->driver, GM_CLOSE_NORMAL);
  counted_services_check(&fixture->services);
  assert_true(messages > 0);
  assert_true(atomic_load(&fixture->services.lines) > 0); /* and they reached the host program's log */
}

/* A fill that no driver must be asked for: its offset is no whole word. Recorded, never submitted. */
static void test_invalid_usage(void **state) {
  (void)state;
  vulkan_fixture fixture;
  gm__vulkan_recording recording;
  vulkan_fixture_open(&fixture, "validation");
  gm_memory memory = vulkan_fixture_alloc(&fixture, 0, 4096);
  gm__vulkan_device *device = fixture.device;
  assert_int_equal(gm__vulkan_command_begin(device, device->families[0], &recording, NULL), GM_OK);
  device->syms.vkCmdFillBuffer(recording.buffer, gm__vulkan_memory_of(&memory)->buffer, 1, 64, 0);
  gm__vulkan_command_cancel(&recording);
  assert_non_null(strstr(fixture.services.last_line, "VUID-vkCmdFillBuffer-dstOffset"));
  vulkan_fixture_free(&fixture, &memory);
  close_with_messages(&fixture);
}

/* Two writes of the same bytes in one command buffer, recorded but never submitted. */
static void record_two_writes(vulkan_fixture *fixture, bool with_barrier) {
  gm_memory memory = vulkan_fixture_alloc(fixture, 0, 4096);
  gm__vulkan_device *device = fixture->device;
  VkBuffer buffer = gm__vulkan_memory_of(&memory)->buffer;
  gm__vulkan_recording recording;
  assert_int_equal(gm__vulkan_command_begin(device, device->families[0], &recording, NULL), GM_OK);
  device->syms.vkCmdFillBuffer(recording.buffer, buffer, 0, 4096, 1);
  if (with_barrier) gm__vulkan_command_barrier(&recording);
  device->syms.vkCmdFillBuffer(recording.buffer, buffer, 0, 4096, 2);
  gm__vulkan_command_cancel(&recording);
  vulkan_fixture_free(fixture, &memory);
}

static void test_missing_barrier(void **state) {
  (void)state;
  vulkan_fixture fixture;
  vulkan_fixture_open(&fixture, "validation");
  record_two_writes(&fixture, false);
  assert_non_null(strstr(fixture.services.last_line, "SYNC-HAZARD-WRITE-AFTER-WRITE"));
  close_with_messages(&fixture);
}

static void test_barrier_is_silent(void **state) {
  (void)state;
  vulkan_fixture fixture;
  vulkan_fixture_open(&fixture, "validation");
  record_two_writes(&fixture, true);
  vulkan_fixture_close(&fixture);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_invalid_usage),
      cmocka_unit_test(test_missing_barrier),
      cmocka_unit_test(test_barrier_is_silent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
