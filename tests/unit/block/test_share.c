/* Sharing above the seam, on a scripted backend: what is exported, what is refused, what is opened and closed when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gm/tools.h"
#include "support/fake_backend.h"

enum { WHOLE = 1 << 20 };

/* The orders of the backend's share group, and its deeds. */
static struct {
  gm_backend_ops ops;
  int exports, imports, closes;
  gm_status import_status;
  bool wrong_kind, no_descriptor, no_handle;
  gm_shared asked; /* of the last import */
} script;

static struct {
  gm_context *ctx;
  gm_device *device, *other;
  gm_pool *pool;
  gm_stream *stream;
  gm_error err;
} w;

static gm_status share_export(void *device, const gm_memory *memory, gm_share_kind kind, gm_shared *out,
                              gm_error *err) {
  (void)device, (void)err;
  script.exports++;
  *out = (gm_shared){.struct_size = sizeof *out, .kind = kind, .bytes = memory->bytes, .offset = 512, .fd = -1};
  out->whole_bytes = memory->bytes + 512;
  out->ipc[0] = (uint8_t)memory->handle;
  if (script.wrong_kind) out->kind = GM_SHARE_NONE;
  if (kind != GM_SHARE_IPC && !script.no_descriptor) out->fd = memfd_create("exported", MFD_CLOEXEC);
  return GM_OK;
}

static gm_status share_import(void *device, const gm_shared *shared, gm_memory *out, gm_error *err) {
  (void)device;
  script.asked = *shared;
  if (script.import_status) return fake_answer(script.import_status, "share_import", err);
  script.imports++;
  *out = (gm_memory){.handle = script.no_handle ? 0 : 900 + (uint64_t)script.imports,
                     .address = (uint64_t)(900 + script.imports) << 32,
                     .bytes = shared->bytes,
                     .wrapped = true};
  return GM_OK;
}

static gm_status share_close(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  (void)device, (void)mode, (void)err;
  assert_true(memory->handle > 900);
  script.closes++;
  return GM_OK;
}

static gm_status share_export_vmm(void *device, uint64_t handle, uint64_t bytes, gm_shared *out, gm_error *err) {
  (void)device, (void)handle, (void)bytes, (void)out;
  return fake_answer(GM_ERR_NOT_SUPPORTED, "share_export_vmm", err);
}

static gm_status share_import_vmm(void *device, const gm_shared *shared, uint64_t *out, gm_error *err) {
  (void)device, (void)shared, (void)out;
  return fake_answer(GM_ERR_NOT_SUPPORTED, "share_import_vmm", err);
}

static gm_pool *make_pool(gm_device *device, gm_share_kind kind, gm_strategy strategy) {
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy, .share = kind, .checked = true};
  gm_pool *pool = NULL;
  assert_int_equal(gm_pool_create(device, &params, &pool, &w.err), GM_OK);
  return pool;
}

static int begin(void **state) {
  const gm_context_params params = {.struct_size = sizeof params, .backends = "fake", .ignore_environment = true};
  (void)state;
  memset(&script, 0, sizeof script);
  fake_backend_reset();
  fake.device_count = 2;
  fake.total[1] = fake.free_bytes[1] = 1u << 30;
  fake.types[0].share_kinds = 1u << GM_SHARE_IPC | 1u << GM_SHARE_FD;
  fake.info.capabilities = GM_CAP_SHARE;
  script.ops = fake_ops;
  script.ops.capabilities = GM_CAP_SHARE;
  script.ops.share_export = share_export;
  script.ops.share_import = share_import;
  script.ops.share_close = share_close;
  script.ops.share_export_vmm = share_export_vmm;
  script.ops.share_import_vmm = share_import_vmm;
  memset(&w, 0, sizeof w);
  if (gm_context_create(&params, &w.ctx, &w.err) || gm_backend_register(w.ctx, &script.ops, &w.err)) return -1;
  if (gm_device_open_index(w.ctx, "fake", 0, &w.device, &w.err)) return -1;
  if (gm_device_open_index(w.ctx, "fake", 1, &w.other, &w.err)) return -1;
  if (gm_stream_create(w.device, &w.stream, &w.err)) return -1;
  w.pool = make_pool(w.device, GM_SHARE_IPC, GM_STRATEGY_BUCKET);
  return 0;
}

