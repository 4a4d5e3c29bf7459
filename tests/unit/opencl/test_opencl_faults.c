/* Every entry of OpenCL fails at its N-th call, and every host allocation too: nothing crashes, and what was made is
 * given back. Device loss and the closing entries in a forked child. The wrappers come from the symbol tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/opencl/opencl_device.h"
#include "support/counted_services.h"
#include "support/opencl_fixture.h"
#include "support/opencl_wrapped.h"

enum { ENTRIES = WRAPPED_ENTRIES };

static struct {
  atomic_uint calls[ENTRIES];
  int entry; /* that fails, at call number `at`, counted from 1; -1: none */
  unsigned at;
  cl_int code;
  atomic_long live;
} world;

static bool wrapped_hits(unsigned entry, cl_int *code) {
  const unsigned call = atomic_fetch_add(&world.calls[entry], 1) + 1;
  if ((int)entry != world.entry || call != world.at) return false;
  *code = world.code;
  return true;
}

static atomic_long *wrapped_live(void) { return &world.live; }

static void wrapped_settle(unsigned entry, const void *first) { (void)entry, (void)first; }

static void *hook(void *user, const char *backend, const char *symbol, void *real) {
  (void)user;
  assert_string_equal(backend, "opencl");
  void *wrapper = wrapped_symbol(symbol, real);
  if (!wrapper && real) fail_msg("a symbol that the list does not have: %s", symbol);
  return wrapper;
}

static const gm_backend_ops *const ops = &gm__opencl_backend;

typedef struct scene {
  gm_backend_host host;
  void *driver, *device, *stream, *adopted, *borrowed;
  gm_memory memory, second, wrapped;
} scene;

/* Copies of every kind; each may fail, and none may leave a point behind then. */
static void scene_copies(const scene *s) {
  uint8_t bytes[300] = {0};
  gm_backend_point point = {0};
  const gm_copy_item item = {&s->memory, 0, &s->second, 7, 100};
  const gm_rect rect = {9, 3, 2, 0, 10, 33, 0, 12, 40};
  bool done;
  if (ops->copy_to_device(s->device, s->stream, &s->memory, 1, bytes, 99, &point, NULL) == GM_OK) {
    ops->point_done(s->device, &point, &done, NULL);
    ops->point_wait(s->device, &point, 1000000000, NULL);
    ops->point_wait_on(s->device, s->stream, &point, NULL);
    ops->point_release(s->device, &point, GM_CLOSE_NORMAL);
  }
  ops->copy_to_host(s->device, s->stream, &s->memory, 1, bytes, 99, NULL, NULL);
  ops->copy(s->device, s->stream, &item, NULL, NULL);
  ops->copy_many(s->device, s->stream, &item, 1, NULL, NULL);
  ops->fill(s->device, s->stream, &s->memory, 3, 70, "abcd", 4, NULL, NULL);
  ops->rect_to_device(s->device, s->stream, &s->memory, bytes, &rect, NULL, NULL);
  ops->rect_to_host(s->device, s->stream, &s->memory, bytes, &rect, NULL, NULL);
  ops->rect_copy(s->device, s->stream, &s->second, &s->memory, &rect, NULL, NULL);
}

/* The driver's own host memory, as rings take it. */
static void scene_host_memory(const scene *s) {
  void *host = NULL;
  if (ops->host_alloc(s->device, 4000, &host, NULL) != GM_OK) return;
  memset(host, 1, 4000);
  ops->copy_to_device(s->device, s->stream, &s->memory, 1, host, 4000, NULL, NULL);
  if (ops->host_unregister(s->device, host, GM_CLOSE_NORMAL, NULL) != GM_OK) {
    assert_int_equal(ops->host_unregister(s->device, host, GM_CLOSE_NORMAL, NULL), GM_OK);
  }
}

static void scene_use(const scene *s) {
  void *pointer = NULL;
  uint64_t view = 0;
  gm_backend_point point = {0};
  gm__opencl_device *opened = s->device;
  for (int boxes = 0; boxes < 2; boxes++) { /* as on drivers other than PoCL, and as on PoCL */
    opened->drops_copies = boxes != 0;
    scene_copies(s);
  }
  if (ops->map(s->device, s->stream, &s->memory, 0, 64, GM_MAP_READ, &pointer, NULL) == GM_OK) {
    /* A call that failed may be asked for again. */
    if (ops->unmap(s->device, s->stream, &s->memory, pointer, NULL) != GM_OK) {
      assert_int_equal(ops->unmap(s->device, s->stream, &s->memory, pointer, NULL), GM_OK);
    }
  }
  if (ops->view_create(s->device, &s->memory, 0, 64, 0, &view, NULL) == GM_OK) {
    ops->view_destroy(s->device, view, GM_CLOSE_NORMAL, NULL);
  }
  ops->commit(s->device, s->stream, &s->memory, 0, 9000, NULL);
  if (ops->point_record(s->device, s->stream, &point, NULL) == GM_OK) {
    ops->point_wait(s->device, &point, UINT64_MAX, NULL);
    ops->point_release(s->device, &point, GM_CLOSE_NORMAL);
  }
  if (s->stream) {
    ops->stream_flush(s->device, s->stream, NULL);
    ops->stream_sync(s->device, s->stream, NULL);
  }
  ops->device_state(s->device, NULL);
}

