/* The kernel's files tell of NVIDIA's driver, read below a folder that stands for a machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>
#include <string.h>

#include "backends/cuda/cuda_kernel.h"
#include "backends/shared/pci_node.h"
#include "support/tree.h"

static void test_a_machine_without(void **state) {
  (void)state;
  temp_folder root;
  char version[32];
  temp_folder_make(&root);
  tree_put(&root, "/proc/version", "Linux version 6.1.0 (debian)\n");
  assert_false(gm__cuda_kernel_present(root.path));
  assert_false(gm__cuda_kernel_wsl(root.path));
  assert_int_equal(gm__cuda_kernel_cards(root.path), 0);
  gm__cuda_kernel_version(root.path, version, sizeof version);
  assert_string_equal(version, "");
  assert_int_equal(gm__pci_node(root.path, "0000:65:00.0"), -1);
  temp_folder_remove(&root);
}

static void test_two_cards(void **state) {
  (void)state;
  temp_folder root;
  char version[32];
  temp_folder_make(&root);
  tree_put(&root, "/proc/driver/nvidia/gpus/0000:65:00.0/information", "Model: one\n");
  tree_put(&root, "/proc/driver/nvidia/gpus/0000:ca:00.0/information", "Model: two\n");
  tree_put(&root, "/sys/module/nvidia/version", "580.65.06\n");
  tree_put(&root, "/sys/bus/pci/devices/0000:65:00.0/numa_node", "1\n");
  tree_put(&root, "/sys/bus/pci/devices/0000:ca:00.0/numa_node", "-1\n");
  assert_true(gm__cuda_kernel_present(root.path));
  assert_int_equal(gm__cuda_kernel_cards(root.path), 2);
  gm__cuda_kernel_version(root.path, version, sizeof version);
  assert_string_equal(version, "580.65.06");
  assert_int_equal(gm__pci_node(root.path, "0000:65:00.0"), 1);
  assert_int_equal(gm__pci_node(root.path, "0000:ca:00.0"), -1);
  assert_int_equal(gm__pci_node(root.path, "../../../proc/version"), -1);
  assert_int_equal(gm__pci_node(root.path, ""), -1);
  temp_folder_remove(&root);
}

/* WSL2 has no NVIDIA module: its driver is Windows'. */
static void test_wsl(void **state) {
  (void)state;
  temp_folder root;
  temp_folder_make(&root);
  tree_put(&root, "/proc/version", "Linux version 5.15.90.1-Microsoft-standard-WSL2\n");
  assert_true(gm__cuda_kernel_wsl(root.path));
  assert_true(gm__cuda_kernel_present(root.path));
  assert_int_equal(gm__cuda_kernel_cards(root.path), 0);
  temp_folder_remove(&root);
}

static void test_nonsense_in_files(void **state) {
  (void)state;
  temp_folder root;
  char version[8];
  temp_folder_make(&root);
  tree_put(&root, "/sys/module/nvidia/version", "a version that is longer than there is room for\n");
  tree_put(&root, "/sys/bus/pci/devices/0000:65:00.0/numa_node", "many\n");
  gm__cuda_kernel_version(root.path, version, sizeof version);
  assert_true(strlen(version) < sizeof version);
  assert_int_equal(gm__pci_node(root.path, "0000:65:00.0"), -1);
  temp_folder_remove(&root);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_machine_without),
      cmocka_unit_test(test_two_cards),
      cmocka_unit_test(test_wsl),
      cmocka_unit_test(test_nonsense_in_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
