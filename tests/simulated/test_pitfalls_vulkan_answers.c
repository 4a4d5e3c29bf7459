/* Vulkan drivers that say the same twice, nonsense, or nothing: played by the simulated driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gm/copy.h"
#include "gm/device.h"
#include "simulated/shim/pitfall.h"
#include "support/sample.h"

static const pitfall_driver vulkan = {"vulkan", "SIMVK", "vulkan=" SIM_LIBRARY, NULL};

static uint32_t discover(const char *script, gm_device_entry entries[PITFALL_ENTRIES]) {
  pool_bench bench;
  pitfall_context(&bench, &vulkan, script);
  const uint32_t count = pitfall_discover(&bench, entries);
  pitfall_close(&bench);
  return count;
}

/* ---- identity ---- */

static void test_sixteen_devices(void **state) {
  (void)state;
  gm_device_entry entries[PITFALL_ENTRIES] = {{.struct_size = sizeof *entries}};
  pool_bench bench;
  pitfall_open(&bench, &vulkan, "devices=16,type=discrete,pci=1");
  assert_int_equal(pitfall_discover(&bench, entries), 16);
  for (uint32_t i = 0; i < 16; i++) {
    for (uint32_t j = 0; j < i; j++) assert_int_not_equal(entries[i].physical, entries[j].physical);
  }
  gm_device *last = NULL;
  pool_bench_ok(gm_device_open(bench.ctx, &entries[15].id, &last, err));
  assert_memory_equal(gm_device_get_info(last)->uuid, entries[15].info.uuid, GM_UUID_BYTES);
  pool_bench_ok(gm_device_close(last, err));
  pitfall_close(&bench);
}

/* One card behind two drivers: its memory counts once. */
static void test_one_card_through_two_drivers(void **state) {
  (void)state;
  gm_device_entry entries[PITFALL_ENTRIES] = {{.struct_size = sizeof *entries}};
  assert_int_equal(discover("devices=2,type=discrete,pci=3,same_pci,same_uuid", entries), 2);
  assert_int_equal(entries[0].physical, entries[1].physical);
}

static void test_moltenvk_repeats_uuids(void **state) {
  (void)state;
  gm_device_entry entries[PITFALL_ENTRIES] = {{.struct_size = sizeof *entries}};
  assert_int_equal(discover("devices=2,type=discrete,pci=3,same_uuid,driver=14", entries), 2);
  assert_string_equal(entries[0].info.driver, "moltenvk");
  assert_int_not_equal(entries[0].physical, entries[1].physical);
}

static void test_partitions_share_a_pci_address(void **state) {
  (void)state;
  gm_device_entry entries[PITFALL_ENTRIES] = {{.struct_size = sizeof *entries}};
  assert_int_equal(discover("devices=2,type=discrete,pci=3,same_pci", entries), 2);
  assert_string_equal(entries[0].info.pci, entries[1].info.pci);
  assert_int_not_equal(entries[0].physical, entries[1].physical);
}

static void test_uuid_of_zeros(void **state) {
  (void)state;
  gm_device_entry entries[PITFALL_ENTRIES] = {{.struct_size = sizeof *entries}};
  assert_int_equal(discover("devices=2,type=discrete,pci=3,no_uuid", entries), 2);
  assert_true(entries[0].info.uuid_derived);
  assert_memory_not_equal(entries[0].info.uuid, entries[1].info.uuid, GM_UUID_BYTES);
}

/* ---- what gm cannot work with ---- */

static void check_refused(const char *script, gm_status want, const char *word) {
  char why[sizeof((gm_error *)0)->message];
  const gm_status status = pitfall_refused(&vulkan, script, why, sizeof why);
  if (status != want || !strstr(why, word)) {
    fail_msg("%s: %s: %s", script, gm_status_name(status), why);
  }
}

static void test_no_timeline_semaphores(void **state) {
  (void)state;
  check_refused("no_timeline", GM_ERR_NOT_SUPPORTED, "timeline");
}

static void test_vulkan_1_0(void **state) {
  (void)state;
  check_refused("api=1.0", GM_ERR_NOT_SUPPORTED, "1.0");
}

