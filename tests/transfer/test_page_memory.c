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
#include "support/pool_bench.h"
#include "transfer/page_tables.h"

static const char *only;
static const char *const backends[] = {"cpu", "opencl", "vulkan"};

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
  assert_int_equal(trimmed(&s, UINT32_MAX), 0); /* all rest, and all are to stay */
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

/* --- copies on write --- */

static void a_shared_page_is_copied_before_a_write(void **state) {
  (void)state;
  transfer_world w;
  page_scene s;
  gm_page row[5], fork[5];
  gm_pages_params params = usual;
  params.backed_pages = PAGES;
  if (!memory_open(&w, &s, only ? only : "cpu", params)) return;
  const uint32_t a = page_owner(&s, "a"), b = page_owner(&s, "b");
  world_ok(gm_pages_take(s.pages, a, 5, 0, row, err));
  for (uint32_t i = 0; i < 5; i++) page_write(&w, &s, row[i], i);
  world_ok(gm_pages_share(s.pages, b, row, 4, err));
  world_ok(gm_pages_set_key(s.pages, a, row[0], key_a, 0, NULL, err));
  world_ok(gm_pages_set_key(s.pages, a, row[4], key_b, 0, NULL, err));
  world_ok(gm_pages_write(s.pages, a, row, 5, 0, w.ends[0].stream, fork, err));
  for (uint32_t i = 0; i < 5; i++) {
    assert_int_equal(fork[i] == row[i], i == 4);
    assert_int_equal(page_wrong(&w, &s, fork[i], i), 0);
    page_write(&w, &s, fork[i], 50 + i);
    assert_int_equal(page_wrong(&w, &s, row[i], i == 4 ? 54 : i), 0);
  }
  assert_int_equal(page_stats(&s).holds, 9);
  assert_int_equal(page_stats(&s).copied, 4);
  assert_int_equal(find_one(&s, b, key_a), row[0]); /* whose contents are as they were */
  assert_int_equal(find_one(&s, b, key_b), GM_NO_PAGE);
  assert_refused(&s, release_one(&s, a, row[0]), GM_ERR_INVALID_ARGUMENT, "\"a\" does not hold");
  world_ok(gm_page_owner_close(s.pages, a, err));
  world_ok(gm_pages_write(s.pages, b, row + 1, 3, 0, NULL, fork, err)); /* nobody else holds them now */
  assert_memory_equal(fork, row + 1, 3 * sizeof *row);
  world_ok(gm_page_owner_close(s.pages, b, err));
  memory_close(&w, &s);
}

static void wrong_writes_change_nothing(void **state) {
  (void)state;
  transfer_world w;
  page_scene s;
  gm_page row[8], out[8];
  uint64_t step;
  gm_pages_params params = usual;
  params.backed_pages = PAGES;
  if (only || !memory_open(&w, &s, "cpu", params)) return;
  const uint32_t a = page_owner(&s, "a"), b = page_owner(&s, "b");
  world_ok(gm_pages_take(s.pages, a, 8, 0, row, err));
  world_ok(gm_pages_share(s.pages, b, row, 7, err));
  assert_refused(&s, gm_pages_write(s.pages, b, row, 3, 0, NULL, out, &s.err), GM_ERR_OVER_LIMIT,
                 "\"b\" asks for 3 pages, and 2 can be taken");
  assert_refused(&s, gm_pages_write(s.pages, b, row + 7, 1, 0, NULL, out, &s.err), GM_ERR_INVALID_ARGUMENT,
                 "\"b\" does not hold page");
  assert_refused(&s, gm_pages_write(s.pages, b, row, 1, 0, NULL, row, &s.err), GM_ERR_INVALID_ARGUMENT, "the same");
  assert_refused(&s, gm_pages_write(s.pages, b, (gm_page[]){row[0], row[0]}, 2, 0, NULL, out, &s.err),
                 GM_ERR_INVALID_ARGUMENT, "\"b\" does not hold page");
  assert_int_equal(page_stats(&s).steps, 0);
  assert_int_equal(page_stats(&s).held, 9); /* of the page that was named twice there is one copy */
  for (int i = 0; i < GM_PAGE_STEPS_MOST; i++) world_ok(gm_pages_step_begin(s.pages, &step, err));
  assert_refused(&s, gm_pages_write(s.pages, b, row + 1, 1, 0, NULL, out, &s.err), GM_ERR_OVER_LIMIT, "64 steps ago");
  while (page_stats(&s).steps) world_ok(gm_pages_step_end(s.pages, step--, err));
  world_ok(gm_page_owner_close(s.pages, a, err));
  world_ok(gm_page_owner_close(s.pages, b, err));
  memory_close(&w, &s);
}

