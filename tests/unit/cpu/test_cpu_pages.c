/* Pools on mapped pages of the CPU. Blocks are pointers, and memory goes back around those that stay. Where the system
 * cannot do it there are segments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gm/copy.h"
#include "gm/native_cpu.h"
#include "gm/share.h"
#include "support/cpu_vmm.h"
#include "support/pool_blocks.h"

#define MIB (UINT64_C(1) << 20)

/* Private pages, and pages with a descriptor. */
static const char *const kinds[] = {"", "cpu:memfd"};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static bool in_a_range(pool_bench *bench, const gm_block *block, gm_memory *out) {
  uint64_t offset = 0;
  assert_int_equal(gm_block_memory(bench->pool, block, out, &offset), GM_OK);
  assert_int_equal(out->address + offset, block->address);
  return out->wrapped;
}

/* False: the system has no pages of that kind (before Linux 5.7, and under valgrind). */
static bool pages_open(pool_bench *bench, const char *options, const gm_pool_params *params) {
  gm_memory memory;
  pool_bench_open(bench, "cpu", options, params);
  const gm_block block = take(bench, MIB, NULL, GM_ACQUIRE_FRESH);
  const bool pages = in_a_range(bench, &block, &memory);
  give(bench, &block, NULL);
  gm_pool_trim(bench->pool, 0);
  if (!pages) pool_bench_close(bench);
  return pages;
}

/* The kernel's count of this process; a sanitizer has memory of its own for each byte that is touched. */
static bool count_is_ours(void) {
#ifdef GM_TEST_SANITIZED
  return false;
#else
  return true;
#endif
}

static unsigned char *bytes_of(const gm_block *block) { return (unsigned char *)(uintptr_t)block->address; }

static void test_blocks_are_pointers(void **state) {
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    pool_bench bench;
    gm_memory first, second;
    gm_cpu_memory native = {.head = {.struct_size = sizeof native, .api = GM_API_CPU}};
    unsigned char seen[100];
    void *pointer = NULL;
    if (!pages_open(&bench, kinds[kind], NULL)) continue;
    const gm_request visible = {.bytes = 300000, .flags = GM_HOST_VISIBLE};
    const gm_block plain = take(&bench, 3 * MIB, NULL, GM_ACQUIRE_FRESH);
    gm_block block;
    assert_true(gm_alloc(bench.pool, &visible, &block) <= GM_ACQUIRE_FRESH);
    assert_true(in_a_range(&bench, &plain, &first) && in_a_range(&bench, &block, &second));
    assert_int_equal(first.handle, second.handle);
    assert_int_equal((uintptr_t)second.host, second.address);
    memset(bytes_of(&block), 7, block.bytes);
    pool_bench_ok(gm_block_read(bench.pool, &block, 1000, seen, sizeof seen, NULL, NULL, err));
    assert_int_equal(seen[99], 7);
    pool_bench_ok(gm_block_map(bench.pool, &block, 5000, 100, GM_MAP_READ, NULL, &pointer, err));
    assert_ptr_equal(pointer, bytes_of(&block) + 5000);
    pool_bench_ok(gm_block_unmap(bench.pool, &block, pointer, NULL, err));
    pool_bench_ok(gm_block_native(bench.pool, &block, &native.head, err));
    assert_ptr_equal(native.pointer, bytes_of(&block));
    give(&bench, &block, NULL);
    give(&bench, &plain, NULL);
    check_trim_to_nothing(&bench);
    pool_bench_close(&bench);
  }
}

/* Segments could not do this: the whole segment would stay with the block. */
static void test_memory_goes_back_around_a_block(void **state) {
  (void)state;
  enum { COUNT = 32, KEPT = 13, SLACK = 4096 };
  for (int kind = 0; kind < KINDS; kind++) {
    pool_bench bench;
    gm_block blocks[COUNT];
    if (!pages_open(&bench, kinds[kind], NULL)) continue;
    long (*used)(void) = kind ? shared_kib : private_kib;
    const long before = used();
    for (int i = 0; i < COUNT; i++) {
      const gm_request request = {.bytes = 2 * MIB};
      assert_true(gm_alloc(bench.pool, &request, &blocks[i]) <= GM_ACQUIRE_FRESH);
      memset(bytes_of(&blocks[i]), i, 2 * MIB);
    }
    assert_true(!count_is_ours() || used() > before + COUNT * 2048 - SLACK);
    for (int i = 0; i < COUNT; i++) {
      if (i != KEPT) give(&bench, &blocks[i], NULL);
    }
    gm_pool_trim(bench.pool, 0);
    assert_true(pool_bench_stats(&bench).reserved_bytes < COUNT * MIB);
    assert_true(!count_is_ours() || used() < before + COUNT * 1024 + SLACK);
    for (uint64_t i = 0; i < 2 * MIB; i += 4096) assert_int_equal(bytes_of(&blocks[KEPT])[i], KEPT);
    give(&bench, &blocks[KEPT], NULL);
    check_trim_to_nothing(&bench);
    pool_bench_close(&bench);
  }
}

