/* gm on an engine's own OpenCL context, queues, events and buffers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/adopt_scene.h"
#include "support/opencl_fixture.h"

/* The engine's gate: an event that it sets itself. Not an entry that gm needs, so not in its table. */
typedef cl_event(CL_API_CALL *create_user_event)(cl_context context, cl_int *errcode);
typedef cl_int(CL_API_CALL *set_event_status)(cl_event event, cl_int status);

static opencl_fixture f;
static opencl_engine engine;
static void *device; /* adopted */

static struct {
  create_user_event create;
  set_event_status set;
} gate;

static int open_all(void **state) {
  const gm__symbol symbols[] = {{"clCreateUserEvent", 0, true}, {"clSetUserEventStatus", sizeof gate.create, true}};
  gm_opencl_device native = {.head = {sizeof native, GM_API_OPENCL}};
  (void)state;
  opencl_fixture_open(&f);
  opencl_engine_open(&engine, &f);
  assert_true(engine.unordered || strcmp(f.info.driver, "rusticl") == 0);
  assert_int_equal(gm__dynlib_resolve(engine.lib, symbols, 2, &gate, NULL, NULL, NULL), GM_OK);
  native.context = (uintptr_t)engine.context;
  assert_int_equal(f.ops->device_adopt(f.driver, &native.head, &device, NULL), GM_OK);
  return 0;
}

static int close_all(void **state) {
  (void)state;
  f.ops->device_close(device, GM_CLOSE_NORMAL);
  opencl_engine_close(&engine);
  opencl_fixture_close(&f);
  return 0;
}

static void *adopt_queue(cl_command_queue queue, gm_stream_kind *kind) {
  const gm_opencl_queue native = {.head = {sizeof native, GM_API_OPENCL}, .queue = (uintptr_t)queue};
  void *stream = NULL;
  assert_int_equal(f.ops->stream_adopt(device, &native.head, &stream, kind, NULL), GM_OK);
  return stream;
}

static cl_command_queue in_order_queue(void) {
  cl_int code = CL_SUCCESS;
  cl_command_queue queue = engine.cl.clCreateCommandQueue(engine.context, engine.device, 0, &code);
  assert_non_null(queue);
  return queue;
}

static void test_the_adopted_device_is_the_listed_one(void **state) {
  (void)state;
  gm_device_info info;
  gm_opencl_device native = {.head = {sizeof native, GM_API_OPENCL}};
  assert_int_equal(f.ops->device_info(f.driver, 0, device, &info, NULL), GM_OK);
  assert_memory_equal(info.uuid, f.info.uuid, sizeof info.uuid);
  assert_false(info.capabilities & GM_CAP_STREAMS); /* allow_queue was not given */
  assert_int_equal(f.ops->device_native(device, &native.head, NULL), GM_OK);
  assert_int_equal(native.context, (uintptr_t)engine.context);
  assert_int_equal(native.device, (uintptr_t)engine.device);
  assert_false(native.allow_queue);
}