/* Steps of copies end by themselves: also where all pages are there, and the ring of steps alone is full. */
static void copies_on_two_streams_go_on(void **state) {
  (void)state;
  transfer_world w;
  page_scene s;
  gm_page row, out;
  gm_stream *streams[2];
  gm_pages_params params = usual;
  params.max_pages = params.backed_pages = 2 * GM_PAGE_STEPS_MOST;
  if (only || !memory_open(&w, &s, "cpu", params)) return;
  streams[0] = w.ends[0].stream;
  world_ok(gm_stream_create(w.ends[0].device, &streams[1], err));
  const uint32_t a = page_owner(&s, "a"), b = page_owner(&s, "b");
  world_ok(gm_pages_take(s.pages, a, 1, 0, &row, err));
  for (int i = 0; i < GM_PAGE_STEPS_MOST + 6; i++) {
    world_ok(gm_pages_share(s.pages, b, &row, 1, err));
    world_ok(gm_pages_write(s.pages, b, &row, 1, 0, streams[i % 2], &out, err));
    world_ok(gm_stream_sync(streams[i % 2], err));
    world_ok(gm_pages_release(s.pages, b, &out, 1, err));
  }
  world_ok(gm_page_owner_close(s.pages, a, err));
  world_ok(gm_page_owner_close(s.pages, b, err));
  assert_int_equal(page_stats(&s).steps, 0);
  world_ok(gm_stream_close(streams[1], err));
  memory_close(&w, &s);
}

static void streams_of_other_devices_are_refused(void **state) {
  (void)state;
  if (!only) tables_of_strangers();
}

/* Without a pool the program copies: a step keeps both pages meanwhile. */
static void without_a_pool_the_program_copies(void **state) {
  (void)state;
  page_scene s;
  uint64_t step;
  gm_page out, next;
  if (only) return;
  page_scene_open(&s, 3, 0, 0, NULL);
  const uint32_t a = page_owner(&s, "a"), b = page_owner(&s, "b");
  const gm_page page = take_one(&s, a);
  world_ok(gm_pages_share(s.pages, b, &page, 1, err));
  assert_refused(&s, gm_pages_write(s.pages, b, &page, 1, 0, NULL, &out, &s.err), GM_ERR_INVALID_ARGUMENT,
                 "\"b\" needs copies of pages, and no step is open");
  world_ok(gm_pages_step_begin(s.pages, &step, err));
  world_ok(gm_pages_write(s.pages, b, &page, 1, 0, NULL, &out, err));
  assert_int_not_equal(out, page);
  world_ok(gm_page_owner_close(s.pages, a, err));
  world_ok(gm_pages_take(s.pages, b, 1, 0, &next, err));
  assert_int_not_equal(next, page);
  assert_int_equal(gm_pages_take(s.pages, b, 1, 0, &next, NULL), GM_ERR_OVER_LIMIT); /* it is being copied */
  world_ok(gm_pages_step_end(s.pages, step, err));
  world_ok(gm_pages_take(s.pages, b, 1, 0, &next, err));
  assert_int_equal(next, page);
  world_ok(gm_page_owner_close(s.pages, b, err));
  page_scene_close(&s);
}

/* To a set of memory that the host sees, and back. */
static void pages_go_to_another_set_and_back(void **state) {
  (void)state;
  transfer_world w;
  page_scene s, far;
  gm_page row[6], away[6];
  gm_pages_params params = usual;
  params.backed_pages = PAGES;
  if (!memory_open(&w, &s, only ? only : "cpu", params)) return;
  far = s;
  params.pool = w.ends[0].pool;
  params.granule_pages = 0;
  params.request = &(gm_request){.must_be = GM_DEVICE_ACCESSIBLE, .flags = GM_HOST_VISIBLE};
  world_ok(gm_pages_create(w.ctx, &params, &far.pages, err));
  const uint32_t a = page_owner(&s, "a"), b = page_owner(&far, "b");
  world_ok(gm_pages_take(s.pages, a, 6, 0, row, err));
  world_ok(gm_pages_take(far.pages, b, 6, 0, away, err));
  for (uint32_t i = 0; i < 6; i++) page_write(&w, &s, row[i], i);
  world_ok(gm_pages_copy(far.pages, b, away, s.pages, a, row, 6, w.ends[0].stream, err));
  for (uint32_t i = 0; i < 6; i++) page_write(&w, &s, row[i], 99);
  world_ok(gm_pages_copy(s.pages, a, row, far.pages, b, away, 6, w.ends[0].stream, err));
  for (uint32_t i = 0; i < 6; i++) assert_int_equal(page_wrong(&w, &s, row[i], i), 0);
  const uint32_t c = page_owner(&s, "c");
  world_ok(gm_pages_share(s.pages, c, row, 1, err));
  assert_refused(&s, gm_pages_copy(s.pages, a, row, far.pages, b, away, 2, NULL, &s.err), GM_ERR_INVALID_ARGUMENT,
                 "\"a\" does not hold alone");
  assert_refused(&s, gm_pages_copy(s.pages, c, row + 1, far.pages, b, away, 1, NULL, &s.err), GM_ERR_INVALID_ARGUMENT,
                 "\"c\" does not hold page");
  assert_int_equal(page_stats(&far).steps, 0);
  world_ok(gm_page_owner_close(s.pages, a, err));
  world_ok(gm_page_owner_close(s.pages, c, err));
  world_ok(gm_page_owner_close(far.pages, b, err));
  world_ok(gm_pages_destroy(far.pages, err));
  memory_close(&w, &s);
}