/* Host memory of the engine's as a buffer. */
static void scene_mapped(const scene *s) {
  static _Alignas(4096) unsigned char bytes[12288];
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}, .mapped = bytes, .bytes = 9000};
  scene second = *s;
  if (ops->memory_wrap(s->device, &native.head, &second.memory, NULL) != GM_OK) return;
  scene_use(&second);
  ops->memory_free(s->device, &second.memory, GM_CLOSE_NORMAL, NULL);
}

/* gm's objects are played back to it as an engine's. */
static void scene_adopt(scene *s) {
  gm_opencl_device device = {.head = {sizeof device, GM_API_OPENCL}};
  gm_opencl_memory memory = {.head = {sizeof memory, GM_API_OPENCL}};
  gm_opencl_queue queue = {.head = {sizeof queue, GM_API_OPENCL}};
  gm_opencl_point native = {.head = {sizeof native, GM_API_OPENCL}};
  gm_backend_point point = {0}, imported = {0};
  gm_stream_kind kind;
  assert_int_equal(ops->device_native(s->device, &device.head, NULL), GM_OK);
  assert_int_equal(ops->memory_native(s->device, &s->memory, 0, 64, &memory.head, NULL), GM_OK);
  memcpy(&queue.queue, s->stream, sizeof queue.queue); /* the record begins with its queue */
  if (ops->device_adopt(s->driver, &device.head, &s->adopted, NULL) != GM_OK) return;
  if (ops->memory_wrap(s->adopted, &memory.head, &s->wrapped, NULL) == GM_OK) {
    ops->memory_free(s->adopted, &s->wrapped, GM_CLOSE_NORMAL, NULL);
  }
  if (ops->stream_adopt(s->adopted, &queue.head, &s->borrowed, &kind, NULL) == GM_OK) {
    if (ops->point_record(s->adopted, s->borrowed, &point, NULL) == GM_OK) {
      native.event = (uintptr_t)point.handle;
      if (ops->point_import(s->adopted, &native.head, &imported, NULL) == GM_OK) {
        ops->point_release(s->adopted, &imported, GM_CLOSE_NORMAL);
      }
      ops->point_release(s->adopted, &point, GM_CLOSE_NORMAL);
    }
    ops->stream_close(s->adopted, s->borrowed, GM_CLOSE_NORMAL);
  }
  ops->device_close(s->adopted, GM_CLOSE_NORMAL);
}

static bool scene_take(scene *s, uint32_t type, gm_memory *out) {
  const gm_memory_params params = {.struct_size = sizeof params, .type = type, .bytes = 5000};
  return ops->memory_alloc(s->device, &params, out, NULL) == GM_OK;
}

/* A buffer over shared virtual memory, beside one without. */
static void scene_shared_buffer(const scene *s) {
  scene second = *s;
  gm_memory_type type = {.struct_size = sizeof type};
  assert_int_equal(ops->memory_type(s->device, 2, &type, NULL), GM_OK);
  if (type.flags & GM_MEMORY_APART || !scene_take(&second, 2, &second.memory)) return;
  scene_use(&second);
  ops->memory_free(s->device, &second.memory, GM_CLOSE_NORMAL, NULL);
}

/* Shared virtual memory, and the engine's word on it; freed when gm has let go of its own name for it. */
static void scene_addresses(const scene *s) {
  scene second = *s;
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  uint32_t count = 0;
  assert_int_equal(ops->memory_type_count(s->device, &count, NULL), GM_OK);
  if (count < 3) return;
  scene_shared_buffer(s);
  if (!scene_take(&second, count - 2, &second.memory)) return;
  if (scene_take(&second, count - 1, &second.second)) {
    scene_use(&second);
    second.stream = NULL;
    scene_use(&second);
    assert_int_equal(ops->memory_native(s->device, &second.memory, 7, 64, &native.head, NULL), GM_OK);
    if (ops->memory_wrap(s->device, &native.head, &second.wrapped, NULL) == GM_OK) {
      ops->memory_free(s->device, &second.wrapped, GM_CLOSE_NORMAL, NULL);
    }
    ops->memory_free(s->device, &second.second, GM_CLOSE_NORMAL, NULL);
  }
  ops->memory_free(s->device, &second.memory, GM_CLOSE_NORMAL, NULL);
}

