/* Native objects of exactly a range, and blocks that are mapped for life, on a real OpenCL driver. Plain buffers are
 * mapped on a queue alone. Over fine-grained shared virtual memory a pointer suffices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/heap/object_sweep.h"
#include "core/pool/pool.h"
#include "gm/copy.h"
#include "support/opencl_fixture.h"
/* after the fixture */
#include "support/pool_bench.h"
#include "support/random.h"

enum { ROUNDS = 10 };

static opencl_fixture f;
static opencl_engine engine;

/* How many sub-buffers gm made. */
static struct {
  __typeof__(engine.cl.clCreateSubBuffer) real;
  unsigned made;
} counter;

OPENCL_ENGINE_GROUP(f, engine)

static cl_mem count_sub_buffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *region,
                               cl_int *code) {
  counter.made++;
  return counter.real(buffer, flags, type, region, code);
}

/* Function pointers go through memory: ISO C has no cast from them to void *. */
static void *count_hook(void *user, const char *backend, const char *symbol, void *real) {
  (void)user, (void)backend;
  void *out = real;
  if (strcmp(symbol, "clCreateSubBuffer") == 0) {
    __typeof__(counter.real) entry = count_sub_buffer;
    memcpy(&counter.real, &real, sizeof real);
    memcpy(&out, &entry, sizeof out);
  }
  return out;
}

/* The engine's context with gm on it: the objects are of the engine's context, so its queue can use them. */
typedef struct scene {
  gm_context *ctx;
  gm_device *device;
  gm_stream *stream;
  gm_pool *pool;
} scene;

static void scene_open(scene *s, const char *options) {
  const gm_context_params params = {
      .struct_size = sizeof params, .ignore_environment = true, .backend_options = options, .symbol_hook = count_hook};
  counter.made = 0;
  const gm_opencl_device native = {.head = {sizeof native, GM_API_OPENCL},
                                   .device = (uintptr_t)engine.device,
                                   .context = (uintptr_t)engine.context,
                                   .allow_queue = true};
  const gm_opencl_queue queue = {.head = {sizeof queue, GM_API_OPENCL}, .queue = (uintptr_t)engine.queue};
  pool_bench_ok(gm_context_create(&params, &s->ctx, err));
  pool_bench_ok(gm_device_adopt(s->ctx, &native.head, &s->device, err));
  pool_bench_ok(gm_stream_adopt(s->device, &queue.head, &s->stream, err));
  pool_bench_ok(gm_pool_create(s->device, NULL, &s->pool, err));
}

static void scene_close(scene *s) {
  pool_bench_ok(gm_pool_destroy(s->pool, err));
  pool_bench_ok(gm_stream_close(s->stream, err));
  pool_bench_ok(gm_device_close(s->device, err));
  pool_bench_ok(gm_context_destroy(s->ctx, err));
}

static gm_opencl_memory object(scene *s, const gm_block *block, uint64_t offset, uint64_t bytes) {
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  pool_bench_ok(gm_block_object(s->pool, block, offset, bytes, &native.head, err));
  assert_true(native.bytes == bytes && !native.view != !native.pointer);
  return native;
}

/* A sub-buffer of exactly these bytes: the driver says so, and what the engine writes there is in the block. */
static void check_object(scene *s, const gm_block *block, uint64_t offset, uint64_t bytes, unsigned char value) {
  const gm_opencl_memory native = object(s, block, offset, bytes);
  size_t has = 0;
  unsigned char read = 0;
  assert_int_equal(engine.cl.clGetMemObjectInfo((cl_mem)native.view, CL_MEM_SIZE, sizeof has, &has, NULL), CL_SUCCESS);
  assert_int_equal(has, bytes);
  assert_int_equal(
      engine.cl.clEnqueueFillBuffer(engine.queue, (cl_mem)native.view, &value, 1, bytes - 1, 1, 0, NULL, NULL),
      CL_SUCCESS);
  assert_int_equal(engine.cl.clFinish(engine.queue), CL_SUCCESS);
  pool_bench_ok(gm_block_read(s->pool, block, offset + bytes - 1, &read, 1, s->stream, NULL, err));
  assert_int_equal(read, value);
}

