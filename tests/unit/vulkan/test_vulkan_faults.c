/* Every driver call of a scenario fails once, with each kind of failure (support/sample.h: in which builds). Every
 * entry is missing once. Every request for host memory fails once. Nothing leaks, nothing crashes, the layers stay
 * silent. The wrappers come from vulkan_syms.def. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <unistd.h>

#include "support/sample.h"
#include "support/vulkan_fixture.h"

static struct {
  gm__vulkan_syms real;
  uint32_t calls;   /* of entries that can fail */
  uint32_t fail_at; /* 0: none */
  VkResult code;
  const char *failed;  /* entry that was failed */
  const char *missing; /* entry that the driver does not have */
} fault;

static bool fault_hit(const char *name) {
  if (++fault.calls != fault.fail_at) return false;
  fault.failed = name;
  return true;
}

#define WRAP_CODE(name, args)              \
  if (fault_hit(#name)) return fault.code; \
  return fault.real.name args;
#define WRAP_POINTER(name, args) return fault.real.name args;
#define WRAP_ADDRESS WRAP_POINTER
#define WRAP_NONE(name, args) fault.real.name args;
#define X(level, need, fault, name, result, params, args) \
  static VKAPI_ATTR result VKAPI_CALL wrap_##name params { WRAP_##fault(name, args) }
#include "backends/vulkan/vulkan_syms.def"

typedef struct fault_entry {
  const char *name;
  size_t offset;
  PFN_vkVoidFunction wrapper;
  bool required;
} fault_entry;

enum { OPTIONAL, REQUIRED };
static const fault_entry fault_entries[] = {
#define X(level, need, fault, name, result, params, args) \
  {#name, offsetof(gm__vulkan_syms, name), (PFN_vkVoidFunction)wrap_##name, need},
#include "backends/vulkan/vulkan_syms.def"
};
enum { FAULT_ENTRIES = sizeof fault_entries / sizeof fault_entries[0] };

static void *fault_hook(void *user, const char *backend, const char *symbol, void *real) {
  (void)user;
  assert_string_equal(backend, "vulkan");
  if (fault.missing && !strcmp(symbol, fault.missing)) return NULL;
  for (size_t i = 0; real && i < FAULT_ENTRIES; i++) {
    if (strcmp(symbol, fault_entries[i].name) != 0) continue;
    memcpy((char *)&fault.real + fault_entries[i].offset, &real, sizeof real);
    void *wrapper;
    memcpy(&wrapper, &fault_entries[i].wrapper, sizeof wrapper);
    return wrapper;
  }
  return real;
}

enum { SCENARIO_BYTES = 5000 };

typedef struct scenario {
  vulkan_fixture fixture;
  gm_memory memory, other;
  uint64_t view;
  gm_memory shared, imported;
  int fd; /* + 1; 0: none */
  uint64_t granule, address, piece;
  bool mapped;
  gm_memory range;
  unsigned char *registered;
  void *lent; /* of host_alloc */
  gm_memory wrapped;
} scenario;

/* The life of an engine, in short. Stops at the first failure. */
static gm_status scenario_open(scenario *s, gm_error *err) {
  const gm_backend_ops *ops = s->fixture.ops;
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = SCENARIO_BYTES};
  const gm_memory_params even = {.struct_size = sizeof even, .bytes = SCENARIO_BYTES, .align = 1 << 21};
  gm_stream_kind kind;
  gm_status status = ops->init(&s->fixture.host, &s->fixture.driver, err);
  if (!status) status = ops->device_open(s->fixture.driver, 0, &s->fixture.device, err);
  if (!status) status = ops->stream_create(s->fixture.device, &s->fixture.stream, &kind, err);
  if (!status) status = ops->memory_alloc(s->fixture.device, &params, &s->memory, err);
  if (!status) status = ops->memory_alloc(s->fixture.device, &even, &s->other, err);
  return status;
}

static gm_status scenario_work(scenario *s, gm_error *err) {
  const gm_backend_ops *ops = s->fixture.ops;
  void *device = s->fixture.device, *stream = s->fixture.stream;
  uint8_t bytes[SCENARIO_BYTES], back[SCENARIO_BYTES] = {0};
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 31);
  gm_backend_point point = {0};
  const gm_copy_item item = {&s->memory, 0, &s->other, 0, SCENARIO_BYTES};
  gm_status status = ops->copy_to_device(device, stream, &s->memory, 0, bytes, sizeof bytes, &point, err);
  if (!status) status = ops->fill(device, stream, &s->memory, 3, 1001, "ab", 2, NULL, err);
  if (!status) status = ops->stream_barrier(device, stream, err);
  if (!status) status = ops->point_wait_on(device, stream, &point, err);
  if (!status) status = ops->copy(device, stream, &item, &point, err);
  if (!status) status = ops->point_wait(device, &point, UINT64_MAX, err);
  bool done = false;
  if (!status) status = ops->point_done(device, &point, &done, err);
  if (!status) status = ops->copy_to_host(device, stream, &s->other, 0, back, sizeof back, NULL, err);
  if (!status) status = ops->view_create(device, &s->memory, 0, 100, 0, &s->view, err);
  if (status) return status;
  for (size_t i = 0; i < 1001; i++) bytes[3 + i] = (uint8_t) "ab"[i % 2];
  assert_true(done);
  assert_memory_equal(bytes, back, sizeof back);
  return GM_OK;
}

/* Many small items, which a shader may take. */
static gm_status scenario_scatter(scenario *s, gm_error *err) {
  enum { ITEMS = 32, EACH = 64 };
  const gm_backend_ops *ops = s->fixture.ops;
  uint8_t there[SCENARIO_BYTES], back[SCENARIO_BYTES] = {0};
  gm_copy_item items[ITEMS];
  for (uint32_t i = 0; i < ITEMS; i++) {
    items[i] = (gm_copy_item){&s->memory, (uint64_t)(ITEMS - 1 - i) * EACH, &s->other, (uint64_t)2 * i * EACH, EACH};
  }
  gm_status status = ops->copy_many(s->fixture.device, s->fixture.stream, items, ITEMS, NULL, err);
  if (!status) {
    status = ops->copy_to_host(s->fixture.device, s->fixture.stream, &s->memory, 0, there, sizeof there, NULL, err);
  }
  if (!status) {
    status = ops->copy_to_host(s->fixture.device, s->fixture.stream, &s->other, 0, back, sizeof back, NULL, err);
  }
  for (uint32_t i = 0; i < ITEMS && !status; i++) {
    assert_memory_equal(back + items[i].dst_offset, there + items[i].src_offset, EACH);
  }
  return status;
}

/* Out of the process and in again, where the device can. */
static gm_status scenario_share(scenario *s, gm_error *err) {
  const gm_backend_ops *ops = s->fixture.ops;
  void *device = s->fixture.device;
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = SCENARIO_BYTES, .share = GM_SHARE_FD};
  gm_memory_type type = {.struct_size = sizeof type};
  gm_shared shared = {.struct_size = sizeof shared};
  gm_status status = ops->memory_type(device, 0, &type, err);
  if (status || !(type.share_kinds & 1u << GM_SHARE_FD)) return status;
  status = ops->memory_alloc(device, &params, &s->shared, err);
  if (!status) status = ops->share_export(device, &s->shared, GM_SHARE_FD, &shared, err);
  if (status) return status;
  s->fd = shared.fd + 1;
  return ops->share_import(device, &shared, &s->imported, err);
}

