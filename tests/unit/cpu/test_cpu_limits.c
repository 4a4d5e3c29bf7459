/* Limits of the process: none ends it, each refusal names the limit that is in the way, and what gm_explain says to
 * change helps. Each limit is set in a forked child; what cannot be set is played. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/host/commit.h"
#include "gm/record.h"
#include "support/causes.h"
#include "support/child_part.h"
#include "support/pool_bench.h"
#include "support/tree.h"

enum { BLOCKS = 512 };

static const char *refused_call; /* a system call of the backend's table that fails with `refused_code` */
static int refused_code;
static bool refusing;
static const char *options; /* of the backend; NULL: none */

static void *(*real_mmap)(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
static int (*real_memfd_create)(const char *name, unsigned flags);
static int (*real_fallocate)(int fd, int mode, off_t offset, off_t bytes);

static void *mmap_refused(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (!refusing) return real_mmap(address, bytes, protection, flags, fd, offset);
  errno = refused_code;
  return MAP_FAILED;
}

static int memfd_create_refused(const char *name, unsigned flags) {
  if (!refusing) return real_memfd_create(name, flags);
  errno = refused_code;
  return -1;
}

static int fallocate_refused(int fd, int mode, off_t offset, off_t bytes) {
  if (!refusing) return real_fallocate(fd, mode, offset, bytes);
  errno = refused_code;
  return -1;
}

#define REPLACE(call)                                                           \
  if (strcmp(symbol, #call) == 0 && strcmp(refused_call, #call) == 0) {         \
    memcpy(&real_##call, &real, sizeof real);                                   \
    memcpy(&real, &(__typeof__(&call##_refused)){call##_refused}, sizeof real); \
  }

static void *hook(void *user, const char *library, const char *symbol, void *real) {
  (void)user, (void)library;
  if (!refused_call) return real;
  REPLACE(mmap)
  REPLACE(memfd_create)
  REPLACE(fallocate)
  return real;
}

static void open_device(pool_bench *bench, const char *root) {
  const gm_context_params context = {
      .struct_size = sizeof context, .host_root = root, .symbol_hook = hook, .backend_options = options};
  *bench = (pool_bench){0};
  pool_bench_ok(gm_context_create(&context, &bench->ctx, err));
  pool_bench_ok(gm_config_set(bench->ctx, "memory_fraction", "1", err));
  pool_bench_ok(gm_config_set(bench->ctx, "min_free_bytes", "0", err));
  pool_bench_ok(gm_device_open_index(bench->ctx, "cpu", 0, &bench->device, err));
}

static void open_cpu(pool_bench *bench, const char *root, const gm_pool_params *params) {
  open_device(bench, root);
  pool_bench_ok(gm_pool_create(bench->device, params, &bench->pool, err));
}

static void close_cpu(pool_bench *bench) {
  if (bench->pool) pool_bench_ok(gm_pool_destroy(bench->pool, err));
  pool_bench_ok(gm_device_close(bench->device, err));
  pool_bench_ok(gm_context_destroy(bench->ctx, err));
}

static void limit_soft(unsigned resource, uint64_t most) {
  const struct rlimit limit = {most, RLIM_INFINITY};
  assert_int_equal(setrlimit((__rlimit_resource_t)resource, &limit), 0);
}

static gm_explanation refused_for(gm_pool *pool, const gm_request *request, const char *limit) {
  gm_block block;
  gm_explanation why = {.struct_size = sizeof why};
  assert_false(gm_acquired(gm_alloc(pool, request, &block)));
  assert_int_equal(gm_explain(pool, request, &why, NULL), GM_OK);
  if (!strstr(why.last_failure.message, limit) && !strstr(why.text, limit)) fail_msg("no %s: %s", limit, why.text);
  return why;
}

/* ---- RLIMIT_FSIZE ---- */

/* Mapped pages with a descriptor cannot be had: the pool takes other memory. */
static void part_memfd_size(temp_folder *root) {
  (void)root;
  const gm_request request = {.bytes = 8 * MIB};
  pool_bench bench;
  options = "cpu:memfd";
  open_cpu(&bench, NULL, NULL);
  limit_soft(RLIMIT_FSIZE, MIB);
  const gm_block block = served(bench.pool, &request);
  memset((void *)(uintptr_t)block.address, 1, request.bytes);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  close_cpu(&bench);
}

static void part_share_size(temp_folder *root) {
  (void)root;
  const gm_pool_params params = {.struct_size = sizeof params, .share = GM_SHARE_FD};
  const gm_request request = {.bytes = 8 * MIB};
  pool_bench bench;
  open_cpu(&bench, NULL, &params);
  limit_soft(RLIMIT_FSIZE, MIB);
  refused_for(bench.pool, &request, "RLIMIT_FSIZE is 1048576");
  close_cpu(&bench);
}

static void part_recording(temp_folder *root) {
  gm_recording recording = {.struct_size = sizeof recording};
  gm_error why;
  pool_bench bench;
  open_cpu(&bench, NULL, NULL);
  limit_soft(RLIMIT_FSIZE, 4096);
  pool_bench_ok(gm_pool_record_begin(bench.pool, temp_folder_join(root, "trace"), err));
  for (int i = 0; i < 20000; i++) {
    void *pointer = gm_malloc(bench.pool, 64, NULL);
    assert_non_null(pointer);
    assert_int_equal(gm_free_ptr(bench.pool, pointer, 64, NULL), GM_OK);
  }
  assert_int_equal(gm_pool_record_end(bench.pool, &recording, &why), GM_ERR_IO);
  assert_int_equal(why.native_code, EFBIG);
  close_cpu(&bench);
}

static void test_the_size_of_files(void **state) {
  in_child(part_memfd_size, *state);
  in_child(part_share_size, *state);
  in_child(part_recording, *state);
}

/* ---- RLIMIT_DATA, RLIMIT_AS ---- */

static uint64_t free_bytes_of(const pool_bench *bench) {
  gm_memory_info info = {.struct_size = sizeof info};
  assert_int_equal(gm_device_memory_info(bench->device, &info, NULL), GM_OK);
  assert_true(info.free_state == GM_FIGURE_ESTIMATED && info.free_bytes <= info.total_bytes);
  return info.free_bytes;
}

/* Takes blocks until one is refused. */
static size_t take_all(gm_pool *pool, const gm_request *request, gm_block *blocks) {
  size_t count = 0;
  while (count < BLOCKS && gm_acquired(gm_alloc(pool, request, &blocks[count]))) count++;
  assert_in_range(count, 1, BLOCKS - 1);
  return count;
}

static void part_limit(unsigned resource, uint64_t used, const char *name) {
  static gm_block blocks[BLOCKS];
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = true};
  const gm_request request = {.bytes = 8 * MIB};
  pool_bench bench;
  open_cpu(&bench, NULL, &params);
  limit_soft(resource, used + 320 * MIB);
  assert_in_range(free_bytes_of(&bench), 256 * MIB, 320 * MIB);
  const size_t count = take_all(bench.pool, &request, blocks);
  const gm_explanation why = refused_for(bench.pool, &request, name);
  assert_int_equal(why.cause, GM_CAUSE_HOST_OVERCOMMIT);
  assert_int_equal(why.change, GM_CHANGE_RAISE_COMMIT);
  limit_soft(resource, used + 320 * MIB + why.change_bytes);
  usleep(11000); /* the age of a figure that gm may still use */
  blocks[count] = served(bench.pool, &request);
  for (size_t i = 0; i <= count; i++) assert_int_equal(gm_free(bench.pool, &blocks[i], NULL), GM_OK);
  close_cpu(&bench);
}

static gm__host_commit commit_now(void) {
  gm__host_commit commit;
  gm__host_commit_read("", &commit);
  return commit;
}

static void part_data(temp_folder *root) {
  (void)root;
  part_limit(RLIMIT_DATA, commit_now().data_bytes, "RLIMIT_DATA");
}

static void part_addresses(temp_folder *root) {
  (void)root;
  part_limit(RLIMIT_AS, commit_now().address_bytes, "RLIMIT_AS");
}

static void test_the_size_of_memory(void **state) {
  gm_host_info info = {.struct_size = sizeof info};
  assert_int_equal(gm_host_info_read(NULL, &info, NULL), GM_OK);
  if (info.free_bytes < 1200 * MIB) skip(); /* the group or the machine refuses before */
  in_child(part_data, *state);
  in_child(part_addresses, *state);
}

/* ---- vm.max_map_count ---- */

static void test_the_number_of_mappings(void **state) {
  temp_folder *root = *state;
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = true};
  const gm_request request = {.bytes = 8 * MIB};
  pool_bench bench;
  tree_put(root, "/proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 6291456 kB\nMemAvailable: 6291456 kB\n");
  tree_put(root, "/proc/sys/vm/max_map_count", "4\n");
  tree_put(root, "/proc/self/maps", "1\n2\n3\n");
  refused_call = "mmap";
  refused_code = ENOMEM;
  open_cpu(&bench, root->path, &params);
  refusing = true;
  gm_explanation why = refused_for(bench.pool, &request, "vm.max_map_count");
  assert_int_equal(why.cause, GM_CAUSE_MAPPINGS);
  assert_int_equal(why.change, GM_CHANGE_RAISE_MAPPINGS);
  assert_true(why.change_bytes >= 1);
  tree_put(root, "/proc/sys/vm/max_map_count", "65530\n");
  gm_block block;
  assert_false(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  assert_int_equal(gm_explain(bench.pool, &request, &why, NULL), GM_OK);
  assert_int_not_equal(why.cause, GM_CAUSE_MAPPINGS);
  refusing = false;
  refused_call = NULL;
  close_cpu(&bench);
}

/* ---- memory with a descriptor, where a filter forbids it ---- */

static void no_sharing(const char *call, int code) {
  const gm_pool_params params = {.struct_size = sizeof params, .share = GM_SHARE_FD};
  gm_memory_type type = {.struct_size = sizeof type};
  gm_error why;
  pool_bench bench;
  refused_call = call;
  refused_code = code;
  refusing = true;
  open_device(&bench, NULL);
  assert_int_equal(gm_device_memory_type(bench.device, 0, &type, &why), GM_OK);
  assert_int_equal(type.share_kinds, 0);
  assert_int_equal(gm_pool_create(bench.device, &params, &bench.pool, &why), GM_ERR_NOT_SUPPORTED);
  refusing = false;
  refused_call = NULL;
  bench.pool = NULL;
  close_cpu(&bench);
}

static void test_sharing_is_asked_for(void **state) {
  (void)state;
  gm_memory_type type = {.struct_size = sizeof type};
  pool_bench bench;
  no_sharing("memfd_create", EPERM);
  no_sharing("memfd_create", ENOSYS);
  no_sharing("fallocate", EPERM);
  no_sharing("fallocate", ENOSYS);
  open_device(&bench, NULL);
  assert_int_equal(gm_device_memory_type(bench.device, 0, &type, NULL), GM_OK);
  assert_int_not_equal(type.share_kinds & 1u << GM_SHARE_FD, 0);
  close_cpu(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_the_size_of_files, tree_set_up, tree_tear_down),
      cmocka_unit_test_setup_teardown(test_the_size_of_memory, tree_set_up, tree_tear_down),
      cmocka_unit_test_setup_teardown(test_the_number_of_mappings, tree_set_up, tree_tear_down),
      cmocka_unit_test(test_sharing_is_asked_for)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
