/* One block of the CPU backend's, imported and freed by several threads at once into two pools. A device opens it for
 * all of them, and closes it when nobody has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/thread.h"
#include "core/device/device.h"
#include "gm/copy.h"
#include "gm/share.h"
#include "support/pool_bench.h"

enum { THREADS = 4, TURNS = 300, BYTES = 5000 };

typedef struct importer {
  gm__thread thread;
  gm_pool *pool;
  const gm_shared *shared;
  int number; /* the byte that is this thread's own */
  unsigned failures;
} importer;

static gm_status import_once(const importer *me, unsigned char byte) {
  gm_block block;
  unsigned char seen = 0;
  gm_status status = gm_block_import(me->pool, me->shared, &block, NULL);
  if (status) return status;
  status = gm_block_write(me->pool, &block, (uint64_t)me->number, &byte, 1, NULL, NULL, NULL);
  if (!status) status = gm_block_read(me->pool, &block, (uint64_t)me->number, &seen, 1, NULL, NULL, NULL);
  const gm_status freed = gm_free(me->pool, &block, NULL);
  if (status || freed) return status ? status : freed;
  return seen == byte ? GM_OK : GM_ERR_DAMAGED;
}

static void import_often(void *user) {
  importer *me = user;
  for (int i = 0; i < TURNS; i++) me->failures += import_once(me, (unsigned char)i) != GM_OK;
}

static void import_together(gm_pool *const *pools, const gm_shared *shared) {
  importer importers[THREADS];
  for (int i = 0; i < THREADS; i++) {
    importers[i] = (importer){.pool = pools[i % 2], .shared = shared, .number = i};
    pool_bench_ok(gm__thread_create(&importers[i].thread, "import", import_often, &importers[i], err));
  }
  for (int i = 0; i < THREADS; i++) {
    gm__thread_join(&importers[i].thread);
    assert_int_equal(importers[i].failures, 0);
  }
}

static void test_imports_from_several_threads(void **state) {
  (void)state;
  pool_bench bench;
  gm_pool *second = NULL;
  unsigned char bytes[THREADS];
  gm_shared shared = {.struct_size = sizeof shared};
  gm_block block;
  const gm_pool_params params = {.struct_size = sizeof params, .share = GM_SHARE_FD, .checked = true};
  const gm_request request = {.bytes = BYTES, .flags = GM_SHAREABLE};
  pool_bench_open(&bench, "cpu", NULL, &params);
  pool_bench_ok(gm_pool_create(bench.device, NULL, &second, err));
  assert_true(gm_alloc(bench.pool, &request, &block) <= GM_ACQUIRE_FRESH);
  pool_bench_ok(gm_block_export(bench.pool, &block, &shared, err));
  import_together((gm_pool *const[]){bench.pool, second}, &shared);
  assert_null(bench.device->opened);
  gm_shared_close(&shared);
  pool_bench_ok(gm_block_read(bench.pool, &block, 0, bytes, THREADS, NULL, NULL, err));
  for (int i = 0; i < THREADS; i++) assert_int_equal(bytes[i], (unsigned char)(TURNS - 1));
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_ok(gm_pool_destroy(second, err));
  assert_int_equal(pool_bench_stats(&bench).in_use_bytes, 0);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_imports_from_several_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
