/* Groups that bound a card's own memory: which lines are the card's, and which group binds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/host/dmem.h"
#include "gm/memory_info.h"
#include "support/tree.h"

static void put_group(temp_folder *root) {
  tree_put(root, "/proc/self/cgroup", "0::/job/leaf\n");
  tree_put(root, "/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
}

static gm__dmem read_of(temp_folder *root, const char *pci) {
  gm__dmem out;
  assert_true(gm__dmem_read(NULL, root->path, gm__pci_parse(pci), &out));
  return out;
}

static void assert_no_bound(const gm__dmem *dmem) {
  assert_true(dmem->total_bytes == GM_UNKNOWN_BYTES && dmem->free_bytes == GM_UNKNOWN_BYTES);
  assert_true(dmem->borrowed_bytes == 0 && !dmem->total_name[0] && !dmem->free_name[0]);
}

static void test_only_the_regions_of_the_card_count(void **state) {
  temp_folder *root = *state;
  put_group(root);
  tree_put(root, "/sys/fs/cgroup/job/dmem.max",
           "drm/0000:04:00.0/vram 5\ndrm/0000:03:00.0/vram0 1000\ndrm/0000:03:00.0/vram1 500\n"
           "drm/0000:03:00.0/stolen 7\ndrm/0000:03:00.0/mapped 7\nno line\n");
  tree_put(root, "/sys/fs/cgroup/job/dmem.current",
           "drm/0000:03:00.0/vram0 900\ndrm/0000:03:00.0/vram1 100\ndrm/0000:03:00.0/stolen 1000000\n");
  const gm__dmem dmem = read_of(root, "0000:03:00.0");
  assert_true(dmem.total_bytes == 1500 && dmem.free_bytes == 500 && !dmem.partly);
  assert_string_equal(dmem.free_name, "dmem:/sys/fs/cgroup/job");
  assert_int_equal(read_of(root, "00000000:04:00.0").total_bytes, 5); /* as NVML writes an address */
  gm__dmem none = read_of(root, "0000:05:00.0");
  assert_no_bound(&none);
  none = read_of(root, "03:00.0"); /* in which domain? */
  assert_no_bound(&none);
}

static void test_the_tightest_group_binds_each_figure(void **state) {
  temp_folder *root = *state;
  put_group(root);
  tree_put(root, "/sys/fs/cgroup/job/dmem.max", "nvidia/0000:41:00.0/vidmem 4000\n");
  tree_put(root, "/sys/fs/cgroup/job/dmem.current", "nvidia/0000:41:00.0/vidmem 3900\n");
  tree_put(root, "/sys/fs/cgroup/job/leaf/dmem.max", "nvidia/0000:41:00.0/vidmem 2000\n");
  tree_put(root, "/sys/fs/cgroup/job/leaf/dmem.current", "nvidia/0000:41:00.0/vidmem 1500\n");
  gm__dmem dmem = read_of(root, "0000:41:00.0");
  assert_true(dmem.total_bytes == 2000 && dmem.free_bytes == 100);
  assert_string_equal(dmem.total_name, "dmem:/sys/fs/cgroup/job/leaf");
  assert_string_equal(dmem.free_name, "dmem:/sys/fs/cgroup/job");
  tree_put(root, "/sys/fs/cgroup/job/leaf/dmem.current", "nvidia/0000:41:00.0/vidmem 2500\n");
  assert_int_equal(read_of(root, "0000:41:00.0").free_bytes, 0); /* above its limit */
  tree_put(root, "/sys/fs/cgroup/job/leaf/dmem.max", "nvidia/0000:41:00.0/vidmem max\n");
  assert_int_equal(read_of(root, "0000:41:00.0").total_bytes, 4000);
}

static void test_a_limit_without_what_is_held(void **state) {
  temp_folder *root = *state;
  put_group(root);
  tree_put(root, "/sys/fs/cgroup/job/dmem.max", "drm/0000:03:00.0/vram 4000\n");
  gm__dmem dmem = read_of(root, "0000:03:00.0");
  assert_true(dmem.free_bytes == 4000 && dmem.partly);
  tree_put(root, "/sys/fs/cgroup/job/dmem.max", "drm/0000:03:00.0/vram many\n");
  dmem = read_of(root, "0000:03:00.0");
  assert_no_bound(&dmem);
}

static void test_what_is_borrowed(void **state) {
  temp_folder *root = *state;
  put_group(root);
  tree_put(root, "/sys/fs/cgroup/job/dmem.min", "drm/0000:03:00.0/vram 10\n"); /* not the own group */
  tree_put(root, "/sys/fs/cgroup/job/dmem.current", "drm/0000:03:00.0/vram 3000\n");
  tree_put(root, "/sys/fs/cgroup/job/leaf/dmem.current", "drm/0000:03:00.0/vram 1500\n");
  assert_int_equal(read_of(root, "0000:03:00.0").borrowed_bytes, 0);
  tree_put(root, "/sys/fs/cgroup/job/leaf/dmem.min", "drm/0000:03:00.0/vram 1000\n");
  assert_int_equal(read_of(root, "0000:03:00.0").borrowed_bytes, 500);
  tree_put(root, "/sys/fs/cgroup/job/leaf/dmem.min", "drm/0000:03:00.0/vram 2000\n");
  assert_int_equal(read_of(root, "0000:03:00.0").borrowed_bytes, 0);
}

static void test_the_own_group_has_a_folder(void **state) {
  temp_folder *root = *state;
  char group[64];
  gm__dmem_own_group(NULL, root->path, group, sizeof group);
  assert_string_equal(group, "");
  put_group(root);
  gm__dmem_own_group(NULL, root->path, group, sizeof group);
  assert_string_equal(group, "/sys/fs/cgroup/job/leaf");
  gm__dmem_own_group(NULL, root->path, group, 10);
  assert_string_equal(group, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_set_up, tree_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_only_the_regions_of_the_card_count), TEST(test_the_tightest_group_binds_each_figure),
      TEST(test_a_limit_without_what_is_held), TEST(test_what_is_borrowed), TEST(test_the_own_group_has_a_folder)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
