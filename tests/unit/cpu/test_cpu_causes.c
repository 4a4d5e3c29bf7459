/* Causes of a refusal that only the host knows: a memory group, promises of the kernel, memory that comes late. The
 * machine is written as files; limits of the process are set in a forked child. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "core/host/commit.h"
#include "support/causes.h"
#include "support/child_part.h"
#include "support/host_upstream.h"
#include "support/pool_bench.h"
#include "support/tree.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* older headers */
#endif

static bool populate_fails;

static int (*real_madvise)(void *address, size_t bytes, int advice);

static int madvise_refused(void *address, size_t bytes, int advice) {
  if (!populate_fails || advice != MADV_POPULATE_WRITE) return real_madvise(address, bytes, advice);
  errno = ENOMEM;
  return -1;
}

static void *hook(void *user, const char *library, const char *symbol, void *real) {
  int (*wrapper)(void *address, size_t bytes, int advice) = madvise_refused;
  (void)user, (void)library;
  if (strcmp(symbol, "madvise") != 0) return real;
  memcpy(&real_madvise, &real, sizeof real);
  memcpy(&real, &wrapper, sizeof real);
  return real;
}

static void open_cpu(pool_bench *bench, const char *root, const gm_pool_params *params) {
  const gm_context_params context = {
      .struct_size = sizeof context, .ignore_environment = true, .host_root = root, .symbol_hook = hook};
  pool_bench_ok(gm_context_create(&context, &bench->ctx, err));
  pool_bench_ok(gm_config_set(bench->ctx, "memory_fraction", "1", err));
  pool_bench_ok(gm_config_set(bench->ctx, "min_free_bytes", "0", err));
  pool_bench_ok(gm_device_open_index(bench->ctx, "cpu", 0, &bench->device, err));
  pool_bench_ok(gm_pool_create(bench->device, params, &bench->pool, err));
}

static void close_cpu(pool_bench *bench) {
  pool_bench_ok(gm_pool_destroy(bench->pool, err));
  pool_bench_ok(gm_device_close(bench->device, err));
  pool_bench_ok(gm_context_destroy(bench->ctx, err));
}

static void put_meminfo(temp_folder *root, const char *more) {
  char text[256];
  snprintf(text, sizeof text, "MemTotal: 8388608 kB\nMemFree: 6291456 kB\nMemAvailable: 6291456 kB\n%s", more);
  tree_put(root, "/proc/meminfo", text);
}

/* A machine with 6 GiB free, and a group that may have 128 MiB and has 64 of them. */
static void test_cgroup(void **state) {
  temp_folder *root = *state;
  pool_bench bench;
  gm_request request = {.bytes = 80 * MIB};
  put_meminfo(root, "");
  tree_put(root, "/proc/self/cgroup", "0::/box\n");
  tree_put(root, "/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  tree_put(root, "/sys/fs/cgroup/box/memory.max", "134217728\n");
  tree_put(root, "/sys/fs/cgroup/box/memory.current", "67108864\n");
  open_cpu(&bench, root->path, NULL);
  gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_CGROUP, GM_CHANGE_RAISE_CGROUP);
  assert_true(why.change_bytes == 16 * MIB && why.ever_fits);
  request.bytes = 160 * MIB;
  why = refused_as(bench.pool, &request, GM_CAUSE_CGROUP, GM_CHANGE_RAISE_CGROUP);
  assert_true(why.change_bytes == 32 * MIB && !why.ever_fits); /* more than the group may ever have */
  tree_put(root, "/sys/fs/cgroup/box/memory.max", "150994944\n");
  request.bytes = 80 * MIB;
  const gm_block block = served(bench.pool, &request);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  close_cpu(&bench);
}

/* The system promises addresses, and has no pages when they are to be committed. */
static void test_lazy_commit(void **state) {
  temp_folder *root = *state;
  const gm_pool_params plain = {.struct_size = sizeof plain, .no_vmm = true},
                       own = {.struct_size = sizeof own, .upstream = &host_upstream};
  const gm_pool_params *const kinds[] = {&plain, &own};
  put_meminfo(root, "");
  for (size_t i = 0; i < 2; i++) {
    pool_bench bench;
    gm_request request = {.bytes = 8 * MIB, .flags = GM_COMMIT};
    open_cpu(&bench, root->path, kinds[i]);
    populate_fails = true;
    const gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_LAZY_COMMIT, GM_CHANGE_FREE);
    assert_true(why.change_bytes == 8 * MIB);
    request.flags = 0;
    gm_block block = served(bench.pool, &request);
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
    gm_pool_trim(bench.pool, 0);
    populate_fails = false;
    request.flags = GM_COMMIT;
    block = served(bench.pool, &request);
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
    close_cpu(&bench);
  }
}

/* ---- limits of the process ---- */