static gm_status scene_memories(scene *s) {
  gm_memory_params params = {.struct_size = sizeof params, .bytes = 9000, .flags = GM_ALLOC_COMMIT};
  gm_status status = ops->memory_alloc(s->device, &params, &s->memory, NULL);
  if (status != GM_OK) return status;
  params = (gm_memory_params){.struct_size = sizeof params, .type = 1, .bytes = 5000};
  status = ops->memory_alloc(s->device, &params, &s->second, NULL);
  if (status == GM_OK) {
    scene_use(s);
    scene_host_memory(s);
    scene_mapped(s);
    scene_adopt(s);
    scene_addresses(s);
    ops->memory_free(s->device, &s->second, GM_CLOSE_NORMAL, NULL);
  }
  ops->memory_free(s->device, &s->memory, GM_CLOSE_NORMAL, NULL);
  return status;
}

static gm_status scene_device(scene *s) {
  gm_stream_kind kind;
  gm_raw_figures figures;
  gm_status status = ops->device_open(s->driver, 0, &s->device, NULL);
  if (status != GM_OK) return status;
  ops->figures(s->driver, 0, s->device, &figures, NULL);
  status = ops->stream_create(s->device, &s->stream, &kind, NULL);
  if (status == GM_OK) {
    status = scene_memories(s);
    ops->stream_close(s->device, s->stream, GM_CLOSE_NORMAL);
  }
  ops->device_close(s->device, GM_CLOSE_NORMAL);
  return status;
}

static gm_status scene_run(const gm_services *services) {
  scene s = {0};
  gm_driver_info info;
  opencl_fixture_host(&s.host);
  s.host.symbol_hook = hook;
  if (services) s.host.services = services;
  for (int i = 0; i < ENTRIES; i++) atomic_store(&world.calls[i], 0);
  atomic_store(&world.live, 0);
  const gm_status probed = ops->probe(&s.host, GM_PROBE_ACTIVE, &info, NULL);
  gm_status status = ops->init(&s.host, &s.driver, NULL);
  if (status != GM_OK) return status;
  uint32_t count = 0;
  assert_int_equal(ops->device_count(s.driver, &count, NULL), GM_OK);
  status = count ? scene_device(&s) : GM_ERR_UNAVAILABLE;
  ops->fini(s.driver, GM_CLOSE_NORMAL);
  return status == GM_OK ? probed : status;
}

static void quiet(void) { world.entry = -1; }

static int find_driver(void **state) {
  opencl_fixture fixture;
  (void)state;
  opencl_fixture_init(&fixture);
  opencl_fixture_close(&fixture);
  return 0;
}

static void test_the_scene_calls_every_entry_and_leaves_nothing(void **state) {
  (void)state;
  quiet();
  assert_int_equal(scene_run(NULL), GM_OK);
  assert_int_equal(atomic_load(&world.live), 0);
  /* unit.opencl_kernels has the entries for kernels. Extensions are the simulated driver's: gm_fault_sweep calls those.
   */
  for (int i = 0; i < WRAPPED_clCreateProgramWithSource; i++) {
    if (atomic_load(&world.calls[i]) == 0) fail_msg("%s is never called", wrapped_names[i]);
  }
}

static void fail_one(int entry, unsigned at, cl_int code) {
  world.entry = entry;
  world.at = at;
  world.code = code;
  counted_services host;
  counted_services_init(&host);
  scene_run(&host.services);
  counted_services_check(&host);
  if (atomic_load(&world.live) != 0) {
    fail_msg("%s, call %u, code %d: %ld objects left", wrapped_names[entry], at, code, atomic_load(&world.live));
  }
}

static void test_every_entry_fails_at_every_call(void **state) {
  (void)state;
  unsigned counts[ENTRIES];
  quiet();
  scene_run(NULL);
  for (int i = 0; i < ENTRIES; i++) counts[i] = atomic_load(&world.calls[i]);
  for (int i = 0; i < ENTRIES; i++) {
    for (unsigned at = 1; at <= counts[i]; at++) fail_one(i, at, CL_OUT_OF_RESOURCES);
    fail_one(i, 1, -4711);
  }
}

