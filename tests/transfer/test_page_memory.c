/* Memory of page sets on the devices that are there, and on the simulated drivers. The first argument names the only
 * backend to try. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "backends/null/null_backend.h"
#include "core/device/stream.h"
#include "gm/page_memory.h"
#include "support/page_scene.h"
#include "support/pool_bench.h"
#include "transfer/transfer_world.h"

enum { PAGES = 10, GRANULE = 4, PLANES = 2, WIDEST = 512 };

static const char *only;
static const char *const backends[] = {"cpu", "opencl", "vulkan"};
static const uint64_t plane_bytes[PLANES] = {64, WIDEST};

static const gm_pages_params usual = {.struct_size = sizeof usual,
                                      .max_pages = PAGES,
                                      .plane_bytes = plane_bytes,
                                      .planes = PLANES,
                                      .granule_pages = GRANULE,
                                      .backed_pages = 1};

static bool memory_open(transfer_world *w, page_scene *s, const char *backend, gm_pages_params params) {
  world_begin(w);
  if (!world_add(w, backend, 0)) {
    world_finish(w);
    return false;
  }
  memset(s, 0, sizeof *s);
  params.pool = w->ends[0].pool;
  world_ok(gm_pages_create(w->ctx, &params, &s->pages, err));
  return true;
}

static void memory_close(transfer_world *w, page_scene *s) {
  world_ok(gm_pages_destroy(s->pages, err));
  assert_int_equal(world_stats(&w->ends[0]).active, 1); /* the world's own */
  world_finish(w);
}

/* Each byte of a page in a plane tells `what`. */
static void page_write(transfer_world *w, page_scene *s, gm_page page, unsigned what) {
  unsigned char bytes[WIDEST];
  for (uint32_t k = 0; k < PLANES; k++) {
    gm_block block;
    uint64_t offset = 0;
    memset(bytes, (int)(what * 7 + k), sizeof bytes);
    world_ok(gm_pages_place(s->pages, k, page, &block, &offset, err));
    world_ok(gm_block_write(w->ends[0].pool, &block, offset, bytes, plane_bytes[k], w->ends[0].stream, NULL, err));
  }
}

/* How many planes of a page have other contents. */
static unsigned page_wrong(transfer_world *w, page_scene *s, gm_page page, unsigned what) {
  unsigned char bytes[WIDEST];
  unsigned wrong = 0;
  for (uint32_t k = 0; k < PLANES; k++) {
    gm_block block;
    uint64_t offset = 0;
    world_ok(gm_pages_place(s->pages, k, page, &block, &offset, err));
    world_ok(gm_block_read(w->ends[0].pool, &block, offset, bytes, plane_bytes[k], w->ends[0].stream, NULL, err));
    bool right = true;
    for (uint64_t i = 0; i < plane_bytes[k]; i++) right = right && bytes[i] == (unsigned char)(what * 7 + k);
    wrong += !right;
  }
  return wrong;
}

/* --- places --- */

static void each_page_has_bytes_of_its_own_in(const char *backend) {
  transfer_world w;
  page_scene s;
  gm_page pages[PAGES];
  if (!memory_open(&w, &s, backend, usual)) return;
  const uint32_t owner = page_owner(&s, "seq");
  assert_int_equal(page_stats(&s).backed, GRANULE); /* of one page: the granule */
  assert_int_equal(gm_pages_take(s.pages, owner, GRANULE + 1, 0, pages, NULL), GM_ERR_OVER_LIMIT);
  world_ok(gm_pages_grow(s.pages, PAGES, err));
  world_ok(gm_pages_grow(s.pages, 3, err)); /* there are more */
  assert_int_equal(page_stats(&s).free, PAGES);
  assert_int_equal(world_stats(&w.ends[0]).active, 1 + PLANES * 3);
  world_ok(gm_pages_take(s.pages, owner, PAGES, 0, pages, err));
  for (uint32_t i = 0; i < PAGES; i++) page_write(&w, &s, pages[i], pages[i]);
  for (uint32_t i = 0; i < PAGES; i++) assert_int_equal(page_wrong(&w, &s, i, i), 0);
  for (uint32_t k = 0; k < PLANES; k++) { /* as the header says */
    gm_block first, block;
    uint64_t offset;
    world_ok(gm_pages_place(s.pages, k, 5, &first, &offset, err));
    assert_int_equal(offset, 1 * plane_bytes[k]);
    assert_true(first.bytes >= GRANULE * plane_bytes[k]);
    world_ok(gm_pages_place(s.pages, k, 7, &block, &offset, err));
    assert_int_equal(offset, 3 * plane_bytes[k]);
    assert_int_equal(block.address, first.address);
  }
  world_ok(gm_page_owner_close(s.pages, owner, err));
  memory_close(&w, &s);
}