static int end(void **state) {
  (void)state;
  assert_int_equal(gm_pool_destroy(w.pool, &w.err), GM_OK);
  gm_stream_close(w.stream, NULL);
  gm_device_close(w.device, NULL);
  gm_device_close(w.other, NULL);
  assert_int_equal(script.imports, script.closes);
  return gm_context_destroy(w.ctx, NULL) == GM_OK ? 0 : -1;
}

static gm_block take(gm_pool *pool, uint64_t bytes) {
  const gm_request request = {.bytes = bytes, .flags = GM_SHAREABLE};
  gm_block block;
  assert_true(gm_alloc(pool, &request, &block) <= GM_ACQUIRE_FRESH);
  return block;
}

static gm_shared letter(gm_share_kind kind, uint64_t offset, uint64_t bytes) {
  gm_shared made = {.struct_size = sizeof made, .kind = kind, .bytes = bytes, .offset = offset, .fd = -1};
  made.whole_bytes = WHOLE;
  made.ipc[0] = 7;
  return made;
}

static gm_status bring_in(gm_pool *pool, const gm_shared *shared, gm_block *out) {
  return gm_block_import(pool, shared, out, &w.err);
}

static void test_pool_says_what_the_device_has(void **state) {
  (void)state;
  gm_pool *pool = NULL;
  gm_pool_params params = {.struct_size = sizeof params, .share = GM_SHARE_DMABUF};
  assert_int_equal(gm_pool_create(w.device, &params, &pool, &w.err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(w.err.message, "IPC FD"));
  params.share = (gm_share_kind)9;
  assert_int_equal(gm_pool_create(w.device, &params, &pool, &w.err), GM_ERR_INVALID_ARGUMENT);
  assert_null(pool);
}

static void test_shareable_needs_such_a_pool(void **state) {
  (void)state;
  const gm_request request = {.bytes = 100, .flags = GM_SHAREABLE}, plain = {.bytes = 100};
  gm_explanation why = {.struct_size = sizeof why};
  gm_shared shared = {.struct_size = sizeof shared};
  gm_block block;
  gm_pool *pool = make_pool(w.device, GM_SHARE_NONE, GM_STRATEGY_BUCKET);
  assert_int_equal(gm_alloc(pool, &request, &block), GM_ACQUIRE_INVALID);
  assert_int_equal(gm_explain(pool, &request, &why, &w.err), GM_OK);
  assert_non_null(strstr(why.text, "gm_pool_params.share"));
  assert_int_equal(gm_alloc(pool, &plain, &block), GM_ACQUIRE_FRESH);
  assert_int_equal(gm_block_export(pool, &block, &shared, &w.err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(script.exports, 0);
  assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
  assert_int_equal(gm_pool_destroy(pool, &w.err), GM_OK);
}

static void test_block_of_a_segment_leaves_with_its_offset(void **state) {
  (void)state;
  gm_pool *pool = make_pool(w.device, GM_SHARE_IPC, GM_STRATEGY_BEST_FIT);
  gm_shared shared[2] = {{.struct_size = sizeof shared[0]}, {.struct_size = sizeof shared[1]}};
  const gm_block first = take(pool, 1000), second = take(pool, 3000);
  assert_int_equal(gm_block_export(pool, &first, &shared[0], &w.err), GM_OK);
  assert_int_equal(gm_block_export(pool, &second, &shared[1], &w.err), GM_OK);
  assert_int_equal(shared[1].offset - shared[0].offset, second.address - first.address);
  assert_int_equal(shared[1].bytes, second.bytes);
  assert_int_equal(shared[1].whole_bytes, shared[0].whole_bytes);
  assert_memory_equal(shared[1].device_uuid, gm_device_get_info(w.device)->uuid, GM_UUID_BYTES);
  assert_string_equal(shared[1].backend, "fake");
  assert_int_equal(gm_free(pool, &first, NULL), GM_OK);
  assert_int_equal(gm_block_export(pool, &first, &shared[0], &w.err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(pool, &second, NULL), GM_OK);
  assert_int_equal(gm_pool_destroy(pool, &w.err), GM_OK);
}

static void test_export_arguments(void **state) {
  (void)state;
  gm_shared shared = {.struct_size = 8};
  const gm_block block = take(w.pool, 1000);
  assert_int_equal(gm_block_export(NULL, &block, &shared, &w.err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_export(w.pool, NULL, &shared, &w.err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_export(w.pool, &block, &shared, &w.err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_export(w.pool, &block, NULL, &w.err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(w.pool, &block, NULL), GM_OK);
}

/* A backend's answer is input. */
static void test_nonsense_from_the_backend(void **state) {
  (void)state;
  gm_shared shared = {.struct_size = sizeof shared}, told = letter(GM_SHARE_IPC, 0, 100);
  gm_pool *pool = make_pool(w.device, GM_SHARE_FD, GM_STRATEGY_BUCKET);
  gm_block block = take(pool, 1000), imported;
  script.no_descriptor = true;
  assert_int_equal(gm_block_export(pool, &block, &shared, &w.err), GM_ERR_DRIVER);
  script.no_descriptor = false;
  script.wrong_kind = true;
  assert_int_equal(gm_block_export(pool, &block, &shared, &w.err), GM_ERR_DRIVER);
  script.wrong_kind = false;
  assert_int_equal(gm_block_export(pool, &block, &shared, &w.err), GM_OK);
  gm_shared_close(&shared);
  assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
  assert_int_equal(gm_pool_destroy(pool, &w.err), GM_OK);
  script.no_handle = true;
  assert_int_equal(bring_in(w.pool, &told, &imported), GM_ERR_DRIVER);
  script.imports = 0;
}

/* Opened whole and once for all parts of it, whatever the pool, and closed with the last. */
static void test_opened_once(void **state) {
  (void)state;
  gm_pool *pool = make_pool(w.device, GM_SHARE_NONE, GM_STRATEGY_BUCKET);
  const gm_shared one = letter(GM_SHARE_IPC, 4096, 1000), two = letter(GM_SHARE_IPC, 65536, 500);
  gm_shared stranger = one;
  gm_block blocks[4], found;
  stranger.ipc[63] = 1;
  assert_int_equal(bring_in(w.pool, &one, &blocks[0]), GM_OK);
  assert_int_equal(script.asked.offset, 0);
  assert_int_equal(script.asked.bytes, WHOLE);
  assert_int_equal(bring_in(w.pool, &two, &blocks[1]), GM_OK);
  assert_int_equal(bring_in(pool, &one, &blocks[2]), GM_OK);
  assert_int_equal(script.imports, 1);
  assert_int_equal(blocks[1].address - blocks[0].address, 65536 - 4096);
  assert_int_equal(blocks[2].address, blocks[0].address);
  assert_int_equal(bring_in(pool, &stranger, &blocks[3]), GM_OK);
  assert_int_equal(script.imports, 2);
  assert_int_equal(gm_block_of(w.pool, (void *)(uintptr_t)(blocks[1].address + 499), &found), GM_OK);
  assert_int_equal(found.address, blocks[1].address);
  assert_int_equal(gm_free(w.pool, &blocks[0], NULL), GM_OK);
  assert_int_equal(gm_free(w.pool, &blocks[1], NULL), GM_OK);
  assert_int_equal(gm_free(w.pool, &blocks[1], NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(script.closes, 0);
  assert_int_equal(gm_pool_destroy(pool, &w.err), GM_ERR_BUSY);
  assert_int_equal(gm_free(pool, &blocks[2], NULL), GM_OK);
  assert_int_equal(script.closes, 1);
  assert_int_equal(gm_free(pool, &blocks[3], NULL), GM_OK);
  assert_int_equal(gm_pool_destroy(pool, &w.err), GM_OK);
}

static void test_twice_into_one_pool(void **state) {
  (void)state;
  const gm_shared shared = letter(GM_SHARE_IPC, 0, 1000);
  gm_block first, second, found;
  assert_int_equal(bring_in(w.pool, &shared, &first), GM_OK);
  assert_int_equal(bring_in(w.pool, &shared, &second), GM_OK);
  assert_int_equal(script.imports, 1);
  assert_int_equal(gm_free(w.pool, &second, NULL), GM_OK);
  assert_int_equal(gm_block_of(w.pool, (void *)(uintptr_t)first.address, &found), GM_OK);
  assert_int_equal(found.number, first.number);
  assert_int_equal(bring_in(w.pool, &shared, &second), GM_OK);
  assert_int_equal(gm_free(w.pool, &first, NULL), GM_OK);
  assert_int_equal(gm_block_of(w.pool, (void *)(uintptr_t)second.address, &found), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_free(w.pool, &second, NULL), GM_OK);
  assert_int_equal(script.closes, 1);
}

/* One memfd through two descriptors is one memory; another file is another. */
static void test_descriptors_of_one_file(void **state) {
  (void)state;
  gm_shared one = letter(GM_SHARE_FD, 0, 1000), same = one, other = one;
  gm_block blocks[3];
  one.fd = memfd_create("one", MFD_CLOEXEC);
  same.fd = dup(one.fd);
  other.fd = memfd_create("other", MFD_CLOEXEC);
  assert_int_equal(bring_in(w.pool, &one, &blocks[0]), GM_OK);
  gm_shared_close(&one);
  assert_int_equal(bring_in(w.pool, &same, &blocks[1]), GM_OK);
  assert_int_equal(script.imports, 1);
  assert_int_equal(bring_in(w.pool, &other, &blocks[2]), GM_OK);
  assert_int_equal(script.imports, 2);
  gm_shared_close(&same);
  gm_shared_close(&other);
  for (int i = 0; i < 3; i++) assert_int_equal(gm_free(w.pool, &blocks[i], NULL), GM_OK);
}

static void test_counts_and_caps(void **state) {
  (void)state;
  const gm_shared shared = letter(GM_SHARE_IPC, 0, 100000);
  gm_shared out = {.struct_size = sizeof out};
  gm_stats stats = {.struct_size = sizeof stats};
  gm_block block;
  assert_int_equal(gm_pool_set_max_bytes(w.pool, 99999, &w.err), GM_OK);
  assert_int_equal(bring_in(w.pool, &shared, &block), GM_ERR_OVER_LIMIT);
  assert_int_equal(script.imports, script.closes);
  assert_int_equal(gm_pool_set_max_bytes(w.pool, 100000, &w.err), GM_OK);
  assert_int_equal(bring_in(w.pool, &shared, &block), GM_OK);
  gm_pool_stats(w.pool, &stats);
  assert_int_equal(stats.in_use_bytes, 100000);
  assert_int_equal(stats.reserved_bytes, 100000);
  assert_int_equal(gm_block_export(w.pool, &block, &out, &w.err), GM_ERR_INVALID_ARGUMENT); /* not ours to give */
  assert_int_equal(gm_free(w.pool, &block, NULL), GM_OK);
  gm_pool_stats(w.pool, &stats);
  assert_int_equal(stats.reserved_bytes, 0);
}

static void test_memory_of_another_device(void **state) {
  (void)state;
  gm_shared shared = {.struct_size = sizeof shared};
  gm_block imported, block = take(w.pool, 1000);
  gm_pool *there = make_pool(w.other, GM_SHARE_NONE, GM_STRATEGY_BUCKET);
  assert_int_equal(gm_block_export(w.pool, &block, &shared, &w.err), GM_OK);
  assert_int_equal(bring_in(there, &shared, &imported), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(w.err.message, "fake 0"));
  assert_non_null(strstr(w.err.message, "fake 1"));
  memset(shared.device_uuid, 0xab, sizeof shared.device_uuid);
  assert_int_equal(bring_in(there, &shared, &imported), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(w.err.message, "abababab"));
  memset(shared.device_uuid, 0, sizeof shared.device_uuid);
  snprintf(shared.backend, sizeof shared.backend, "cuda");
  assert_int_equal(bring_in(there, &shared, &imported), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(w.err.message, "backend cuda"));
  assert_int_equal(script.imports, 0);
  shared.backend[0] = 0; /* an engine's own handle: the driver is to judge */
  assert_int_equal(bring_in(there, &shared, &imported), GM_OK);
  assert_int_equal(gm_free(there, &imported, NULL), GM_OK);
  assert_int_equal(gm_free(w.pool, &block, NULL), GM_OK);
  assert_int_equal(gm_pool_destroy(there, &w.err), GM_OK);
}

static void refused(const gm_shared *shared, gm_status status) {
  gm_block block, untouched;
  memset(&block, 0x5a, sizeof block);
  untouched = block;
  assert_int_equal(bring_in(w.pool, shared, &block), status);
  assert_memory_equal(&block, &untouched, sizeof block);
  assert_int_equal(script.imports, 0);
}

static void test_wrong_words(void **state) {
  (void)state;
  gm_shared wrong = letter(GM_SHARE_IPC, 0, 100);
  gm_block block;
  wrong.struct_size = 8;
  refused(&wrong, GM_ERR_INVALID_ARGUMENT);
  wrong = letter(GM_SHARE_NONE, 0, 100);
  refused(&wrong, GM_ERR_INVALID_ARGUMENT);
  wrong = letter((gm_share_kind)33, 0, 100);
  refused(&wrong, GM_ERR_INVALID_ARGUMENT);
  wrong = letter(GM_SHARE_IPC, 0, 0);
  refused(&wrong, GM_ERR_INVALID_ARGUMENT);
  wrong = letter(GM_SHARE_IPC, WHOLE - 99, 100);
  refused(&wrong, GM_ERR_INVALID_ARGUMENT);
  wrong = letter(GM_SHARE_IPC, 100, UINT64_MAX - 50);
  refused(&wrong, GM_ERR_INVALID_ARGUMENT);
  wrong = letter(GM_SHARE_FD, 0, 100);
  refused(&wrong, GM_ERR_INVALID_ARGUMENT);
  wrong = letter(GM_SHARE_IPC, 0, 100);
  wrong.fd = 0;
  refused(&wrong, GM_ERR_INVALID_ARGUMENT);
  wrong = letter(GM_SHARE_DMABUF, 0, 100);
  wrong.fd = 0;
  refused(&wrong, GM_ERR_NOT_SUPPORTED);
  wrong = letter(GM_SHARE_IPC, 0, 100);
  script.import_status = GM_ERR_DRIVER;
  refused(&wrong, GM_ERR_DRIVER);
  assert_int_equal(gm_block_import(w.pool, NULL, &block, &w.err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_import(NULL, &wrong, &block, &w.err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_import(w.pool, &wrong, NULL, &w.err), GM_ERR_INVALID_ARGUMENT);
}

/* Unlike memory that is merely wrapped, what is imported is closed: not while a stream works on it. */
static void test_free_waits_for_the_stream(void **state) {
  (void)state;
  const gm_shared shared = letter(GM_SHARE_IPC, 0, 100);
  gm_block block;
  assert_int_equal(bring_in(w.pool, &shared, &block), GM_OK);
  const uint64_t before = fake.recorded;
  assert_int_equal(gm_free(w.pool, &block, w.stream), GM_OK);
  assert_true(fake.recorded > before && fake.passed == fake.recorded);
  assert_int_equal(bring_in(w.pool, &shared, &block), GM_OK);
  assert_int_equal(gm_use_on(w.pool, &block, w.stream), GM_OK);
  fake.recorded += 10; /* work that only the stream of gm_use_on has */
  assert_int_equal(gm_free(w.pool, &block, NULL), GM_OK);
  assert_int_equal(fake.passed, fake.recorded);
}

static void test_free_waits_for_the_engines_point(void **state) {
  (void)state;
  const gm_shared shared = letter(GM_SHARE_IPC, 0, 100);
  gm_block block;
  gm_point point = {0};
  assert_int_equal(bring_in(w.pool, &shared, &block), GM_OK);
  assert_int_equal(gm_stream_record(w.stream, &point, &w.err), GM_OK);
  const uint64_t recorded = fake.recorded;
  assert_int_equal(gm_free_at(w.pool, &block, &point, &w.err), GM_OK);
  assert_true(fake.passed == recorded); /* that point, and no later one */
  assert_int_equal(script.closes, script.imports);
  assert_int_equal(gm_free_at(w.pool, &block, &point, &w.err), GM_ERR_INVALID_ARGUMENT);
  gm_point_release(w.device, &point);
}

int main(void) {
#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)
  const struct CMUnitTest tests[] = {
      TEST(test_pool_says_what_the_device_has),
      TEST(test_shareable_needs_such_a_pool),
      TEST(test_block_of_a_segment_leaves_with_its_offset),
      TEST(test_export_arguments),
      TEST(test_nonsense_from_the_backend),
      TEST(test_opened_once),
      TEST(test_twice_into_one_pool),
      TEST(test_descriptors_of_one_file),
      TEST(test_counts_and_caps),
      TEST(test_memory_of_another_device),
      TEST(test_wrong_words),
      TEST(test_free_waits_for_the_stream),
      TEST(test_free_waits_for_the_engines_point),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