static void test_every_host_allocation_fails(void **state) {
  (void)state;
  quiet();
  for (size_t n = 1;; n++) {
    counted_services host;
    counted_services_init(&host);
    host.fail_at = n;
    host.fail_count = 1;
    const gm_status status = scene_run(&host.services);
    counted_services_check(&host);
    if (atomic_load(&world.live) != 0) fail_msg("allocation %zu: %ld objects left", n, atomic_load(&world.live));
    if (status == GM_OK && host.calls < n) break;
  }
}

/* init with call `at` of `entry` failing; 0: none. */
static gm_status init_failing(int entry, unsigned at, cl_int code, uint32_t *devices, gm_error *err) {
  gm_backend_host lent;
  void *driver = NULL;
  opencl_fixture_host(&lent);
  lent.symbol_hook = hook;
  atomic_store(&world.calls[entry], 0);
  world.entry = entry;
  world.at = at;
  world.code = code;
  const gm_status status = ops->init(&lent, &driver, err);
  if (status != GM_OK) return status;
  assert_int_equal(ops->device_count(driver, devices, NULL), GM_OK);
  ops->fini(driver, GM_CLOSE_NORMAL);
  return GM_OK;
}

/* A platform that cannot list its devices costs those, and no others. */
static void test_no_platform_is_no_driver_but_no_device_is_no_failure(void **state) {
  (void)state;
  uint32_t all = 0, lost = 0;
  gm_error err;
  assert_int_equal(init_failing(WRAPPED_clGetPlatformIDs, 1, -1001, &all, &err), GM_ERR_UNAVAILABLE);
  assert_non_null(strstr(err.message, "lists no OpenCL platform"));
  assert_int_equal(init_failing(WRAPPED_clGetDeviceIDs, 0, 0, &all, NULL), GM_OK);
  const unsigned platforms = atomic_load(&world.calls[WRAPPED_clGetDeviceIDs]);
  for (unsigned i = 1; i <= platforms; i++) {
    uint32_t left = 0;
    const cl_int code = i % 2 ? CL_DEVICE_NOT_FOUND : CL_INVALID_PLATFORM;
    assert_int_equal(init_failing(WRAPPED_clGetDeviceIDs, i, code, &left, NULL), GM_OK);
    lost += all - left;
  }
  assert_int_equal(lost, all);
}

static void open_with_hook(opencl_fixture *fixture) {
  gm_stream_kind kind;
  *fixture = (opencl_fixture){.ops = ops};
  opencl_fixture_host(&fixture->host);
  fixture->host.symbol_hook = hook;
  quiet();
  assert_int_equal(ops->init(&fixture->host, &fixture->driver, NULL), GM_OK);
  assert_int_equal(ops->device_open(fixture->driver, 0, &fixture->device, NULL), GM_OK);
  assert_int_equal(ops->stream_create(fixture->device, &fixture->stream, &kind, NULL), GM_OK);
}

static void fail_next(int entry, cl_int code) {
  world.entry = entry;
  world.at = atomic_load(&world.calls[entry]) + 1;
  world.code = code;
}

static void test_a_lost_device_stays_lost(void **state) {
  (void)state;
  const cl_int codes[] = {CL_DEVICE_NOT_AVAILABLE, -9999};
  for (size_t i = 0; i < 2; i++) {
    opencl_fixture f;
    gm_error err;
    open_with_hook(&f);
    const gm_memory memory = opencl_fixture_alloc(&f, 0, 64);
    fail_next(WRAPPED_clEnqueueFillBuffer, codes[i]);
    assert_int_equal(ops->fill(f.device, f.stream, &memory, 0, 64, "x", 1, NULL, &err), GM_ERR_DEVICE_LOST);
    assert_int_equal(err.native_code, codes[i]);
    assert_int_equal(ops->device_state(f.device, &err), GM_ERR_DEVICE_LOST);
    assert_int_equal(err.native_code, codes[i]);
    assert_int_equal(ops->memory_free(f.device, &memory, GM_CLOSE_NORMAL, NULL), GM_OK);
    opencl_fixture_close(&f);
  }
}

