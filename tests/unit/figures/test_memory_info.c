/* The resolver where the shared cases do not go: every rule's other branches, and any numbers at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/figures/memory_info.h"

#define GIB(n) (UINT64_C(n) << 30)

static gm_raw_figures raw_of(gm_raw_rules rules, gm_raw_place place) {
  return (gm_raw_figures){.struct_size = sizeof(gm_raw_figures), .rules = rules, .place = place};
}

static gm_raw_reply reply(uint64_t total, uint64_t free_bytes) {
  return (gm_raw_reply){GM_RAW_OK, 0, total, free_bytes};
}

static gm_memory_info resolve(const gm_raw_figures *raw) {
  gm__figures_input input = gm__figures_input_of(raw);
  return gm__memory_info_resolve(&input);
}

static void assert_figures(gm_memory_info info, uint64_t total, uint64_t free_bytes, gm_figure_state state) {
  assert_true(info.total_bytes == total && info.free_bytes == free_bytes);
  assert_int_equal(info.free_state, state);
}

static void test_nothing_asked_is_nothing_known(void **state) {
  (void)state;
  for (int rules = GM_RAW_DRIVER; rules <= GM_RAW_VULKAN; rules++) {
    gm_raw_figures raw = raw_of((gm_raw_rules)rules, GM_RAW_OWN_MEMORY);
    gm_memory_info info = resolve(&raw);
    assert_figures(info, GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES, GM_FIGURE_UNKNOWN);
    assert_true(info.used_by_others_bytes == GM_UNKNOWN_BYTES && info.free_source == GM_SOURCE_NONE);
    assert_true(info.reclaimable_bytes == 0 && info.margin_bytes == 0 && info.used_by_us_bytes == 0);
  }
  gm_raw_figures raw = raw_of((gm_raw_rules)77, (gm_raw_place)77);
  assert_figures(resolve(&raw), GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES, GM_FIGURE_UNKNOWN);
}

static void test_a_strangers_driver_is_believed_within_bounds(void **state) {
  (void)state;
  gm_raw_figures raw = raw_of(GM_RAW_DRIVER, GM_RAW_OWN_MEMORY);
  raw.driver = reply(GIB(8), GIB(5));
  assert_figures(resolve(&raw), GIB(8), GIB(5), GM_FIGURE_KNOWN);
  raw.driver = reply(GIB(8), GIB(9));
  assert_figures(resolve(&raw), GIB(8), GIB(8), GM_FIGURE_ESTIMATED);
  raw.driver = reply(GIB(8), 0);
  assert_figures(resolve(&raw), GIB(8), 0, GM_FIGURE_KNOWN);
  raw.driver = reply(0, 0);
  assert_figures(resolve(&raw), GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES, GM_FIGURE_UNKNOWN);
  raw.driver = reply(GIB(8), GM_UNKNOWN_BYTES);
  gm__figures_input input = gm__figures_input_of(&raw);
  input.own_bytes = GIB(3);
  gm_memory_info info = gm__memory_info_resolve(&input);
  assert_figures(info, GIB(8), GIB(5), GM_FIGURE_ESTIMATED);
  assert_true(info.free_source == GM_SOURCE_OWN_ACCOUNTING && info.used_by_others_bytes == GM_UNKNOWN_BYTES);
  raw.driver.state = GM_RAW_ERROR;
  assert_figures(resolve(&raw), GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES, GM_FIGURE_UNKNOWN);
}

static void test_the_host_stands_for_the_cpu(void **state) {
  (void)state;
  gm_raw_figures raw = raw_of(GM_RAW_HOST, GM_RAW_CPU_DEVICE);
  gm_host_info host = {.total_bytes = GIB(8), .free_bytes = GIB(6), .free_state = GM_FIGURE_ESTIMATED};
  gm__figures_input input = gm__figures_input_of(&raw);
  input.host = &host;
  gm_memory_info info = gm__memory_info_resolve(&input);
  assert_figures(info, GIB(8), GIB(6), GM_FIGURE_ESTIMATED);
  assert_true(info.unified && info.free_by_os_bytes == GIB(6) && info.free_source == GM_SOURCE_OS);
  host.free_bytes = GM_UNKNOWN_BYTES;
  host.free_state = GM_FIGURE_UNKNOWN;
  assert_figures(gm__memory_info_resolve(&input), GIB(8), GM_UNKNOWN_BYTES, GM_FIGURE_UNKNOWN);
}

static void test_nvml_of_a_slice_needs_the_slices_handle(void **state) {
  (void)state;
  gm_raw_figures raw = raw_of(GM_RAW_CUDA, GM_RAW_OWN_MEMORY);
  raw.driver.state = GM_RAW_ERROR;
  raw.nvml.memory = reply(GIB(80), GIB(70));
  assert_figures(resolve(&raw), GIB(80), GIB(70), GM_FIGURE_ESTIMATED);
  raw.flags = GM_RAW_PARTITION;
  assert_figures(resolve(&raw), GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES, GM_FIGURE_UNKNOWN);
  raw.nvml.handle = GM_RAW_NVML_PARENT;
  raw.device_total = reply(GIB(10), GM_UNKNOWN_BYTES);
  assert_figures(resolve(&raw), GIB(10), GM_UNKNOWN_BYTES, GM_FIGURE_UNKNOWN);
  raw.nvml.handle = GM_RAW_NVML_SLICE;
  raw.nvml.memory = reply(GIB(11), GIB(9));
  assert_figures(resolve(&raw), GIB(10), GIB(9), GM_FIGURE_ESTIMATED);
}

static void test_integrated_cuda_without_a_host_view(void **state) {
  (void)state;
  gm_raw_figures raw = raw_of(GM_RAW_CUDA, GM_RAW_INTEGRATED);
  raw.driver = reply(GIB(100), GIB(3));
  raw.nvml.memory = reply(GIB(120), GIB(90));
  gm_memory_info info = resolve(&raw);
  assert_figures(info, GIB(100), GIB(3), GM_FIGURE_ESTIMATED);
  raw.driver.state = GM_RAW_ERROR;
  assert_figures(resolve(&raw), GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES, GM_FIGURE_UNKNOWN);
  raw.nvml.process_count = 1;
  raw.nvml.process_bytes[0] = 5;
  assert_true(resolve(&raw).nvml_used_by_others_bytes == GM_UNKNOWN_BYTES);
}

static void test_nvml_processes_add_up_or_are_unknown(void **state) {
  (void)state;
  gm_raw_figures raw = raw_of(GM_RAW_CUDA, GM_RAW_OWN_MEMORY);
  assert_true(resolve(&raw).nvml_used_by_others_bytes == GM_UNKNOWN_BYTES);
  raw.nvml.process_count = 2;
  raw.nvml.process_bytes[0] = 5;
  raw.nvml.process_bytes[1] = 7;
  assert_true(resolve(&raw).nvml_used_by_others_bytes == 12);
  raw.nvml.process_bytes[1] = UINT64_MAX;
  assert_true(resolve(&raw).nvml_used_by_others_bytes == GM_UNKNOWN_BYTES);
  raw.nvml.process_bytes[1] = UINT64_MAX - 1;
  assert_true(resolve(&raw).nvml_used_by_others_bytes == UINT64_MAX - 1);
  raw.nvml.process_count = GM_RAW_PROCESSES_MAX + 1;
  assert_true(resolve(&raw).nvml_used_by_others_bytes == GM_UNKNOWN_BYTES);
}

static void test_a_hip_card_with_one_of_its_two_sources(void **state) {
  (void)state;
  gm_raw_figures raw = raw_of(GM_RAW_HIP, GM_RAW_OWN_MEMORY);
  raw.driver = reply(GIB(16), GIB(15));
  assert_figures(resolve(&raw), GIB(16), GIB(15), GM_FIGURE_ESTIMATED);
  gm__figures_input input = gm__figures_input_of(&raw);
  input.sysfs.vram_total = GIB(16);
  input.sysfs.vram_used = GIB(20);
  assert_figures(gm__memory_info_resolve(&input), GIB(16), 0, GM_FIGURE_KNOWN);
  raw.driver.state = GM_RAW_ERROR;
  input.sysfs.vram_used = GIB(4);
  gm_memory_info info = gm__memory_info_resolve(&input);
  assert_figures(info, GIB(16), GIB(12), GM_FIGURE_ESTIMATED);
  assert_true(info.free_source == GM_SOURCE_SYSFS && info.total_source == GM_SOURCE_SYSFS);
}

static void test_an_apu_without_files_is_bounded_by_what_is_available(void **state) {
  (void)state;
  gm_raw_figures raw = raw_of(GM_RAW_HIP, GM_RAW_INTEGRATED);
  raw.driver = reply(GIB(62), GIB(120));
  gm__figures_input input = gm__figures_input_of(&raw);
  assert_figures(gm__memory_info_resolve(&input), GIB(62), GIB(62), GM_FIGURE_ESTIMATED);
  gm_host_info host = {.mem_total_bytes = GIB(64), .mem_available_bytes = GIB(30), .free_bytes = GIB(1)};
  input.host = &host;
  assert_figures(gm__memory_info_resolve(&input), GIB(62), GIB(30), GM_FIGURE_ESTIMATED);
  input.sysfs.gtt_total = GIB(90);
  input.sysfs.gtt_used = GIB(80);
  gm_memory_info info = gm__memory_info_resolve(&input);
  assert_figures(info, GIB(64), GIB(10), GM_FIGURE_ESTIMATED);
  assert_true(info.gtt.total_bytes == GIB(64) && info.gtt.free_bytes == GIB(10));
  assert_true(info.vram.total_bytes == GM_UNKNOWN_BYTES);
}

static void test_opencl_sources_in_their_order(void **state) {
  (void)state;
  gm_raw_figures raw = raw_of(GM_RAW_OPENCL, GM_RAW_OWN_MEMORY);
  raw.device_total = reply(GIB(16), GM_UNKNOWN_BYTES);
  gm__figures_input input = gm__figures_input_of(&raw);
  input.own_bytes = GIB(1);
  assert_figures(gm__memory_info_resolve(&input), GIB(16), GIB(15), GM_FIGURE_ESTIMATED);
  input.fdinfo = (gm__fdinfo_use){true, GIB(6), GIB(50), GIB(4), GIB(50)};
  gm_memory_info info = gm__memory_info_resolve(&input);
  assert_figures(info, GIB(16), GIB(10), GM_FIGURE_ESTIMATED);
  assert_true(info.used_by_others_bytes == GIB(5));
  raw.module_count = 2;
  raw.modules[0] = (gm_raw_module){GIB(8), GIB(3)};
  raw.modules[1] = (gm_raw_module){GIB(8), GIB(4)};
  info = gm__memory_info_resolve(&input);
  assert_true(info.free_bytes == GIB(7) && info.free_source == GM_SOURCE_SYSMAN);
  raw.amd = (gm_raw_amd_query){GM_RAW_OK, 0, 1, {GIB(5) / 1024, 0}};
  info = gm__memory_info_resolve(&input);
  assert_true(info.free_bytes == GIB(5) && info.free_source == GM_SOURCE_DRIVER);
  gm_memory_info peer = {.total_bytes = GIB(16), .free_bytes = GIB(2), .free_state = GM_FIGURE_KNOWN};
  input.peer = &peer;
  info = gm__memory_info_resolve(&input);
  assert_true(info.free_bytes == GIB(2) && info.free_state == GM_FIGURE_KNOWN);
  assert_int_equal(info.free_source, GM_SOURCE_PEER_API);
  peer.free_state = GM_FIGURE_UNKNOWN;
  assert_true(gm__memory_info_resolve(&input).free_bytes == GIB(5));
}

static void test_opencl_numbers_that_overflow(void **state) {
  (void)state;
  gm_raw_figures raw = raw_of(GM_RAW_OPENCL, GM_RAW_OWN_MEMORY);
  raw.device_total = reply(GIB(16), GM_UNKNOWN_BYTES);
  raw.amd = (gm_raw_amd_query){GM_RAW_OK, 0, 2, {UINT64_MAX, 1}};
  assert_figures(resolve(&raw), GIB(16), GIB(16), GM_FIGURE_ESTIMATED);
  raw.amd.state = GM_RAW_ABSENT;
  raw.module_count = UINT32_MAX;
  for (int i = 0; i < GM_RAW_MODULES_MAX; i++) raw.modules[i] = (gm_raw_module){UINT64_MAX - 1, UINT64_MAX - 1};
  assert_figures(resolve(&raw), GIB(16), GIB(16), GM_FIGURE_ESTIMATED);
}

static void test_vulkan_windows_on_one_heap_are_not_added(void **state) {
  (void)state;
  gm_raw_figures raw = raw_of(GM_RAW_VULKAN, GM_RAW_OWN_MEMORY);
  raw.flags = GM_RAW_BUDGET | GM_RAW_ONE_LOCAL_HEAP;
  raw.heap_count = 3;
  raw.heaps[0] = (gm_raw_heap){.bytes = GIB(1), .budget_bytes = GIB(1), .flags = 1};
  raw.heaps[1] = (gm_raw_heap){.bytes = GIB(64), .budget_bytes = GIB(60)};
  raw.heaps[2] = (gm_raw_heap){.bytes = GIB(24), .budget_bytes = GIB(20), .usage_bytes = GIB(2), .flags = 3};
  assert_figures(resolve(&raw), GIB(24), GIB(18), GM_FIGURE_ESTIMATED);
  raw.flags = GM_RAW_BUDGET;
  assert_figures(resolve(&raw), GIB(25), GIB(19), GM_FIGURE_ESTIMATED);
  raw.heap_count = UINT32_MAX;
  assert_figures(resolve(&raw), GIB(25), GIB(19), GM_FIGURE_ESTIMATED);
}

static void test_vulkan_budgets_that_say_nothing(void **state) {
  (void)state;
  gm_raw_figures raw = raw_of(GM_RAW_VULKAN, GM_RAW_OWN_MEMORY);
  raw.flags = GM_RAW_BUDGET;
  raw.heap_count = 1;
  raw.heaps[0] = (gm_raw_heap){.bytes = GIB(10), .budget_bytes = 0, .flags = 1};
  assert_figures(resolve(&raw), GIB(10), GIB(8), GM_FIGURE_ESTIMATED);
  raw.heaps[0].budget_bytes = UINT64_C(1) << 63;
  assert_figures(resolve(&raw), GIB(10), 0, GM_FIGURE_ESTIMATED);
  raw.heaps[0].flags = 0;
  assert_figures(resolve(&raw), GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES, GM_FIGURE_UNKNOWN);
}

static void test_a_vulkan_apu_is_bounded_by_its_carve_out_and_the_host(void **state) {
  (void)state;
  gm_raw_figures raw = raw_of(GM_RAW_VULKAN, GM_RAW_INTEGRATED);
  raw.heap_count = 1;
  raw.flags = GM_RAW_BUDGET;
  raw.heaps[0] = (gm_raw_heap){.bytes = GIB(100), .budget_bytes = GIB(100)};
  gm_host_info host = {.total_bytes = GIB(32), .free_bytes = GIB(20)};
  gm__figures_input input = gm__figures_input_of(&raw);
  input.host = &host;
  assert_figures(gm__memory_info_resolve(&input), GIB(32), GIB(20), GM_FIGURE_ESTIMATED);
  input.sysfs.vram_total = GIB(4);
  input.sysfs.vram_used = GIB(1);
  assert_figures(gm__memory_info_resolve(&input), GIB(36), GIB(23), GM_FIGURE_ESTIMATED);
  input.carve_out.total_bytes = GIB(8);
  assert_figures(gm__memory_info_resolve(&input), GIB(40), GIB(28), GM_FIGURE_ESTIMATED);
}

static void test_wddm_is_never_known(void **state) {
  (void)state;
  gm_raw_figures raw = raw_of(GM_RAW_HIP, GM_RAW_OWN_MEMORY);
  raw.driver = reply(GIB(16), GIB(15));
  raw.flags = GM_RAW_WDDM;
  gm__figures_input input = gm__figures_input_of(&raw);
  input.sysfs.vram_total = GIB(16);
  input.sysfs.vram_used = 0;
  assert_figures(gm__memory_info_resolve(&input), GIB(16), GIB(15), GM_FIGURE_ESTIMATED);
}

static uint64_t seed;

static uint64_t next(void) {
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return seed >> 33;
}

/* Numbers at the edges more often than anything else. */
static uint64_t any(void) {
  static const uint64_t edges[] = {
      0, 1, UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, (UINT64_C(1) << 63) - 1, GIB(8), GIB(4)};
  uint64_t pick = next() % 12;
  return pick < 8 ? edges[pick] : next() << (next() % 33);
}