static gm_status scenario_range(scenario *s, gm_error *err) {
  const gm_backend_ops *ops = s->fixture.ops;
  void *device = s->fixture.device;
  const gm_vmm_props props = {0};
  gm_device_info info = {.struct_size = sizeof info};
  uint64_t back = 0, word = 0x1122334455667788;
  gm_status status = ops->host_alloc(device, 4096, &s->lent, err);
  if (!status) status = ops->copy_to_device(device, s->fixture.stream, &s->memory, 0, s->lent, 4096, NULL, err);
  if (!status) status = ops->device_info(s->fixture.driver, 0, device, &info, err);
  if (status || !(info.capabilities & GM_CAP_VMM)) return status;
  status = ops->vmm_granularity(device, &props, &s->granule, err);
  if (!status) status = ops->vmm_reserve(device, 4 * s->granule, 0, &s->address, err);
  if (!status) status = ops->vmm_create(device, &props, s->granule, &s->piece, err);
  if (!status) status = ops->vmm_map(device, s->address + s->granule, s->granule, s->piece, 0, err);
  s->mapped = s->piece && !status;
  if (!status) status = ops->vmm_memory(device, s->address, 4 * s->granule, 0, &s->range, err);
  if (status) return status;
  status = ops->copy_to_device(device, s->fixture.stream, &s->range, s->granule, &word, 8, NULL, err);
  if (!status) status = ops->copy_to_host(device, s->fixture.stream, &s->range, s->granule, &back, 8, NULL, err);
  if (!status) assert_true(back == word);
  if (!status) status = ops->vmm_unmap(device, s->address + s->granule, s->granule, err);
  s->mapped = status != GM_OK;
  return status;
}