/* Addresses of the process end `bytes` above what it has. */
static void limit_addresses(uint64_t bytes) {
  gm__host_commit commit;
  gm__host_commit_read("", &commit);
  assert_true(commit.address_bytes != GM_UNKNOWN_BYTES);
  const struct rlimit limit = {commit.address_bytes + bytes, commit.address_bytes + bytes};
  assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}

static void refuse_promise(const char *root, uint64_t least, uint64_t most, bool ever_fits) {
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = true};
  pool_bench bench;
  const gm_request request = {.bytes = 1024 * MIB};
  open_cpu(&bench, root, &params);
  limit_addresses(512 * MIB);
  const gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_HOST_OVERCOMMIT, GM_CHANGE_RAISE_COMMIT);
  assert_in_range(why.change_bytes, least, most);
  assert_int_equal(why.ever_fits, ever_fits);
  close_cpu(&bench);
}

/* The real files of the child. Its host has 1 GiB free, or the test says so and ends. */
static void part_address_space(temp_folder *root) {
  (void)root;
#ifdef GM_TEST_SANITIZED
  const bool ever_fits = true; /* a sanitizer's addresses are more than the machine has: they are what is limited */
#else
  const bool ever_fits = false;
#endif
  refuse_promise(NULL, 512 * MIB, 640 * MIB, ever_fits);
}

/* The kernel refuses for its own reason, and the files of a strict machine say why. */
static void part_overcommit(temp_folder *root) { refuse_promise(root->path, 1024 * MIB, 1028 * MIB, true); }

static void test_host_overcommit(void **state) {
  temp_folder *root = *state;
  put_meminfo(root, "CommitLimit: 4194304 kB\nCommitted_AS: 4194304 kB\n");
  tree_put(root, "/proc/sys/vm/overcommit_memory", "2\n");
  in_child(part_overcommit, root);
}

static void test_address_space(void **state) {
  gm_host_info info = {.struct_size = sizeof info};
  assert_int_equal(gm_host_info_read(NULL, &info, NULL), GM_OK);
  if (info.free_bytes < 1200 * MIB) skip(); /* the group or the machine refuses before */
  in_child(part_address_space, *state);
}

/* ---- the reader ---- */

static void test_the_files_are_read(void **state) {
  temp_folder *root = *state;
  gm__host_commit commit;
  gm__host_commit_read(root->path, &commit);
  assert_true(!commit.strict && commit.limit_bytes == GM_UNKNOWN_BYTES && commit.lock_limit == GM_UNKNOWN_BYTES);
  assert_int_equal(gm__host_commit_lack(&commit, UINT64_MAX), 0);
  assert_int_equal(gm__host_lock_lack(&commit, UINT64_MAX), 0);
  put_meminfo(root, "CommitLimit: 100 kB\nCommitted_AS: 90 kB\n");
  tree_put(root, "/proc/self/limits",
           "Limit                     Soft Limit           Hard Limit           Units     \n"
           "Max address space         unlimited            unlimited            bytes     \n"
           "Max locked memory         65536                65536                bytes     \n");
  tree_put(root, "/proc/self/status", "VmSize:\t 100 kB\nVmLck:\t 4 kB\nCapEff:\t0000000000000000\n");
  gm__host_commit_read(root->path, &commit);
  assert_true(commit.limit_bytes == 102400 && commit.committed_bytes == 92160 && commit.locked_bytes == 4096);
  assert_true(commit.lock_limit == 65536 && commit.address_limit == GM_UNKNOWN_BYTES);
  assert_int_equal(gm__host_commit_lack(&commit, UINT64_MAX), 0); /* the kernel promises more than it has */
  assert_int_equal(gm__host_lock_lack(&commit, 65536), 4096);
  assert_int_equal(gm__host_lock_lack(&commit, 61440), 0);
  tree_put(root, "/proc/sys/vm/overcommit_memory", "2\n");
  tree_put(root, "/proc/self/status", "VmSize:\t x kB\nVmLck:\t 99999999999999999999 kB\nCapEff:\t000001ffffffffff\n");
  gm__host_commit_read(root->path, &commit);
  assert_true(commit.strict && commit.locked_bytes == GM_UNKNOWN_BYTES && commit.lock_limit == GM_UNKNOWN_BYTES);
  assert_int_equal(gm__host_commit_lack(&commit, 20480), 10240);
  tree_put(root, "/proc/sys/vm/overcommit_memory", "2x\n");
  gm__host_commit_read(root->path, &commit);
  assert_false(commit.strict);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_cgroup, tree_set_up, tree_tear_down),
      cmocka_unit_test_setup_teardown(test_lazy_commit, tree_set_up, tree_tear_down),
      cmocka_unit_test_setup_teardown(test_host_overcommit, tree_set_up, tree_tear_down),
      cmocka_unit_test_setup_teardown(test_address_space, tree_set_up, tree_tear_down),
      cmocka_unit_test_setup_teardown(test_the_files_are_read, tree_set_up, tree_tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