static void test_without_leave_gm_makes_no_queue(void **state) {
  (void)state;
  void *stream = NULL;
  gm_stream_kind kind;
  gm_memory memory;
  gm_memory_params params = {.struct_size = sizeof params, .bytes = 64, .flags = GM_ALLOC_COMMIT};
  assert_int_equal(f.ops->stream_create(device, &stream, &kind, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(f.ops->memory_alloc(device, &params, &memory, NULL), GM_ERR_NOT_SUPPORTED);
  params.flags = 0;
  assert_int_equal(f.ops->memory_alloc(device, &params, &memory, NULL), GM_OK);
  assert_int_equal(f.ops->copy_to_device(device, NULL, &memory, 0, "x", 1, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(f.ops->memory_free(device, &memory, GM_CLOSE_NORMAL, NULL), GM_OK);
}

/* A device that the engine's context does not have; NULL when the driver has one only. */
static cl_device_id strangers_device(void) {
  cl_platform_id platform = NULL;
  cl_device_id ids[2] = {NULL, NULL};
  assert_int_equal(engine.cl.clGetDeviceInfo(engine.device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL), 0);
  assert_int_equal(engine.cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 2, ids, NULL), CL_SUCCESS);
  return ids[0] == engine.device ? ids[1] : ids[0];
}

static void test_bad_devices_are_refused_with_the_reason(void **state) {
  (void)state;
  void *out = NULL;
  gm_error err;
  gm_opencl_device native = {.head = {sizeof native, GM_API_VULKAN}, .context = (uintptr_t)engine.context};
  assert_int_equal(f.ops->device_adopt(f.driver, &native.head, &out, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "api"));
  native.head = (gm_native_device){8, GM_API_OPENCL};
  assert_int_equal(f.ops->device_adopt(f.driver, &native.head, &out, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "struct_size"));
  native = (gm_opencl_device){.head = {sizeof native, GM_API_OPENCL}};
  assert_int_equal(f.ops->device_adopt(f.driver, &native.head, &out, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "`context`"));
  native.context = (uintptr_t)engine.context;
  native.device = (uintptr_t)strangers_device();
  if (!native.device) return;
  assert_int_equal(f.ops->device_adopt(f.driver, &native.head, &out, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "`device`"));
  assert_null(out);
}

static void test_of_a_context_with_two_devices_one_must_be_named(void **state) {
  (void)state;
  gm_device_info info;
  gm_opencl_device native = {.head = {sizeof native, GM_API_OPENCL}};
  cl_device_id both[2] = {engine.device, NULL};
  cl_platform_id platform = NULL;
  cl_uint count = 0;
  cl_int code = CL_SUCCESS;
  void *out = NULL;
  assert_int_equal(engine.cl.clGetDeviceInfo(engine.device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL), 0);
  assert_int_equal(engine.cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 2, both, &count), CL_SUCCESS);
  if (count < 2) skip();
  cl_context context = engine.cl.clCreateContext(NULL, 2, both, NULL, NULL, &code);
  assert_non_null(context);
  native.context = (uintptr_t)context;
  assert_int_equal(f.ops->device_adopt(f.driver, &native.head, &out, NULL), GM_ERR_INVALID_ARGUMENT);
  native.device = (uintptr_t)both[1];
  assert_int_equal(f.ops->device_adopt(f.driver, &native.head, &out, NULL), GM_OK);
  assert_int_equal(f.ops->device_info(f.driver, 0, out, &info, NULL), GM_OK);
  assert_int_equal(info.index, f.info.index + 1);
  f.ops->device_close(out, GM_CLOSE_NORMAL);
  assert_int_equal(engine.cl.clReleaseContext(context), CL_SUCCESS);
}

typedef cl_int(CL_API_CALL *create_sub_devices)(cl_device_id device, const cl_device_partition_property *properties,
                                                cl_uint capacity, cl_device_id *ids, cl_uint *count);
typedef cl_int(CL_API_CALL *release_device)(cl_device_id device);

static void adopt_part(cl_context context, cl_device_id part, cl_command_queue queue) {
  const gm_opencl_device native = {
      .head = {sizeof native, GM_API_OPENCL}, .device = (uintptr_t)part, .context = (uintptr_t)context};
  const gm_opencl_queue lent = {.head = {sizeof lent, GM_API_OPENCL}, .queue = (uintptr_t)queue};
  gm_device_info info;
  gm_stream_kind kind;
  void *out = NULL, *stream = NULL;
  assert_int_equal(f.ops->device_adopt(f.driver, &native.head, &out, NULL), GM_OK);
  assert_int_equal(f.ops->device_info(f.driver, 0, out, &info, NULL), GM_OK);
  assert_string_equal(info.driver, f.info.driver);
  assert_true(info.total_bytes > 0);
  assert_int_equal(f.ops->stream_adopt(out, &lent.head, &stream, &kind, NULL), GM_OK);
  f.ops->stream_close(out, stream, GM_CLOSE_NORMAL);
  f.ops->device_close(out, GM_CLOSE_NORMAL);
}

/* No platform lists a sub-device; PoCL's contexts do not either. */
static void test_a_sub_device_can_be_adopted(void **state) {
  (void)state;
  struct {
    create_sub_devices create;
    release_device release;
  } part;
  const gm__symbol symbols[] = {{"clCreateSubDevices", 0, true}, {"clReleaseDevice", sizeof part.create, true}};
  const cl_device_partition_property single[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
  cl_device_id ids[2];
  cl_uint most = 0;
  cl_int code = CL_SUCCESS;
  engine.cl.clGetDeviceInfo(engine.device, CL_DEVICE_PARTITION_MAX_SUB_DEVICES, sizeof most, &most, NULL);
  if (most < 2) skip(); /* rusticl has not even the entry */
  assert_int_equal(gm__dynlib_resolve(engine.lib, symbols, 2, &part, NULL, NULL, NULL), GM_OK);
  if (part.create(engine.device, single, 2, ids, NULL) != CL_SUCCESS) skip();
  cl_context context = engine.cl.clCreateContext(NULL, 1, &ids[0], NULL, NULL, &code);
  assert_non_null(context);
  cl_command_queue queue = engine.cl.clCreateCommandQueue(context, ids[0], 0, &code);
  assert_non_null(queue);
  adopt_part(context, NULL, queue);
  adopt_part(context, ids[0], queue);
  assert_int_equal(engine.cl.clReleaseCommandQueue(queue), CL_SUCCESS);
  assert_int_equal(engine.cl.clReleaseContext(context), CL_SUCCESS);
  assert_int_equal(part.release(ids[0]), CL_SUCCESS);
  assert_int_equal(part.release(ids[1]), CL_SUCCESS);
}

static void test_adoption_gives_every_reference_back(void **state) {
  (void)state;
  void *out = NULL;
  gm_stream_kind kind;
  gm_memory memory;
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = 64};
  const gm_opencl_device native = {.head = {sizeof native, GM_API_OPENCL}, .context = (uintptr_t)engine.context};
  const cl_uint before = opencl_engine_references(&engine);
  assert_int_equal(f.ops->device_adopt(f.driver, &native.head, &out, NULL), GM_OK);
  void *stream = adopt_queue(engine.queue, &kind);
  assert_int_equal(f.ops->memory_alloc(out, &params, &memory, NULL), GM_OK);
  assert_int_equal(f.ops->memory_free(out, &memory, GM_CLOSE_NORMAL, NULL), GM_OK);
  f.ops->stream_close(device, stream, GM_CLOSE_NORMAL);
  f.ops->device_close(out, GM_CLOSE_NORMAL);
  opencl_engine_expect_references(&engine, before);
}

static void test_queues_of_other_contexts_are_refused(void **state) {
  (void)state;
  gm_opencl_queue native = {.head = {sizeof native, GM_API_OPENCL}, .queue = (uintptr_t)engine.queue};
  void *stream = NULL;
  gm_stream_kind kind;
  gm_error err;
  assert_int_equal(f.ops->stream_adopt(f.device, &native.head, &stream, &kind, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "context"));
  native.queue = 0;
  assert_int_equal(f.ops->stream_adopt(device, &native.head, &stream, &kind, &err), GM_ERR_INVALID_ARGUMENT);
  assert_null(stream);
}

static void test_the_kind_of_a_queue_is_asked_for(void **state) {
  (void)state;
  gm_stream_kind kind;
  cl_command_queue queue = in_order_queue();
  void *ordered = adopt_queue(queue, &kind);
  assert_int_equal(kind, GM_STREAM_FIFO);
  void *unordered = adopt_queue(engine.queue, &kind);
  assert_int_equal(kind, engine.unordered ? GM_STREAM_UNORDERED : GM_STREAM_FIFO);
  f.ops->stream_close(device, ordered, GM_CLOSE_NORMAL);
  f.ops->stream_close(device, unordered, GM_CLOSE_NORMAL);
  assert_int_equal(engine.cl.clReleaseCommandQueue(queue), CL_SUCCESS);
}

static gm_backend_point import_event(cl_event event) {
  const gm_opencl_point native = {.head = {sizeof native, GM_API_OPENCL}, .event = (uintptr_t)event};
  gm_backend_point point = {0};
  assert_int_equal(f.ops->point_import(device, &native.head, &point, NULL), GM_OK);
  return point;
}

static void test_a_stream_waits_for_the_engines_event(void **state) {
  (void)state;
  if (strcmp(f.info.driver, "oclgrind") == 0) skip(); /* its clFlush waits, here for what this thread does later */
  gm_stream_kind kind;
  cl_int code = CL_SUCCESS;
  bool done = true;
  uint32_t value = 0;
  cl_command_queue queue = in_order_queue();
  void *stream = adopt_queue(queue, &kind);
  cl_event event = gate.create(engine.context, &code);
  gm_backend_point point = import_event(event), after = {0};
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = 64};
  gm_memory memory;
  assert_int_equal(f.ops->memory_alloc(device, &params, &memory, NULL), GM_OK);
  assert_int_equal(f.ops->point_done(device, &point, &done, NULL), GM_OK);
  assert_false(done);
  assert_int_equal(f.ops->point_wait(device, &point, 0, NULL), GM_ERR_TIMEOUT);
  assert_int_equal(f.ops->point_wait(device, &point, 3000000, NULL), GM_ERR_TIMEOUT);
  assert_int_equal(f.ops->point_wait_on(device, stream, &point, NULL), GM_OK);
  assert_int_equal(f.ops->fill(device, stream, &memory, 0, 64, "\7", 1, &after, NULL), GM_OK);
  assert_int_equal(f.ops->point_wait(device, &after, 3000000, NULL), GM_ERR_TIMEOUT);
  assert_int_equal(gate.set(event, CL_COMPLETE), CL_SUCCESS);
  assert_int_equal(f.ops->point_wait(device, &after, UINT64_MAX, NULL), GM_OK);
  assert_int_equal(f.ops->point_wait(device, &point, 1000000000, NULL), GM_OK);
  assert_int_equal(f.ops->copy_to_host(device, stream, &memory, 60, &value, 4, NULL, NULL), GM_OK);
  assert_int_equal(value, 0x07070707);
  f.ops->point_release(device, &after, GM_CLOSE_NORMAL);
  f.ops->point_release(device, &point, GM_CLOSE_NORMAL);
  assert_int_equal(f.ops->memory_free(device, &memory, GM_CLOSE_NORMAL, NULL), GM_OK);
  f.ops->stream_close(device, stream, GM_CLOSE_NORMAL);
  assert_int_equal(engine.cl.clReleaseEvent(event), CL_SUCCESS);
  assert_int_equal(engine.cl.clReleaseCommandQueue(queue), CL_SUCCESS);
}

static void test_an_event_that_failed_is_a_failure(void **state) {
  (void)state;
  cl_int code = CL_SUCCESS;
  bool done = false;
  gm_error err;
  cl_event event = gate.create(engine.context, &code);
  gm_backend_point point = import_event(event);
  assert_int_equal(gate.set(event, CL_MEM_OBJECT_ALLOCATION_FAILURE), CL_SUCCESS);
  assert_int_equal(f.ops->point_done(device, &point, &done, &err), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(err.native_code, CL_MEM_OBJECT_ALLOCATION_FAILURE);
  assert_int_equal(f.ops->point_wait(device, &point, UINT64_MAX, &err), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(f.ops->point_wait(device, &point, 1000, &err), GM_ERR_OUT_OF_DEVICE_MEMORY);
  f.ops->point_release(device, &point, GM_CLOSE_NORMAL);
  assert_int_equal(engine.cl.clReleaseEvent(event), CL_SUCCESS);
}

static void test_events_of_other_contexts_are_refused(void **state) {
  (void)state;
  cl_int code = CL_SUCCESS;
  cl_event event = gate.create(engine.context, &code);
  const gm_opencl_point native = {.head = {sizeof native, GM_API_OPENCL}, .event = (uintptr_t)event};
  gm_backend_point point = {0};
  assert_int_equal(f.ops->point_import(f.device, &native.head, &point, NULL), GM_ERR_INVALID_ARGUMENT);
  point.handle = (uintptr_t)event;
  assert_int_equal(f.ops->point_wait_on(f.device, f.stream, &point, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gate.set(event, CL_COMPLETE), CL_SUCCESS);
  assert_int_equal(engine.cl.clReleaseEvent(event), CL_SUCCESS);
}

/* The second of two waits does not end the first: the bytes show it, as a point waits for all before it anyway. */
static void test_an_out_of_order_queue_waits_for_two_events(void **state) {
  if (!engine.unordered || strcmp(f.info.driver, "oclgrind") == 0) skip();
  (void)state;
  gm_stream_kind kind;
  cl_int code = CL_SUCCESS;
  uint32_t value = 0;
  cl_command_queue ordered = in_order_queue();
  void *stream = adopt_queue(engine.queue, &kind), *reader = adopt_queue(ordered, &kind);
  cl_event events[2] = {gate.create(engine.context, &code), gate.create(engine.context, &code)};
  gm_backend_point points[2] = {import_event(events[0]), import_event(events[1])}, after = {0};
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = 64};
  gm_memory memory;
  assert_int_equal(f.ops->memory_alloc(device, &params, &memory, NULL), GM_OK);
  assert_int_equal(f.ops->fill(device, reader, &memory, 0, 64, "\1", 1, NULL, NULL), GM_OK);
  for (int i = 0; i < 2; i++) assert_int_equal(f.ops->point_wait_on(device, stream, &points[i], NULL), GM_OK);
  assert_int_equal(f.ops->fill(device, stream, &memory, 0, 64, "\7", 1, &after, NULL), GM_OK);
  assert_int_equal(gate.set(events[1], CL_COMPLETE), CL_SUCCESS);
  assert_int_equal(f.ops->point_wait(device, &after, 20000000, NULL), GM_ERR_TIMEOUT);
  assert_int_equal(f.ops->copy_to_host(device, reader, &memory, 0, &value, 4, NULL, NULL), GM_OK);
  assert_int_equal(value, 0x01010101);
  assert_int_equal(gate.set(events[0], CL_COMPLETE), CL_SUCCESS);
  assert_int_equal(f.ops->point_wait(device, &after, UINT64_MAX, NULL), GM_OK);
  f.ops->point_release(device, &after, GM_CLOSE_NORMAL);
  for (int i = 0; i < 2; i++) {
    f.ops->point_release(device, &points[i], GM_CLOSE_NORMAL);
    assert_int_equal(engine.cl.clReleaseEvent(events[i]), CL_SUCCESS);
  }
  assert_int_equal(f.ops->memory_free(device, &memory, GM_CLOSE_NORMAL, NULL), GM_OK);
  f.ops->stream_close(device, stream, GM_CLOSE_NORMAL);
  f.ops->stream_close(device, reader, GM_CLOSE_NORMAL);
  assert_int_equal(engine.cl.clReleaseCommandQueue(ordered), CL_SUCCESS);
}

/* On an out-of-order queue only barriers and points order: a map waits for what came before it all the same. */
static void test_an_out_of_order_queue_is_ordered_by_barriers(void **state) {
  if (!engine.unordered) skip();
  (void)state;
  enum { BYTES = 1 << 20 };
  gm_stream_kind kind;
  void *stream = adopt_queue(engine.queue, &kind), *pointer = NULL;
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = BYTES};
  gm_memory memory;
  gm_backend_point points[2];
  assert_int_equal(f.ops->memory_alloc(device, &params, &memory, NULL), GM_OK);
  for (uint8_t round = 1; round <= 50; round++) {
    assert_int_equal(f.ops->fill(device, stream, &memory, 0, BYTES, &round, 1, &points[0], NULL), GM_OK);
    assert_int_equal(f.ops->stream_barrier(device, stream, NULL), GM_OK);
    assert_int_equal(f.ops->fill(device, stream, &memory, BYTES / 2, 1, "x", 1, &points[1], NULL), GM_OK);
    assert_int_equal(f.ops->map(device, stream, &memory, 0, BYTES, GM_MAP_READ, &pointer, NULL), GM_OK);
    const uint8_t *bytes = pointer;
    assert_int_equal(bytes[BYTES - 1], round);
    assert_int_equal(bytes[BYTES / 2], 'x');
    assert_int_equal(f.ops->unmap(device, stream, &memory, pointer, NULL), GM_OK);
    assert_int_equal(f.ops->commit(device, stream, &memory, 0, 40000, NULL), GM_OK);
    f.ops->point_release(device, &points[0], GM_CLOSE_NORMAL);
    f.ops->point_release(device, &points[1], GM_CLOSE_NORMAL);
  }
  assert_int_equal(f.ops->memory_free(device, &memory, GM_CLOSE_NORMAL, NULL), GM_OK);
  f.ops->stream_close(device, stream, GM_CLOSE_NORMAL);
}

static gm_status wrap(cl_mem buffer, uint64_t offset, uint64_t bytes, gm_memory *out, gm_error *err) {
  const gm_opencl_memory native = {
      .head = {sizeof native, GM_API_OPENCL}, .memory = (uintptr_t)buffer, .offset = offset, .bytes = bytes};
  return f.ops->memory_wrap(device, &native.head, out, err);
}

/* gm addresses a sub-buffer through its parent. */
static void test_a_wrapped_sub_buffer_lies_in_its_parent(void **state) {
  (void)state;
  gm_stream_kind kind;
  cl_int code = CL_SUCCESS;
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  gm_memory whole, part;
  uint8_t got[16] = {0};
  cl_mem parent = engine.cl.clCreateBuffer(engine.context, CL_MEM_READ_WRITE, 8192, NULL, &code);
  const cl_buffer_region region = {4096, 1024};
  cl_mem child = engine.cl.clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  assert_non_null(child);
  cl_command_queue queue = in_order_queue();
  void *stream = adopt_queue(queue, &kind);
  assert_int_equal(wrap(parent, 0, 0, &whole, NULL), GM_OK);
  assert_int_equal(whole.bytes, 8192);
  assert_int_equal(wrap(child, 100, 200, &part, NULL), GM_OK);
  assert_true(part.wrapped && part.bytes == 200);
  assert_int_equal(f.ops->memory_native(device, &part, 8, 8, &native.head, NULL), GM_OK);
  assert_int_equal(native.memory, (uintptr_t)parent);
  assert_int_equal(native.offset, 4096 + 100 + 8);
  assert_int_equal(f.ops->copy_to_device(device, stream, &part, 5, "in the child", 12, NULL, NULL), GM_OK);
  assert_int_equal(f.ops->copy_to_host(device, stream, &whole, 4096 + 105, got, 12, NULL, NULL), GM_OK);
  assert_memory_equal(got, "in the child", 12);
  assert_int_equal(f.ops->memory_free(device, &whole, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(f.ops->memory_free(device, &part, GM_CLOSE_NORMAL, NULL), GM_OK);
  f.ops->stream_close(device, stream, GM_CLOSE_NORMAL);
  assert_int_equal(engine.cl.clReleaseMemObject(child), CL_SUCCESS); /* still the engine's */
  assert_int_equal(engine.cl.clReleaseMemObject(parent), CL_SUCCESS);
  assert_int_equal(engine.cl.clReleaseCommandQueue(queue), CL_SUCCESS);
}

static void test_wrapping_checks_range_and_context(void **state) {
  (void)state;
  cl_int code = CL_SUCCESS;
  gm_memory memory = {0};
  gm_error err;
  cl_mem buffer = engine.cl.clCreateBuffer(engine.context, CL_MEM_READ_WRITE, 100, NULL, &code);
  assert_int_equal(wrap(buffer, 100, 0, &memory, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(wrap(buffer, 50, 51, &memory, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(wrap(buffer, 50, UINT64_MAX, &memory, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(wrap(NULL, 0, 0, &memory, &err), GM_ERR_INVALID_ARGUMENT);
  const gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}, .memory = (uintptr_t)buffer};
  assert_int_equal(f.ops->memory_wrap(f.device, &native.head, &memory, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "context"));
  assert_int_equal(memory.handle, 0);
  assert_int_equal(engine.cl.clReleaseMemObject(buffer), CL_SUCCESS);
}

static void test_a_queue_adopted_twice_is_one_stream(void **state) {
  (void)state;
  const gm_opencl_device lent = {.head = {sizeof lent, GM_API_OPENCL}, .context = (uintptr_t)engine.context};
  cl_command_queue queue = in_order_queue();
  const gm_opencl_queue native = {.head = {sizeof native, GM_API_OPENCL}, .queue = (uintptr_t)queue};
  const gm_opencl_queue other = {.head = {sizeof other, GM_API_OPENCL}, .queue = (uintptr_t)engine.queue};
  const cl_uint before = opencl_engine_references(&engine);
  gm_context *ctx = adopt_scene_context("opencl", NULL);
  gm_device *adopted = NULL;
  gm_error err;
  adopt_scene_ok(gm_device_adopt(ctx, &lent.head, &adopted, &err), &err);
  adopt_scene_counts(adopted, &native.head, &other.head);
  adopt_scene_threads(adopted, &native.head);
  adopt_scene_end(ctx, adopted);
  opencl_engine_expect_queue_references(&engine, queue, 1);
  assert_int_equal(engine.cl.clReleaseCommandQueue(queue), CL_SUCCESS);
  opencl_engine_expect_references(&engine, before - 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_adopted_device_is_the_listed_one),
      cmocka_unit_test(test_without_leave_gm_makes_no_queue),
      cmocka_unit_test(test_bad_devices_are_refused_with_the_reason),
      cmocka_unit_test(test_of_a_context_with_two_devices_one_must_be_named),
      cmocka_unit_test(test_a_sub_device_can_be_adopted),
      cmocka_unit_test(test_adoption_gives_every_reference_back),
      cmocka_unit_test(test_queues_of_other_contexts_are_refused),
      cmocka_unit_test(test_the_kind_of_a_queue_is_asked_for),
      cmocka_unit_test(test_a_queue_adopted_twice_is_one_stream),
      cmocka_unit_test(test_a_stream_waits_for_the_engines_event),
      cmocka_unit_test(test_an_event_that_failed_is_a_failure),
      cmocka_unit_test(test_events_of_other_contexts_are_refused),
      cmocka_unit_test(test_an_out_of_order_queue_waits_for_two_events),
      cmocka_unit_test(test_an_out_of_order_queue_is_ordered_by_barriers),
      cmocka_unit_test(test_a_wrapped_sub_buffer_lies_in_its_parent),
      cmocka_unit_test(test_wrapping_checks_range_and_context),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
