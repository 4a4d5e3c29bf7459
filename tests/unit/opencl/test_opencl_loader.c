/* An engine whose OpenCL loader is its own: gm takes the entries from there, and needs no libOpenCL.so.1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "gm/copy.h"
#include "gm/device.h"
#include "support/opencl_fixture.h"
#include "support/temp_folder.h"

static opencl_fixture f;
static opencl_engine engine;

typedef struct loader {
  void *library;
  unsigned asked;
  const char *lacks; /* NULL: nothing */
} loader;

#define ok(call)                                                          \
  do {                                                                    \
    gm_error failure = {.status = GM_OK}, *err = &failure;                \
    if (call) fail_msg("%s: %s: %s", #call, failure.op, failure.message); \
  } while (0)

static void *loader_look_up(void *user, const char *name) {
  loader *own = user;
  own->asked++;
  return own->lacks && strcmp(own->lacks, name) == 0 ? NULL : dlsym(own->library, name);
}

OPENCL_ENGINE_GROUP(f, engine)

static loader loader_open(const char *path) {
  loader own = {.library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)};
  if (!own.library) fail_msg("%s", dlerror());
  return own;
}

/* For gm there is no OpenCL on this machine. */
static gm_context *context_without_library(void) {
  const gm_context_params params = {
      .struct_size = sizeof params, .ignore_environment = true, .libraries = "opencl=/nonexistent/libOpenCL.so.1"};
  gm_context *ctx = NULL;
  ok(gm_context_create(&params, &ctx, err));
  return ctx;
}

static gm_opencl_device native_of(loader *own) {
  return (gm_opencl_device){.head = {sizeof(gm_opencl_device), GM_API_OPENCL},
                            .device = (uintptr_t)engine.device,
                            .context = (uintptr_t)engine.context,
                            .get_proc = own ? loader_look_up : NULL,
                            .get_proc_user = own};
}

static gm_device *adopt(gm_context *ctx, loader *own) {
  const gm_opencl_device native = native_of(own);
  gm_device *device = NULL;
  ok(gm_device_adopt(ctx, &native.head, &device, err));
  assert_true(own->asked > 20);
  return device;
}

/* Everything that a device does, on the engine's queue. */
static void use(gm_device *device) {
  const gm_opencl_queue queue = {.head = {sizeof queue, GM_API_OPENCL}, .queue = (uintptr_t)engine.queue};
  gm_stream *stream = NULL;
  gm_pool *pool = NULL;
  gm_block block;
  char seen[6] = "";
  ok(gm_stream_adopt(device, &queue.head, &stream, err));
  ok(gm_pool_create(device, NULL, &pool, err));
  gm_memory_info memory = {.struct_size = sizeof memory};
  ok(gm_device_memory_info(device, &memory, err));
  assert_true(memory.total_bytes > 0);
  const gm_request request = {.bytes = 100000, .stream = stream, .flags = GM_COMMIT};
  assert_true(gm_acquired(gm_alloc(pool, &request, &block)));
  ok(gm_block_write(pool, &block, 5000, "hello", 6, stream, NULL, err));
  ok(gm_block_read(pool, &block, 5000, seen, 6, stream, NULL, err));
  assert_string_equal(seen, "hello");
  assert_int_equal(gm_free(pool, &block, stream), GM_OK);
  ok(gm_pool_destroy(pool, err));
  ok(gm_stream_close(stream, err));
}

static void test_the_engines_loader_is_enough(void **state) {
  (void)state;
  const cl_uint references = opencl_engine_references(&engine);
  gm_context *ctx = context_without_library();
  gm_opencl_device native = native_of(NULL);
  gm_device *device = NULL;
  assert_int_equal(gm_device_adopt(ctx, &native.head, &device, NULL), GM_ERR_UNAVAILABLE);
  loader own = loader_open("libOpenCL.so.1");
  device = adopt(ctx, &own);
  assert_memory_equal(gm_device_get_info(device)->uuid, f.info.uuid, sizeof f.info.uuid); /* the same one, as listed */
  own.asked = 0;
  use(device);
  assert_int_equal(own.asked, 0); /* only while it is adopted */
  ok(gm_device_native(device, &native.head, err));
  assert_int_equal(native.context, (uintptr_t)engine.context);
  ok(gm_device_close(device, err));
  ok(gm_context_destroy(ctx, err));
  opencl_engine_expect_references(&engine, references);
  dlclose(own.library);
}

