/* Options of the CPU backend: memory that lies where it was asked for, and nodes that are not there. Machines with more
 * nodes are played by hwloc's synthetic topologies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/cpu/cpu_nodes.h"
#include "support/cpu_fixture.h"

enum { PAGES = 300 };

/* False: the system places no memory (containers often forbid it), and said so. */
static bool placed(cpu_fixture *f, const char *options) {
  const gm_status status = cpu_try(f, options, NULL);
  if (status == GM_ERR_NOT_SUPPORTED) return false;
  assert_int_equal(status, GM_OK);
  return true;
}

/* Every page of it is on `node`, as the kernel says. */
static void check_node(unsigned char *begin, uint64_t bytes, int node) {
  static void *pages[PAGES];
  static int found[PAGES];
  const uint64_t step = bytes / PAGES / 4096 * 4096;
  for (unsigned i = 0; i < PAGES; i++) {
    pages[i] = begin + i * step;
    *(unsigned char *)pages[i] = 1;
    found[i] = -1;
  }
  if (syscall(SYS_move_pages, 0, (unsigned long)PAGES, pages, NULL, found, 0) != 0) skip();
  for (unsigned i = 0; i < PAGES; i++) assert_int_equal(found[i], node);
}

static void check_memory(cpu_fixture *f, gm_share_kind share, int node) {
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = PAGES * 4096 * 2, .share = share};
  gm_memory memory;
  assert_int_equal(f->ops->memory_alloc(f->device, &params, &memory, &f->err), GM_OK);
  check_node(memory.host, memory.bytes, node);
  assert_int_equal(f->ops->memory_free(f->device, &memory, GM_CLOSE_NORMAL, &f->err), GM_OK);
}

static void check_virtual_memory(cpu_fixture *f, int node) {
  const uint64_t address = cpu_reserve(f, f->granule), handle = cpu_physical(f, f->granule, false);
  assert_int_equal(f->ops->vmm_map(f->device, address, f->granule, handle, 0, &f->err), GM_OK);
  check_node((unsigned char *)(uintptr_t)address, f->granule, node);
  assert_int_equal(f->ops->vmm_unmap(f->device, address, f->granule, &f->err), GM_OK);
  f->ops->vmm_destroy(f->device, handle, f->granule, GM_CLOSE_NORMAL, &f->err);
  f->ops->vmm_unreserve(f->device, address, f->granule, GM_CLOSE_NORMAL, &f->err);
}

static void test_memory_lies_on_its_node(void **state) {
  (void)state;
  cpu_fixture f;
  gm_device_info info;
  if (!placed(&f, "numa=node:0")) skip();
  assert_int_equal(f.ops->device_info(f.driver, 0, f.device, &info, &f.err), GM_OK);
  assert_int_equal(info.numa_node, 0);
  check_memory(&f, GM_SHARE_NONE, 0);
  check_memory(&f, GM_SHARE_FD, 0);
  check_virtual_memory(&f, 0);
  cpu_end(&f);
}

/* Asked of the kernel: the policy of an address. */
static int policy_of(const void *at) {
  int policy = -1;
  if (syscall(SYS_get_mempolicy, &policy, NULL, 0UL, at, 2UL) != 0) skip(); /* MPOL_F_ADDR */
  return policy;
}

static void check_policy(const char *options, int policy) {
  cpu_fixture f;
  gm_memory memory;
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = 100000};
  if (!placed(&f, options)) skip();
  assert_int_equal(f.ops->memory_alloc(f.device, &params, &memory, &f.err), GM_OK);
  assert_int_equal(policy_of(memory.host), policy);
  assert_int_equal(f.ops->memory_free(f.device, &memory, GM_CLOSE_NORMAL, &f.err), GM_OK);
  cpu_end(&f);
}

static void test_the_policies(void **state) {
  (void)state;
  check_policy("", 0);                /* MPOL_DEFAULT */
  check_policy("numa=node:0", 1);     /* MPOL_PREFERRED */
  check_policy("numa=interleave", 3); /* MPOL_INTERLEAVE */
  check_policy("numa=local", 4);      /* MPOL_LOCAL */
}

