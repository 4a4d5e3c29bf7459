/* The host computes on buffers under a lock, above all on those that fell back. The card is that of test_buffer.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/error.h"
#include "core/base/thread.h"
#include "core/context/context.h"
#include "gm/buffer.h"
#include "gm/relocation.h"
#include "support/pinned_card.h"

enum { FLOATS = 1 << 18, LEFT = 0xDB }; /* a buffer of 1 MiB; what a debug build leaves in an old place */

static unsigned point_waits;
static bool break_waits;

gm_status __real_gm_point_wait(gm_device *device, const gm_point *point, uint64_t timeout_ns, gm_error *err);
gm_status __wrap_gm_point_wait(gm_device *device, const gm_point *point, uint64_t timeout_ns, gm_error *err);
gm_status __wrap_gm_point_wait(gm_device *device, const gm_point *point, uint64_t timeout_ns, gm_error *err) {
  point_waits++;
  if (break_waits) return gm__fail(err, GM_ERR_DRIVER, "gm_point_wait", "the test breaks the wait");
  return __real_gm_point_wait(device, point, timeout_ns, err);
}

static gm_buffer *make(const pool_bench *bench, gm_fallback fallback) {
  const gm_buffer_params params = {
      .struct_size = sizeof params, .request = {.bytes = MIB, .flags = GM_RELOCATABLE}, .fallback = fallback};
  gm_buffer *buffer = NULL;
  pool_bench_ok(gm_buffer_create(bench->pool, &params, &buffer, err));
  return buffer;
}

static float *begin(gm_buffer *buffer) {
  void *host = NULL;
  pool_bench_ok(gm_buffer_lock(buffer, NULL, err));
  pool_bench_ok(gm_buffer_host(buffer, &host, err));
  return host;
}

static void end(gm_buffer *buffer) { pool_bench_ok(gm_buffer_unlock(buffer, NULL, err)); }

/* The kernel: y = a * x + y. */
static void saxpy(float a, gm_buffer *x, gm_buffer *y) {
  const float *from = begin(x);
  float *to = begin(y);
  for (int i = 0; i < FLOATS; i++) to[i] += a * from[i];
  end(x);
  end(y);
}

static void fill(gm_buffer *buffer, float first) {
  float *host = begin(buffer);
  for (int i = 0; i < FLOATS; i++) host[i] = first + (float)i;
  end(buffer);
}

/* Every buffer that fell is computed on where it is, and its contents go with it to the card. */
static void test_a_kernel_of_the_host_on_buffers_that_fell(void **state) {
  (void)state;
  for (int no_pointer = 0; no_pointer < 2; no_pointer++) {
    pool_bench bench;
    gm_buffer *buffers[6];
    unsigned at[3] = {0};
    card.no_pointer = no_pointer;
    open_card(&bench, 2 * MIB, 2 * MIB);
    for (int i = 0; i < 6; i++) {
      buffers[i] = make(&bench, GM_FALLBACK_HOST);
      at[gm_buffer_location(buffers[i])]++;
      fill(buffers[i], (float)i);
    }
    assert_int_equal(at[GM_LOCATION_PINNED], 2);
    assert_int_equal(at[GM_LOCATION_HOST], 2);
    for (int i = 1; i < 6; i++) saxpy(2, buffers[0], buffers[i]);
    for (int i = 1; i < 6; i++) {
      float last = 0;
      if (i == 2) gm_buffer_release(buffers[0], NULL); /* room for one that fell */
      if (i == 5) pool_bench_ok(gm_buffer_promote(buffers[i], NULL, err));
      pool_bench_ok(gm_buffer_read(buffers[i], MIB - sizeof last, &last, sizeof last, NULL, err));
      assert_true(last == (float)(i + 3 * (FLOATS - 1)));
      gm_buffer_release(buffers[i], NULL);
    }
    assert_int_equal(card.maps, card.unmaps);
    card.no_pointer = false;
    pool_bench_close(&bench);
  }
}

static void test_what_has_no_pointer(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  void *host = &bench;
  open_card(&bench, 0, 0);
  gm_buffer *buffer = make(&bench, GM_FALLBACK_HOST);
#define REFUSED(call) assert_int_equal((call), GM_ERR_INVALID_ARGUMENT)
  REFUSED(gm_buffer_host(buffer, &host, &failure)); /* nobody has locked it */
  assert_non_null(strstr(failure.message, "gm_buffer_lock"));
  REFUSED(gm_buffer_host(NULL, &host, &failure));
  begin(buffer);
  REFUSED(gm_buffer_host(buffer, NULL, &failure));
  end(buffer);
  REFUSED(gm_buffer_host(buffer, &host, &failure)); /* not any more */
  REFUSED(gm_buffer_unlock(buffer, NULL, &failure));
  assert_ptr_equal(host, &bench);
  gm_buffer_release(buffer, NULL);
  pool_bench_close(&bench);

  pool_bench_open(&bench, "null", NULL, NULL); /* a device that the host does not see */
  buffer = make(&bench, GM_FALLBACK_REFUSE);
  pool_bench_ok(gm_buffer_lock(buffer, NULL, err));
  assert_int_equal(gm_buffer_host(buffer, &host, &failure), GM_ERR_NOT_SUPPORTED);
  assert_string_equal(failure.op, "gm_buffer_host");
  assert_ptr_equal(host, &bench);
  end(buffer);
  pool_bench_ok(gm_pool_sleep(bench.pool, false, NULL, NULL, err));
  pool_bench_ok(gm_buffer_lock(buffer, NULL, err));
  assert_int_equal(gm_buffer_host(buffer, &host, &failure), GM_ERR_BUSY); /* it sleeps without its contents */
  end(buffer);
  gm_buffer_release(buffer, NULL);
  pool_bench_close(&bench);
}