static void random_calls_leave_the_right_contents(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
    const size_t calls = strcmp(backends[i], "cpu") == 0 ? great_many(20000) : 400;
    if (!only) assert_int_equal(contents_run(backends[i], calls, true), 0);
  }
  if (only) assert_int_equal(contents_run(only, 400, true), 0);
}

static void without_steps_contents_are_wrong(void **state) {
  (void)state;
  if (!only) assert_int_not_equal(contents_run("cpu", 10000, false), 0);
}

/* --- tables --- */

static void tables_on_the_device_are_the_rows(void **state) {
  (void)state;
  for (gm_page_table_form form = GM_PAGE_TABLE_DENSE; form <= GM_PAGE_TABLE_ADDRESS; form++) {
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
      if (!only) tables_run(backends[i], form, strcmp(backends[i], "cpu") == 0 ? 200 : 20);
    }
    if (only) tables_run(only, form, 20);
  }
}

static void addresses_follow_memory_that_went_and_came(void **state) {
  (void)state;
  tables_follow(only ? only : "cpu");
}

static void wrong_tables_are_refused(void **state) {
  (void)state;
  if (!only) tables_misuse();
  if (!only) tables_of_spans();
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
  const gm_pages_params params = {.struct_size = sizeof params, .max_pages = 2, .reserve = 1};
  pool_bench_open(&bench, "null", "null:capacity=64M,latency=1000000000", NULL);
  pool_bench_ok(gm_pages_create(bench.ctx, &params, &s.pages, err));
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  const uint32_t owner = page_owner(&s, "seq");
  gm_page page = take_one(&s, owner), copy;
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
  assert_int_equal(gm_pages_take(s.pages, owner, 1, GM_PAGES_URGENT, &page, NULL), GM_OK);
  const uint32_t second = page_owner(&s, "second");
  assert_int_equal(gm_pages_share(s.pages, second, &page, 1, NULL), GM_OK);
  assert_refused(&s, gm_pages_write(s.pages, second, &page, 1, 0, NULL, &copy, &s.err), GM_ERR_INVALID_ARGUMENT,
                 "no step is open"); /* the points of those that are came before the copy */
  assert_int_equal(gm_page_owner_close(s.pages, second, NULL), GM_OK);
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
  assert_refused(&s, gm_pages_destroy(s.pages, &s.err), GM_ERR_BUSY, "granule 0 in plane 1 is mapped");
  assert_int_equal(page_stats(&s).backed, 0); /* no page is handed out without memory */
  assert_int_equal(page_stats(&s).free, 0);
  world_ok(gm_pages_grow(s.pages, GRANULE, err));
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
      cmocka_unit_test(a_shared_page_is_copied_before_a_write),
      cmocka_unit_test(wrong_writes_change_nothing),
      cmocka_unit_test(copies_on_two_streams_go_on),
      cmocka_unit_test(streams_of_other_devices_are_refused),
      cmocka_unit_test(without_a_pool_the_program_copies),
      cmocka_unit_test(pages_go_to_another_set_and_back),
      cmocka_unit_test(random_calls_leave_the_right_contents),
      cmocka_unit_test(without_steps_contents_are_wrong),
      cmocka_unit_test(tables_on_the_device_are_the_rows),
      cmocka_unit_test(addresses_follow_memory_that_went_and_came),
      cmocka_unit_test(wrong_tables_are_refused),
      cmocka_unit_test(a_step_ends_when_its_point_has_passed),
      cmocka_unit_test(a_growth_that_fails_keeps_whole_granules),
      cmocka_unit_test(a_mapped_block_is_busy),
      cmocka_unit_test(wrong_planes_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