static gm_raw_reply any_reply(void) { return (gm_raw_reply){(gm_raw_state)(next() % 3), 0, any(), any()}; }

static void any_raw(gm_raw_figures *raw) {
  *raw = raw_of((gm_raw_rules)(next() % 6), (gm_raw_place)(next() % 3));
  raw->flags = (uint32_t)next() % 16;
  raw->driver = any_reply();
  raw->device_total = any_reply();
  raw->nvml.handle = (gm_raw_nvml_handle)(next() % 3);
  raw->nvml.memory = any_reply();
  raw->amd = (gm_raw_amd_query){(gm_raw_state)(next() % 3), 0, (uint32_t)next() % 3, {any(), any()}};
  raw->heap_count = (uint32_t)next() % 5;
  for (int i = 0; i < 4; i++) raw->heaps[i] = (gm_raw_heap){any(), any(), any(), any(), (uint32_t)next() % 2};
  raw->module_count = (uint32_t)next() % 3;
  for (int i = 0; i < 2; i++) raw->modules[i] = (gm_raw_module){any(), any()};
}

/* A host view as gm_host_info_read makes it: state and free agree, free <= total. */
static gm_host_info any_host(void) {
  gm_host_info host = {.total_bytes = any(), .free_bytes = any(), .mem_total_bytes = any()};
  host.mem_available_bytes = any();
  if (host.free_bytes != GM_UNKNOWN_BYTES && host.free_bytes > host.total_bytes) host.free_bytes = host.total_bytes;
  host.free_state = host.free_bytes == GM_UNKNOWN_BYTES ? GM_FIGURE_UNKNOWN : (gm_figure_state)(1 + next() % 2);
  host.cgroup_limited = next() % 2;
  return host;
}