static void copy_file(const char *from, const char *to) {
  char bytes[4096];
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  assert_non_null(in);
  assert_non_null(out);
  for (size_t got; (got = fread(bytes, 1, sizeof bytes, in)) > 0;) assert_int_equal(fwrite(bytes, 1, got, out), got);
  fclose(in);
  assert_int_equal(fclose(out), 0);
}

/* It is as beside pyopencl, whose wheel has a loader of its own: the entries of each device are those of its own
 * loader. */
static void test_two_loaders_in_one_process(void **state) {
  (void)state;
  Dl_info where;
  char path[300];
  loader system = loader_open("libOpenCL.so.1");
  temp_folder folder;
  temp_folder_make(&folder);
  assert_true(dladdr(dlsym(system.library, "clGetPlatformIDs"), &where) != 0);
  snprintf(path, sizeof path, "%s/libEngineCL.so", folder.path);
  copy_file(where.dli_fname, path);
  loader wheel = loader_open(path);
  assert_ptr_not_equal(dlsym(system.library, "clFinish"), dlsym(wheel.library, "clFinish"));
  gm_context *ctx = context_without_library();
  gm_device *first = adopt(ctx, &system), *second = adopt(ctx, &wheel);
  use(second);
  use(first);
  ok(gm_device_close(first, err));
  use(second);
  ok(gm_device_close(second, err));
  ok(gm_context_destroy(ctx, err));
  dlclose(wheel.library); /* what PoCL started stays: the process has it by the other one */
  dlclose(system.library);
  temp_folder_remove(&folder);
}

static void test_what_the_loader_lacks_is_named(void **state) {
  (void)state;
  gm_context *ctx = context_without_library();
  gm_device *device = NULL;
  gm_error told;
  loader own = loader_open("libOpenCL.so.1");
  own.lacks = "clEnqueueFillBuffer";
  gm_opencl_device native = native_of(&own);
  assert_int_not_equal(gm_device_adopt(ctx, &native.head, &device, &told), GM_OK);
  assert_non_null(strstr(told.message, "get_proc"));
  assert_true(strstr(told.message, own.lacks) || strstr(told.op, own.lacks));
  assert_null(device);
  own.lacks = NULL;
  native.context = 0;
  assert_int_equal(gm_device_adopt(ctx, &native.head, &device, &told), GM_ERR_INVALID_ARGUMENT);
  ok(gm_context_destroy(ctx, err));
  dlclose(own.library);
}

/* A block at offset 0 is not the whole buffer: the buffer's size tells. */
static void test_the_size_of_the_buffer_is_told(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    const gm_pool_params params = {.struct_size = sizeof params,
                                   .strategy = i ? GM_STRATEGY_BUCKET : GM_STRATEGY_BEST_FIT};
    gm_context *ctx = context_without_library();
    loader own = loader_open("libOpenCL.so.1");
    gm_device *device = adopt(ctx, &own);
    gm_pool *pool = NULL;
    gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
    const gm_request request = {.bytes = 4096};
    gm_block block, wrapped;
    size_t bytes = 0;
    ok(gm_pool_create(device, &params, &pool, err));
    assert_true(gm_acquired(gm_alloc(pool, &request, &block)));
    ok(gm_block_native(pool, &block, &native.head, err));
    assert_int_equal(native.bytes, 4096);
    assert_int_equal(engine.cl.clGetMemObjectInfo((cl_mem)native.memory, CL_MEM_SIZE, sizeof bytes, &bytes, NULL),
                     CL_SUCCESS);
    assert_int_equal(native.memory_bytes, bytes);
    assert_true(i ? bytes == 4096 : bytes > 4096);
    const gm_opencl_memory lent = {.head = {sizeof lent, GM_API_OPENCL}, .memory = native.memory, .bytes = 100};
    ok(gm_block_wrap(pool, &lent.head, &wrapped, err));
    ok(gm_block_native(pool, &wrapped, &native.head, err));
    assert_int_equal(native.bytes, 100);
    assert_int_equal(native.memory_bytes, bytes);
    assert_int_equal(gm_free(pool, &wrapped, NULL), GM_OK);
    assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
    ok(gm_pool_destroy(pool, err));
    ok(gm_device_close(device, err));
    ok(gm_context_destroy(ctx, err));
    dlclose(own.library);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_engines_loader_is_enough),
      cmocka_unit_test(test_two_loaders_in_one_process),
      cmocka_unit_test(test_what_the_loader_lacks_is_named),
      cmocka_unit_test(test_the_size_of_the_buffer_is_told),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