static void test_sub_buffers(void **state) {
  (void)state;
  scene s;
  gm_block block;
  uint64_t seed = 3;
  uintptr_t first = 0;
  scene_open(&s, "opencl:memory=buffer");
  const uint64_t unit = gm_device_get_info(s.device)->alignment;
  const gm_request request = {.bytes = 16 * unit, .flags = GM_INSERT_WAIT, .stream = s.stream};
  for (int i = 0; i < 200; i++) {
    assert_true(gm_acquired(gm_alloc(s.pool, &request, &block)));
    const uintptr_t whole = object(&s, &block, 0, 16 * unit).view;
    if (!first) first = whole;
    assert_true(whole == first); /* of the block that was here before */
    const uint64_t at = test_random(&seed) % 16;
    if (i % 8 == 0) check_object(&s, &block, at * unit, unit * (1 + test_random(&seed) % (16 - at)), (unsigned char)i);
    assert_int_equal(gm_free(s.pool, &block, s.stream), GM_OK);
  }
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  assert_true(gm_acquired(gm_alloc(s.pool, &request, &block)));
  assert_int_equal(gm_block_object(s.pool, &block, 1, 8, &native.head, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_object(s.pool, &block, 0, 0, &native.head, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_object(s.pool, &block, 0, 8, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_object(s.pool, &block, unit, 16 * unit, &native.head, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(s.pool, &block, s.stream), GM_OK);
  assert_int_equal(gm_block_object(s.pool, &block, 0, 8, &native.head, NULL), GM_ERR_INVALID_ARGUMENT);
  scene_close(&s);
}

static uint32_t kept(const scene *s) { return atomic_load(&s->pool->heap.provider.object_count); }

/* An engine's step: one block after the other, each of another size at the same place, so each with another object. */
static unsigned made_in_a_round(scene *s, uint64_t unit, unsigned first, unsigned count) {
  const unsigned before = counter.made;
  for (unsigned i = first; i < first + count; i++) {
    const gm_request request = {.bytes = unit * (i + 1), .flags = GM_INSERT_WAIT, .stream = s->stream};
    gm_block block;
    assert_true(gm_acquired(gm_alloc(s->pool, &request, &block)));
    (void)object(s, &block, 0, request.bytes);
    assert_int_equal(gm_free(s->pool, &block, s->stream), GM_OK);
    assert_in_range(kept(s), 1, 2 * GM__OBJECTS_LEAST + 1);
    pool_bench_ok(gm_stream_sync(s->stream, err));
  }
  return counter.made - before;
}

/* More objects than a pool keeps for ever: a loop over them finds all, or many of them, in each later round. */
static void test_a_loop_over_many_objects(void **state) {
  (void)state;
  static const struct {
    unsigned objects, most; /* so many of them may be made in a later round */
  } loops[] = {{300, 0}, {500, 0}, {600, 450}, {1000, 950}};
  for (unsigned i = 0; i < sizeof loops / sizeof *loops; i++) {
    scene s;
    scene_open(&s, "opencl:memory=buffer");
    const uint64_t unit = gm_device_get_info(s.device)->alignment;
    assert_int_equal(made_in_a_round(&s, unit, 0, loops[i].objects), loops[i].objects);
    for (unsigned round = 1; round < ROUNDS; round++) {
      const unsigned made = made_in_a_round(&s, unit, 0, loops[i].objects);
      if (made > loops[i].most) fail_msg("%u objects, round %u: %u made", loops[i].objects, round, made);
    }
    scene_close(&s);
  }
}

/* The engine's work changes: objects of the old work make room for those of the new one. */
static void test_another_loop_takes_over(void **state) {
  (void)state;
  scene s;
  scene_open(&s, "opencl:memory=buffer");
  const uint64_t unit = gm_device_get_info(s.device)->alignment;
  for (unsigned round = 0; round < ROUNDS; round++) (void)made_in_a_round(&s, unit, 0, 300);
  for (unsigned round = 0; round < ROUNDS; round++) (void)made_in_a_round(&s, unit, 1000, 300);
  assert_int_equal(made_in_a_round(&s, unit, 1000, 300), 0);
  scene_close(&s);
}

/* A dedicated block is the whole cl_mem: no sub-buffer is made. */
static void test_a_dedicated_block_is_its_object(void **state) {
  (void)state;
  scene s;
  gm_block block;
  scene_open(&s, "opencl:memory=buffer");
  const gm_request request = {.bytes = 100004, .flags = GM_DEDICATED | GM_INSERT_WAIT, .stream = s.stream};
  assert_true(gm_acquired(gm_alloc(s.pool, &request, &block)));
  const gm_opencl_memory native = object(&s, &block, 0, block.bytes);
  assert_int_equal(block.bytes, 100004);
  assert_true(native.view == native.memory && native.offset == 0 && native.memory_bytes == 100004);
  assert_int_equal(atomic_load(&s.pool->heap.provider.object_count), 0);
  check_object(&s, &block, 0, 100004, 77);
  assert_int_equal(gm_free(s.pool, &block, s.stream), GM_OK);
  scene_close(&s);
}

/* The engine fills some bytes of a buffer itself. */
static void engine_fill(uint64_t buffer, uint64_t offset, unsigned char value, size_t bytes) {
  assert_int_equal(engine.cl.clEnqueueFillBuffer(engine.queue, (cl_mem)(uintptr_t)buffer, &value, 1, (size_t)offset,
                                                 bytes, 0, NULL, NULL),
                   CL_SUCCESS);
}

/* A queue alone maps a plain buffer: nothing of it is mapped for life, or without a wait. Several maps are fine. */
static void test_buffers_are_mapped_by_a_queue(void **state) {
  (void)state;
  scene s;
  gm_block block;
  void *one = NULL, *two = NULL;
  scene_open(&s, "opencl:memory=buffer");
  const gm_request mapped = {
      .bytes = 4096, .must_be = GM_DEVICE_ACCESSIBLE, .flags = GM_MAPPED, .memory_types = 3 /* the plain ones */};
  const gm_request visible = {.bytes = 4096, .flags = GM_HOST_VISIBLE};
  gm_explanation why = {.struct_size = sizeof why};
  assert_int_equal(gm_alloc(s.pool, &mapped, &block), GM_ACQUIRE_INVALID);
  pool_bench_ok(gm_explain(s.pool, &mapped, &why, err));
  assert_int_equal(why.status, GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(why.text, "GM_MAPPED"));
  assert_true(gm_acquired(gm_alloc(s.pool, &visible, &block)));
  assert_int_equal(gm_block_map(s.pool, &block, 0, 8, GM_MAP_READ | GM_MAP_NO_WAIT, NULL, &one, NULL),
                   GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_block_host(s.pool, &block, &one, NULL), GM_ERR_NOT_SUPPORTED);
  pool_bench_ok(gm_block_map(s.pool, &block, 0, 64, GM_MAP_WRITE, s.stream, &one, err));
  pool_bench_ok(gm_block_map(s.pool, &block, 1024, 64, GM_MAP_WRITE, s.stream, &two, err));
  assert_int_equal(gm_free(s.pool, &block, s.stream), GM_ERR_BUSY);
  pool_bench_ok(gm_block_unmap(s.pool, &block, one, s.stream, err));
  assert_int_equal(gm_free(s.pool, &block, s.stream), GM_ERR_BUSY);
  pool_bench_ok(gm_block_unmap(s.pool, &block, two, s.stream, err));
  pool_bench_ok(gm_stream_sync(s.stream, err));
  assert_int_equal(gm_free(s.pool, &block, s.stream), GM_OK);
  scene_close(&s);
}

/* Over fine-grained shared virtual memory a block is a buffer for kernels, and a pointer for the host, at once. PoCL
 * has it. The engine's own commands name the buffer, the parent and a sub-buffer of the block. */
static void test_a_buffer_that_the_host_shares(void **state) {
  (void)state;
  scene s;
  gm_block before, block;
  void *host = NULL, *at_once = NULL;
  unsigned char got[100] = {0};
  scene_open(&s, "opencl:memory=buffer");
  const gm_request mapped = {.bytes = 5000, .must_be = GM_DEVICE_LOCAL, .flags = GM_MAPPED | GM_INSERT_WAIT};
  const gm_acquire answer = gm_alloc(s.pool, &mapped, &before);
  assert_true(gm_acquired(answer) || strcmp(gm_device_get_info(s.device)->driver, "pocl") != 0);
  if (gm_acquired(answer)) {
    assert_true(gm_acquired(gm_alloc(s.pool, &mapped, &block)));
    const gm_opencl_memory native = object(&s, &block, 0, 5000);
    assert_true(native.memory != 0 && native.view != 0 && native.pointer == 0);
    pool_bench_ok(gm_block_host(s.pool, &block, &host, err));
    pool_bench_ok(gm_block_map(s.pool, &block, 9, 8, GM_MAP_READ | GM_MAP_NO_WAIT, NULL, &at_once, err));
    assert_ptr_equal(at_once, (char *)host + 9);
    memset(host, 'h', 5000);
    engine_fill(native.view, 0, 'v', 64);
    engine_fill(native.memory, native.offset + 4096, 'p', 64);
    assert_int_equal(engine.cl.clFinish(engine.queue), CL_SUCCESS);
    for (unsigned i = 0; i < 5000; i++) {
      const bool parent = i >= 4096 && i < 4160;
      assert_int_equal(((unsigned char *)host)[i], i < 64 ? 'v' : parent ? 'p' : 'h');
    }
    memset(host, 'k', sizeof got);
    pool_bench_ok(gm_block_read(s.pool, &block, 0, got, sizeof got, s.stream, NULL, err));
    assert_memory_equal(got, host, sizeof got);
    pool_bench_ok(gm_block_unmap(s.pool, &block, at_once, NULL, err));
    assert_int_equal(gm_free(s.pool, &block, s.stream), GM_OK);
    assert_int_equal(gm_free(s.pool, &before, s.stream), GM_OK);
  }
  scene_close(&s);
}

/* A pool ends by force: mappings are ended on a queue, and sub-buffers that the queue still uses go behind its work. */
static void test_a_forced_end(void **state) {
  (void)state;
  scene s;
  gm_block block, other;
  void *one = NULL, *two = NULL;
  gm_error why = {.status = GM_OK};
  scene_open(&s, "opencl:memory=buffer");
  gm_pool *pool = s.pool;
  pool_bench_ok(gm_pool_create(s.device, NULL, &s.pool, err));
  const gm_request visible = {.bytes = 1 << 20, .flags = GM_HOST_VISIBLE | GM_INSERT_WAIT, .stream = s.stream};
  assert_true(gm_acquired(gm_alloc(pool, &visible, &block)) && gm_acquired(gm_alloc(pool, &visible, &other)));
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  pool_bench_ok(gm_block_object(pool, &other, 4096, 4096, &native.head, err));
  const unsigned char value = 7;
  for (int i = 0; i < 100; i++) {
    assert_int_equal(
        engine.cl.clEnqueueFillBuffer(engine.queue, (cl_mem)native.view, &value, 1, 0, 4096, 0, NULL, NULL),
        CL_SUCCESS);
  }
  pool_bench_ok(gm_block_map(pool, &block, 0, 64, GM_MAP_WRITE, s.stream, &one, err));
  pool_bench_ok(gm_block_map(pool, &block, 1024, 64, GM_MAP_READ, NULL, &two, err));
  assert_int_equal(gm_pool_destroy_force(pool, &why), GM_OK);
  assert_non_null(strstr(why.message, "2 blocks of 2097152 bytes"));
  assert_non_null(strstr(why.message, " 0 streams "));
  assert_int_equal(gm_block_unmap(pool, &block, one, s.stream, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(pool, &block, s.stream), GM_ERR_INVALID_ARGUMENT);
  scene_close(&s);
}

/* Where blocks have addresses the object is a pointer. A type of another kind serves by its index alone. */
static void test_addresses_and_types_apart(void **state) {
  (void)state;
  scene s;
  gm_block block;
  scene_open(&s, "opencl:memory=svm");
  uint32_t count = 0;
  pool_bench_ok(gm_device_memory_type_count(s.device, &count, err));
  for (uint32_t i = 0; i < count; i++) {
    gm_memory_type type = {.struct_size = sizeof type};
    pool_bench_ok(gm_device_memory_type(s.device, i, &type, err));
    if (type.flags & GM_MEMORY_MANAGED) continue;
    const gm_request request = {.bytes = 4096, .must_be = GM_DEVICE_ACCESSIBLE, .memory_types = UINT32_C(1) << i};
    assert_true(gm_acquired(gm_alloc(s.pool, &request, &block)));
    gm_memory memory;
    uint64_t offset;
    assert_int_equal(gm_block_memory(s.pool, &block, &memory, &offset), GM_OK);
    assert_int_equal(memory.type, i);
    const gm_opencl_memory native = object(&s, &block, 0, 4096);
    assert_int_equal(!native.pointer, (type.flags & GM_MEMORY_APART) != 0 && memory.address == 0);
    void *host = NULL;
    const gm_status stays = gm_block_host(s.pool, &block, &host, NULL);
    assert_int_equal(stays, type.flags & GM_MEMORY_PERSISTENT_MAP ? GM_OK : GM_ERR_NOT_SUPPORTED);
    assert_int_equal(gm_free(s.pool, &block, NULL), GM_OK);
  }
  scene_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sub_buffers),
                                     cmocka_unit_test(test_a_loop_over_many_objects),
                                     cmocka_unit_test(test_another_loop_takes_over),
                                     cmocka_unit_test(test_a_dedicated_block_is_its_object),
                                     cmocka_unit_test(test_buffers_are_mapped_by_a_queue),
                                     cmocka_unit_test(test_a_buffer_that_the_host_shares),
                                     cmocka_unit_test(test_a_forced_end),
                                     cmocka_unit_test(test_addresses_and_types_apart)};
  return cmocka_run_group_tests(tests, open_all, close_all);
}