static void test_no_queue_families(void **state) {
  (void)state;
  check_refused("hostile=families", GM_ERR_NOT_SUPPORTED, "queue");
}

static void test_no_memory_at_all(void **state) {
  (void)state;
  check_refused("heaps=none", GM_ERR_NOT_SUPPORTED, "memory");
}

/* ---- nonsense ---- */

static void works(const char *script) {
  static const unsigned char want[5000] = {1, 2, 3, 4};
  unsigned char got[5000] = {0};
  pool_bench bench;
  gm_device_entry entries[PITFALL_ENTRIES] = {{.struct_size = sizeof *entries}};
  pitfall_open(&bench, &vulkan, script);
  assert_true(pitfall_discover(&bench, entries) >= 1);
  gm_block block = pitfall_block(&bench, sizeof want, 0, GM_ANYWHERE);
  pool_bench_ok(gm_block_write(bench.pool, &block, 0, want, sizeof want, NULL, NULL, err));
  pool_bench_ok(gm_block_read(bench.pool, &block, 0, got, sizeof got, NULL, NULL, err));
  assert_memory_equal(got, want, sizeof want);
  pitfall_free(&bench, &block);
  pitfall_close(&bench);
}

static void test_alignments_of_zero(void **state) {
  (void)state;
  works("hostile=alignment,atom=0,noncoherent");
}

static void test_alignments_that_are_no_power_of_two(void **state) {
  (void)state;
  works("hostile=crooked");
}

/* gm rounds to them: see that the device is refused, and at once. */
static void test_atoms_that_are_no_power_of_two_or_absurd(void **state) {
  (void)state;
  check_refused("noncoherent,atom=48", GM_ERR_DRIVER, "an atom of 48 bytes");
  check_refused("noncoherent,atom=9223372036854775808", GM_ERR_DRIVER, "an alignment of 9223372036854775808");
  check_refused("noncoherent,atom=18446744073709551615", GM_ERR_DRIVER, "an atom of 18446744073709551615 bytes");
}

static void test_counts_beyond_the_arrays(void **state) {
  (void)state;
  works("hostile=counts");
  works("hostile=count");
}

static void test_type_in_a_heap_that_does_not_exist(void **state) {
  (void)state;
  works("hostile=heaps,heaps=discrete,type=discrete");
}

static void test_heaps_that_add_up_to_more_than_64_bits(void **state) {
  (void)state;
  works("hostile=sizes,heaps=discrete,type=discrete,budget=zero");
}

static void test_names_without_an_end(void **state) {
  (void)state;
  gm_device_entry entries[PITFALL_ENTRIES] = {{.struct_size = sizeof *entries}};
  works("hostile=names,pci=1,budget=half");
  assert_int_equal(discover("hostile=names", entries), 1);
  assert_int_equal(entries[0].info.name[0], 'A');
}

static void test_type_that_does_not_exist(void **state) {
  (void)state;
  gm_device_entry entries[PITFALL_ENTRIES] = {{.struct_size = sizeof *entries}};
  works("type=nonsense");
  assert_int_equal(discover("type=nonsense", entries), 1);
  assert_int_equal(entries[0].info.type, GM_DEVICE_TYPE_UNKNOWN);
}

static void test_more_extensions_than_memory(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure = {.status = GM_OK};
  pitfall_context(&bench, &vulkan, "hostile=extensions");
  const gm_status status = gm_device_open_index(bench.ctx, "vulkan", 0, &bench.device, &failure);
  assert_true(status == GM_OK || status == GM_ERR_OUT_OF_HOST_MEMORY || status == GM_ERR_DRIVER);
  pitfall_close(&bench);
}

static void test_buffer_that_needs_everything(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  pitfall_open(&bench, &vulkan, "hostile=needs");
  assert_int_equal(pitfall_take(&bench, 4096, 0, GM_ANYWHERE, &block), GM_ACQUIRE_EXHAUSTED);
  assert_int_equal(pitfall_why(&bench, 4096).status, GM_ERR_ALLOCATION_TOO_LARGE);
  pitfall_close(&bench);
}

/* ---- success without a result ---- */