static void each_page_has_bytes_of_its_own(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
    if (!only) each_page_has_bytes_of_its_own_in(backends[i]);
  }
  if (only) each_page_has_bytes_of_its_own_in(only);
}

/* --- granules go --- */

static uint32_t trimmed(page_scene *s, uint32_t backed) {
  uint32_t gone = 99;
  world_ok(gm_pages_trim(s->pages, backed, &gone, err));
  return gone;
}

static void granules_that_rest_are_given_back(void **state) {
  (void)state;
  transfer_world w;
  page_scene s;
  gm_page pages[PAGES];
  gm_pages_params params = usual;
  uint64_t step = 0;
  params.backed_pages = PAGES;
  if (!memory_open(&w, &s, only ? only : "cpu", params)) return;
  const uint32_t owner = page_owner(&s, "seq");
  world_ok(gm_pages_take(s.pages, owner, PAGES, 0, pages, err));
  assert_int_equal(trimmed(&s, 0), 0);
  assert_int_equal(gm_pages_set_key(s.pages, owner, 9, key_a, 0, NULL, NULL), GM_OK);
  for (gm_page page = 1; page < PAGES; page++) assert_int_equal(release_one(&s, owner, page), GM_OK);
  world_ok(gm_pages_step_begin(s.pages, &step, err));
  assert_int_equal(gm_pages_take(s.pages, owner, 1, 0, pages, NULL), GM_OK); /* of 4 to 7, or of the others */
  assert_int_equal(release_one(&s, owner, pages[0]), GM_OK);
  assert_int_equal(trimmed(&s, 7), 0); /* the last granule has two pages, of which one is idle: it goes after others */
  world_ok(gm_pages_step_end(s.pages, step, err));
  assert_int_equal(trimmed(&s, 6), 4);
  assert_int_equal(find_one(&s, owner, key_a), 9); /* granules without idle pages went first */
  assert_int_equal(release_one(&s, owner, 9), GM_OK);
  assert_int_equal(trimmed(&s, 0), 2);
  assert_int_equal(find_one(&s, owner, key_a), GM_NO_PAGE);
  assert_int_equal(page_stats(&s).backed, GRANULE);
  assert_int_equal(page_stats(&s).idle, 0);
  assert_int_equal(page_stats(&s).evicted, 1);
  assert_int_equal(world_stats(&w.ends[0]).active, 1 + PLANES);
  gm_block block;
  assert_refused(&s, gm_pages_place(s.pages, 0, 9, &block, &step, &s.err), GM_ERR_INVALID_ARGUMENT, "has no memory");
  assert_int_equal(gm_pages_take(s.pages, owner, 4, 0, pages, NULL), GM_ERR_OVER_LIMIT);
  world_ok(gm_pages_take(s.pages, owner, 3, 0, pages, err));
  world_ok(gm_pages_grow(s.pages, PAGES, err));
  world_ok(gm_pages_take(s.pages, owner, PAGES - GRANULE, 0, pages, err));
  assert_int_equal(page_stats(&s).held, PAGES);
  world_ok(gm_page_owner_close(s.pages, owner, err));
  memory_close(&w, &s);
}

static void the_first_page_keeps_its_granule(void **state) {
  (void)state;
  transfer_world w;
  page_scene s;
  gm_page pages[PAGES];
  gm_pages_params params = usual;
  params.flags = GM_PAGES_KEEP_FIRST;
  params.backed_pages = PAGES;
  if (!memory_open(&w, &s, only ? only : "cpu", params)) return;
  const uint32_t owner = page_owner(&s, "seq");
  assert_int_equal(page_stats(&s).free, PAGES - 1);
  assert_int_equal(gm_pages_take(s.pages, owner, PAGES, 0, pages, NULL), GM_ERR_OVER_LIMIT);
  assert_int_equal(trimmed(&s, 0), PAGES - GRANULE);
  world_ok(gm_pages_take(s.pages, owner, GRANULE - 1, 0, pages, err));
  for (int i = 0; i < GRANULE - 1; i++) assert_in_range(pages[i], 1, GRANULE - 1);
  world_ok(gm_page_owner_close(s.pages, owner, err));
  memory_close(&w, &s);
}