/* Host memory that the device reaches itself, where it can. */
static gm_status scenario_host(scenario *s, gm_error *err) {
  static _Alignas(4096) unsigned char bytes[2 * 4096];
  const gm_backend_ops *ops = s->fixture.ops;
  void *device = s->fixture.device;
  const gm_vulkan_memory native = {.head = {sizeof native, GM_API_VULKAN}, .mapped = bytes + 4096, .bytes = 100};
  gm_device_info info = {.struct_size = sizeof info};
  gm_backend_point point = {0};
  gm_status status = ops->device_info(s->fixture.driver, 0, device, &info, err);
  if (status || !(info.capabilities & GM_CAP_REGISTRATION)) return status;
  status = ops->host_register(device, bytes, 4096, err);
  if (!status) s->registered = bytes;
  if (!status) status = ops->copy_to_device(device, s->fixture.stream, &s->memory, 0, bytes, 4096, &point, err);
  if (!status) status = ops->copy_to_host(device, s->fixture.stream, &s->memory, 0, bytes, 4096, NULL, err);
  if (!status) status = ops->memory_wrap(device, &native.head, &s->wrapped, err);
  return status;
}

static void scenario_close_host(scenario *s) {
  const gm_backend_ops *ops = s->fixture.ops;
  if (s->lent) assert_int_equal(ops->host_unregister(s->fixture.device, s->lent, GM_CLOSE_NORMAL, NULL), GM_OK);
  if (s->registered) {
    assert_int_equal(ops->host_unregister(s->fixture.device, s->registered, GM_CLOSE_NORMAL, NULL), GM_OK);
  }
  if (s->wrapped.handle) {
    assert_int_equal(ops->memory_free(s->fixture.device, &s->wrapped, GM_CLOSE_NORMAL, NULL), GM_OK);
  }
}

static void scenario_close_range(scenario *s) {
  const gm_backend_ops *ops = s->fixture.ops;
  void *device = s->fixture.device;
  if (s->range.handle) assert_int_equal(ops->memory_free(device, &s->range, GM_CLOSE_NORMAL, NULL), GM_OK);
  if (s->mapped) {
    assert_int_equal(ops->vmm_unreserve(device, s->address, 4 * s->granule, GM_CLOSE_NORMAL, NULL), GM_ERR_BUSY);
    assert_int_equal(ops->vmm_unmap(device, s->address + s->granule, s->granule, NULL), GM_OK);
  }
  if (s->piece) assert_int_equal(ops->vmm_destroy(device, s->piece, s->granule, GM_CLOSE_NORMAL, NULL), GM_OK);
  if (s->address) {
    assert_int_equal(ops->vmm_unreserve(device, s->address, 4 * s->granule, GM_CLOSE_NORMAL, NULL), GM_OK);
  }
}

static void scenario_close_share(scenario *s) {
  const gm_backend_ops *ops = s->fixture.ops;
  void *device = s->fixture.device;
  if (s->imported.handle) assert_int_equal(ops->share_close(device, &s->imported, GM_CLOSE_NORMAL, NULL), GM_OK);
  if (s->shared.handle) assert_int_equal(ops->memory_free(device, &s->shared, GM_CLOSE_NORMAL, NULL), GM_OK);
  if (s->fd) assert_int_equal(close(s->fd - 1), 0); /* nobody took it */
}

