/* Grouping where the shared cases do not go, and the properties that hold for any list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/discovery/identity.h"
#include "gm/memory_info.h"

static gm__identity gpu(const char *api, const char *vendor, const char *driver, const char *pci, const char *uuid) {
  gm__identity entry = {.api = api,
                        .vendor = vendor,
                        .driver = driver,
                        .pci = pci,
                        .type = GM_DEVICE_TYPE_DISCRETE,
                        .parent = GM__IDENTITY_NO_PARENT,
                        .total_bytes = 100};
  snprintf(entry.uuid, sizeof entry.uuid, "%s", uuid);
  return entry;
}

static void test_an_empty_list_has_no_groups(void **state) {
  (void)state;
  assert_int_equal(gm__identity_group(NULL, 0), 0);
  assert_true(gm__identity_device_memory(NULL, 0) == 0);
}

static void test_uuids_in_their_forms(void **state) {
  (void)state;
  static const char *const forms[][2] = {{"GPU-4D7A1c2e-90B3", "4d7a1c2e90b3"},
                                         {"gpu-12", "12"},
                                         {"MIG-AbC-1", "MIG-AbC-1"},
                                         {"00000000-0000", ""},
                                         {"GPU-0000-00", ""},
                                         {"", ""},
                                         {"----", ""},
                                         {"GPU-", ""},
                                         {"MI", "mi"},
                                         {"00000000-0300-0000", "0000000003000000"}};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    gm__identity entry = gpu("cuda", "nvidia", NULL, NULL, forms[i][0]);
    gm__identity_normalise(&entry);
    assert_string_equal(entry.uuid, forms[i][1]);
    gm__identity_normalise(&entry);
    assert_string_equal(entry.uuid, forms[i][1]);
  }
}

static void test_different_addresses_outweigh_equal_uuids(void **state) {
  (void)state;
  gm__identity entries[] = {gpu("cuda", "nvidia", NULL, "0000:01:00.0", "aa"),
                            gpu("vulkan", "nvidia", "nvidia", "0000:02:00.0", "aa")};
  assert_int_equal(gm__identity_group(entries, 2), 2);
}

/* cuda:1 equals the Vulkan entry by UUID, cuda:0 by address; they cannot all be one. */
static void test_a_group_with_a_contradiction_inside_is_not_made(void **state) {
  (void)state;
  gm__identity entries[] = {
      gpu("cuda", "nvidia", NULL, "0000:01:00.0", ""), gpu("cuda", "nvidia", NULL, "0000:02:00.0", "aa"),
      gpu("vulkan", "nvidia", "nvidia", "0000:01:00.0", ""), gpu("opencl", "nvidia", "nvidia", "", "aa")};
  assert_int_equal(gm__identity_group(entries, 4), 2);
  assert_int_equal(entries[0].group, entries[2].group);
  assert_int_equal(entries[1].group, entries[3].group);
}

static void test_duplicates_of_one_driver_need_equal_uuids(void **state) {
  (void)state;
  gm__identity entries[] = {gpu("vulkan", "amd", "radv", "0000:01:00.0", "aa"),
                            gpu("vulkan", "amd", "radv", "0000:01:00.0", "aa"),
                            gpu("vulkan", "amd", "radv", "0000:01:00.0", "bb")};
  assert_int_equal(gm__identity_group(entries, 3), 2);
  assert_int_equal(entries[0].group, entries[1].group);
}

static void test_one_entry_with_and_one_without_partition_differ(void **state) {
  (void)state;
  gm__identity entries[] = {gpu("cuda", "nvidia", NULL, "0000:01:00.0", ""),
                            gpu("vulkan", "nvidia", "nvidia", "0000:01:00.0", "")};
  entries[0].partition = "MIG-1";
  assert_int_equal(gm__identity_group(entries, 2), 2);
  entries[1].partition = "MIG-1";
  assert_int_equal(gm__identity_group(entries, 2), 1);
}