/* --- steps --- */

/* The null backend has work that ends when a test lets time pass. */
static void a_step_ends_when_its_point_has_passed(void **state) {
  (void)state;
  if (only) return;
  page_scene s = {.err = {.message = ""}};
  pool_bench bench;
  gm_stream *stream;
  gm_point point;
  gm_backend_point work;
  const gm_memory nowhere = {.handle = 1, .bytes = 64};
  uint64_t step = 0, later = 0;
  const gm_pages_params params = {.struct_size = sizeof params, .max_pages = 1};
  pool_bench_open(&bench, "null", "null:capacity=64M,latency=1000000000", NULL);
  pool_bench_ok(gm_pages_create(bench.ctx, &params, &s.pages, err));
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  const uint32_t owner = page_owner(&s, "seq");
  gm_page page = take_one(&s, owner);
  pool_bench_ok(gm_pages_step_begin(s.pages, &step, err));
  pool_bench_ok(gm_pages_step_begin(s.pages, &later, err));
  assert_int_equal(release_one(&s, owner, page), GM_OK);
  pool_bench_ok(
      gm__null_backend.fill(bench.device->handle, stream->handle, &nowhere, 0, 64, "", 1, &work, err)); /* a second */
  pool_bench_ok(gm_stream_record(stream, &point, err));
  pool_bench_ok(gm_pages_step_end_at(s.pages, step, bench.device, &point, err));
  pool_bench_ok(gm_pages_step_end_at(s.pages, later, bench.device, &point, err));
  gm_point_release(bench.device, &point); /* the set has points of its own */
  assert_refused(&s, gm_pages_step_end(s.pages, step, &s.err), GM_ERR_INVALID_ARGUMENT, "step 1 is not open");
  assert_refused(&s, gm_pages_step_end_at(s.pages, step, bench.device, NULL, &s.err), GM_ERR_INVALID_ARGUMENT,
                 "step 1 is not open");
  assert_int_equal(gm_pages_take(s.pages, owner, 1, 0, &page, NULL), GM_ERR_OVER_LIMIT);
  assert_int_equal(page_stats(&s).steps, 2);
  assert_int_equal(gm_page_owner_close(s.pages, owner, NULL), GM_OK);
  assert_refused(&s, gm_pages_destroy(s.pages, &s.err), GM_ERR_BUSY, "2 steps are open, the oldest is 1");
  gm__null_advance(bench.device->handle, UINT64_C(2000000000));
  const uint32_t next = page_owner(&s, "next");
  assert_int_equal(gm_pages_take(s.pages, next, 1, 0, &page, NULL), GM_OK);
  assert_int_equal(page_stats(&s).steps, 0);
  assert_int_equal(gm_page_owner_close(s.pages, next, NULL), GM_OK);
  pool_bench_ok(gm_pages_step_begin(s.pages, &step, err));
  assert_refused(&s, gm_pages_step_end_at(s.pages, step, NULL, NULL, &s.err), GM_ERR_INVALID_ARGUMENT, "`device`");
  const gm_point strange = {.stream = UINT64_MAX, .handle = 1};
  assert_refused(&s, gm_pages_step_end_at(s.pages, step, bench.device, &strange, &s.err), GM_ERR_INVALID_ARGUMENT,
                 "another device");
  pool_bench_ok(gm_pages_step_end_at(s.pages, step, bench.device, NULL, err));
  pool_bench_ok(gm_pages_destroy(s.pages, err));
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_close(&bench);
}

/* --- short of memory, misuse --- */

static void a_growth_that_fails_keeps_whole_granules(void **state) {
  (void)state;
  transfer_world w;
  page_scene s;
  gm_pages *other = NULL;
  if (!memory_open(&w, &s, only ? only : "cpu", usual)) return;
  world_ok(gm_pool_set_max_bytes(w.ends[0].pool, world_stats(&w.ends[0]).reserved_bytes, err));
  gm_pages_params large = usual;
  const uint64_t huge[PLANES] = {1, 64 << 20};
  large.pool = w.ends[0].pool;
  large.plane_bytes = huge;
  assert_refused(&s, gm_pages_create(w.ctx, &large, &other, &s.err), GM_ERR_OVER_LIMIT, "268435456 bytes");
  assert_null(other);
  large.backed_pages = 0;
  world_ok(gm_pages_create(w.ctx, &large, &other, err));
  assert_refused(&s, gm_pages_grow(other, 9, &s.err), GM_ERR_OVER_LIMIT, "GM_ACQUIRE_OVER_LIMIT");
  assert_int_equal(world_stats(&w.ends[0]).active, 1 + PLANES); /* also the small plane's block is given back */
  world_ok(gm_pages_destroy(other, err));
  memory_close(&w, &s);
}

