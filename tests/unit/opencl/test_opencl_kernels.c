/* Many small items as one kernel, on a real OpenCL driver: the bytes, and how often the driver is called. Where the
 * driver compiles or runs no kernel, copies do the same, and the log says so once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "backends/opencl/opencl_syms.h"
#include "core/device/device_alloc.h"
#include "core/device/stream.h"
#include "gm/context.h"
#include "support/opencl_fixture.h"
#include "support/random.h"

enum { BYTES = 65536, ITEMS = 60 };

static struct {
  __typeof__(((gm__opencl_syms *)0)->clEnqueueNDRangeKernel) kernel;
  __typeof__(((gm__opencl_syms *)0)->clEnqueueCopyBuffer) copy;
  __typeof__(((gm__opencl_syms *)0)->clBuildProgram) build;
  __typeof__(((gm__opencl_syms *)0)->clCreateProgramWithSource) program;
  __typeof__(((gm__opencl_syms *)0)->clCreateKernel) create;
  __typeof__(((gm__opencl_syms *)0)->clSetKernelArg) argument;
} real;
static unsigned kernels, copies, builds, told;
static cl_int build_answer, kernel_answer;
static const char *fails; /* another entry that answers CL_OUT_OF_HOST_MEMORY */

static cl_program fail_program(cl_context context, cl_uint count, const char **texts, const size_t *lengths,
                               cl_int *errcode) {
  if (!fails || strcmp(fails, "clCreateProgramWithSource") != 0)
    return real.program(context, count, texts, lengths, errcode);
  *errcode = CL_OUT_OF_HOST_MEMORY;
  return NULL;
}

static cl_kernel fail_create(cl_program program, const char *entry, cl_int *errcode) {
  if (!fails || strcmp(fails, "clCreateKernel") != 0) return real.create(program, entry, errcode);
  *errcode = CL_OUT_OF_HOST_MEMORY;
  return NULL;
}

/* The last argument, after others were set. */
static cl_int fail_argument(cl_kernel kernel, cl_uint index, size_t bytes, const void *value) {
  if (fails && index == 2 && strcmp(fails, "clSetKernelArg") == 0) return CL_OUT_OF_HOST_MEMORY;
  return real.argument(kernel, index, bytes, value);
}

static cl_int count_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
                           const size_t *global, const size_t *local, cl_uint waits, const cl_event *list,
                           cl_event *event) {
  kernels++;
  if (kernel_answer) return kernel_answer;
  return real.kernel(queue, kernel, dimensions, offset, global, local, waits, list, event);
}

static cl_int count_copy(cl_command_queue queue, cl_mem src, cl_mem dst, size_t src_offset, size_t dst_offset,
                         size_t bytes, cl_uint waits, const cl_event *list, cl_event *event) {
  copies++;
  return real.copy(queue, src, dst, src_offset, dst_offset, bytes, waits, list, event);
}

static cl_int count_build(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
                          void(CL_CALLBACK *notify)(cl_program, void *), void *user) {
  builds++;
  return build_answer ? build_answer : real.build(program, count, devices, options, notify, user);
}

/* Function pointers go through memory: ISO C has no cast from them to void *. */
static void *hook_with(void *found, void *keep, const void *entry) {
  void *out;
  memcpy(keep, &found, sizeof found);
  memcpy(&out, entry, sizeof out);
  return out;
}

static void *hook(void *user, const char *backend, const char *symbol, void *found) {
  static __typeof__(real) mine;
  (void)user, (void)backend;
  mine.kernel = count_kernel;
  mine.copy = count_copy;
  mine.build = count_build;
  mine.program = fail_program;
  mine.create = fail_create;
  mine.argument = fail_argument;
  if (strcmp(symbol, "clEnqueueNDRangeKernel") == 0) return hook_with(found, &real.kernel, &mine.kernel);
  if (strcmp(symbol, "clEnqueueCopyBuffer") == 0) return hook_with(found, &real.copy, &mine.copy);
  if (strcmp(symbol, "clBuildProgram") == 0) return hook_with(found, &real.build, &mine.build);
  if (strcmp(symbol, "clCreateProgramWithSource") == 0) return hook_with(found, &real.program, &mine.program);
  if (strcmp(symbol, "clCreateKernel") == 0) return hook_with(found, &real.create, &mine.create);
  if (strcmp(symbol, "clSetKernelArg") == 0) return hook_with(found, &real.argument, &mine.argument);
  return found;
}

static void hear(void *user, int level, const char *line) {
  (void)user, (void)level;
  if (strstr(line, "not by a kernel")) told++;
}

typedef struct scene {
  gm_context *ctx;
  gm_device *device;
  gm_stream *stream;
  gm_memory from, to;
  unsigned char src[BYTES], want[BYTES], got[BYTES];
  gm_copy_item items[ITEMS];
  uint64_t random;
} scene;

static opencl_fixture f;
static scene s;
static gm_error err;

static void good(gm_status status) {
  if (status != GM_OK) fail_msg("%s: %s", gm_status_name(status), err.message);
}