static void test_the_parent_takes_its_group_out_of_the_count(void **state) {
  (void)state;
  gm__identity entries[] = {gpu("nvml", "nvidia", NULL, "0000:01:00.0", ""),
                            gpu("vulkan", "nvidia", "nvidia", "0000:01:00.0", ""),
                            gpu("nvml", "nvidia", NULL, "0000:01:00.0", "")};
  entries[2].partition = "MIG-1";
  entries[2].parent = 0;
  entries[2].total_bytes = 40;
  assert_int_equal(gm__identity_group(entries, 3), 2);
  assert_true(!entries[0].counted && !entries[1].counted && entries[2].counted);
  assert_true(gm__identity_device_memory(entries, 3) == 40);
  entries[2].parent = INT32_MAX; /* no such entry */
  gm__identity_group(entries, 3);
  assert_true(entries[0].counted && entries[1].counted);
}

static void test_a_partial_address_needs_exactly_one_match(void **state) {
  (void)state;
  gm__identity entries[] = {gpu("hip", "amd", NULL, "0000:03:00.0", ""), gpu("hip", "amd", NULL, "0001:03:00.0", ""),
                            gpu("opencl", "amd", "rocm", "03:00.0", "")};
  assert_int_equal(gm__identity_group(entries, 3), 3);
  assert_true(!entries[2].counted && entries[0].counted && entries[1].counted);
  entries[1].vendor = "nvidia";
  assert_int_equal(gm__identity_group(entries, 3), 2);
  assert_true(entries[2].counted && entries[0].group == entries[2].group);
  assert_true(gm__identity_device_memory(entries, 3) == 200);
}

static void test_a_partial_address_that_repeats_is_not_joined(void **state) {
  (void)state;
  gm__identity entries[] = {gpu("hip", "amd", NULL, "0000:03:00.0", ""), gpu("opencl", "amd", "rocm", "03:00.0", ""),
                            gpu("opencl", "amd", "rocm", "03:00.0", "")};
  assert_int_equal(gm__identity_group(entries, 3), 3);
  assert_true(!entries[1].counted && !entries[2].counted);
  assert_true(gm__identity_device_memory(entries, 3) == 100);
}

static void test_a_partial_address_of_another_slot_contradicts(void **state) {
  (void)state;
  gm__identity entries[] = {gpu("hip", "amd", NULL, "0000:03:00.0", ""), gpu("opencl", "amd", "rocm", "04:00.0", "")};
  assert_int_equal(gm__identity_group(entries, 2), 2);
}

static void test_the_only_one_joins_only_the_only_one(void **state) {
  (void)state;
  gm__identity entries[] = {gpu("opencl", "intel", "neo", "", ""), gpu("vulkan", "intel", "anv", "0000:03:00.0", ""),
                            gpu("sysfs", "intel", "xe", "0000:03:00.0", ""),
                            gpu("vulkan", "intel", "anv", "0000:04:00.0", "")};
  assert_int_equal(gm__identity_group(entries, 3), 1);
  assert_int_equal(gm__identity_group(entries, 4), 3);
  assert_true(entries[0].group != entries[1].group && entries[0].group != entries[3].group);
  entries[1].type = GM_DEVICE_TYPE_INTEGRATED; /* another kind of device contradicts */
  assert_int_equal(gm__identity_group(entries, 2), 2);
}

static void test_without_a_vendor_nobody_is_the_only_one(void **state) {
  (void)state;
  gm__identity entries[] = {gpu("opencl", NULL, NULL, NULL, ""), gpu("vulkan", NULL, NULL, "0000:03:00.0", ""),
                            gpu("hip", "", NULL, "", "")};
  assert_int_equal(gm__identity_group(entries, 3), 3);
}

static void test_a_cpu_is_never_a_gpu(void **state) {
  (void)state;
  gm__identity entries[] = {gpu("vulkan", "mesa", "llvmpipe", "0000:03:00.0", "aa"),
                            gpu("cuda", "mesa", NULL, "0000:03:00.0", "aa"), gpu("cpu", "", NULL, "", "")};
  entries[0].type = entries[2].type = GM_DEVICE_TYPE_CPU;
  entries[0].partition = "x";
  assert_int_equal(gm__identity_group(entries, 3), 2);
  assert_true(entries[0].group == entries[2].group && entries[0].host_pool && !entries[1].host_pool);
}

