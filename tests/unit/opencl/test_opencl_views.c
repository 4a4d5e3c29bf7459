/* Where the engine uses sub-buffers of a buffer, gm's own commands name a sub-buffer of the bytes that they are about.
 * Using a buffer and its sub-buffers at a time is undefined, also where the bytes are other ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/opencl_fixture.h"
#include "support/random.h"

enum { BYTES = 65536, BLOCK = 8192, VIEW = 4096 };

static opencl_fixture f;

/* The objects that the last commands named. */
static struct {
  gm__opencl_syms real;
  cl_mem named[2];
  size_t origin[2], bytes[2];
  cl_mem parent[2];
  unsigned commands;
} spy;

static void spy_note(int which, cl_mem memory) {
  spy.named[which] = memory;
  spy.origin[which] = 0;
  spy.parent[which] = NULL;
  assert_int_equal(spy.real.clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof(size_t), &spy.bytes[which], NULL), 0);
  assert_int_equal(
      spy.real.clGetMemObjectInfo(memory, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(cl_mem), &spy.parent[which], NULL), 0);
  if (spy.parent[which]) {
    assert_int_equal(spy.real.clGetMemObjectInfo(memory, CL_MEM_OFFSET, sizeof(size_t), &spy.origin[which], NULL), 0);
  }
  spy.commands++;
}

static cl_int spy_write(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t bytes,
                        const void *host, cl_uint waits, const cl_event *list, cl_event *event) {
  spy_note(0, memory);
  return spy.real.clEnqueueWriteBuffer(queue, memory, blocking, offset, bytes, host, waits, list, event);
}

static cl_int spy_read(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t bytes, void *host,
                       cl_uint waits, const cl_event *list, cl_event *event) {
  spy_note(0, memory);
  return spy.real.clEnqueueReadBuffer(queue, memory, blocking, offset, bytes, host, waits, list, event);
}

static cl_int spy_write_box(cl_command_queue queue, cl_mem memory, cl_bool blocking, const size_t *origin,
                            const size_t *host_origin, const size_t *region, size_t row, size_t slice, size_t host_row,
                            size_t host_slice, const void *host, cl_uint waits, const cl_event *list, cl_event *event) {
  spy_note(0, memory);
  return spy.real.clEnqueueWriteBufferRect(queue, memory, blocking, origin, host_origin, region, row, slice, host_row,
                                           host_slice, host, waits, list, event);
}

static cl_int spy_read_box(cl_command_queue queue, cl_mem memory, cl_bool blocking, const size_t *origin,
                           const size_t *host_origin, const size_t *region, size_t row, size_t slice, size_t host_row,
                           size_t host_slice, void *host, cl_uint waits, const cl_event *list, cl_event *event) {
  spy_note(0, memory);
  return spy.real.clEnqueueReadBufferRect(queue, memory, blocking, origin, host_origin, region, row, slice, host_row,
                                          host_slice, host, waits, list, event);
}

static cl_int spy_copy_box(cl_command_queue queue, cl_mem src, cl_mem dst, const size_t *src_origin,
                           const size_t *dst_origin, const size_t *region, size_t src_row, size_t src_slice,
                           size_t dst_row, size_t dst_slice, cl_uint waits, const cl_event *list, cl_event *event) {
  spy_note(0, dst);
  spy_note(1, src);
  return spy.real.clEnqueueCopyBufferRect(queue, src, dst, src_origin, dst_origin, region, src_row, src_slice, dst_row,
                                          dst_slice, waits, list, event);
}

static cl_int spy_copy(cl_command_queue queue, cl_mem src, cl_mem dst, size_t from, size_t to, size_t bytes,
                       cl_uint waits, const cl_event *list, cl_event *event) {
  spy_note(0, dst);
  spy_note(1, src);
  return spy.real.clEnqueueCopyBuffer(queue, src, dst, from, to, bytes, waits, list, event);
}

static cl_int spy_fill(cl_command_queue queue, cl_mem memory, const void *pattern, size_t pattern_bytes, size_t offset,
                       size_t bytes, cl_uint waits, const cl_event *list, cl_event *event) {
  spy_note(0, memory);
  return spy.real.clEnqueueFillBuffer(queue, memory, pattern, pattern_bytes, offset, bytes, waits, list, event);
}

static void *spy_map(cl_command_queue queue, cl_mem memory, cl_bool blocking, cl_map_flags flags, size_t offset,
                     size_t bytes, cl_uint waits, const cl_event *list, cl_event *event, cl_int *code) {
  spy_note(0, memory);
  return spy.real.clEnqueueMapBuffer(queue, memory, blocking, flags, offset, bytes, waits, list, event, code);
}

