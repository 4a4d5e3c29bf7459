/* The cost of one call beside many blocks, counted in pages of memory that it is the first to touch. A table that is
 * copied as a whole touches all pages of the copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "core/base/shadow.h"
#include "gm/config.h"
#include "gm/pool.h"
#include "support/pool_bench.h"

/* The table of so many blocks alone has 3000 pages. A call may copy tables of less than 1 MiB. */
enum { BLOCKS = 200000, BYTES = 1024, MOST_PAGES = 600, FEWEST_PAGES = 3000 };

typedef struct steps_scene {
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  gm_block *blocks;
  long all, most; /* pages that calls were the first to touch */
} steps_scene;

/* Host memory is gm's own affair: the hooks of a host program cannot make memory larger where it is. */
static void scene_open(steps_scene *scene, bool no_vmm) {
  const gm_context_params context = {
      .struct_size = sizeof context, .backend_options = "null:capacity=1T", .ignore_environment = true};
  const gm_pool_params pool = {.struct_size = sizeof pool, .no_vmm = no_vmm};
  *scene = (steps_scene){.blocks = calloc(BLOCKS, sizeof *scene->blocks)};
  assert_non_null(scene->blocks);
  memset(scene->blocks, 1, BLOCKS * sizeof *scene->blocks);
  pool_bench_ok(gm_context_create(&context, &scene->ctx, err));
  pool_bench_ok(gm_device_open_index(scene->ctx, "null", 0, &scene->device, err));
  pool_bench_ok(gm_pool_create(scene->device, &pool, &scene->pool, err));
}

static void scene_close(steps_scene *scene) {
  pool_bench_ok(gm_pool_destroy(scene->pool, err));
  pool_bench_ok(gm_device_close(scene->device, err));
  pool_bench_ok(gm_context_destroy(scene->ctx, err));
  free(scene->blocks);
}

static long pages_touched(void) {
  struct rusage usage;
  assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
  return usage.ru_minflt;
}

static void note_pages(steps_scene *scene, long before) {
  const long pages = pages_touched() - before;
  scene->all += pages;
  if (pages > scene->most) scene->most = pages;
}

static void fill(steps_scene *scene) {
  const gm_request request = {.bytes = BYTES};
  for (size_t i = 0; i < BLOCKS; i++) {
    const long before = pages_touched();
    assert_true(gm_alloc(scene->pool, &request, &scene->blocks[i]) <= GM_ACQUIRE_FRESH);
    note_pages(scene, before);
  }
}

static void empty(const steps_scene *scene) {
  for (size_t i = 0; i < BLOCKS; i++) assert_int_equal(gm_free(scene->pool, &scene->blocks[i], NULL), GM_OK);
}

static void an_allocation_copies_no_table(bool no_vmm) {
  steps_scene scene;
  scene_open(&scene, no_vmm);
  fill(&scene);
  print_message("most pages of a call: %ld of %ld\n", scene.most, scene.all);
  assert_true(scene.all > FEWEST_PAGES); /* or nothing was counted */
  if (gm__shadow_present()) {
    print_message("under a sanitizer memory does not grow where it is: no bound\n");
  } else {
    assert_true(scene.most <= MOST_PAGES);
  }
  empty(&scene);
  scene_close(&scene);
}

static void test_an_allocation_copies_no_table(void **state) {
  (void)state;
  an_allocation_copies_no_table(false);
  an_allocation_copies_no_table(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_allocation_copies_no_table),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
