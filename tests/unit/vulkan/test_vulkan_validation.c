/* Negative controls: the validation layers that must stay silent elsewhere do speak when something is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "backends/vulkan/vulkan_command.h"
#include "backends/vulkan/vulkan_mem.h"
#include "support/vulkan_fixture.h"
/* after the fixture */
#include "support/vulkan_engine.h"

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

/* Two submissions to an engine's queue that write the same bytes: what one leaves to the next is checked too. */
static void test_missing_barrier_between_submissions(void **state) {
  (void)state;
  vulkan_fixture fixture;
  vulkan_engine engine;
  setenv("VK_LAYER_ENABLES", "VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT", 1);
  vulkan_fixture_init(&fixture, "");
  vulkan_engine_open(&engine, &fixture.host);
  const gm_vulkan_device lent = vulkan_engine_native(&engine);
  assert_int_equal(fixture.ops->device_adopt(fixture.driver, &lent.head, &fixture.device, NULL), GM_OK);
  gm_memory memory = vulkan_fixture_alloc(&fixture, 0, 4096);
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                          .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};
  assert_int_equal(engine.vk.vkBeginCommandBuffer(engine.commands, &begin), VK_SUCCESS);
  engine.vk.vkCmdFillBuffer(engine.commands, gm__vulkan_memory_of(&memory)->buffer, 0, 4096, 1);
  assert_int_equal(engine.vk.vkEndCommandBuffer(engine.commands), VK_SUCCESS);
  vulkan_engine_submit(&engine, true, 1);
  vulkan_engine_submit(&engine, true, 2);
  const gm_backend_point last = {(uint64_t)engine.timeline, 2};
  assert_int_equal(fixture.ops->point_wait(fixture.device, &last, UINT64_MAX, NULL), GM_OK);
  vulkan_fixture_free(&fixture, &memory);
  fixture.ops->device_close(fixture.device, GM_CLOSE_NORMAL);
  fixture.device = NULL;
  assert_true(atomic_load(&engine.messages) > 0);
  atomic_store(&engine.messages, 0); /* closing wants none */
  vulkan_engine_close(&engine);
  vulkan_fixture_close(&fixture);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_invalid_usage),
      cmocka_unit_test(test_missing_barrier),
      cmocka_unit_test(test_barrier_is_silent),
      cmocka_unit_test(test_missing_barrier_between_submissions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
