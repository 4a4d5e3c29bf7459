/* PCI addresses, and the kernel's files about a card: sysfs and fdinfo. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/host/fdinfo.h"
#include "core/host/sysfs.h"
#include "gm/memory_info.h"
#include "support/tree.h"

#define KIB(n) (UINT64_C(n) * 1024)

static void test_addresses_in_all_their_forms(void **state) {
  (void)state;
  gm__pci a = gm__pci_parse("0000000F:01:00.0"), b = gm__pci_parse("f:1:0.0"), c = gm__pci_parse("000f:01:00.0");
  assert_int_equal(a.form, GM__PCI_FULL);
  assert_true(gm__pci_same(a, b) && gm__pci_same(b, c));
  gm__pci partial = gm__pci_parse("2d:1f.7");
  assert_true(partial.form == GM__PCI_PARTIAL && partial.bus == 0x2d && partial.device == 31 && partial.function == 7);
  assert_true(gm__pci_same_slot(gm__pci_parse("01:00.0"), a));
  assert_false(gm__pci_same(gm__pci_parse("01:00.0"), gm__pci_parse("01:00.0")));
  char text[GM__PCI_TEXT_SIZE];
  gm__pci_print(gm__pci_parse("FFFFFFFF:FF:1F.7"), text);
  assert_string_equal(text, "ffffffff:ff:1f.7");
}

static void test_what_is_no_address(void **state) {
  (void)state;
  static const char *const texts[] = {
      "",           "0000:00:00.0", "00:00.0",         "0000:01:00", "0000:01:00.8",     "0000:01:20.0",
      "000:1:0.0x", ":01:00.0",     "000000001:1:0.0", "0:100:0.0",  "0:1:0.",           "../..",
      "0:1:2:3.0",  "1.0",          " 0:1:0.0",        "g:1:0.0",    "0000:01:00.0/../x"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    assert_int_equal(gm__pci_parse(texts[i]).form, GM__PCI_NONE);
  }
  assert_int_equal(gm__pci_parse(NULL).form, GM__PCI_NONE);
  assert_false(gm__pci_same_slot(gm__pci_parse(NULL), gm__pci_parse(NULL)));
}

static gm__sysfs_memory sysfs_of(temp_folder *root, const char *address) {
  gm__sysfs_memory memory;
  gm__sysfs_read(root->path, gm__pci_parse(address), &memory);
  return memory;
}

static void test_sysfs_files_that_are_numbers(void **state) {
  static const char folder[] = "/sys/bus/pci/devices/0000:c6:00.0/mem_info_";
  static const char *const bad[] = {"", "-1\n", "1 MiB\n", "99999999999999999999\n", "x"};
  char path[128];
  snprintf(path, sizeof path, "%svram_total", folder);
  tree_put(*state, path, "18446744073709551614\n");
  snprintf(path, sizeof path, "%sgtt_used", folder);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    tree_put(*state, path, bad[i]);
    gm__sysfs_memory memory = sysfs_of(*state, "C6:0.0");
    assert_true(memory.vram_total == GM_UNKNOWN_BYTES);
    memory = sysfs_of(*state, "00000000:C6:00.0");
    assert_true(memory.vram_total == UINT64_MAX - 1 && memory.gtt_used == GM_UNKNOWN_BYTES);
    assert_true(memory.vram_used == GM_UNKNOWN_BYTES && memory.gtt_total == GM_UNKNOWN_BYTES);
  }
}

static void put_client(temp_folder *root, const char *path, const char *lines) {
  char text[1024];
  snprintf(text, sizeof text, "pos:\t0\ndrm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\n%s", lines);
  tree_put(root, path, text);
}

static gm__fdinfo_use use_of(temp_folder *root) {
  gm__fdinfo_use use;
  gm__fdinfo_read(root->path, gm__pci_parse("0000:03:00.0"), 10, &use);
  return use;
}

static void test_regions_and_units(void **state) {
  put_client(*state, "/proc/11/fdinfo/3",
             "drm-client-id:\t1\ndrm-memory-vram:\t5\ndrm-memory-vram0: 1 KiB\ndrm-memory-local0:\t1 MiB\n"
             "drm-memory-gtt:\t2 GiB\ndrm-memory-cpu:\t9 GiB\ndrm-memory-system0:\t9 GiB\n");
  gm__fdinfo_use use = use_of(*state);
  assert_true(use.valid && use.vram_bytes == 5 + KIB(1) + KIB(1024) && use.gtt_bytes == KIB(2097152));
  assert_true(use.vram_others == use.vram_bytes && use.gtt_others == use.gtt_bytes);
}

static void test_resident_goes_before_memory(void **state) {
  put_client(*state, "/proc/11/fdinfo/3",
             "drm-client-id:\t1\ndrm-resident-vram:\t3 KiB\ndrm-memory-vram:\t9 KiB\ndrm-total-vram:\t99 KiB\n"
             "drm-resident-gtt:\t0\ndrm-memory-gtt:\t9 KiB\n");
  gm__fdinfo_use use = use_of(*state);
  assert_true(use.vram_bytes == KIB(3) && use.gtt_bytes == 0);
}

/* The own process may be visited first or last: a client that it shares is its own either way. */
static void test_a_client_that_the_own_process_shares_is_its_own(void **state) {
  static const char *const orders[][2] = {{"/proc/10/fdinfo/3", "/proc/11/fdinfo/3"},
                                          {"/proc/9/fdinfo/3", "/proc/10/fdinfo/3"}};
  for (size_t i = 0; i < 2; i++) {
    put_client(*state, orders[i][0], "drm-client-id:\t7\ndrm-memory-vram:\t4 KiB\n");
    put_client(*state, orders[i][1], "drm-client-id:\t7\ndrm-memory-vram:\t4 KiB\n");
    gm__fdinfo_use use = use_of(*state);
    assert_true(use.vram_bytes == KIB(4) && use.vram_others == 0);
  }
}

