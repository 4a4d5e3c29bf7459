/* Page sets with memory, whose pages tell in each byte what they should hold, and random calls beside a plain model of
 * that. Needs cmocka.h included before. */
#ifndef GM_TESTS_TRANSFER_PAGE_CONTENTS_H
#define GM_TESTS_TRANSFER_PAGE_CONTENTS_H

#include "gm/page_memory.h"
#include "support/great_many.h"
#include "support/page_scene.h"
#include "support/random.h"
#include "transfer/transfer_world.h"

enum { PAGES = 10, GRANULE = 4, PLANES = 2, WIDEST = 512 };

static const uint64_t plane_bytes[PLANES] = {64, WIDEST};

static const gm_pages_params usual = {.struct_size = sizeof usual,
                                      .max_pages = PAGES,
                                      .plane_bytes = plane_bytes,
                                      .planes = PLANES,
                                      .granule_pages = GRANULE,
                                      .backed_pages = 1};

static inline bool memory_open(transfer_world *w, page_scene *s, const char *backend, gm_pages_params params) {
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

static inline void memory_close(transfer_world *w, page_scene *s) {
  world_ok(gm_pages_destroy(s->pages, err));
  assert_int_equal(world_stats(&w->ends[0]).active, 1); /* the world's own */
  world_finish(w);
}

/* Each byte of a page in a plane tells `what`. */
static inline void page_write(transfer_world *w, page_scene *s, gm_page page, unsigned what) {
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
static inline unsigned page_wrong(transfer_world *w, page_scene *s, gm_page page, unsigned what) {
  unsigned char bytes[WIDEST];
  unsigned wrong = 0;
  for (uint32_t k = 0; k < PLANES; k++) {
    gm_block block;
    uint64_t offset = 0;
    if (gm_pages_place(s->pages, k, page, &block, &offset, NULL)) { /* its memory is gone */
      wrong++;
      continue;
    }
    world_ok(gm_block_read(w->ends[0].pool, &block, offset, bytes, plane_bytes[k], w->ends[0].stream, NULL, err));
    bool right = true;
    for (uint64_t i = 0; i < plane_bytes[k]; i++) right = right && bytes[i] == (unsigned char)(what * 7 + k);
    wrong += !right;
  }
  return wrong;
}

/* --- random calls --- */

enum { ROWS = 6, ROW = 5, STEPS = 4 };

/* The pages of an owner, and what each holds. A step has a copy: what it must read until it ends. */
typedef struct contents_row {
  uint32_t owner; /* 0: closed */
  uint32_t count;
  gm_page pages[ROW];
  unsigned what[ROW];
} contents_row;

typedef struct contents {
  transfer_world world;
  page_scene scene;
  bool with_steps;
  uint64_t random, wrong, copied, refused;
  unsigned newest; /* what the last page got */
  contents_row rows[ROWS], steps[STEPS];
  uint64_t numbers[STEPS];
  bool open[STEPS];
} contents;

static inline uint32_t contents_pick(contents *c, uint32_t below) {
  return (uint32_t)(test_random(&c->random) % below);
}

static inline void contents_check(contents *c, const contents_row *row) {
  for (uint32_t i = 0; i < row->count; i++) c->wrong += page_wrong(&c->world, &c->scene, row->pages[i], row->what[i]);
}

static inline void contents_take(contents *c, contents_row *row) {
  if (!row->owner || row->count == ROW) return;
  gm_page *page = &row->pages[row->count];
  if (gm_pages_take(c->scene.pages, row->owner, 1, contents_pick(c, 2), page, NULL)) {
    c->refused++;
    return;
  }
  row->what[row->count++] = ++c->newest;
  page_write(&c->world, &c->scene, *page, c->newest);
}

static inline void contents_open(contents *c, contents_row *row) {
  const contents_row *from = &c->rows[contents_pick(c, ROWS)];
  for (int looks = 0; looks < 5 && from->count < 2; looks++) from = &c->rows[contents_pick(c, ROWS)];
  if (row->owner && contents_pick(c, 2)) return;
  if (row->owner) {
    world_ok(gm_page_owner_close(c->scene.pages, row->owner, err));
    *row = (contents_row){.owner = 0};
    return;
  }
  const uint32_t owner = page_owner(&c->scene, "row");
  if (from->owner) {
    world_ok(gm_pages_fork(c->scene.pages, from->owner, owner, err));
    *row = *from;
  }
  row->owner = owner;
}

/* Another version of some pages at the end of a row. The steps that read a page which stays see the new one. */
static inline void contents_write(contents *c, contents_row *row) {
  gm_page out[ROW];
  if (!row->owner || !row->count) return;
  const uint32_t first = contents_pick(c, row->count), count = row->count - first;
  gm_stream *stream = contents_pick(c, 2) ? c->world.ends[0].stream : NULL;
  if (gm_pages_write(c->scene.pages, row->owner, row->pages + first, count, GM_PAGES_URGENT, stream, out, NULL)) {
    c->refused++;
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    const gm_page old = row->pages[first + i];
    c->wrong += page_wrong(&c->world, &c->scene, out[i], row->what[first + i]); /* the copy */
    c->copied += out[i] != old;
    row->pages[first + i] = out[i];
    row->what[first + i] = ++c->newest;
    page_write(&c->world, &c->scene, out[i], c->newest);
    for (uint32_t k = 0; k < STEPS * ROW; k++) {
      contents_row *step = &c->steps[k / ROW];
      if (out[i] == old && step->pages[k % ROW] == old) step->what[k % ROW] = c->newest;
    }
  }
}

static inline void contents_release(contents *c, contents_row *row) {
  if (row->count) world_ok(gm_pages_release(c->scene.pages, row->owner, &row->pages[--row->count], 1, err));
}

static inline void contents_step(contents *c, uint32_t place) {
  if (c->open[place]) {
    contents_check(c, &c->steps[place]);
    if (c->with_steps) world_ok(gm_pages_step_end(c->scene.pages, c->numbers[place], err));
    c->open[place] = false;
    c->steps[place].count = 0;
  } else if (!c->with_steps || gm_pages_step_begin(c->scene.pages, &c->numbers[place], NULL) == GM_OK) {
    c->open[place] = true;
    c->steps[place] = c->rows[contents_pick(c, ROWS)];
  }
}

static inline void contents_call(contents *c) {
  contents_row *row = &c->rows[contents_pick(c, ROWS)];
  switch (contents_pick(c, 16)) {
    case 0:
    case 13: contents_open(c, row); break;
    case 1: world_ok(gm_pages_grow(c->scene.pages, PAGES - contents_pick(c, 4), err)); break;
    case 2: world_ok(gm_pages_trim(c->scene.pages, contents_pick(c, PAGES + 1), NULL, err)); break;
    case 3: contents_check(c, row); break;
    case 4:
    case 5:
    case 6:
    case 7: contents_step(c, contents_pick(c, STEPS)); break;
    case 8: contents_release(c, row); break;
    case 9:
    case 10:
    case 11:
    case 12: contents_write(c, row); break;
    default: contents_take(c, row); break;
  }
}

/* Returns how many planes of pages had other contents than they should. */
static inline uint64_t contents_run(const char *backend, size_t calls, bool with_steps) {
  contents *c = calloc(1, sizeof *c);
  gm_pages_params params = usual;
  params.reserve = 1;
  assert_non_null(c);
  c->random = 1;
  c->with_steps = with_steps;
  if (!memory_open(&c->world, &c->scene, backend, params)) {
    free(c);
    return 0;
  }
  for (size_t i = 0; i < calls; i++) contents_call(c);
  for (uint32_t i = 0; i < ROWS; i++) {
    contents_check(c, &c->rows[i]);
    if (c->rows[i].owner) world_ok(gm_page_owner_close(c->scene.pages, c->rows[i].owner, err));
  }
  for (uint32_t i = 0; i < STEPS; i++) {
    if (c->open[i]) contents_step(c, i);
  }
  const uint64_t wrong = c->wrong;
  printf("%s: %u versions, %llu copies, %llu refused, %llu wrong\n", backend, c->newest, (unsigned long long)c->copied,
         (unsigned long long)c->refused, (unsigned long long)wrong);
  assert_in_range(c->copied, calls / 200, calls);
  memory_close(&c->world, &c->scene);
  free(c);
  return wrong;
}

#endif
