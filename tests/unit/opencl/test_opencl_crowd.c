/* More queues than a pool follows one by one, all held up by one event of the engine. A thread that is to set that
 * event later frees on each of them, and must not be made to wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <semaphore.h>
#include <time.h>

#include "core/base/thread.h"
#include "gm/cleanup.h"
#include "support/named_libraries.h"
#include "support/opencl_fixture.h"
#include "support/pool_bench.h"

enum { QUEUES = 70, BYTES = 4096, PATIENCE = 300 }; /* the last in seconds: only a test that fails takes them */

typedef struct crowd_calls {
  cl_event(CL_API_CALL *create)(cl_context context, cl_int *errcode);
  cl_int(CL_API_CALL *set)(cl_event event, cl_int status);
  cl_int(CL_API_CALL *barrier)(cl_command_queue queue, cl_uint count, const cl_event *waits, cl_event *out);
} crowd_calls;

typedef struct crowd_test {
  opencl_fixture fixture;
  opencl_engine engine;
  crowd_calls calls;
  cl_event gate;
  pool_bench bench;
  cl_command_queue queues[QUEUES];
  gm_stream *streams[QUEUES];
  gm__thread guard;
  sem_t end; /* of the guard */
  bool waited;
} crowd_test;

/* Opens the gate when a free waits for it, so that the test fails and does not hang. */
static void guard_gate(void *argument) {
  crowd_test *test = argument;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += PATIENCE;
  int code;
  do {
    code = sem_timedwait(&test->end, &until);
  } while (code != 0 && errno == EINTR);
  test->waited = code != 0;
  if (test->waited) test->calls.set(test->gate, CL_COMPLETE);
}

static void crowd_open_engine(crowd_test *test) {
  const gm__symbol symbols[] = {{"clCreateUserEvent", offsetof(crowd_calls, create), true},
                                {"clSetUserEventStatus", offsetof(crowd_calls, set), true},
                                {"clEnqueueBarrierWithWaitList", offsetof(crowd_calls, barrier), true}};
  cl_int code = CL_SUCCESS;
  opencl_fixture_open(&test->fixture);
  if (!strcmp(test->fixture.info.driver, "oclgrind")) skip(); /* it works when it is called: the barrier would wait */
  opencl_engine_open(&test->engine, &test->fixture);
  assert_int_equal(gm__dynlib_resolve(test->engine.lib, symbols, 3, &test->calls, NULL, NULL, NULL), GM_OK);
  test->gate = test->calls.create(test->engine.context, &code);
  assert_int_equal(code, CL_SUCCESS);
}

static void crowd_open_queue(crowd_test *test, int i) {
  cl_int code = CL_SUCCESS;
  test->queues[i] = test->engine.cl.clCreateCommandQueue(test->engine.context, test->engine.device, 0, &code);
  assert_int_equal(code, CL_SUCCESS);
  const gm_opencl_queue native = {.head = {sizeof native, GM_API_OPENCL}, .queue = (uintptr_t)test->queues[i]};
  pool_bench_ok(gm_stream_adopt(test->bench.device, &native.head, &test->streams[i], err));
  assert_int_equal(test->calls.barrier(test->queues[i], 1, &test->gate, NULL), CL_SUCCESS);
}

static void crowd_open(crowd_test *test, gm_strategy strategy) {
  gm_context_params context = {.struct_size = sizeof context, .libraries = named_libraries()};
  const gm_pool_params pool = {.struct_size = sizeof pool, .strategy = strategy};
  crowd_open_engine(test);
  const gm_opencl_device native = {.head = {sizeof native, GM_API_OPENCL},
                                   .device = (uintptr_t)test->engine.device,
                                   .context = (uintptr_t)test->engine.context};
  counted_services_init(&test->bench.host);
  context.services = &test->bench.host.services;
  context.ignore_environment = true;
  pool_bench_ok(gm_context_create(&context, &test->bench.ctx, err));
  pool_bench_ok(gm_device_adopt(test->bench.ctx, &native.head, &test->bench.device, err));
  pool_bench_ok(gm_pool_create(test->bench.device, &pool, &test->bench.pool, err));
  for (int i = 0; i < QUEUES; i++) crowd_open_queue(test, i);
}

static void crowd_close(crowd_test *test) {
  for (int i = 0; i < QUEUES; i++) {
    pool_bench_ok(gm_stream_close(test->streams[i], err));
    assert_int_equal(test->engine.cl.clReleaseCommandQueue(test->queues[i]), CL_SUCCESS);
  }
  pool_bench_close(&test->bench);
  assert_int_equal(test->engine.cl.clReleaseEvent(test->gate), CL_SUCCESS);
  opencl_engine_close(&test->engine);
  opencl_fixture_close(&test->fixture);
}

static void free_on_each(crowd_test *test) {
  gm_block blocks[QUEUES];
  for (int i = 0; i < QUEUES; i++) {
    const gm_request request = {.bytes = BYTES, .stream = test->streams[i]};
    assert_true(gm_acquired(gm_alloc(test->bench.pool, &request, &blocks[i])));
    assert_int_equal(gm_use_on(test->bench.pool, &blocks[i], test->streams[QUEUES - 1 - i]), GM_OK);
    assert_int_equal(gm_free(test->bench.pool, &blocks[i], test->streams[i]), GM_OK);
  }
}

static void test_no_free_waits_for_the_event(void **state) {
  static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};
  (void)state;
  for (int i = 0; i < 2; i++) {
    crowd_test test = {0};
    crowd_open(&test, strategies[i]);
    sem_init(&test.end, 0, 0);
    assert_int_equal(gm__thread_create(&test.guard, "guard", guard_gate, &test, NULL), GM_OK);
    free_on_each(&test);
    sem_post(&test.end);
    gm__thread_join(&test.guard);
    sem_destroy(&test.end);
    assert_false(test.waited);
    assert_int_equal(gm_pool_trim(test.bench.pool, 0), 0);
    assert_int_equal(test.calls.set(test.gate, CL_COMPLETE), CL_SUCCESS);
    for (int at = 0; at < QUEUES; at++) pool_bench_ok(gm_stream_sync(test.streams[at], err));
    gm_pool_trim(test.bench.pool, 0);
    assert_int_equal(pool_bench_stats(&test.bench).reserved_bytes, 0);
    crowd_close(&test);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_free_waits_for_the_event)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