static void a_mapped_block_is_busy(void **state) {
  (void)state;
  transfer_world w;
  page_scene s;
  gm_block block;
  uint64_t offset;
  void *host;
  if (only || !memory_open(&w, &s, "cpu", usual)) return;
  world_ok(gm_pages_place(s.pages, 1, 2, &block, &offset, err));
  world_ok(gm_block_map(w.ends[0].pool, &block, 0, 64, GM_MAP_READ, NULL, &host, err));
  assert_refused(&s, gm_pages_trim(s.pages, 0, NULL, &s.err), GM_ERR_BUSY, "granule 0 in plane 1 is mapped");
  assert_int_equal(page_stats(&s).backed, 0);
  assert_refused(&s, gm_pages_destroy(s.pages, &s.err), GM_ERR_BUSY, "granule 0 in plane 1 is mapped");
  world_ok(gm_pages_grow(s.pages, GRANULE, err)); /* the mapped block is of use again */
  assert_int_equal(world_stats(&w.ends[0]).active, 1 + PLANES);
  world_ok(gm_block_unmap(w.ends[0].pool, &block, host, NULL, err));
  memory_close(&w, &s);
}

static void wrong_planes_are_refused(void **state) {
  (void)state;
  transfer_world w;
  page_scene s;
  gm_pages *none = NULL;
  gm_block block;
  uint64_t offset;
  if (only || !memory_open(&w, &s, "cpu", usual)) return;
  gm_pages_params params = usual;
  assert_refused(&s, gm_pages_create(w.ctx, &params, &none, &s.err), GM_ERR_INVALID_ARGUMENT, "`params->pool` is NULL");
  params.pool = w.ends[0].pool;
  params.granule_pages = PAGES + 1;
  assert_refused(&s, gm_pages_create(w.ctx, &params, &none, &s.err), GM_ERR_INVALID_ARGUMENT, "granules of 11 pages");
  params.granule_pages = 0;
  params.plane_bytes = (const uint64_t[]){64, 0};
  assert_refused(&s, gm_pages_create(w.ctx, &params, &none, &s.err), GM_ERR_INVALID_ARGUMENT, "plane_bytes[1]` is 0");
  params.plane_bytes = plane_bytes;
  params.request = &(gm_request){.bytes = 1};
  assert_refused(&s, gm_pages_create(w.ctx, &params, &none, &s.err), GM_ERR_INVALID_ARGUMENT, "`params->request`");
  assert_refused(&s, gm_pages_grow(s.pages, 11, &s.err), GM_ERR_INVALID_ARGUMENT, "the set has 10");
  assert_refused(&s, gm_pages_place(s.pages, 2, 0, &block, &offset, &s.err), GM_ERR_INVALID_ARGUMENT, "`plane` is 2");
  assert_refused(&s, gm_pages_place(s.pages, 0, 10, &block, &offset, &s.err), GM_ERR_INVALID_ARGUMENT, "none of 10");
  const gm_pages_params plain = {.struct_size = sizeof plain, .max_pages = 4};
  world_ok(gm_pages_create(w.ctx, &plain, &none, err));
  assert_refused(&s, gm_pages_grow(none, 4, &s.err), GM_ERR_INVALID_ARGUMENT, "the set has no pool");
  world_ok(gm_pages_destroy(none, err));
  memory_close(&w, &s);
}

int main(int argc, char **argv) {
  only = argc > 1 ? argv[1] : NULL;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_page_has_bytes_of_its_own),
      cmocka_unit_test(granules_that_rest_are_given_back),
      cmocka_unit_test(the_first_page_keeps_its_granule),
      cmocka_unit_test(a_step_ends_when_its_point_has_passed),
      cmocka_unit_test(a_growth_that_fails_keeps_whole_granules),
      cmocka_unit_test(a_mapped_block_is_busy),
      cmocka_unit_test(wrong_planes_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
