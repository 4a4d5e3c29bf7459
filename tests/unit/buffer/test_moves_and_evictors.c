/* A buffer moves while memory is short, and an evictor uses that very buffer. The call must not wait for itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gm/evictor.h"
#include "support/relocation_bench.h"

enum { ONE = 4 << 20 };

/* A pool with room for two blocks. `ballast` has one, and an evictor gives it up. */
typedef struct scene {
  pool_bench bench;
  gm_evictor *evictor;
  gm_block ballast;
  gm_buffer *buffer;
  int asked;
} scene;

static uint64_t read_and_give_up(void *user, uint64_t bytes) {
  scene *s = user;
  unsigned char first;
  (void)bytes;
  s->asked++;
  pool_bench_ok(gm_buffer_read(s->buffer, 0, &first, 1, NULL, err));
  if (!s->ballast.bytes) return 0;
  assert_int_equal(gm_free(s->bench.pool, &s->ballast, NULL), GM_OK);
  s->ballast.bytes = 0;
  return ONE;
}

static void take_ballast(scene *s) {
  const gm_request request = {.bytes = ONE, .flags = GM_DEDICATED};
  assert_true(gm_acquired(gm_alloc(s->bench.pool, &request, &s->ballast)));
}

static void open_scene(scene *s) {
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 2 * (uint64_t)ONE, .no_vmm = true};
  *s = (scene){.asked = 0};
  pool_bench_open(&s->bench, "cpu", NULL, &params);
  const gm_evictor_params evictor = {
      .struct_size = sizeof evictor, .pool = s->bench.pool, .evict = read_and_give_up, .user = s};
  pool_bench_ok(gm_evictor_register(s->bench.device, &evictor, &s->evictor, err));
  s->buffer = relocation_make(s->bench.pool, ONE, GM_DEDICATED);
  relocation_fill(s->buffer);
}

/* The buffer is away, and all of the pool's room is taken by others. */
static void fill_scene(scene *s, gm_block *rest) {
  const gm_request request = {.bytes = ONE, .flags = GM_DEDICATED};
  assert_true(gm_acquired(gm_alloc(s->bench.pool, &request, rest)));
  take_ballast(s);
}

static void close_scene(scene *s, const gm_block *rest) {
  relocation_check(s->buffer);
  gm_buffer_release(s->buffer, NULL);
  if (s->ballast.bytes) assert_int_equal(gm_free(s->bench.pool, &s->ballast, NULL), GM_OK);
  assert_int_equal(gm_free(s->bench.pool, rest, NULL), GM_OK);
  pool_bench_ok(gm_evictor_unregister(s->evictor, err));
  pool_bench_close(&s->bench);
}

static gm_status move_back(gm_buffer *buffer, gm_error *err) {
  return gm_buffer_move(buffer, GM_LOCATION_DEVICE, NULL, err);
}

static gm_status promote(gm_buffer *buffer, gm_error *err) { return gm_buffer_promote(buffer, NULL, err); }

static void check_it_comes_back(gm_status (*come_back)(gm_buffer *, gm_error *)) {
  scene s;
  gm_block rest;
  open_scene(&s);
  pool_bench_ok(gm_buffer_move(s.buffer, GM_LOCATION_HOST, NULL, err));
  fill_scene(&s, &rest);
  pool_bench_ok(come_back(s.buffer, err));
  assert_int_equal(gm_buffer_location(s.buffer), GM_LOCATION_DEVICE);
  assert_true(s.asked > 0);
  close_scene(&s, &rest);
}

static void test_an_evictor_reads_the_buffer_that_comes_back(void **state) {
  (void)state;
  check_it_comes_back(move_back);
  check_it_comes_back(promote);
}

/* The evictor might wait for the buffer that wakes. */
static void test_a_wake_asks_no_evictor(void **state) {
  (void)state;
  scene s;
  gm_block rest;
  gm_error failure;
  open_scene(&s);
  pool_bench_ok(gm_pool_sleep(s.bench.pool, true, NULL, NULL, err));
  fill_scene(&s, &rest);
  assert_int_not_equal(gm_pool_wake(s.bench.pool, NULL, &failure), GM_OK);
  assert_int_equal(s.asked, 0);
  assert_int_equal(gm_free(s.bench.pool, &s.ballast, NULL), GM_OK);
  s.ballast.bytes = 0;
  pool_bench_ok(gm_pool_wake(s.bench.pool, NULL, err));
  assert_int_equal(gm_buffer_location(s.buffer), GM_LOCATION_DEVICE);
  close_scene(&s, &rest);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_evictor_reads_the_buffer_that_comes_back),
      cmocka_unit_test(test_a_wake_asks_no_evictor),
  };
  return cmocka_run_group_tests_name("moves and evictors", tests, NULL, NULL);
}