static void test_a_locked_buffer_stays(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  open_card(&bench, 0, MIB);
  for (int i = 0; i < 2; i++) {
    gm_buffer *buffer = make(&bench, i ? GM_FALLBACK_HOST : GM_FALLBACK_PINNED);
    const float *host = begin(buffer);
    assert_ptr_equal(begin(buffer), host); /* a second lock sees the same bytes */
    end(buffer);
    card.local_left = MIB;
    assert_int_equal(gm_buffer_move(buffer, GM_LOCATION_DEVICE, NULL, &failure), GM_ERR_BUSY);
    assert_ptr_equal(begin(buffer), host); /* one lock of two went, so the pointer is good still */
    point_waits = 0;
    end(buffer);
    end(buffer);
    assert_int_equal(point_waits, 0); /* nothing was unmapped */
    pool_bench_ok(gm_buffer_move(buffer, GM_LOCATION_DEVICE, NULL, err));
    gm_buffer_release(buffer, NULL);
  }
  pool_bench_close(&bench);
}

/* Where the API maps by a command, the buffer is mapped once for all locks, and unmapped with the last. */
static void test_a_mapping_ends_with_the_last_lock(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  gm_block block;
  card.no_pointer = true;
  open_card(&bench, 0, MIB);
  gm_buffer *buffer = make(&bench, GM_FALLBACK_PINNED);
  begin(buffer);
  begin(buffer);
  assert_int_equal(card.maps, 1);
  end(buffer);
  assert_int_equal(card.unmaps, 0);
  card.break_unmap = true;
  assert_int_equal(gm_buffer_unlock(buffer, NULL, &failure), GM_ERR_DRIVER);
  card.break_unmap = false;
  assert_int_equal(gm_buffer_move(buffer, GM_LOCATION_HOST, NULL, &failure), GM_ERR_BUSY); /* the lock is still there */
  pool_bench_ok(gm_buffer_lock(buffer, &block, err));
  end(buffer);
  end(buffer);
  assert_int_equal(card.maps, 1);
  assert_int_equal(card.unmaps, 1);
  gm_buffer_release(buffer, NULL);
  card.no_pointer = false;
  pool_bench_close(&bench);
}

/* The mapping has ended, and the wait for that fails. The lock is still there, without a pointer that is good no more.
 * The next unlock waits again; a new pointer is a new mapping. */