/* Open, allocate, map, write through staging: whatever fails must be an error, and all can be given back. */
static gm_status use_all(const char *script, gm_error *out) {
  static const unsigned char bytes[100];
  pool_bench bench;
  gm_block block;
  void *host;
  *out = (gm_error){.status = GM_OK};
  pitfall_context(&bench, &vulkan, script);
  gm_status status = gm_device_open_index(bench.ctx, "vulkan", 0, &bench.device, out);
  if (status == GM_OK) pool_bench_ok(gm_pool_create(bench.device, NULL, &bench.pool, err));
  for (uint32_t flags = 0; flags <= GM_HOST_VISIBLE && status == GM_OK; flags += GM_HOST_VISIBLE) {
    if (pitfall_take(&bench, 4096, flags, GM_ANYWHERE, &block) > GM_ACQUIRE_FRESH) {
      *out = pitfall_why(&bench, 4096);
      status = out->status;
      continue;
    }
    status = gm_block_write(bench.pool, &block, 3, bytes, sizeof bytes, NULL, NULL, out);
    if (status == GM_OK && flags) {
      status = gm_block_map(bench.pool, &block, 0, 100, GM_MAP_WRITE, NULL, &host, out);
      if (status == GM_OK) status = pitfall_unmap(&bench, &block, host, out);
    }
    pitfall_free(&bench, &block);
  }
  pitfall_close(&bench);
  return status;
}

static void test_success_with_a_null_handle(void **state) {
  (void)state;
  gm_error none;
  assert_int_equal(use_all("heaps=discrete,type=discrete", &none), GM_OK);
  static const char *const names[] = {"vkCreateInstance",  "vkCreateDevice",           "vkAllocateMemory",
                                      "vkMapMemory",       "vkCreateBuffer",           "vkCreateCommandPool",
                                      "vkCreateSemaphore", "vkAllocateCommandBuffers", "vkGetBufferDeviceAddress"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char script[100];
    gm_error failure;
    snprintf(script, sizeof script, "heaps=discrete,type=discrete,null=%s", names[i]);
    if (use_all(script, &failure) != GM_ERR_DRIVER || !strstr(failure.message, names[i])) {
      fail_msg("%s: %s: %s", names[i], gm_status_name(failure.status), failure.message);
    }
  }
}

/* Waits without a limit end early: waited for again, since the work goes on; for ever early is an error. */
static void test_time_out_that_nobody_asked_for(void **state) {
  (void)state;
  static const char *const nth[] = {"1", "2", "3"};
  gm_error failure;
  for (size_t i = 0; i < sizeof nth / sizeof nth[0]; i++) {
    char script[100];
    snprintf(script, sizeof script, "heaps=hidden,type=discrete,fail=vkWaitSemaphores:%s:2", nth[i]);
    if (use_all(script, &failure) != GM_OK) fail_msg("%s: %s", script, failure.message);
  }
  assert_int_equal(use_all("heaps=hidden,type=discrete,fail=vkWaitSemaphores:*:2", &failure), GM_ERR_TIMEOUT);
  assert_string_equal(failure.op, "vkWaitSemaphores");
}

static void test_heap_of_no_bytes(void **state) {
  (void)state;
  gm_memory_info info = {.struct_size = sizeof info};
  pool_bench bench;
  gm_block block;
  pitfall_open(&bench, &vulkan, "heaps=discrete,type=discrete,local=0,host=0,budget=half");
  pool_bench_ok(gm_device_memory_info(bench.device, &info, err));
  assert_true(info.free_bytes == GM_UNKNOWN_BYTES || info.free_bytes <= info.total_bytes);
  if (pitfall_take(&bench, 4096, 0, GM_DEVICE_LOCAL, &block) <= GM_ACQUIRE_FRESH) pitfall_free(&bench, &block);
  pitfall_close(&bench);
}

/* ---- every call can fail ---- */

static const char *const entries_that_fail[] = {
#define X(level, need, fault, name, result, params, args) fault(#name)
#define CODE(name) name,
#define POINTER(name)
#define ADDRESS(name)
#define NONE(name)
#include "backends/vulkan/vulkan_syms.def"
#undef CODE
#undef POINTER
#undef ADDRESS
#undef NONE
};