static cl_int spy_unmap(cl_command_queue queue, cl_mem memory, void *pointer, cl_uint waits, const cl_event *list,
                        cl_event *event) {
  assert_ptr_equal(memory, spy.named[0]); /* what was mapped */
  return spy.real.clEnqueueUnmapMemObject(queue, memory, pointer, waits, list, event);
}

/* Function pointers go through memory: ISO C has no cast from them to void *. */
static void *spy_entry(const char *symbol, void *real) {
  void *out = real;
#define SPY(name, wrapper)                       \
  if (strcmp(symbol, #name) == 0) {              \
    memcpy(&spy.real.name, &real, sizeof real);  \
    __typeof__(spy.real.name) entry = wrapper;   \
    if (entry) memcpy(&out, &entry, sizeof out); \
  }
  SPY(clGetMemObjectInfo, NULL)
  SPY(clEnqueueWriteBuffer, spy_write)
  SPY(clEnqueueReadBuffer, spy_read)
  SPY(clEnqueueWriteBufferRect, spy_write_box)
  SPY(clEnqueueReadBufferRect, spy_read_box)
  SPY(clEnqueueCopyBufferRect, spy_copy_box)
  SPY(clEnqueueCopyBuffer, spy_copy)
  SPY(clEnqueueFillBuffer, spy_fill)
  SPY(clEnqueueMapBuffer, spy_map)
  SPY(clEnqueueUnmapMemObject, spy_unmap)
#undef SPY
  return out;
}

static void *spy_hook(void *user, const char *backend, const char *symbol, void *real) {
  (void)user, (void)backend;
  return spy_entry(symbol, real);
}

static int open_all(void **state) {
  gm_stream_kind kind;
  (void)state;
  f = (opencl_fixture){.ops = &gm__opencl_backend};
  opencl_fixture_host(&f.host);
  f.host.symbol_hook = spy_hook;
  gm_error err;
  if (f.ops->init(&f.host, &f.driver, &err) != GM_OK) opencl_fixture_absent(err.message);
  if (!opencl_fixture_choose(&f)) opencl_fixture_absent("the driver wanted is not there");
  assert_int_equal(f.ops->device_open(f.driver, f.index, &f.device, NULL), GM_OK);
  assert_int_equal(f.ops->stream_create(f.device, &f.stream, &kind, NULL), GM_OK);
  return 0;
}

static int close_all(void **state) {
  (void)state;
  opencl_fixture_close(&f);
  return 0;
}

static cl_mem parent_of(const gm_memory *memory) {
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  assert_int_equal(f.ops->memory_native(f.device, memory, 0, memory->bytes, &native.head, NULL), GM_OK);
  return (cl_mem)native.memory;
}

/* The block at `begin` and nothing of its neighbours. */
static void check_named(int which, cl_mem parent, bool viewed, size_t begin) {
  if (!viewed) {
    assert_ptr_equal(spy.named[which], parent);
    return;
  }
  assert_ptr_equal(spy.parent[which], parent);
  assert_in_range(spy.origin[which], begin, begin + BLOCK - 1);
  assert_in_range(spy.origin[which] + spy.bytes[which], begin + 1, begin + BLOCK);
}

static void check_commands(const gm_memory *memory, bool viewed) {
  const cl_mem parent = parent_of(memory);
  unsigned char bytes[300] = {7};
  const gm_copy_item across = {memory, 2 * BLOCK + 1, memory, 3 * BLOCK + 5, 100};
  const gm_copy_item within = {memory, 2 * BLOCK + 3, memory, 2 * BLOCK + 60, 50};
  void *mapped = NULL;
  const gm_backend_ops *ops = f.ops;
  assert_int_equal(ops->copy_to_device(f.device, f.stream, memory, 2 * BLOCK + 77, bytes, 300, NULL, NULL), GM_OK);
  check_named(0, parent, viewed, 2 * BLOCK);
  assert_int_equal(ops->copy_to_host(f.device, f.stream, memory, 3 * BLOCK - 300, bytes, 300, NULL, NULL), GM_OK);
  check_named(0, parent, viewed, 2 * BLOCK);
  assert_int_equal(ops->fill(f.device, f.stream, memory, 2 * BLOCK + 3, 201, "abcd", 4, NULL, NULL), GM_OK);
  check_named(0, parent, viewed, 2 * BLOCK);
  assert_int_equal(ops->copy(f.device, f.stream, &across, NULL, NULL), GM_OK);
  check_named(0, parent, viewed, 3 * BLOCK);
  check_named(1, parent, viewed, 2 * BLOCK);
  assert_int_equal(ops->copy(f.device, f.stream, &within, NULL, NULL), GM_OK);
  check_named(0, parent, viewed, 2 * BLOCK);
  check_named(1, parent, viewed, 2 * BLOCK);
  assert_int_equal(ops->map(f.device, f.stream, memory, 2 * BLOCK + 9, 99, GM_MAP_READ, &mapped, NULL), GM_OK);
  check_named(0, parent, viewed, 2 * BLOCK);
  assert_int_equal(ops->unmap(f.device, f.stream, memory, mapped, NULL), GM_OK);
  assert_int_equal(ops->stream_sync(f.device, f.stream, NULL), GM_OK);
}

/* Boxes: rows of 20 bytes, 90 apart, of the third block, and of the fourth one. */
static void check_boxes(const gm_memory *memory, bool viewed) {
  const cl_mem parent = parent_of(memory);
  unsigned char bytes[1000] = {7};
  const gm_rect out = {
      .row_bytes = 20, .rows = 5, .slices = 2, .src_offset = 2 * BLOCK + 7, .src_row_pitch = 90, .dst_row_pitch = 30};
  const gm_rect in = {
      .row_bytes = 20, .rows = 5, .slices = 2, .dst_offset = 2 * BLOCK + 7, .dst_row_pitch = 90, .src_row_pitch = 30};
  const gm_rect across = {.row_bytes = 20,
                          .rows = 5,
                          .slices = 2,
                          .src_offset = 2 * BLOCK + 7,
                          .src_row_pitch = 90,
                          .dst_offset = 3 * BLOCK + 1,
                          .dst_row_pitch = 80};
  gm_rect within = across;
  within.dst_offset = 2 * BLOCK + 30; /* between the rows that it reads */
  within.dst_row_pitch = 90;
  const gm_backend_ops *ops = f.ops;
  assert_int_equal(ops->rect_to_host(f.device, f.stream, memory, bytes, &out, NULL, NULL), GM_OK);
  check_named(0, parent, viewed, 2 * BLOCK);
  assert_int_equal(ops->rect_to_device(f.device, f.stream, memory, bytes, &in, NULL, NULL), GM_OK);
  check_named(0, parent, viewed, 2 * BLOCK);
  assert_int_equal(ops->rect_copy(f.device, f.stream, memory, memory, &across, NULL, NULL), GM_OK);
  check_named(0, parent, viewed, 3 * BLOCK);
  check_named(1, parent, viewed, 2 * BLOCK);
  assert_int_equal(ops->rect_copy(f.device, f.stream, memory, memory, &within, NULL, NULL), GM_OK);
  check_named(0, parent, viewed, 2 * BLOCK);
  check_named(1, parent, viewed, 2 * BLOCK);
}

/* The bytes go to gm's scratch and back. PoCL crashes when the box is in a sub-buffer. */
static void check_commit(const gm_memory *memory, bool viewed) {
  assert_int_equal(f.ops->commit(f.device, f.stream, memory, 2 * BLOCK, BLOCK, NULL), GM_OK);
  check_named(0, parent_of(memory), viewed && strcmp(f.info.driver, "pocl") != 0, 2 * BLOCK);
}

static void test_commands_name_what_the_engine_names(void **state) {
  (void)state;
  uint64_t view = 0;
  const gm_memory memory = opencl_fixture_alloc(&f, 0, BYTES);
  check_commands(&memory, false);
  check_boxes(&memory, false);
  check_commit(&memory, false);
  assert_int_equal(f.ops->view_create(f.device, &memory, 0, VIEW, 0, &view, NULL), GM_OK);
  check_commands(&memory, true);
  check_boxes(&memory, true);
  check_commit(&memory, true);
  assert_int_equal(f.ops->view_destroy(f.device, view, GM_CLOSE_NORMAL, NULL), GM_OK);
  check_commands(&memory, true); /* a kernel that was given it may still run */
  opencl_fixture_free(&f, &memory);
}

/* An engine that lends a sub-buffer uses sub-buffers. */
static void test_beside_a_wrapped_sub_buffer(void **state) {
  (void)state;
  uint64_t lent = 0;
  gm_memory wrapped;
  const gm_memory memory = opencl_fixture_alloc(&f, 0, BYTES);
  assert_int_equal(f.ops->view_create(f.device, &memory, BLOCK, BLOCK, 0, &lent, NULL), GM_OK);
  const gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}, .memory = (uintptr_t)lent};
  assert_int_equal(f.ops->memory_wrap(f.device, &native.head, &wrapped, NULL), GM_OK);
  assert_int_equal(f.ops->fill(f.device, f.stream, &wrapped, 10, 100, "x", 1, NULL, NULL), GM_OK);
  check_named(0, parent_of(&memory), true, BLOCK);
  opencl_fixture_free(&f, &wrapped);
  assert_int_equal(f.ops->view_destroy(f.device, lent, GM_CLOSE_NORMAL, NULL), GM_OK);
  opencl_fixture_free(&f, &memory);
}