/* Pages of holes that are too small one by one come together; what lies between them keeps its contents. */
static void test_pages_move_together(void **state) {
  (void)state;
  enum { COUNT = 16 };
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = COUNT * 2 * MIB};
  for (int kind = 0; kind < KINDS; kind++) {
    pool_bench bench;
    gm_block blocks[COUNT];
    if (!pages_open(&bench, kinds[kind], &params)) continue;
    for (int i = 0; i < COUNT; i++) {
      const gm_request request = {.bytes = 2 * MIB};
      assert_true(gm_alloc(bench.pool, &request, &blocks[i]) <= GM_ACQUIRE_FRESH);
      memset(bytes_of(&blocks[i]), i, 2 * MIB);
    }
    for (int i = 0; i < COUNT; i += 2) give(&bench, &blocks[i], NULL);
    const gm_block large = take(&bench, COUNT * MIB, NULL, GM_ACQUIRE_FRESH);
    memset(bytes_of(&large), 200, COUNT * MIB);
    for (int i = 1; i < COUNT; i += 2) {
      for (uint64_t at = 0; at < 2 * MIB; at += 4096) assert_int_equal(bytes_of(&blocks[i])[at], i);
      give(&bench, &blocks[i], NULL);
    }
    give(&bench, &large, NULL);
    const gm_request zeros = {.bytes = COUNT * 2 * MIB, .flags = GM_ZERO};
    gm_block all;
    assert_true(gm_alloc(bench.pool, &zeros, &all) <= GM_ACQUIRE_FRESH);
    for (uint64_t at = 0; at < all.bytes; at += 1024) assert_int_equal(bytes_of(&all)[at], 0);
    give(&bench, &all, NULL);
    check_trim_to_nothing(&bench);
    pool_bench_close(&bench);
  }
}

/* Memory to share is made for that, block by block or not, but never of pages. */
static void test_shared_blocks_are_not_in_pages(void **state) {
  (void)state;
  pool_bench bench;
  gm_memory memory;
  gm_shared shared = {.struct_size = sizeof shared};
  const gm_pool_params params = {.struct_size = sizeof params, .share = GM_SHARE_FD};
  pool_bench_open(&bench, "cpu", "", &params);
  const gm_block block = take(&bench, MIB, NULL, GM_ACQUIRE_FRESH);
  assert_false(in_a_range(&bench, &block, &memory));
  pool_bench_ok(gm_block_export(bench.pool, &block, &shared, err));
  gm_shared_close(&shared);
  give(&bench, &block, NULL);
  check_trim_to_nothing(&bench);
  pool_bench_close(&bench);
}

/* It is as with segments: a forked child writes bytes of its own. */
static void test_a_forked_child_writes_its_own(void **state) {
  (void)state;
  pool_bench bench;
  if (!pages_open(&bench, "", NULL)) skip();
  const gm_block block = take(&bench, MIB, NULL, GM_ACQUIRE_FRESH);
  bytes_of(&block)[9] = 1;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    const bool same = bytes_of(&block)[9] == 1;
    bytes_of(&block)[9] = 2;
    _exit(same ? 0 : 1);
  }
  int result = -1;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
  assert_int_equal(bytes_of(&block)[9], 1);
  give(&bench, &block, NULL);
  pool_bench_close(&bench);
}

static void *stays(void *address, size_t old_bytes, size_t bytes, int flags, void *to) {
  (void)address, (void)old_bytes, (void)bytes, (void)flags, (void)to;
  errno = EINVAL;
  return MAP_FAILED;
}

static int no_descriptors(const char *name, unsigned flags) {
  (void)name, (void)flags;
  errno = EPERM; /* a filter of system calls */
  return -1;
}

static void *hook(void *user, const char *backend, const char *symbol, void *real) {
  (void)user, (void)backend;
  void *(*mine)(void *address, size_t old_bytes, size_t bytes, int flags, void *to) = stays;
  int (*other)(const char *name, unsigned flags) = no_descriptors;
  if (strcmp(symbol, "mremap") == 0) memcpy(&real, &mine, sizeof real);
  if (strcmp(symbol, "memfd_create") == 0) memcpy(&real, &other, sizeof real);
  return real;
}

static void test_without_pages_there_are_segments(void **state) {
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    pool_bench bench = {.pool = NULL};
    gm_memory memory;
    counted_services_init(&bench.host);
    const gm_context_params params = {.struct_size = sizeof params,
                                      .services = &bench.host.services,
                                      .backend_options = kinds[kind],
                                      .symbol_hook = hook,
                                      .ignore_environment = true};
    pool_bench_ok(gm_context_create(&params, &bench.ctx, err));
    pool_bench_ok(gm_device_open_index(bench.ctx, "cpu", 0, &bench.device, err));
    pool_bench_ok(gm_pool_create(bench.device, NULL, &bench.pool, err));
    const gm_block block = take(&bench, MIB, NULL, GM_ACQUIRE_FRESH);
    assert_false(in_a_range(&bench, &block, &memory));
    memset(bytes_of(&block), 1, block.bytes);
    give(&bench, &block, NULL);
    pool_bench_close(&bench);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_blocks_are_pointers),           cmocka_unit_test(test_memory_goes_back_around_a_block),
      cmocka_unit_test(test_pages_move_together),           cmocka_unit_test(test_shared_blocks_are_not_in_pages),
      cmocka_unit_test(test_a_forked_child_writes_its_own), cmocka_unit_test(test_without_pages_there_are_segments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