static int begin(void **state) {
  (void)state;
  const gm_services services = {.log = hear};
  const gm_context_params params = {
      .struct_size = sizeof params, .ignore_environment = true, .services = &services, .symbol_hook = hook};
  const gm__device_request request = {.bytes = BYTES};
  kernels = copies = builds = told = 0;
  build_answer = kernel_answer = CL_SUCCESS;
  fails = NULL;
  s = (scene){.random = 23};
  good(gm_context_create(&params, &s.ctx, &err));
  good(gm_device_open_index(s.ctx, "opencl", f.index, &s.device, &err));
  good(gm_stream_create(s.device, &s.stream, &err));
  good(gm__device_alloc(s.device, &request, &s.from, &err));
  good(gm__device_alloc(s.device, &request, &s.to, &err));
  for (size_t i = 0; i < BYTES; i++) s.src[i] = (unsigned char)test_random(&s.random);
  const gm_backend_ops *ops = s.device->ops;
  good(ops->copy_to_device(s.device->handle, s.stream->handle, &s.from, 0, s.src, BYTES, NULL, &err));
  good(ops->copy_to_device(s.device->handle, s.stream->handle, &s.to, 0, s.want, BYTES, NULL, &err));
  return 0;
}

static int end(void **state) {
  (void)state;
  good(gm__device_free(s.device, &s.from, &err));
  good(gm__device_free(s.device, &s.to, &err));
  good(gm_stream_close(s.stream, &err));
  good(gm_device_close(s.device, &err));
  good(gm_context_destroy(s.ctx, &err));
  return 0;
}

/* Items at any place and of any size, of 0 bytes too, their targets in order. `even`: at words of 16 bytes. */
static void set_items(bool even) {
  uint64_t at = 0;
  for (uint32_t i = 0; i < ITEMS; i++) {
    const uint64_t bytes = i % 7 == 3 ? 0 : 1 + test_random(&s.random) % 700, source = test_random(&s.random) % 60000;
    at += test_random(&s.random) % 90;
    s.items[i] = (gm_copy_item){&s.from, even ? source / 16 * 16 + at % 16 : source, &s.to, at, bytes};
    memcpy(s.want + at, s.src + s.items[i].src_offset, bytes);
    at += bytes;
  }
}

static void run_items(uint32_t count) {
  const gm_backend_ops *ops = s.device->ops;
  good(ops->copy_many(s.device->handle, s.stream->handle, s.items, count, NULL, &err));
  good(ops->copy_to_host(s.device->handle, s.stream->handle, &s.to, 0, s.got, BYTES, NULL, &err));
}

static void items_are_one_kernel(void **state) {
  (void)state;
  for (unsigned round = 1; round <= 20; round++) {
    set_items(round % 2);
    run_items(ITEMS);
    assert_memory_equal(s.got, s.want, BYTES);
    assert_int_equal(kernels, round);
  }
  assert_int_equal(copies, 0);
  assert_int_equal(builds, 1);
  assert_int_equal(told, 0);
}

/* Work that does not suit the kernel: few items, targets out of order, one buffer, large items. */
static void other_items_are_copies(void **state) {
  (void)state;
  set_items(false);
  memset(s.want, 0, BYTES);
  for (uint32_t i = 0; i < 15; i++)
    memcpy(s.want + s.items[i].dst_offset, s.src + s.items[i].src_offset, s.items[i].bytes);
  run_items(15);
  assert_memory_equal(s.got, s.want, BYTES);
  const gm_copy_item first = s.items[0];
  s.items[0] = s.items[ITEMS - 1];
  s.items[ITEMS - 1] = first;
  run_items(ITEMS);
  for (uint32_t i = 0; i < ITEMS; i++) s.items[i] = (gm_copy_item){&s.to, i * 1000, &s.to, 500 + i * 1000, 500};
  run_items(ITEMS);
  assert_int_equal(kernels + builds, 0);
  assert_true(copies > 0);
}

/* Items that meet keep their order. */
static void items_that_meet_are_copies(void **state) {
  (void)state;
  memset(s.want, 0, BYTES);
  for (uint32_t i = 0; i < ITEMS; i++) {
    s.items[i] = (gm_copy_item){&s.from, i * 500, &s.to, i * 100, 101};
    memcpy(s.want + i * 100, s.src + i * 500, 101);
  }
  run_items(ITEMS);
  assert_memory_equal(s.got, s.want, BYTES);
  assert_int_equal(kernels, 0);
}

static void check_refused(unsigned expected_builds, unsigned expected_kernels) {
  for (int round = 0; round < 3; round++) {
    set_items(false);
    run_items(ITEMS);
    assert_memory_equal(s.got, s.want, BYTES);
  }
  assert_int_equal(builds, expected_builds);
  assert_int_equal(kernels, expected_kernels);
  assert_true(copies > ITEMS);
  assert_int_equal(told, 1);
}

static void a_driver_that_compiles_nothing_is_told_once(void **state) {
  (void)state;
  build_answer = CL_BUILD_PROGRAM_FAILURE;
  check_refused(1, 0);
}

static void a_driver_that_runs_nothing_is_told_once(void **state) {
  (void)state;
  kernel_answer = CL_OUT_OF_RESOURCES;
  check_refused(1, 1);
}

static void another_entry_that_fails_is_told_once(void **state) {
  static const struct {
    const char *name;
    unsigned builds;
  } entries[] = {{"clCreateProgramWithSource", 0}, {"clCreateKernel", 1}, {"clSetKernelArg", 1}};
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
    if (i) end(state), begin(state);
    fails = entries[i].name;
    check_refused(entries[i].builds, 0);
  }
}

OPENCL_FIXTURE_GROUP(f)

int main(void) {
#define KERNELS_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      KERNELS_TEST(items_are_one_kernel),
      KERNELS_TEST(other_items_are_copies),
      KERNELS_TEST(items_that_meet_are_copies),
      KERNELS_TEST(a_driver_that_compiles_nothing_is_told_once),
      KERNELS_TEST(a_driver_that_runs_nothing_is_told_once),
      KERNELS_TEST(another_entry_that_fails_is_told_once),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