static void test_out_of_resources_is_out_of_memory_and_loses_nothing(void **state) {
  (void)state;
  opencl_fixture f;
  gm_memory memory;
  gm_error err;
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = 64};
  open_with_hook(&f);
  fail_next(WRAPPED_clCreateBuffer, CL_OUT_OF_RESOURCES);
  assert_int_equal(ops->memory_alloc(f.device, &params, &memory, &err), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_non_null(strstr(err.message, "CL_OUT_OF_RESOURCES"));
  fail_next(WRAPPED_clFinish, CL_OUT_OF_RESOURCES);
  assert_int_equal(ops->stream_sync(f.device, f.stream, NULL), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(ops->device_state(f.device, NULL), GM_OK);
  opencl_fixture_close(&f);
}

/* NVIDIA's driver tells of a faulty kernel by CL_OUT_OF_RESOURCES where work is waited for. */
static void test_out_of_resources_from_a_wait_is_a_dead_context_on_nvidia(void **state) {
  (void)state;
  opencl_fixture f;
  open_with_hook(&f);
  snprintf(((gm__opencl_device *)f.device)->info.driver, 32, "nvidia");
  fail_next(WRAPPED_clFlush, CL_OUT_OF_RESOURCES);
  assert_int_equal(ops->stream_flush(f.device, f.stream, NULL), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(ops->device_state(f.device, NULL), GM_OK);
  fail_next(WRAPPED_clFinish, CL_OUT_OF_RESOURCES);
  assert_int_equal(ops->stream_sync(f.device, f.stream, NULL), GM_ERR_DEVICE_LOST);
  assert_int_equal(ops->device_state(f.device, NULL), GM_ERR_DEVICE_LOST);
  opencl_fixture_close(&f);
}

/* In the child no driver call may happen: the driver's threads are not there. */
static int abandon_all(opencl_fixture *f, const gm_memory *memory, uint64_t view, const gm_backend_point *point) {
  unsigned before = 0, after = 0;
  for (int i = 0; i < ENTRIES; i++) before += atomic_load(&world.calls[i]);
  ops->point_release(f->device, point, GM_CLOSE_ABANDON);
  ops->view_destroy(f->device, view, GM_CLOSE_ABANDON, NULL);
  ops->memory_free(f->device, memory, GM_CLOSE_ABANDON, NULL);
  ops->stream_close(f->device, f->stream, GM_CLOSE_ABANDON);
  ops->device_close(f->device, GM_CLOSE_ABANDON);
  ops->fini(f->driver, GM_CLOSE_ABANDON);
  for (int i = 0; i < ENTRIES; i++) after += atomic_load(&world.calls[i]);
  return before == after ? 0 : 1;
}

static void test_a_forked_child_gives_back_host_memory_only(void **state) {
  (void)state;
  opencl_fixture f;
  counted_services host;
  gm_backend_point point;
  uint64_t view = 0;
  gm_stream_kind kind;
  counted_services_init(&host);
  f = (opencl_fixture){.ops = ops};
  opencl_fixture_host(&f.host);
  f.host.services = &host.services;
  f.host.symbol_hook = hook;
  quiet();
  assert_int_equal(ops->init(&f.host, &f.driver, NULL), GM_OK);
  assert_int_equal(ops->device_open(f.driver, 0, &f.device, NULL), GM_OK);
  assert_int_equal(ops->stream_create(f.device, &f.stream, &kind, NULL), GM_OK);
  const gm_memory memory = opencl_fixture_alloc(&f, 0, 64);
  assert_int_equal(ops->point_record(f.device, f.stream, &point, NULL), GM_OK);
  assert_int_equal(ops->view_create(f.device, &memory, 0, 64, 0, &view, NULL), GM_OK);
  const pid_t child = fork();
  if (child == 0) {
    const int called = abandon_all(&f, &memory, view, &point);
    _exit(called ? 1 : atomic_load(&host.live_blocks) ? 2 : 0);
  }
  int status = -1;
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  ops->point_release(f.device, &point, GM_CLOSE_NORMAL);
  assert_int_equal(ops->view_destroy(f.device, view, GM_CLOSE_NORMAL, NULL), GM_OK);
  opencl_fixture_free(&f, &memory);
  opencl_fixture_close(&f);
  counted_services_check(&host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_scene_calls_every_entry_and_leaves_nothing),
      cmocka_unit_test(test_every_entry_fails_at_every_call),
      cmocka_unit_test(test_every_host_allocation_fails),
      cmocka_unit_test(test_no_platform_is_no_driver_but_no_device_is_no_failure),
      cmocka_unit_test(test_a_lost_device_stays_lost),
      cmocka_unit_test(test_out_of_resources_is_out_of_memory_and_loses_nothing),
      cmocka_unit_test(test_out_of_resources_from_a_wait_is_a_dead_context_on_nvidia),
      cmocka_unit_test(test_a_forked_child_gives_back_host_memory_only),
  };
  return cmocka_run_group_tests(tests, find_driver, NULL);
}