static void test_the_total_of_the_best_api_that_has_one(void **state) {
  (void)state;
  gm__identity entries[] = {gpu("opencl", "amd", "rocm", "0000:03:00.0", ""),
                            gpu("vulkan", "amd", "radv", "0000:03:00.0", ""),
                            gpu("hip", "amd", NULL, "0000:03:00.0", ""), gpu("other", "amd", NULL, "0000:03:00.0", "")};
  entries[0].total_bytes = 5;
  entries[1].total_bytes = 7;
  entries[2].total_bytes = GM_UNKNOWN_BYTES;
  assert_int_equal(gm__identity_group(entries, 4), 1);
  assert_true(gm__identity_device_memory(entries, 4) == 7);
  entries[2].total_bytes = 9;
  assert_true(gm__identity_device_memory(entries, 4) == 9);
  for (int i = 0; i < 4; i++) entries[i].total_bytes = GM_UNKNOWN_BYTES;
  assert_true(gm__identity_device_memory(entries, 4) == 0);
}

static void test_totals_that_overflow_stop_at_the_top(void **state) {
  (void)state;
  gm__identity entries[] = {gpu("cuda", "nvidia", NULL, "0000:01:00.0", ""),
                            gpu("cuda", "nvidia", NULL, "0000:02:00.0", "")};
  entries[0].total_bytes = entries[1].total_bytes = UINT64_MAX - 1;
  gm__identity_group(entries, 2);
  assert_true(gm__identity_device_memory(entries, 2) == UINT64_MAX);
}

static void test_an_entry_of_a_backends_device(void **state) {
  (void)state;
  gm_device_info info = {.type = GM_DEVICE_TYPE_DISCRETE, .backend = "cuda", .vendor = "nvidia", .pci = "0000:01:00.0"};
  for (int i = 0; i < GM_UUID_BYTES; i++) info.uuid[i] = (uint8_t)(i * 17);
  gm__identity entry = gm__identity_of_device(&info);
  assert_string_equal(entry.uuid, "00112233445566778899aabbccddeeff");
  assert_string_equal(entry.luid, "");
  assert_true(entry.total_bytes == GM_UNKNOWN_BYTES && entry.parent == GM__IDENTITY_NO_PARENT);
  info.uuid_derived = info.has_luid = true;
  info.luid[7] = 0xf1;
  info.total_bytes = 5;
  entry = gm__identity_of_device(&info);
  assert_string_equal(entry.uuid, "");
  assert_string_equal(entry.luid, "00000000000000f1");
  assert_true(entry.total_bytes == 5);
}

static uint64_t seed;

static size_t pick(size_t count) {
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (size_t)(seed >> 33) % count;
}

static gm__identity any_entry(uint32_t count) {
  static const char *const apis[] = {"cuda", "hip", "vulkan", "opencl", "nvml", "sysfs"};
  static const char *const vendors[] = {"nvidia", "amd", "intel", NULL};
  static const char *const drivers[] = {NULL, "a", "b", "moltenvk"};
  static const char *const addresses[] = {"",        "0000:01:00.0", "0000:02:00.0", "1:01:00.0",
                                          "01:00.0", "02:00.0",      "junk"};
  static const char *const uuids[] = {"", "GPU-aa", "aa", "bb", "MIG-c"};
  static const char *const partitions[] = {"", "", "MIG-c", "xcp0"};
  gm__identity entry = gpu(apis[pick(6)], vendors[pick(4)], drivers[pick(4)], addresses[pick(7)], uuids[pick(5)]);
  entry.partition = partitions[pick(4)];
  entry.type = (gm_device_type)pick(4);
  snprintf(entry.luid, sizeof entry.luid, "%s", pick(4) ? "" : "l1");
  if (pick(8) == 0) entry.parent = (int32_t)pick(count);
  return entry;
}

/* Numbered from 0 without gaps, nobody together with what differs from it, everybody together or apart with a reason.
 */
static void assert_grouping(const gm__identity *entries, uint32_t count, uint32_t groups) {
  uint32_t next = 0;
  for (uint32_t i = 0; i < count; i++) {
    assert_true(entries[i].group <= next && entries[i].group < groups);
    if (entries[i].group == next) next++;
    for (uint32_t j = 0; j < i; j++) {
      if (entries[i].group != entries[j].group) continue;
      assert_false(gm__identity_differ(&entries[i], &entries[j]));
      assert_int_equal(entries[i].host_pool, entries[j].host_pool);
      assert_int_equal(entries[i].counted, entries[j].counted);
    }
  }
  assert_int_equal(next, groups);
}

