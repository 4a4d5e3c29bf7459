/* Reserved ranges over sparse buffers, where the device has them: lavapipe has not, so these run on the simulated
 * driver. Device addresses, which both have, are tested, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/thread.h"
#include "support/vulkan_fixture.h"
/* after the fixture */
#include "support/vulkan_engine.h"

typedef struct vmm_test {
  vulkan_fixture f;
  uint64_t granule;
} vmm_test;

static bool device_has(const vulkan_fixture *f, uint64_t capability) {
  gm_device_info info = {.struct_size = sizeof info};
  assert_int_equal(f->ops->device_info(f->driver, 0, f->device, &info, NULL), GM_OK);
  return info.capabilities & capability;
}

static void vmm_open(vmm_test *test) {
  const gm_vmm_props props = {0};
  vulkan_fixture_open(&test->f, "validation");
  if (!device_has(&test->f, GM_CAP_VMM)) {
    gm_error err = {0};
    assert_int_equal(test->f.ops->vmm_granularity(test->f.device, &props, &test->granule, &err), GM_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(err.message, "sparse"));
    vulkan_fixture_close(&test->f);
    skip();
  }
  assert_int_equal(test->f.ops->vmm_granularity(test->f.device, &props, &test->granule, NULL), GM_OK);
}

static uint64_t vmm_piece(const vmm_test *test, uint64_t granules) {
  const gm_vmm_props props = {0};
  uint64_t handle = 0;
  assert_int_equal(test->f.ops->vmm_create(test->f.device, &props, granules * test->granule, &handle, NULL), GM_OK);
  return handle;
}

static uint64_t vmm_range(const vmm_test *test, uint64_t granules, uint64_t align) {
  uint64_t address = 0;
  assert_int_equal(test->f.ops->vmm_reserve(test->f.device, granules * test->granule, align, &address, NULL), GM_OK);
  return address;
}