/* Fails or gets along without it; what it had is given back, and the reason names a call. */
static void fails_at(const char *name, const char *nth, int code) {
  const bool stays_mapped = *nth == '*' && strcmp(name, "vkFlushMappedMemoryRanges") == 0 && code != -4;
  if (stays_mapped) return; /* for ever, as the contract says */
  char script[128];
  gm_error failure;
  snprintf(script, sizeof script, "heaps=hidden,type=discrete,noncoherent,fail=%s:%s:%d", name, nth, code);
  const gm_status status = use_all(script, &failure);
  if (status != GM_OK && (!failure.message[0] || failure.status != status)) fail_msg("%s: no reason", script);
}

static void test_each_call_fails(void **state) {
  (void)state;
  static const char *const nth[] = {"1", "2", "3", "*"};
  for (size_t i = 0; i < sizeof entries_that_fail / sizeof entries_that_fail[0]; i++) {
    for (size_t j = 0; j < sizeof nth / sizeof nth[0]; j++) {
      if (!sample_takes(4)) continue;
      fails_at(entries_that_fail[i], nth[j], -1);  /* VK_ERROR_OUT_OF_HOST_MEMORY */
      fails_at(entries_that_fail[i], nth[j], -4);  /* VK_ERROR_DEVICE_LOST */
      fails_at(entries_that_fail[i], nth[j], -77); /* none of Vulkan's */
      fails_at(entries_that_fail[i], nth[j], 2);   /* VK_TIMEOUT */
    }
  }
}

/* ---- a lost device ---- */

static void test_lost_device(void **state) {
  (void)state;
  static const unsigned char bytes[100];
  pool_bench bench;
  gm_error failure = {.status = GM_OK};
  pitfall_open(&bench, &vulkan, "heaps=hidden,type=discrete,lost_after=3");
  gm_block block = pitfall_block(&bench, MIB, 0, GM_DEVICE_LOCAL), more;
  gm_status status = GM_OK;
  for (int i = 0; i < 10 && status == GM_OK; i++) {
    status = gm_block_write(bench.pool, &block, 0, bytes, sizeof bytes, NULL, NULL, &failure);
  }
  assert_int_equal(status, GM_ERR_DEVICE_LOST);
  assert_int_equal(failure.native_code, -4);
  assert_int_equal(gm_device_state(bench.device, NULL), GM_ERR_DEVICE_LOST);
  assert_int_equal(pitfall_take(&bench, 3 * MIB, 0, GM_DEVICE_LOCAL, &more), GM_ACQUIRE_FAILED);
  pitfall_free(&bench, &block); /* what was there can be given back */
  pitfall_close(&bench);
  works(""); /* and the next one works */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sixteen_devices),
      cmocka_unit_test(test_one_card_through_two_drivers),
      cmocka_unit_test(test_moltenvk_repeats_uuids),
      cmocka_unit_test(test_partitions_share_a_pci_address),
      cmocka_unit_test(test_uuid_of_zeros),
      cmocka_unit_test(test_no_timeline_semaphores),
      cmocka_unit_test(test_vulkan_1_0),
      cmocka_unit_test(test_no_queue_families),
      cmocka_unit_test(test_no_memory_at_all),
      cmocka_unit_test(test_alignments_of_zero),
      cmocka_unit_test(test_alignments_that_are_no_power_of_two),
      cmocka_unit_test(test_atoms_that_are_no_power_of_two_or_absurd),
      cmocka_unit_test(test_counts_beyond_the_arrays),
      cmocka_unit_test(test_type_in_a_heap_that_does_not_exist),
      cmocka_unit_test(test_heaps_that_add_up_to_more_than_64_bits),
      cmocka_unit_test(test_names_without_an_end),
      cmocka_unit_test(test_type_that_does_not_exist),
      cmocka_unit_test(test_more_extensions_than_memory),
      cmocka_unit_test(test_buffer_that_needs_everything),
      cmocka_unit_test(test_success_with_a_null_handle),
      cmocka_unit_test(test_time_out_that_nobody_asked_for),
      cmocka_unit_test(test_heap_of_no_bytes),
      cmocka_unit_test(test_each_call_fails),
      cmocka_unit_test(test_lost_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
