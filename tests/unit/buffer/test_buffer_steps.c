/* How many buffers a call looks at beside many others. Each buffer's struct has a page of its own here, which nobody
 * may touch. The first touch of a call is a fault, and is counted. So it does not matter in which way a call finds
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/buffer/buffer.h"
#include "core/buffer/demote.h"
#include "gm/relocation.h"
#include "support/pool_bench.h"
#include "support/random.h"

enum { BUFFERS = 4000, LEAST = 256, FEW = 500 };

#define KIB UINT64_C(1024)

/* ---- pages that tell who was touched ---- */

static struct {
  char *pages;
  size_t page, used;
  bool making; /* the next struct of a buffer's size is a buffer */
  volatile sig_atomic_t touched;
  gm_services under;
} watch;

static bool watch_has(const void *ptr) {
  return (const char *)ptr >= watch.pages && (const char *)ptr < watch.pages + BUFFERS * watch.page;
}

static void watch_fault(int number, siginfo_t *info, void *context) {
  (void)context;
  if (!watch_has(info->si_addr)) {
    signal(number, SIG_DFL);
    return;
  }
  char *page = watch.pages + ((size_t)((char *)info->si_addr - watch.pages) / watch.page) * watch.page;
  if (mprotect(page, watch.page, PROT_READ | PROT_WRITE)) _exit(99);
  watch.touched++;
}

static void *watch_alloc(void *user, size_t bytes, size_t align) {
  if (!watch.making || bytes != sizeof(gm_buffer)) return watch.under.alloc(user, bytes, align);
  assert_true(watch.used < BUFFERS);
  return watch.pages + watch.used++ * watch.page;
}

static void watch_release(void *user, void *ptr, size_t bytes) {
  if (!watch_has(ptr)) watch.under.release(user, ptr, bytes);
}

static void watch_begin(gm_services *services) {
  struct sigaction action = {.sa_sigaction = watch_fault, .sa_flags = SA_SIGINFO};
  watch.page = (size_t)sysconf(_SC_PAGESIZE);
  watch.used = 0;
  watch.pages = mmap(NULL, BUFFERS * watch.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(watch.pages != MAP_FAILED);
  assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
  watch.under = *services;
  services->alloc = watch_alloc;
  services->release = watch_release;
}

static void watch_end(void) {
  signal(SIGSEGV, SIG_DFL);
  munmap(watch.pages, BUFFERS * watch.page);
}

static void count_begin(void) {
  watch.touched = 0;
  assert_int_equal(mprotect(watch.pages, BUFFERS * watch.page, PROT_NONE), 0);
}

static int count_end(const char *what) {
  assert_int_equal(mprotect(watch.pages, BUFFERS * watch.page, PROT_READ | PROT_WRITE), 0);
  printf("  %s: %d of %d buffers\n", what, (int)watch.touched, BUFFERS);
  return watch.touched;
}

/* ---- the scene ---- */

static gm_buffer *buffers[BUFFERS];

static void scene_open(pool_bench *bench, uint32_t flags) {
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = true};
  uint64_t seed = 3;
  pool_bench_open_device(bench, "cpu", NULL);
  watch_begin(&bench->ctx->services);
  pool_bench_ok(gm_pool_create(bench->device, &params, &bench->pool, err));
  for (int i = 0; i < BUFFERS; i++) {
    const gm_buffer_params wanted = {.struct_size = sizeof wanted,
                                     .request = {.bytes = LEAST + test_random(&seed) % (8 * KIB), .flags = flags},
                                     .fallback = GM_FALLBACK_HOST};
    watch.making = true;
    pool_bench_ok(gm_buffer_create(bench->pool, &wanted, &buffers[i], err));
    watch.making = false;
  }
  assert_int_equal(watch.used, BUFFERS);
}

static void scene_close(pool_bench *bench) {
  for (int i = 0; i < BUFFERS; i++) {
    gm_buffer_release(buffers[i], NULL);
    buffers[i] = NULL;
  }
  pool_bench_close(bench);
  watch_end();
}

static void release_some(int n) {
  for (int i = 0; i < BUFFERS; i += n) {
    gm_buffer_release(buffers[i], NULL);
    buffers[i] = NULL;
  }
}