static void test_any_numbers_keep_the_contract(void **state) {
  (void)state;
  seed = 20261120;
  print_message("seed %llu\n", (unsigned long long)seed);
  for (int round = 0; round < 200000; round++) {
    gm_raw_figures raw;
    any_raw(&raw);
    gm_host_info host = any_host();
    gm_memory_info peer = {.total_bytes = any(), .free_bytes = any(), .free_state = (gm_figure_state)(next() % 3)};
    gm__figures_input input = gm__figures_input_of(&raw);
    input.own_bytes = any();
    if (next() % 2) input.host = &host;
    if (next() % 4 == 0) input.peer = &peer;
    if (next() % 2) input.sysfs = (gm__sysfs_memory){any(), any(), any(), any()};
    if (next() % 2) input.carve_out = (gm_memory_part){any(), any()};
    input.fdinfo = (gm__fdinfo_use){next() % 2, any(), any(), any(), any()};
    input.managed = next() % 2;
    gm_memory_info info = gm__memory_info_resolve(&input);
    bool has_free = info.free_bytes != GM_UNKNOWN_BYTES, has_total = info.total_bytes != GM_UNKNOWN_BYTES;
    assert_true(has_free == (info.free_state != GM_FIGURE_UNKNOWN));
    assert_true(has_free == (info.free_source != GM_SOURCE_NONE));
    assert_true(has_total == (info.total_source != GM_SOURCE_NONE));
    if (has_free && has_total) {
      assert_true(info.free_bytes <= info.total_bytes);
      uint64_t left = info.total_bytes > input.own_bytes ? info.total_bytes - input.own_bytes : 0;
      assert_true(info.free_bytes <= left);
    }
    if (info.gtt.total_bytes != GM_UNKNOWN_BYTES) assert_true(info.gtt.free_bytes <= info.gtt.total_bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_asked_is_nothing_known),
      cmocka_unit_test(test_a_strangers_driver_is_believed_within_bounds),
      cmocka_unit_test(test_the_host_stands_for_the_cpu),
      cmocka_unit_test(test_nvml_of_a_slice_needs_the_slices_handle),
      cmocka_unit_test(test_integrated_cuda_without_a_host_view),
      cmocka_unit_test(test_nvml_processes_add_up_or_are_unknown),
      cmocka_unit_test(test_a_hip_card_with_one_of_its_two_sources),
      cmocka_unit_test(test_an_apu_without_files_is_bounded_by_what_is_available),
      cmocka_unit_test(test_opencl_sources_in_their_order),
      cmocka_unit_test(test_opencl_numbers_that_overflow),
      cmocka_unit_test(test_vulkan_windows_on_one_heap_are_not_added),
      cmocka_unit_test(test_vulkan_budgets_that_say_nothing),
      cmocka_unit_test(test_a_vulkan_apu_is_bounded_by_its_carve_out_and_the_host),
      cmocka_unit_test(test_wddm_is_never_known),
      cmocka_unit_test(test_any_numbers_keep_the_contract),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