static void test_what_is_not_this_cards_client_does_not_count(void **state) {
  put_client(*state, "/proc/11/fdinfo/3", "drm-memory-vram:\t4 KiB\n");
  put_client(*state, "/proc/11/fdinfo/4", "drm-client-id:\tx\ndrm-memory-vram:\t4 KiB\n");
  put_client(*state, "/proc/11/fdinfo/5", "drm-client-id:\t1\ndrm-pdev:\t0000:04:00.0\ndrm-memory-vram:\t4 KiB\n");
  tree_put(*state, "/proc/11/fdinfo/6", "drm-pdev:\t0000:03:00.0\ndrm-client-id:\t1\ndrm-memory-vram:\t4 KiB\n");
  put_client(*state, "/proc/11/fdinfo/x", "drm-client-id:\t1\ndrm-memory-vram:\t4 KiB\n");
  put_client(*state, "/proc/self/fdinfo/3", "drm-client-id:\t1\ndrm-memory-vram:\t4 KiB\n");
  assert_false(use_of(*state).valid);
}

static void test_amounts_that_are_not_understood_are_nothing(void **state) {
  put_client(*state, "/proc/11/fdinfo/3",
             "drm-client-id:\t1\ndrm-memory-vram:\t4 KB\ndrm-memory-vram0:\t-4 KiB\ndrm-memory-local0:\t4 KiB x\n"
             "drm-memory-gtt:\t18446744073709551615 GiB\n");
  assert_true(use_of(*state).gtt_bytes == 0);
  put_client(*state, "/proc/12/fdinfo/3", "drm-client-id:\t2\ndrm-memory-gtt:\t18446744073709551614\n");
  put_client(*state, "/proc/13/fdinfo/3", "drm-client-id:\t3\ndrm-memory-gtt:\t5\n");
  gm__fdinfo_use use = use_of(*state);
  assert_true(use.valid && use.vram_bytes == 0 && use.gtt_bytes == UINT64_MAX);
}

static void test_more_clients_than_the_table_holds(void **state) {
  for (unsigned i = 0; i < GM__FDINFO_CLIENTS_MAX + 10; i++) {
    char path[64], lines[96];
    snprintf(path, sizeof path, "/proc/11/fdinfo/%u", i);
    snprintf(lines, sizeof lines, "drm-client-id:\t%u\ndrm-memory-vram:\t1\n", i);
    put_client(*state, path, lines);
  }
  assert_true(use_of(*state).vram_bytes == GM__FDINFO_CLIENTS_MAX);
}

static void test_without_a_full_address_nothing_is_found(void **state) {
  put_client(*state, "/proc/11/fdinfo/3", "drm-client-id:\t1\ndrm-memory-vram:\t1\n");
  gm__fdinfo_use use;
  gm__fdinfo_read(((temp_folder *)*state)->path, gm__pci_parse("03:00.0"), 10, &use);
  assert_false(use.valid);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_set_up, tree_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_addresses_in_all_their_forms),
      TEST(test_what_is_no_address),
      TEST(test_sysfs_files_that_are_numbers),
      TEST(test_regions_and_units),
      TEST(test_resident_goes_before_memory),
      TEST(test_a_client_that_the_own_process_shares_is_its_own),
      TEST(test_what_is_not_this_cards_client_does_not_count),
      TEST(test_amounts_that_are_not_understood_are_nothing),
      TEST(test_more_clients_than_the_table_holds),
      TEST(test_without_a_full_address_nothing_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