/* ---- what is counted ---- */

static void test_a_demotion_looks_at_what_it_demotes(void **state) {
  (void)state;
  pool_bench bench;
  scene_open(&bench, GM_EVICTABLE);
  for (int i = 0; i < BUFFERS / 2; i++) pool_bench_ok(gm_buffer_lock(buffers[i], NULL, err));
  count_begin();
  const uint64_t gone = gm__demote(bench.pool, 64 * KIB);
  const int looked = count_end("64 KiB leave, and half of all are locked");
  assert_true(gone >= 64 * KIB);
  assert_true(looked < FEW);
  for (int i = 0; i < BUFFERS / 2; i++) pool_bench_ok(gm_buffer_unlock(buffers[i], NULL, err));
  scene_close(&bench);
}

static void test_a_promotion_looks_at_what_it_promotes(void **state) {
  (void)state;
  pool_bench bench;
  scene_open(&bench, GM_EVICTABLE);
  gm__demote(bench.pool, UINT64_MAX);
  gm_promote_report report = {.struct_size = sizeof report};
  gm_promote_params params = {.struct_size = sizeof params, .max_bytes = 64 * KIB, .wait_ns = 1};
  count_begin();
  pool_bench_ok(gm_pool_promote(bench.pool, &params, &report, err));
  assert_true(count_end("64 KiB come back") < FEW);
  assert_true(report.moves > 0);
  params.wait_ns = UINT64_MAX;
  count_begin();
  pool_bench_ok(gm_pool_promote(bench.pool, &params, &report, err));
  assert_true(count_end("all must wait") < BUFFERS / 2);
  assert_int_equal(report.moves, 0);
  scene_close(&bench);
}

static gm_compact_report compact(gm_pool *pool, uint64_t max_bytes) {
  const gm_compact_params params = {.struct_size = sizeof params, .max_bytes = max_bytes};
  gm_compact_report report = {.struct_size = sizeof report};
  pool_bench_ok(gm_pool_compact(pool, &params, &report, err));
  return report;
}

static void test_a_compaction_with_a_bound_looks_at_few(void **state) {
  (void)state;
  pool_bench bench;
  scene_open(&bench, GM_RELOCATABLE);
  release_some(2);
  count_begin();
  const gm_compact_report report = compact(bench.pool, 64 * KIB);
  assert_true(count_end("64 KiB move at the most") < FEW);
  assert_true(report.moves > 0);
  scene_close(&bench);
}

/* No buffer fits the bound, or none may move: calls that move nothing take turns, and come round. */
static void test_a_compaction_that_moves_nothing_ends_early(void **state) {
  (void)state;
  pool_bench bench;
  scene_open(&bench, GM_RELOCATABLE);
  release_some(2);
  count_begin();
  assert_int_equal(compact(bench.pool, LEAST / 2).moves, 0);
  assert_true(count_end("none is as small as the bound") < FEW);
  for (int i = 1; i < BUFFERS; i += 2) pool_bench_ok(gm_buffer_lock(buffers[i], NULL, err));
  count_begin();
  assert_int_equal(compact(bench.pool, 64 * KIB).moves, 0);
  assert_true(count_end("all are locked") < BUFFERS * 3 / 8);
  for (int i = 1; i < BUFFERS; i += 200) pool_bench_ok(gm_buffer_unlock(buffers[i], NULL, err));
  uint64_t moves = 0;
  for (int i = 0; i < 8; i++) moves += compact(bench.pool, 64 * KIB).moves;
  printf("  %d of 20 that are not locked move\n", (int)moves);
  assert_true(moves > 10);
  for (int i = 1; i < BUFFERS; i += 2) {
    if (i % 200 != 1) pool_bench_ok(gm_buffer_unlock(buffers[i], NULL, err));
  }
  scene_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_demotion_looks_at_what_it_demotes),
      cmocka_unit_test(test_a_promotion_looks_at_what_it_promotes),
      cmocka_unit_test(test_a_compaction_with_a_bound_looks_at_few),
      cmocka_unit_test(test_a_compaction_that_moves_nothing_ends_early),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