static void test_wrong_numbers(void **state) {
  (void)state;
  vmm_test test;
  vmm_open(&test);
  const gm_backend_ops *ops = test.f.ops;
  void *device = test.f.device;
  const uint64_t g = test.granule, address = vmm_range(&test, 4, 0), piece = vmm_piece(&test, 2);
  const gm_vmm_props no_type = {.type = 99}, shareable = {.shareable = true};
  uint64_t out = 0;
  gm_memory memory;
  assert_int_equal(ops->vmm_reserve(device, g + 1, 0, &out, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_reserve(device, 0, 0, &out, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_reserve(device, g, 3 * g, &out, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_reserve(device, UINT64_MAX - g + 1, 0, &out, NULL), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(ops->vmm_create(device, &no_type, g, &out, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_create(device, &shareable, g, &out, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(ops->vmm_map(device, address + 1, g, piece, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_map(device, address, g, piece, 1, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_map(device, address, 3 * g, piece, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_map(device, address + 3 * g, 2 * g, piece, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_access(device, address, g, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_unmap(device, address, g, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_unreserve(device, address, g, GM_CLOSE_NORMAL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_memory(device, address + 3 * g, 2 * g, 0, &memory, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(out, 0);
  assert_int_equal(ops->vmm_destroy(device, piece, 2 * g, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(ops->vmm_unreserve(device, address, 4 * g, GM_CLOSE_NORMAL, NULL), GM_OK);
  vulkan_fixture_close(&test.f);
}

/* Holes, overlaps, parts of pieces, and memory that stays while it is mapped. */
static void test_mappings(void **state) {
  (void)state;
  vmm_test test;
  vmm_open(&test);
  const gm_backend_ops *ops = test.f.ops;
  void *device = test.f.device;
  const uint64_t g = test.granule, a = vmm_range(&test, 20, 0), piece = vmm_piece(&test, 12);
  const uint64_t held = vulkan_fixture_held(&test.f);
  for (uint64_t i = 0; i < 12; i++) { /* backwards, one granule of the piece each, holes of one between */
    if (i < 9) assert_int_equal(ops->vmm_map(device, a + (18 - 2 * i) * g, g, piece, i * g, NULL), GM_OK);
  }
  assert_int_equal(ops->vmm_map(device, a + g, g, piece, 3 * g, NULL), GM_ERR_NOT_SUPPORTED); /* it is elsewhere */
  assert_int_equal(ops->vmm_map(device, a + g, 2 * g, piece, 9 * g, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_map(device, a, 2 * g, piece, 9 * g, NULL), GM_OK);
  assert_int_equal(ops->vmm_access(device, a, 3 * g, NULL), GM_OK);
  assert_int_equal(ops->vmm_access(device, a, 4 * g, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_unmap(device, a, g, NULL), GM_ERR_INVALID_ARGUMENT); /* half of one */
  assert_int_equal(ops->vmm_unmap(device, a, 3 * g, NULL), GM_OK);               /* two at once */
  assert_int_equal(ops->vmm_unreserve(device, a, 20 * g, GM_CLOSE_NORMAL, NULL), GM_ERR_BUSY);
  assert_int_equal(ops->vmm_destroy(device, piece, 12 * g, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(vulkan_fixture_held(&test.f), held); /* still mapped */
  for (uint64_t i = 2; i < 10; i++) assert_int_equal(ops->vmm_unmap(device, a + 2 * i * g, g, NULL), GM_OK);
  assert_int_equal(vulkan_fixture_held(&test.f), held - 12 * g);
  assert_int_equal(ops->vmm_unreserve(device, a, 20 * g, GM_CLOSE_NORMAL, NULL), GM_OK);
  vulkan_fixture_close(&test.f);
}

/* The memory of a range: its buffer, no mapping, no view; copy_many keeps its order in it. */
static void test_range_as_memory(void **state) {
  (void)state;
  vmm_test test;
  vmm_open(&test);
  const gm_backend_ops *ops = test.f.ops;
  void *device = test.f.device, *stream = test.f.stream, *host = NULL;
  const uint64_t g = test.granule, a = vmm_range(&test, 4, 8 * test.granule), piece = vmm_piece(&test, 2);
  gm_memory memory = {0};
  gm_vulkan_memory native = {.head = {sizeof native, GM_API_VULKAN}};
  uint64_t view = 0, got[3] = {0};
  const uint64_t want[3] = {1, 2, 3};
  assert_int_equal(a % (8 * g), 0);
  assert_int_equal(ops->vmm_map(device, a + g, 2 * g, piece, 0, NULL), GM_OK);
  assert_int_equal(ops->vmm_memory(device, a, 4 * g, 0, &memory, NULL), GM_OK);
  assert_int_equal(ops->memory_native(device, &memory, g, 64, &native.head, NULL), GM_OK);
  assert_true(native.buffer && !native.memory && !native.mapped);
  assert_true(native.buffer_bytes >= 4 * g); /* 0 would be the engine's, and no shader reads the last number then */
  assert_true(native.device_address == (device_has(&test.f, GM_CAP_ADDRESS) ? a + g : 0));
  assert_int_equal(ops->map(device, stream, &memory, g, 64, GM_MAP_READ, &host, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(ops->view_create(device, &memory, g, 64, 0, &view, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(ops->commit(device, stream, &memory, g, 64, NULL), GM_OK);
  assert_int_equal(ops->copy_to_device(device, stream, &memory, g, want, sizeof want, NULL, NULL), GM_OK);
  const gm_copy_item items[] = {{&memory, g, &memory, g + 64, 24}, {&memory, g + 64, &memory, 3 * g - 24, 24}};
  assert_int_equal(ops->copy_many(device, stream, items, 2, NULL, NULL), GM_OK);
  assert_int_equal(ops->copy_to_host(device, stream, &memory, 3 * g - 24, got, sizeof got, NULL, NULL), GM_OK);
  assert_memory_equal(got, want, sizeof got);
  assert_int_equal(ops->memory_free(device, &memory, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(ops->vmm_unmap(device, a + g, 2 * g, NULL), GM_OK);
  assert_int_equal(ops->vmm_destroy(device, piece, 2 * g, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(ops->vmm_unreserve(device, a, 4 * g, GM_CLOSE_NORMAL, NULL), GM_OK);
  vulkan_fixture_close(&test.f);
}

static int abandon_all(vmm_test *test, const gm_memory *memory, uint64_t address, uint64_t piece) {
  const gm_backend_ops *ops = test->f.ops;
  ops->memory_free(test->f.device, memory, GM_CLOSE_ABANDON, NULL);
  ops->vmm_destroy(test->f.device, piece, test->granule, GM_CLOSE_ABANDON, NULL);
  if (ops->vmm_unreserve(test->f.device, address, 2 * test->granule, GM_CLOSE_ABANDON, NULL) != GM_OK) return 1;
  ops->stream_close(test->f.device, test->f.stream, GM_CLOSE_ABANDON);
  ops->device_close(test->f.device, GM_CLOSE_ABANDON);
  ops->fini(test->f.driver, GM_CLOSE_ABANDON);
  return atomic_load(&test->f.services.live_blocks) ? 2 : 0;
}

/* A forked child gives back host memory, mapped or not. */
static void test_abandon(void **state) {
  (void)state;
  vmm_test test;
  vmm_open(&test);
  const gm_backend_ops *ops = test.f.ops;
  const uint64_t g = test.granule, a = vmm_range(&test, 2, 0), piece = vmm_piece(&test, 1);
  gm_memory memory = {0};
  int result = -1;
  assert_int_equal(ops->vmm_map(test.f.device, a, g, piece, 0, NULL), GM_OK);
  assert_int_equal(ops->vmm_memory(test.f.device, a, g, 0, &memory, NULL), GM_OK);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(abandon_all(&test, &memory, a, piece));
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
  vulkan_fixture_free(&test.f, &memory);
  assert_int_equal(ops->vmm_unmap(test.f.device, a, g, NULL), GM_OK);
  assert_int_equal(ops->vmm_destroy(test.f.device, piece, g, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(ops->vmm_unreserve(test.f.device, a, 2 * g, GM_CLOSE_NORMAL, NULL), GM_OK);
  vulkan_fixture_close(&test.f);
}

/* On an engine's device binds go through a queue that it lent for submissions, under its locks. */
static void adopted_locks(void *user) { ++*(int *)user; }
static void adopted_unlocks(void *user) { (void)user; }

static void test_adopted_queue_binds(void **state) {
  (void)state;
  vulkan_fixture f;
  vulkan_engine engine;
  gm_stream_kind kind;
  uint64_t g = 0, a = 0, piece = 0;
  int locks = 0;
  const gm_vmm_props props = {0};
  gm_error err = {0};
  vulkan_fixture_init(&f, "validation");
  vulkan_engine_open_with(&engine, &f.host, GM_VULKAN_BUFFER_DEVICE_ADDRESS | GM_VULKAN_SPARSE_BUFFERS);
  const gm_vulkan_device native = vulkan_engine_native(&engine);
  assert_int_equal(f.ops->device_adopt(f.driver, &native.head, &f.device, NULL), GM_OK);
  assert_true(device_has(&f, GM_CAP_ADDRESS));
  if (device_has(&f, GM_CAP_VMM)) {
    assert_int_equal(f.ops->vmm_granularity(f.device, &props, &g, NULL), GM_OK);
    assert_int_equal(f.ops->vmm_reserve(f.device, g, 0, &a, NULL), GM_OK);
    assert_int_equal(f.ops->vmm_create(f.device, &props, g, &piece, NULL), GM_OK);
    assert_int_equal(f.ops->vmm_map(f.device, a, g, piece, 0, &err), GM_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(err.message, "adopted queue"));
    const gm_vulkan_queue queue = {.head = {sizeof queue, GM_API_VULKAN},
                                   .queue = (uintptr_t)engine.queue,
                                   .family = engine.family,
                                   .may_submit = true,
                                   .lock = adopted_locks,
                                   .unlock = adopted_unlocks,
                                   .user = &locks};
    assert_int_equal(f.ops->stream_adopt(f.device, &queue.head, &f.stream, &kind, NULL), GM_OK);
    assert_int_equal(f.ops->vmm_map(f.device, a, g, piece, 0, NULL), GM_OK);
    assert_int_equal(f.ops->vmm_unmap(f.device, a, g, NULL), GM_OK);
    assert_int_equal(locks, 2);
    f.ops->vmm_destroy(f.device, piece, g, GM_CLOSE_NORMAL, NULL);
    f.ops->vmm_unreserve(f.device, a, g, GM_CLOSE_NORMAL, NULL);
    f.ops->stream_close(f.device, f.stream, GM_CLOSE_NORMAL);
    f.stream = NULL;
  }
  f.ops->device_close(f.device, GM_CLOSE_NORMAL);
  f.device = NULL;
  vulkan_engine_close(&engine);
  vulkan_fixture_close(&f);
}

/* A thread binds, and its queue's hook waits for a thread that calls gm. */
typedef struct held_bind {
  vulkan_fixture f;
  vulkan_engine engine;
  void *binder, *other; /* streams; the second one binds nothing */
  uint64_t granule, address, piece;
  gm_status mapped, unmapped;
  gm__mutex mutex; /* of what follows */
  gm__cond changed;
  bool waits, open, done;
} held_bind;

static void held_raise(held_bind *held, bool *flag) {
  gm__mutex_lock(&held->mutex);
  *flag = true;
  gm__cond_broadcast(&held->changed);
  gm__mutex_unlock(&held->mutex);
}

static bool held_await(held_bind *held, const bool *flag) {
  const uint64_t deadline = gm__deadline_after(UINT64_C(20000000000));
  gm__mutex_lock(&held->mutex);
  for (bool there = true; !*flag && there;) there = gm__cond_wait_until(&held->changed, &held->mutex, deadline);
  const bool raised = *flag;
  gm__mutex_unlock(&held->mutex);
  return raised;
}

static void held_lock(void *user) {
  held_bind *held = user;
  held_raise(held, &held->waits);
  held_await(held, &held->open);
}

static void *held_adopt(held_bind *held, void (*lock)(void *user), void *user) {
  const gm_vulkan_queue queue = {.head = {sizeof queue, GM_API_VULKAN},
                                 .queue = (uintptr_t)held->engine.queue,
                                 .family = held->engine.family,
                                 .may_submit = true,
                                 .lock = lock,
                                 .unlock = adopted_unlocks,
                                 .user = user};
  gm_stream_kind kind;
  void *stream = NULL;
  assert_int_equal(held->f.ops->stream_adopt(held->f.device, &queue.head, &stream, &kind, NULL), GM_OK);
  return stream;
}

static void held_map(void *user) {
  held_bind *held = user;
  held->mapped = held->f.ops->vmm_map(held->f.device, held->address, held->granule, held->piece, 0, NULL);
}

/* A request that asks the driver for no bind. */
static void held_call(void *user) {
  held_bind *held = user;
  const gm_backend_ops *ops = held->f.ops;
  void *device = held->f.device;
  uint64_t address = 0;
  gm_memory memory;
  ops->stream_close(device, held->other, GM_CLOSE_NORMAL);
  if (ops->vmm_reserve(device, held->granule, 0, &address, NULL) == GM_OK) {
    ops->vmm_unreserve(device, address, held->granule, GM_CLOSE_NORMAL, NULL);
  }
  if (ops->vmm_memory(device, held->address, held->granule, 0, &memory, NULL) == GM_OK) {
    ops->memory_free(device, &memory, GM_CLOSE_NORMAL, NULL);
  }
  held->unmapped = ops->vmm_unmap(device, held->address, held->granule, NULL);
  held_raise(held, &held->done);
}

static void held_open(held_bind *held, int *locks) {
  const gm_vmm_props props = {0};
  memset(held, 0, sizeof *held);
  gm__mutex_init(&held->mutex, GM__RANK_LEAF);
  gm__cond_init(&held->changed);
  vulkan_fixture_init(&held->f, "validation");
  vulkan_engine_open_with(&held->engine, &held->f.host, GM_VULKAN_SPARSE_BUFFERS);
  const gm_vulkan_device native = vulkan_engine_native(&held->engine);
  assert_int_equal(held->f.ops->device_adopt(held->f.driver, &native.head, &held->f.device, NULL), GM_OK);
  held->other = held_adopt(held, adopted_locks, locks);
  held->binder = held_adopt(held, held_lock, held);
  if (!device_has(&held->f, GM_CAP_VMM)) return;
  assert_int_equal(held->f.ops->vmm_granularity(held->f.device, &props, &held->granule, NULL), GM_OK);
  assert_int_equal(held->f.ops->vmm_reserve(held->f.device, held->granule, 0, &held->address, NULL), GM_OK);
  assert_int_equal(held->f.ops->vmm_create(held->f.device, &props, held->granule, &held->piece, NULL), GM_OK);
}

static void held_close(held_bind *held) {
  held->f.ops->stream_close(held->f.device, held->binder, GM_CLOSE_NORMAL);
  held->f.ops->device_close(held->f.device, GM_CLOSE_NORMAL);
  held->f.device = NULL;
  vulkan_engine_close(&held->engine);
  vulkan_fixture_close(&held->f);
  gm__cond_destroy(&held->changed);
  gm__mutex_destroy(&held->mutex);
}

static void test_no_call_waits_for_a_bind_in_a_hook(void **state) {
  (void)state;
  held_bind held;
  gm__thread mapper, caller;
  int locks = 0;
  held_open(&held, &locks);
  if (!held.granule) {
    held.open = true;
    held.f.ops->stream_close(held.f.device, held.other, GM_CLOSE_NORMAL);
    held_close(&held);
    skip();
  }
  const gm_backend_ops *ops = held.f.ops;
  assert_int_equal(gm__thread_create(&mapper, "maps", held_map, &held, NULL), GM_OK);
  const bool waits = held_await(&held, &held.waits);
  assert_int_equal(gm__thread_create(&caller, "calls", held_call, &held, NULL), GM_OK);
  const bool returned = held_await(&held, &held.done);
  held_raise(&held, &held.open);
  gm__thread_join(&mapper);
  gm__thread_join(&caller);
  assert_true(waits);
  assert_true(returned);
  assert_int_equal(held.mapped, GM_OK);
  assert_int_equal(held.unmapped, GM_ERR_BUSY);
  assert_int_equal(ops->vmm_unmap(held.f.device, held.address, held.granule, NULL), GM_OK);
  assert_int_equal(ops->vmm_destroy(held.f.device, held.piece, held.granule, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(ops->vmm_unreserve(held.f.device, held.address, held.granule, GM_CLOSE_NORMAL, NULL), GM_OK);
  held_close(&held);
}

/* Returns how many calls failed. */
static void *thread_rounds(void *user) {
  const vmm_test *test = user;
  const gm_backend_ops *ops = test->f.ops;
  const gm_vmm_props props = {0};
  const uint64_t g = test->granule;
  uintptr_t failed = 0;
  for (int i = 0; i < 40; i++) {
    uint64_t a = 0, piece = 0;
    failed += ops->vmm_reserve(test->f.device, 2 * g, 0, &a, NULL) != GM_OK;
    failed += ops->vmm_create(test->f.device, &props, g, &piece, NULL) != GM_OK;
    if (failed) break;
    failed += ops->vmm_map(test->f.device, a + g, g, piece, 0, NULL) != GM_OK;
    failed += ops->vmm_access(test->f.device, a + g, g, NULL) != GM_OK;
    failed += ops->vmm_unmap(test->f.device, a + g, g, NULL) != GM_OK;
    failed += ops->vmm_destroy(test->f.device, piece, g, GM_CLOSE_NORMAL, NULL) != GM_OK;
    failed += ops->vmm_unreserve(test->f.device, a, 2 * g, GM_CLOSE_NORMAL, NULL) != GM_OK;
  }
  return (void *)failed; /* a number */
}

static void test_threads(void **state) {
  (void)state;
  vmm_test test;
  pthread_t threads[4];
  vmm_open(&test);
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, thread_rounds, &test), 0);
  for (int i = 0; i < 4; i++) {
    void *failed = NULL;
    assert_int_equal(pthread_join(threads[i], &failed), 0);
    assert_null(failed);
  }
  assert_int_equal(vulkan_fixture_held(&test.f), 0);
  vulkan_fixture_close(&test.f);
}

/* The address is the one that shaders see: that of the driver's own buffer, also of a part of it. */
static void test_addresses(void **state) {
  (void)state;
  vulkan_fixture f;
  vulkan_fixture_open(&f, "validation");
  assert_true(device_has(&f, GM_CAP_ADDRESS));
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = 5000, .align = 1 << 20};
  gm_memory memory = {0}, wrapped = {0};
  gm_vulkan_memory native = {.head = {sizeof native, GM_API_VULKAN}};
  assert_int_equal(f.ops->memory_alloc(f.device, &params, &memory, NULL), GM_OK);
  assert_true(memory.address && memory.address % (1 << 20) == 0);
  assert_int_equal(f.ops->memory_native(f.device, &memory, 512, 1024, &native.head, NULL), GM_OK);
  assert_true(native.device_address == memory.address + 512);
  assert_int_equal(f.ops->memory_wrap(f.device, &native.head, &wrapped, NULL), GM_OK);
  assert_true(wrapped.address == native.device_address);
  vulkan_fixture_free(&f, &wrapped);
  native.device_address = 0; /* an engine that made it without */
  assert_int_equal(f.ops->memory_wrap(f.device, &native.head, &wrapped, NULL), GM_OK);
  assert_int_equal(wrapped.address, 0);
  vulkan_fixture_free(&f, &wrapped);
  vulkan_fixture_free(&f, &memory);
  vulkan_fixture_close(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_wrong_numbers),   cmocka_unit_test(test_mappings),
      cmocka_unit_test(test_range_as_memory), cmocka_unit_test(test_abandon),
      cmocka_unit_test(test_threads),         cmocka_unit_test(test_adopted_queue_binds),
      cmocka_unit_test(test_addresses),       cmocka_unit_test(test_no_call_waits_for_a_bind_in_a_hook),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