static uint64_t random_below(uint64_t *random, uint64_t end) { return test_random(random) % end; }

static void model_box(unsigned char *dst, const unsigned char *src, const gm_rect *box) {
  for (uint64_t slice = 0; slice < box->slices; slice++) {
    for (uint64_t row = 0; row < box->rows; row++) {
      const uint64_t line = slice * box->rows + row; /* slices follow each other without a gap */
      memcpy(dst + box->dst_offset + line * box->dst_row_pitch, src + box->src_offset + line * box->src_row_pitch,
             box->row_bytes);
    }
  }
}

/* One random command, and what it does in plain memory. */
static void step(uint64_t *random, const gm_memory *memory, unsigned char *model) {
  static unsigned char bytes[BYTES];
  const uint64_t at = random_below(random, BYTES - 1), most = BYTES - at, count = 1 + random_below(random, most);
  const uint64_t half = 1 + random_below(random, BYTES / 2 - 1);
  const gm_copy_item item = {memory, 0, memory, BYTES - half, half};
  void *mapped = NULL;
  const gm_rect box = {.row_bytes = 1 + random_below(random, 50),
                       .rows = 1 + random_below(random, 40),
                       .slices = 1 + random_below(random, 3),
                       .src_offset = random_below(random, 8000),
                       .src_row_pitch = 50 + random_below(random, 30),
                       .dst_offset = 40000 + random_below(random, 8000),
                       .dst_row_pitch = 50 + random_below(random, 30)};
  switch (random_below(random, 8)) {
    case 0:
      for (uint64_t i = 0; i < count; i++) bytes[i] = (unsigned char)random_below(random, 256);
      assert_int_equal(f.ops->copy_to_device(f.device, f.stream, memory, at, bytes, count, NULL, NULL), GM_OK);
      memcpy(model + at, bytes, count);
      break;
    case 1:
      assert_int_equal(f.ops->copy_to_host(f.device, f.stream, memory, at, bytes, count, NULL, NULL), GM_OK);
      assert_memory_equal(bytes, model + at, count);
      break;
    case 2:
      assert_int_equal(f.ops->fill(f.device, f.stream, memory, at, count, "12345678", 8, NULL, NULL), GM_OK);
      for (uint64_t i = 0; i < count; i++) model[at + i] = (unsigned char)"12345678"[i % 8];
      break;
    case 3:
      assert_int_equal(f.ops->rect_copy(f.device, f.stream, memory, memory, &box, NULL, NULL), GM_OK);
      model_box(model, model, &box);
      break;
    case 4:
      for (uint64_t i = 0; i < BYTES; i++) bytes[i] = (unsigned char)random_below(random, 256);
      assert_int_equal(f.ops->rect_to_device(f.device, f.stream, memory, bytes, &box, NULL, NULL), GM_OK);
      model_box(model, bytes, &box);
      break;
    case 5: assert_int_equal(f.ops->commit(f.device, f.stream, memory, at, count, NULL), GM_OK); break;
    case 6:
      assert_int_equal(f.ops->copy(f.device, f.stream, &item, NULL, NULL), GM_OK);
      memcpy(model + BYTES - half, model, half);
      break;
    default:
      assert_int_equal(f.ops->map(f.device, f.stream, memory, at, count, GM_MAP_READ | GM_MAP_WRITE, &mapped, NULL),
                       GM_OK);
      assert_memory_equal(mapped, model + at, count);
      memset(mapped, 3, count);
      memset(model + at, 3, count);
      assert_int_equal(f.ops->unmap(f.device, f.stream, memory, mapped, NULL), GM_OK);
  }
}

static void test_bytes_arrive_where_they_belong(void **state) {
  (void)state;
  static unsigned char model[BYTES];
  uint64_t random = 11;
  uint64_t view = 0;
  const gm_memory memory = opencl_fixture_alloc(&f, 0, BYTES);
  assert_int_equal(f.ops->view_create(f.device, &memory, 0, VIEW, 0, &view, NULL), GM_OK);
  assert_int_equal(f.ops->fill(f.device, f.stream, &memory, 0, BYTES, "", 1, NULL, NULL), GM_OK);
  for (int i = 0; i < 300; i++) step(&random, &memory, model);
  assert_int_equal(f.ops->view_destroy(f.device, view, GM_CLOSE_NORMAL, NULL), GM_OK);
  opencl_fixture_free(&f, &memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_commands_name_what_the_engine_names),
      cmocka_unit_test(test_beside_a_wrapped_sub_buffer),
      cmocka_unit_test(test_bytes_arrive_where_they_belong),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
