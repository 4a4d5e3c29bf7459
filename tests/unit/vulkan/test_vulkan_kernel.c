/* Many small items by a shader, on a real Vulkan driver, validation on: the bytes, and what the driver is called for.
 * Where the driver makes no shader, copies do the same, and the log says so once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/random.h"
#include "support/vulkan_fixture.h"

enum { BYTES = 65536, ITEMS = 60, MOST = 1100 };

static gm__vulkan_syms real;
static unsigned shaders, lines, told, tries;
static const char *fails;   /* an entry that answers VK_ERROR_OUT_OF_DEVICE_MEMORY */
static const char *missing; /* an entry that the driver does not have */

static bool plays = true;

static bool hit(const char *name) {
  if (strcmp(name, "vkCmdDispatch") == 0) shaders++;
  if (strcmp(name, "vkCmdCopyBuffer") == 0) lines++;
  if (strcmp(name, "vkCreateDescriptorSetLayout") == 0) tries++;
  return fails && strcmp(name, fails) == 0;
}

#define WRAP_CODE(name, args)                           \
  if (hit(#name)) return VK_ERROR_OUT_OF_DEVICE_MEMORY; \
  return real.name args;
#define WRAP_POINTER(name, args) return real.name args;
#define WRAP_ADDRESS WRAP_POINTER
#define WRAP_NONE(name, args) \
  hit(#name);                 \
  real.name args;
#define X(level, need, fault, name, result, params, args) \
  static VKAPI_ATTR result VKAPI_CALL wrap_##name params { WRAP_##fault(name, args) }
#include "backends/vulkan/vulkan_syms.def"

static const struct {
  const char *name;
  size_t offset;
  PFN_vkVoidFunction wrapper;
} entries[] = {
#define X(level, need, fault, name, result, params, args) \
  {#name, offsetof(gm__vulkan_syms, name), (PFN_vkVoidFunction)wrap_##name},
#include "backends/vulkan/vulkan_syms.def"
};

/* The driver's device plays a card: on a processor gm does without the shader. */
static VKAPI_ATTR void VKAPI_CALL play_card(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *out) {
  real.vkGetPhysicalDeviceProperties2(physical, out);
  if (plays) out->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
}

static void *hook(void *user, const char *backend, const char *symbol, void *found) {
  (void)user, (void)backend;
  if (!found || (missing && strcmp(symbol, missing) == 0)) return NULL;
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
    if (strcmp(symbol, entries[i].name) != 0) continue;
    void *wrapper;
    memcpy((char *)&real + entries[i].offset, &found, sizeof found);
    memcpy(&wrapper, &entries[i].wrapper, sizeof wrapper);
    const PFN_vkGetPhysicalDeviceProperties2 card = play_card;
    if (strcmp(symbol, "vkGetPhysicalDeviceProperties2") == 0) memcpy(&wrapper, &card, sizeof wrapper);
    return wrapper;
  }
  return found;
}

static void hear(void *user, int level, const char *line) {
  counted_log(user, level, line);
  if (strstr(line, "not by a shader")) told++;
}

typedef struct scene {
  vulkan_fixture f;
  gm_memory from, to;
  unsigned char src[BYTES], want[BYTES], got[BYTES];
  gm_copy_item items[MOST];
  uint64_t random;
} scene;

static scene s;
static gm_error err;

static void good(gm_status status) {
  if (status != GM_OK) fail_msg("%s: %s", gm_status_name(status), err.message);
}

static int begin(void **state) {
  (void)state;
  const gm_backend_ops *ops = &gm__vulkan_backend;
  gm_stream_kind kind;
  shaders = lines = told = tries = 0;
  s = (scene){.random = 23};
  vulkan_fixture_host(&s.f, "validation,no_host_visible");
  s.f.services.services.log = hear;
  s.f.host.symbol_hook = hook;
  if (ops->init(&s.f.host, &s.f.driver, &err)) vulkan_fixture_absent(err.message);
  good(ops->device_open(s.f.driver, 0, &s.f.device, &err));
  good(ops->stream_create(s.f.device, &s.f.stream, &kind, &err));
  s.from = vulkan_fixture_alloc(&s.f, 0, BYTES);
  s.to = vulkan_fixture_alloc(&s.f, 0, BYTES);
  for (size_t i = 0; i < BYTES; i++) s.src[i] = (unsigned char)test_random(&s.random);
  good(ops->copy_to_device(s.f.device, s.f.stream, &s.from, 0, s.src, BYTES, NULL, &err));
  good(ops->copy_to_device(s.f.device, s.f.stream, &s.to, 0, s.want, BYTES, NULL, &err));
  return 0;
}

static int end(void **state) {
  (void)state;
  fails = missing = NULL;
  vulkan_fixture_free(&s.f, &s.from);
  vulkan_fixture_free(&s.f, &s.to);
  vulkan_fixture_close(&s.f);
  return 0;
}

/* Items at any word and of any number of words, of none too, their targets in order. */
static void set_items(uint32_t count) {
  const uint64_t most = BYTES / 4 / count;
  uint64_t at = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t bytes = i % 7 == 3 ? 0 : 4 * (1 + test_random(&s.random) % (most * 3 / 4));
    const uint64_t source = 4 * (test_random(&s.random) % (BYTES / 4 - most));
    at += 4 * (test_random(&s.random) % (most / 8 + 1));
    s.items[i] = (gm_copy_item){&s.from, source, &s.to, at, bytes};
    at += bytes;
  }
}

static void submit_items(uint32_t count, gm_backend_point *out) {
  for (uint32_t i = 0; i < count; i++) {
    const gm_copy_item *item = &s.items[i];
    const unsigned char *from = item->src == &s.from ? s.src : s.want;
    memmove(s.want + item->dst_offset, from + item->src_offset, item->bytes);
  }
  good(s.f.ops->copy_many(s.f.device, s.f.stream, s.items, count, out, &err));
}

static void check_bytes(void) {
  good(s.f.ops->copy_to_host(s.f.device, s.f.stream, &s.to, 0, s.got, BYTES, NULL, &err));
  assert_memory_equal(s.got, s.want, BYTES);
}

static void items_are_one_shader(void **state) {
  (void)state;
  for (unsigned round = 1; round <= 20; round++) {
    const unsigned before = lines;
    set_items(round % 2 ? ITEMS : 1024);
    submit_items(round % 2 ? ITEMS : 1024, NULL);
    assert_int_equal(lines, before);
    check_bytes();
    assert_int_equal(shaders, round);
  }
  assert_int_equal(tries, 1);
  assert_int_equal(told, 0);
}

/* More runs are under way than there are slots. Which of them wait is up to the device: copies do the others. */
static void runs_beside_each_other(void **state) {
  (void)state;
  gm_backend_point point = {0};
  for (unsigned round = 0; round < 40; round++) {
    set_items(ITEMS);
    submit_items(ITEMS, &point);
  }
  check_bytes();
  assert_true(shaders >= 8);
}

/* Runs items that are not for the shader. */
static void check_copies(uint32_t count) {
  submit_items(count, NULL);
  check_bytes();
  assert_int_equal(shaders + tries, 0);
}

static void other_items_are_copies(void **state) {
  (void)state;
  set_items(15); /* few */
  check_copies(15);
  set_items(ITEMS); /* targets out of order */
  const gm_copy_item first = s.items[0];
  s.items[0] = s.items[ITEMS - 1];
  s.items[ITEMS - 1] = first;
  check_copies(ITEMS);
  for (uint32_t i = 0; i < ITEMS; i++) s.items[i] = (gm_copy_item){&s.to, i * 1000, &s.to, 500 + i * 1000, 500};
  check_copies(ITEMS); /* one memory */
  for (uint32_t i = 0; i < MOST; i++) s.items[i] = (gm_copy_item){&s.from, i * 4, &s.to, i * 8, 4};
  check_copies(MOST); /* too many */
}

static void a_processor_copies(void **state) {
  end(state);
  plays = false;
  begin(state);
  set_items(ITEMS);
  check_copies(ITEMS);
  plays = true;
}

/* Parts of words: a neighbour may be written at the same time. */
static void parts_of_words_are_copies(void **state) {
  (void)state;
  for (int part = 0; part < 3; part++) {
    set_items(ITEMS);
    gm_copy_item *item = &s.items[ITEMS - 1];
    *(part == 0 ? &item->bytes : part == 1 ? &item->src_offset : &item->dst_offset) += 1;
    check_copies(ITEMS);
  }
}

/* Items that meet keep their order. */
static void items_that_meet_are_copies(void **state) {
  (void)state;
  for (uint32_t i = 0; i < ITEMS; i++) s.items[i] = (gm_copy_item){&s.from, i * 500, &s.to, i * 100, 104};
  check_copies(ITEMS);
}

static void check_refused(void) {
  for (int round = 0; round < 3; round++) {
    set_items(ITEMS);
    submit_items(ITEMS, NULL);
    check_bytes();
  }
  assert_int_equal(shaders, 0);
  assert_true(tries <= 1);
  assert_true(lines > ITEMS);
  assert_int_equal(told, 1);
}

static void a_driver_without_shaders_is_told_once(void **state) {
  static const char *const makers[] = {
      "vkCreateShaderModule",   "vkCreateDescriptorSetLayout", "vkCreatePipelineLayout", "vkCreateComputePipelines",
      "vkCreateDescriptorPool", "vkAllocateDescriptorSets",    "vkAllocateMemory"};
  for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
    if (i) end(state), begin(state);
    fails = makers[i];
    check_refused();
    fails = NULL;
  }
}

static void a_missing_entry_is_told_once(void **state) {
  static const char *const names[] = {"vkCmdDispatch", "vkUpdateDescriptorSets", "vkCreateComputePipelines"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    end(state);
    missing = names[i];
    begin(state);
    check_refused();
    assert_int_equal(tries, 0);
  }
}

/* Without host memory for the shader's records there are copies. */
static void no_host_memory_is_told_once(void **state) {
  (void)state;
  set_items(ITEMS);
  submit_items(15, NULL); /* the command buffer is there */
  s.f.services.fail_at = atomic_load(&s.f.services.calls) + 1;
  s.f.services.fail_count = 1;
  check_refused();
}

int main(void) {
#define KERNEL_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      KERNEL_TEST(items_are_one_shader),
      KERNEL_TEST(runs_beside_each_other),
      KERNEL_TEST(other_items_are_copies),
      KERNEL_TEST(a_processor_copies),
      KERNEL_TEST(parts_of_words_are_copies),
      KERNEL_TEST(items_that_meet_are_copies),
      KERNEL_TEST(a_driver_without_shaders_is_told_once),
      KERNEL_TEST(a_missing_entry_is_told_once),
      KERNEL_TEST(no_host_memory_is_told_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