static void test_any_list_is_grouped_without_contradiction(void **state) {
  (void)state;
  seed = 20261120;
  print_message("seed %llu\n", (unsigned long long)seed);
  for (int round = 0; round < 3000; round++) {
    gm__identity entries[12], again[12];
    uint32_t count = (uint32_t)pick(13);
    for (uint32_t i = 0; i < count; i++) entries[i] = any_entry(count);
    memcpy(again, entries, sizeof again);
    uint32_t groups = gm__identity_group(entries, count);
    assert_grouping(entries, count, groups);
    assert_true(gm__identity_device_memory(entries, count) <= (uint64_t)groups * 100);
    assert_int_equal(gm__identity_group(again, count), groups);
    for (uint32_t i = 0; i < count; i++) {
      for (uint32_t j = 0; j < count; j++) {
        if (i == j) continue;
        assert_int_equal(gm__identity_differ(&entries[i], &entries[j]), gm__identity_differ(&entries[j], &entries[i]));
        assert_int_equal(gm__identity_equal(&entries[i], &entries[j]), gm__identity_equal(&entries[j], &entries[i]));
      }
    }
  }
}

/* One list, read twice, with other entries behind it in memory. */
static void test_what_lies_behind_the_list_is_not_read(void **state) {
  (void)state;
  enum { MOST = 6 };
  seed = 20261127;
  for (int round = 0; round < 3000; round++) {
    gm__identity one[MOST + 1], other[MOST + 1];
    const uint32_t count = 1 + (uint32_t)pick(MOST);
    for (uint32_t i = 0; i < MOST + 1; i++) one[i] = any_entry(count);
    for (uint32_t i = 0; i < MOST + 1; i++) other[i] = i < count ? one[i] : any_entry(count);
    one[count] = one[pick(count)];
    gm__identity_normalise(&one[count]);
    one[count].total_bytes = other[count].total_bytes = 1000;
    assert_int_equal(gm__identity_group(one, count), gm__identity_group(other, count));
    one[count].group = one[pick(count)].group;
    other[count].group = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
      assert_int_equal(one[i].group, other[i].group);
      assert_int_equal(one[i].counted, other[i].counted);
    }
    assert_true(gm__identity_device_memory(one, count) == gm__identity_device_memory(other, count));
  }
}

static void test_some_hundred_entries(void **state) {
  (void)state;
  enum { COUNT = 300 };
  gm__identity *entries = calloc(COUNT, sizeof *entries);
  assert_non_null(entries);
  seed = 7;
  for (uint32_t i = 0; i < COUNT; i++) entries[i] = any_entry(COUNT);
  assert_grouping(entries, COUNT, gm__identity_group(entries, COUNT));
  for (uint32_t i = 0; i < COUNT; i++)
    entries[i] = gpu(i % 2 ? "a" : "b", "v", NULL, i < 150 ? "" : "0000:01:00.0", "aa");
  assert_grouping(entries, COUNT, gm__identity_group(entries, COUNT));
  free(entries);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_empty_list_has_no_groups),
      cmocka_unit_test(test_uuids_in_their_forms),
      cmocka_unit_test(test_different_addresses_outweigh_equal_uuids),
      cmocka_unit_test(test_a_group_with_a_contradiction_inside_is_not_made),
      cmocka_unit_test(test_duplicates_of_one_driver_need_equal_uuids),
      cmocka_unit_test(test_one_entry_with_and_one_without_partition_differ),
      cmocka_unit_test(test_the_parent_takes_its_group_out_of_the_count),
      cmocka_unit_test(test_a_partial_address_needs_exactly_one_match),
      cmocka_unit_test(test_a_partial_address_that_repeats_is_not_joined),
      cmocka_unit_test(test_a_partial_address_of_another_slot_contradicts),
      cmocka_unit_test(test_the_only_one_joins_only_the_only_one),
      cmocka_unit_test(test_without_a_vendor_nobody_is_the_only_one),
      cmocka_unit_test(test_a_cpu_is_never_a_gpu),
      cmocka_unit_test(test_the_total_of_the_best_api_that_has_one),
      cmocka_unit_test(test_totals_that_overflow_stop_at_the_top),
      cmocka_unit_test(test_an_entry_of_a_backends_device),
      cmocka_unit_test(test_any_list_is_grouped_without_contradiction),
      cmocka_unit_test(test_what_lies_behind_the_list_is_not_read),
      cmocka_unit_test(test_some_hundred_entries),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