static void test_a_mapping_that_nobody_has_waited_for(void **state) {
  (void)state;
  for (int again = 0; again < 2; again++) {
    pool_bench bench;
    gm_error failure = {.status = GM_OK};
    card.no_pointer = true;
    open_card(&bench, 0, MIB);
    gm_buffer *buffer = make(&bench, GM_FALLBACK_PINNED);
    fill(buffer, 3);
    begin(buffer);
    break_waits = true;
    for (int i = 0; i < 2; i++) {
      assert_int_equal(gm_buffer_unlock(buffer, NULL, &failure), GM_ERR_DRIVER);
      assert_int_equal(card.unmaps, 2);
    }
    break_waits = false;
    assert_int_equal(gm_buffer_move(buffer, GM_LOCATION_HOST, NULL, &failure), GM_ERR_BUSY);
    if (again) {
      void *host = NULL;
      pool_bench_ok(gm_buffer_host(buffer, &host, err));
      assert_int_equal(card.maps, 3);
      assert_true(((float *)host)[FLOATS - 1] == (float)(2 + FLOATS));
    }
    point_waits = 0;
    end(buffer);
    assert_int_equal(point_waits, 1);
    assert_int_equal(card.unmaps, card.maps);
    assert_int_equal(gm_buffer_unlock(buffer, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
    pool_bench_ok(gm_buffer_move(buffer, GM_LOCATION_HOST, NULL, err));
    gm_buffer_release(buffer, NULL);
    card.no_pointer = false;
    pool_bench_close(&bench);
  }
}

static void test_the_host_waits_for_work_that_an_unlock_noted(void **state) {
  (void)state;
  pool_bench bench;
  gm_stream *stream = NULL;
  open_card(&bench, 0, MIB);
  gm_buffer *buffer = make(&bench, GM_FALLBACK_PINNED);
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  begin(buffer);
  pool_bench_ok(gm_buffer_unlock(buffer, stream, err));
  pool_bench_ok(gm_buffer_lock(buffer, NULL, err));
  point_waits = 0;
  void *host = NULL;
  pool_bench_ok(gm_buffer_host(buffer, &host, err));
  assert_int_equal(point_waits, 1);
  end(buffer);
  gm_buffer_release(buffer, stream);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_close(&bench);
}

/* ---- a pointer that somebody kept ---- */

static struct {
  const unsigned char *kept;
  unsigned char seen[2]; /* the first and the last byte, when the memory went */
  bool gone;
} watched;

static void watch_release(void *user, void *ptr, size_t bytes) {
  if (ptr == watched.kept) {
    watched.gone = true;
    watched.seen[0] = watched.kept[0];
    watched.seen[1] = watched.kept[bytes - 1];
  }
  counted_release(user, ptr, bytes);
}

/* In debug builds it sees the pattern, and then freed memory. The contents are where the next lock finds them. */
static void test_a_kept_pointer_is_poisoned(void **state) {
  (void)state;
#ifdef NDEBUG
  skip(); /* that is for debug builds */
#endif
  pool_bench bench;
  open_card(&bench, 0, 0);
  gm_buffer *buffer = make(&bench, GM_FALLBACK_HOST);
  bench.ctx->services.release = watch_release;
  fill(buffer, 7);
  for (int last = 0; last < 2; last++) {
    float *host = begin(buffer);
    memset(&watched, 0, sizeof watched);
    watched.kept = (unsigned char *)host;
    assert_true(host[0] == 7 && host[FLOATS - 1] == (float)(6 + FLOATS));
    end(buffer);
    assert_true(watched.gone);
    assert_int_equal(watched.seen[0], LEFT);
    assert_int_equal(watched.seen[1], LEFT);
  }
  const float *host = begin(buffer); /* and where there is no memory for another place, it stays */
  bench.host.fail_at = atomic_load(&bench.host.calls) + 1;
  end(buffer);
  bench.host.fail_at = 0;
  assert_ptr_equal(begin(buffer), host);
  end(buffer);
  gm_buffer_release(buffer, NULL);
  pool_bench_close(&bench);
}

/* ---- threads ---- */

enum { THREADS = 3, ROUNDS = 200, SLICE = 64 };

typedef struct worker {
  gm_buffer *buffer;
  gm__thread thread;
  unsigned slice;
  bool wrong;
} worker;

/* Each thread has bytes of its own, which no other thread's lock, copy or unlock loses. */
static void count_up(void *arg) {
  worker *self = arg;
  const uint64_t at = (uint64_t)self->slice * SLICE;
  for (uint32_t i = 0; i < ROUNDS && !self->wrong; i++) {
    void *host = NULL;
    uint32_t seen = 0;
    self->wrong = gm_buffer_lock(self->buffer, NULL, NULL) || gm_buffer_host(self->buffer, &host, NULL);
    if (self->wrong) break;
    uint32_t *counter = (uint32_t *)((char *)host + at);
    self->wrong = *counter != i;
    *counter = i + 1;
    self->wrong |= gm_buffer_unlock(self->buffer, NULL, NULL) != GM_OK;
    self->wrong |= gm_buffer_read(self->buffer, at, &seen, sizeof seen, NULL, NULL) || seen != i + 1;
  }
}

static void test_threads_lock_one_buffer(void **state) {
  (void)state;
  for (int pinned = 0; pinned < 3; pinned++) {
    pool_bench bench;
    worker workers[THREADS];
    card.no_pointer = pinned == 2;
    open_card(&bench, 0, pinned ? MIB : 0);
    gm_buffer *buffer = make(&bench, GM_FALLBACK_HOST);
    memset(begin(buffer), 0, MIB);
    end(buffer);
    for (unsigned i = 0; i < THREADS; i++) {
      workers[i] = (worker){.buffer = buffer, .slice = i};
      pool_bench_ok(gm__thread_create(&workers[i].thread, "worker", count_up, &workers[i], err));
    }
    for (unsigned i = 0; i < THREADS; i++) gm__thread_join(&workers[i].thread);
    for (unsigned i = 0; i < THREADS; i++) assert_false(workers[i].wrong);
    gm_buffer_release(buffer, NULL);
    card.no_pointer = false;
    pool_bench_close(&bench);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_kernel_of_the_host_on_buffers_that_fell),
      cmocka_unit_test(test_what_has_no_pointer),
      cmocka_unit_test(test_a_locked_buffer_stays),
      cmocka_unit_test(test_a_mapping_ends_with_the_last_lock),
      cmocka_unit_test(test_a_mapping_that_nobody_has_waited_for),
      cmocka_unit_test(test_the_host_waits_for_work_that_an_unlock_noted),
      cmocka_unit_test(test_a_kept_pointer_is_poisoned),
      cmocka_unit_test(test_threads_lock_one_buffer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
