/* The Vulkan backend on a real driver (lavapipe on a machine without a card). Validation and synchronisation validation
 * are on unless the options say otherwise. Closing the fixture fails the test if the layers said anything. Needs
 * cmocka.h included before.
 *
 * Without a device a test is skipped (77), unless GM_REQUIRE_BACKENDS lists vulkan: then it fails. */
#ifndef GM_TESTS_SUPPORT_VULKAN_FIXTURE_H
#define GM_TESTS_SUPPORT_VULKAN_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/vulkan/vulkan_backend.h"
#include "backends/vulkan/vulkan_instance.h"
#include "gm/native_vulkan.h"
#include "support/counted_services.h"

typedef struct vulkan_fixture {
  counted_services services;
  gm_backend_host host;
  const gm_backend_ops *ops;
  void *driver, *device, *stream;
} vulkan_fixture;

static inline void vulkan_fixture_log(void *user, int level, const char *line) {
  counted_log(user, level, line);
  printf("[log %d] %s\n", level, line);
}

static inline void vulkan_fixture_host(vulkan_fixture *fixture, const char *options) {
  *fixture = (vulkan_fixture){.ops = &gm__vulkan_backend};
  counted_services_init(&fixture->services);
  fixture->services.services.log = vulkan_fixture_log;
  fixture->host = (gm_backend_host){
      .struct_size = sizeof fixture->host, .services = &fixture->services.services, .options = options};
  fixture->host.library = getenv("GM_VULKAN_LIBRARY"); /* as the registry reads it */
}

static inline void vulkan_fixture_absent(const char *why) {
  const char *required = getenv("GM_REQUIRE_BACKENDS");
  bool must = required && strstr(required, "vulkan");
  printf("%s: no Vulkan device to test with: %s\n", must ? "failed" : "skipped", why);
  exit(must ? 1 : 77);
}

static inline void vulkan_fixture_init(vulkan_fixture *fixture, const char *options) {
  gm_error err = {0};
  uint32_t count = 0;
  vulkan_fixture_host(fixture, options);
  if (fixture->ops->init(&fixture->host, &fixture->driver, &err) != GM_OK) vulkan_fixture_absent(err.message);
  assert_int_equal(fixture->ops->device_count(fixture->driver, &count, NULL), GM_OK);
  if (!count) vulkan_fixture_absent("the drivers list none");
}

static inline void vulkan_fixture_open(vulkan_fixture *fixture, const char *options) {
  gm_stream_kind kind = GM_STREAM_FIFO;
  gm_error err = {0};
  vulkan_fixture_init(fixture, options);
  if (fixture->ops->device_open(fixture->driver, 0, &fixture->device, &err) != GM_OK) {
    fail_msg("device_open: %s", err.message);
  }
  assert_int_equal(fixture->ops->stream_create(fixture->device, &fixture->stream, &kind, NULL), GM_OK);
  assert_int_equal(kind, GM_STREAM_FIFO_IF_BARRIER);
}

/* Closes what is open; `messages` is what the layers must have said by then (0 but for negative controls). */
static inline void vulkan_fixture_close(vulkan_fixture *fixture) {
  if (fixture->stream) fixture->ops->stream_close(fixture->device, fixture->stream, GM_CLOSE_NORMAL);
  if (fixture->device) fixture->ops->device_close(fixture->device, GM_CLOSE_NORMAL);
  uint32_t messages = gm__vulkan_validation_messages(fixture->driver);
  fixture->ops->fini(fixture->driver, GM_CLOSE_NORMAL);
  counted_services_check(&fixture->services);
  assert_int_equal(messages, 0);
}

static inline gm_memory vulkan_fixture_alloc(const vulkan_fixture *fixture, uint32_t type, uint64_t bytes) {
  const gm_memory_params params = {.struct_size = sizeof params, .type = type, .bytes = bytes};
  gm_memory memory = {0};
  gm_error err = {0};
  if (fixture->ops->memory_alloc(fixture->device, &params, &memory, &err) != GM_OK) fail_msg("%s", err.message);
  assert_true(memory.handle != 0);
  assert_true(memory.bytes >= bytes);
  return memory;
}

static inline void vulkan_fixture_free(const vulkan_fixture *fixture, const gm_memory *memory) {
  assert_int_equal(fixture->ops->memory_free(fixture->device, memory, GM_CLOSE_NORMAL, NULL), GM_OK);
}

/* Bytes gm holds in all heaps of device 0. */
static inline uint64_t vulkan_fixture_held(const vulkan_fixture *fixture) {
  gm_raw_figures figures = {.struct_size = sizeof figures};
  uint64_t held = 0;
  assert_int_equal(fixture->ops->figures(fixture->driver, 0, NULL, &figures, NULL), GM_OK);
  for (uint32_t i = 0; i < figures.heap_count; i++) held += figures.heaps[i].own_bytes;
  return held;
}

#endif