static void refuse(const char *options, const char *says) {
  cpu_fixture f;
  assert_int_equal(cpu_try(&f, options, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(f.err.message, says));
  counted_services_check(&f.host);
}

static void test_wrong_options(void **state) {
  (void)state;
  refuse("numa=node:99", "no such memory node, but: 0");
  refuse("numa=node:18446744073709551615", "no such memory node");
  refuse("numa=node:", "numa=node");
  refuse("numa=node:0x", "numa=node");
  refuse("numa=far", "local, interleave or node:N");
  refuse("numa=", "local, interleave or node:N");
  refuse("numa", "no option of the CPU backend");
  refuse("hugetlb,speed=11", "`speed=11`");
  refuse("hugetlb=1", "no option of the CPU backend");
}

/* The driver reports what the system has not: no reserved huge pages, as a rule, or some. */
static void test_reserved_huge_pages(void **state) {
  (void)state;
  cpu_fixture f;
  uint64_t handle;
  const gm_vmm_props props = {0};
  assert_int_equal(cpu_try(&f, "hugetlb", NULL), GM_OK);
  const gm_status status = f.ops->vmm_create(f.device, &props, f.granule, &handle, &f.err);
  if (status == GM_OK) {
    const uint64_t address = cpu_reserve(&f, f.granule);
    assert_int_equal(f.ops->vmm_map(f.device, address, f.granule, handle, 0, &f.err), GM_OK);
    memset((void *)(uintptr_t)address, 1, f.granule);
    assert_int_equal(f.ops->vmm_unmap(f.device, address, f.granule, &f.err), GM_OK);
    f.ops->vmm_destroy(f.device, handle, f.granule, GM_CLOSE_NORMAL, &f.err);
    f.ops->vmm_unreserve(f.device, address, f.granule, GM_CLOSE_NORMAL, &f.err);
  } else {
    assert_true(f.err.message[0]);
    assert_true(status == GM_ERR_OUT_OF_DEVICE_MEMORY || status == GM_ERR_SYSTEM);
  }
  cpu_end(&f);
}

static void test_lists_of_nodes(void **state) {
  (void)state;
  gm__id_set set;
  char text[64], shortened[6];
  assert_true(gm__id_set_parse("0-1,3,63-64,70", &set));
  gm__cpu_nodes_text(&set, text, sizeof text);
  assert_string_equal(text, "0-1,3,63-64,70");
  gm__cpu_nodes_text(&set, shortened, sizeof shortened);
  assert_string_equal(shortened, "0-1,3");
}

/* Four nodes that hwloc plays: the names are read by it, and the kernel, which has not so many, refuses to place. */
static void test_a_synthetic_topology(void **state) {
  (void)state;
#if GM_HAVE_HWLOC
  gm__id_set nodes;
  gm_error err;
  cpu_fixture f;
  setenv("HWLOC_SYNTHETIC", "numa:4 core:2 pu:1", 1);
  assert_int_equal(gm__cpu_nodes_read(&nodes, &err), GM_OK);
  refuse("numa=node:4", "no such memory node, but: 0-3");
  const gm_status status = cpu_try(&f, "numa=node:3", NULL);
  if (status == GM_OK) cpu_end(&f);
  unsetenv("HWLOC_SYNTHETIC");
  assert_int_equal(gm__id_set_count(&nodes, NULL), 4);
  assert_true(gm__id_set_has(&nodes, 3) && !gm__id_set_has(&nodes, 4));
  assert_true(status == GM_OK || status == GM_ERR_SYSTEM || status == GM_ERR_NOT_SUPPORTED);
  counted_services_check(&f.host);
#else
  skip(); /* built without hwloc */
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_memory_lies_on_its_node), cmocka_unit_test(test_the_policies),
      cmocka_unit_test(test_wrong_options),           cmocka_unit_test(test_reserved_huge_pages),
      cmocka_unit_test(test_lists_of_nodes),          cmocka_unit_test(test_a_synthetic_topology),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