/* Closing never fails, whatever happened before; the messages of the layers until the device was closed. */
static uint32_t scenario_close(scenario *s) {
  const gm_backend_ops *ops = s->fixture.ops;
  void *device = s->fixture.device;
  if (s->fixture.stream) ops->stream_close(device, s->fixture.stream, GM_CLOSE_NORMAL);
  scenario_close_range(s);
  scenario_close_share(s);
  scenario_close_host(s);
  if (s->view) assert_int_equal(ops->view_destroy(device, s->view, GM_CLOSE_NORMAL, NULL), GM_OK);
  if (s->other.handle) assert_int_equal(ops->memory_free(device, &s->other, GM_CLOSE_NORMAL, NULL), GM_OK);
  if (s->memory.handle) assert_int_equal(ops->memory_free(device, &s->memory, GM_CLOSE_NORMAL, NULL), GM_OK);
  if (device) ops->device_close(device, GM_CLOSE_NORMAL);
  if (!s->fixture.driver) return 0;
  uint32_t messages = gm__vulkan_validation_messages(s->fixture.driver);
  assert_int_equal(vulkan_fixture_held(&s->fixture), 0);
  ops->fini(s->fixture.driver, GM_CLOSE_NORMAL);
  return messages;
}

/* Run it all with what `fault` and `fail_alloc` say; the status of the first failure. */
static gm_status scenario_run(const char *options, size_t fail_alloc, size_t *out_allocs, gm_error *err) {
  scenario s = {0};
  vulkan_fixture_host(&s.fixture, options);
  s.fixture.host.symbol_hook = fault_hook;
  s.fixture.services.fail_at = fail_alloc;
  s.fixture.services.fail_count = 1;
  memset(&fault.real, 0, sizeof fault.real);
  fault.calls = 0;
  fault.failed = NULL;
  gm_status status = scenario_open(&s, err);
  if (!status) status = scenario_work(&s, err);
  if (!status && !fail_alloc)
    status = scenario_scatter(&s, err); /* no failure of the shader's own is one of the call */
  if (!status) status = scenario_share(&s, err);
  if (!status) status = scenario_range(&s, err);
  if (!status) status = scenario_host(&s, err);
  uint32_t messages = scenario_close(&s);
  counted_services_check(&s.fixture.services);
  if (messages) fail_msg("%u validation messages after failing call %u (%s)", messages, fault.fail_at, fault.failed);
  *out_allocs = atomic_load(&s.fixture.services.calls);
  return status;
}

static uint32_t scenario_calls(const char *options) {
  size_t allocs;
  gm_error err = {0};
  fault.fail_at = 0, fault.missing = NULL;
  gm_status status = scenario_run(options, 0, &allocs, &err);
  if (status == GM_ERR_UNAVAILABLE) vulkan_fixture_absent(err.message);
  if (status) fail_msg("%s", err.message);
  return fault.calls;
}

static void check_failure(gm_status status, const gm_error *err, gm_status wanted) {
  if (status == GM_OK) return; /* there was another way, or the answer did not matter */
  assert_int_equal(err->status, status);
  assert_true(err->op[0] && err->message[0]);
  /* Loader calls have their own words for "no driver"; the rest keeps the kinds apart. */
  if (status != GM_ERR_UNAVAILABLE) assert_int_equal(status, wanted);
}

static void sweep_calls(const char *options, size_t kind_count) {
  static const struct {
    VkResult code;
    gm_status status;
  } kinds[] = {{VK_ERROR_OUT_OF_HOST_MEMORY, GM_ERR_OUT_OF_HOST_MEMORY},
               {VK_ERROR_OUT_OF_DEVICE_MEMORY, GM_ERR_OUT_OF_DEVICE_MEMORY},
               {VK_ERROR_DEVICE_LOST, GM_ERR_DEVICE_LOST}};
  uint32_t calls = scenario_calls(options);
  assert_true(calls > 25);
  for (uint32_t n = 1; n <= calls; n++) {
    for (size_t kind = 0; kind < kind_count; kind++) {
      if (!sample_takes(3)) continue;
      gm_error err = {0};
      size_t allocs;
      fault.fail_at = n;
      fault.code = kinds[kind].code;
      gm_status status = scenario_run(options, 0, &allocs, &err);
      check_failure(status, &err, kinds[kind].status);
    }
  }
  fault.fail_at = 0;
}

static void test_calls_staged(void **state) {
  (void)state;
  sweep_calls("no_host_visible", 3);
}

static void test_calls_direct(void **state) {
  (void)state;
  sweep_calls("", 3);
}

/* With the layers watching what is left behind: slow, so one kind of failure. */
static void test_calls_validated(void **state) {
  (void)state;
  sweep_calls("validation,no_host_visible", 1);
}

static void test_missing_entries(void **state) {
  (void)state;
  for (size_t i = 0; i < FAULT_ENTRIES; i++) {
    gm_error err = {0};
    size_t allocs;
    fault.missing = fault_entries[i].name;
    gm_status status = scenario_run("no_host_visible", 0, &allocs, &err);
    /* gm's own device has timeline semaphores. Only an engine's may lack their entries. */
    const bool timelines = !strcmp(fault_entries[i].name, "vkGetSemaphoreCounterValue") ||
                           !strcmp(fault_entries[i].name, "vkWaitSemaphores");
    if (fault_entries[i].required || timelines) {
      assert_int_equal(status, GM_ERR_UNAVAILABLE);
      assert_non_null(strstr(err.message, fault_entries[i].name));
    } else if (strcmp(fault_entries[i].name, "vkEnumerateInstanceVersion") == 0) {
      assert_int_equal(status, GM_ERR_UNAVAILABLE); /* a loader of Vulkan 1.0 */
      assert_non_null(strstr(err.message, "1.0"));
    } else {
      assert_int_equal(status, GM_OK);
    }
  }
  fault.missing = NULL;
}

static void test_host_memory(void **state) {
  (void)state;
  size_t allocs = 0;
  gm_error err = {0};
  assert_int_equal(scenario_run("no_host_visible", 0, &allocs, &err), GM_OK);
  assert_true(allocs >= 8);
  for (size_t n = 1; n <= allocs; n++) { /* without the shader's: test_vulkan_kernel fails those */
    if (!sample_takes(3)) continue;
    gm_error failure = {0};
    size_t made = 0; /* how many command buffers there are depends on how fast the first is free again */
    gm_status status = scenario_run("no_host_visible", n, &made, &failure);
    assert_int_equal(status, made < n ? GM_OK : GM_ERR_OUT_OF_HOST_MEMORY);
    assert_int_equal(failure.status, status);
  }
}

/* Once lost, a device says so, takes no more work, and gives everything back. */
static void test_lost_device(void **state) {
  (void)state;
  scenario s = {0};
  gm_error err = {0};
  vulkan_fixture_host(&s.fixture, "no_host_visible");
  s.fixture.host.symbol_hook = fault_hook;
  fault.fail_at = 0;
  assert_int_equal(scenario_open(&s, &err), GM_OK);
  const gm_backend_ops *ops = s.fixture.ops;
  assert_int_equal(ops->device_state(s.fixture.device, &err), GM_OK);
  fault.calls = 0, fault.fail_at = 1, fault.code = VK_ERROR_DEVICE_LOST;
  assert_int_equal(ops->stream_barrier(s.fixture.device, s.fixture.stream, &err), GM_ERR_DEVICE_LOST);
  fault.fail_at = 0;
  assert_int_equal(ops->device_state(s.fixture.device, &err), GM_ERR_DEVICE_LOST);
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = 16};
  gm_memory memory = {0};
  void *stream = NULL;
  gm_stream_kind kind;
  const gm_copy_item item = {&s.memory, 0, &s.other, 0, 16};
  assert_int_equal(ops->memory_alloc(s.fixture.device, &params, &memory, &err), GM_ERR_DEVICE_LOST);
  assert_int_equal(ops->stream_create(s.fixture.device, &stream, &kind, &err), GM_ERR_DEVICE_LOST);
  assert_int_equal(ops->copy(s.fixture.device, s.fixture.stream, &item, NULL, &err), GM_ERR_DEVICE_LOST);
  assert_int_equal(scenario_close(&s), 0);
  counted_services_check(&s.fixture.services);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_calls_staged),    cmocka_unit_test(test_calls_direct),
      cmocka_unit_test(test_calls_validated), cmocka_unit_test(test_missing_entries),
      cmocka_unit_test(test_host_memory),     cmocka_unit_test(test_lost_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
