/* Holes against a naive oracle: a list of ranges, searched and joined by walking it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/algo/heap.h"
#include "core/algo/span_map.h"
#include "support/random.h"

enum { SPANS = 4096, LIVE = 1500, OPERATIONS = 1000000, GROUPS = 3 };
#define UNIT UINT64_C(256)
#define SIZE (UINT64_C(64) << 20)
#define BASE (UINT64_C(1) << 40)

typedef struct bench {
  gm__heap heap;
  gm__heap_bins bins[GROUPS];
  gm__span spans[SPANS];
  gm__span *unused[SPANS], *live[LIVE];
  uint32_t unused_count, live_count;
  gm__span_map map;
  void *memory;
  uint64_t random;
  uint32_t searches, far; /* found, and that were not close to the smallest */
} bench;

static gm__span *bench_take(bench *b) {
  assert_true(b->unused_count > 0);
  gm__span *span = b->unused[--b->unused_count];
  memset(span, 0, sizeof *span);
  return span;
}

static bench *bench_open(void) {
  bench *b = test_calloc(1, sizeof *b);
  b->random = 7;
  for (int i = 0; i < GROUPS; i++) b->heap.groups[i] = &b->bins[i];
  for (int i = 0; i < SPANS; i++) b->unused[b->unused_count++] = &b->spans[i];
  b->memory = test_calloc(1, gm__span_map_size(SIZE));
  gm__span_map_init(&b->map, BASE, SIZE, b->memory);
  gm__span *all = bench_take(b);
  *all = (gm__span){.address = BASE, .bytes = SIZE};
  gm__span_map_open(&b->map, all);
  gm__heap_put(&b->heap, all, 0);
  return b;
}

static void bench_close(bench *b) {
  test_free(b->memory);
  test_free(b);
}

static gm__span *bench_first(const bench *b) { return gm__span_map_find(&b->map, BASE); }

/* The smallest hole of the group that fits; 0: none. */
static uint64_t oracle_best(const bench *b, uint32_t group, uint64_t bytes, uint64_t align) {
  uint64_t best = 0;
  for (const gm__span *span = bench_first(b); span; span = span->right) {
    uint64_t pad = (align - span->address % align) % align;
    if (!span->hole || span->group != group || span->bytes < pad + bytes) continue;
    if (!best || span->bytes < best) best = span->bytes;
  }
  return best;
}

static void bench_cut(bench *b, gm__span *hole, uint64_t bytes, gm__span *front) {
  gm__heap_cut(&b->heap, hole, bytes, front);
  gm__span_map_cut(&b->map, front, hole);
}

static void bench_carve(bench *b, gm__span *hole, uint64_t bytes, uint64_t align) {
  uint64_t pad = gm__span_pad(hole, align);
  if (pad) {
    gm__span *front = bench_take(b);
    bench_cut(b, hole, pad, front);
    gm__heap_put(&b->heap, front, hole->group);
  }
  gm__span *part = hole;
  if (hole->bytes > bytes) {
    part = bench_take(b);
    bench_cut(b, hole, bytes, part);
  } else {
    gm__heap_take(&b->heap, hole);
  }
  assert_false(part->hole);
  assert_int_equal(part->bytes, bytes);
  assert_int_equal(part->address % align, 0);
  b->live[b->live_count++] = part;
}

static void bench_join(bench *b, gm__span *left) {
  gm__span *right = left->right;
  gm__span_map_leave(&b->map, right);
  gm__span_join(left);
  b->unused[b->unused_count++] = right;
}

static void bench_put(bench *b, gm__span *span, uint32_t group) {
  if (span->left && span->left->hole && span->left->group == group) {
    span = span->left;
    gm__heap_take(&b->heap, span);
    bench_join(b, span);
  }
  if (span->right && span->right->hole && span->right->group == group) {
    gm__heap_take(&b->heap, span->right);
    bench_join(b, span);
  }
  gm__heap_put(&b->heap, span, group);
}

static uint64_t below(bench *b, uint64_t limit) { return test_random(&b->random) % limit; }

static void step_take(bench *b, bool check) {
  uint64_t bytes = (1 + below(b, UINT64_C(1) << below(b, 11))) * UNIT;
  uint64_t align = below(b, 4) ? UNIT : UNIT << below(b, 6);
  uint32_t group = (uint32_t)below(b, GROUPS);
  gm__span *hole = gm__heap_find(&b->heap, group, bytes, align);
  if (check) {
    uint64_t best = oracle_best(b, group, bytes, align);
    assert_int_equal(hole != NULL, best != 0);
    b->searches += hole != NULL;
    b->far += hole && hole->bytes > best + best / 8; /* not of the bin of the best, or the next */
  }
  if (!hole) return;
  assert_true(hole->hole && hole->group == group && gm__span_fits(hole, bytes, align));
  bench_carve(b, hole, bytes, align);
}

static void step_give(bench *b) {
  uint32_t at = (uint32_t)below(b, b->live_count);
  gm__span *span = b->live[at];
  b->live[at] = b->live[--b->live_count];
  bench_put(b, span, (uint32_t)below(b, GROUPS));
}

/* The spans tile the segment, are found by every address, and are binned by their size. */
static void check_all(const bench *b) {
  uint64_t at = BASE;
  uint32_t count = 0;
  for (const gm__span *span = bench_first(b), *left = NULL; span; left = span, span = span->right, count++) {
    assert_int_equal(span->address, at);
    assert_ptr_equal(span->left, left);
    at += span->bytes;
    assert_ptr_equal(gm__span_map_find(&b->map, span->address), span);
    assert_ptr_equal(gm__span_map_find(&b->map, at - 1), span);
    assert_ptr_equal(gm__span_map_find(&b->map, span->address + span->bytes / 2), span);
    if (span->hole) assert_int_equal(span->bin, gm__heap_bin(span->bytes));
  }
  assert_int_equal(at, BASE + SIZE);
  assert_int_equal(count + b->unused_count, SPANS);
}

static void test_random_against_the_oracle(void **state) {
  (void)state;
  bench *b = bench_open();
  for (uint32_t i = 0; i < OPERATIONS; i++) {
    bool full = b->live_count == LIVE || b->unused_count < 4;
    if (!full && (b->live_count == 0 || below(b, 1000) < 520)) {
      step_take(b, i % 64 == 0);
    } else {
      step_give(b);
    }
    if (i % 20000 == 0) check_all(b);
  }
  assert_true(b->searches > 1000 && b->far < b->searches / 20);
  while (b->live_count) step_give(b);
  for (uint32_t group = 1; group < GROUPS; group++) {
    for (gm__span *span = gm__heap_drain(&b->heap, group), *next; span; span = next) {
      next = span->next;
      bench_put(b, span, 0);
    }
  }
  check_all(b);
  assert_int_equal(bench_first(b)->bytes, SIZE); /* one hole again */
  assert_int_equal(b->unused_count, SPANS - 1);
  bench_close(b);
}

static void test_bins_rise_with_size(void **state) {
  (void)state;
  uint32_t last = 0;
  for (uint32_t power = 0; power < 64; power++) {
    for (uint64_t i = 0; i < 32; i++) {
      uint64_t bytes = (UINT64_C(1) << power) + (UINT64_C(1) << power) / 32 * i;
      uint32_t bin = gm__heap_bin(bytes);
      assert_true(bin >= last && bin < GM__HEAP_BINS);
      last = bin;
    }
  }
  assert_int_equal(gm__heap_bin(UINT64_MAX), GM__HEAP_BINS - 1);
}

static void test_a_group_without_bins_has_no_holes(void **state) {
  (void)state;
  gm__heap heap = {{NULL}};
  assert_null(gm__heap_find(&heap, 5, 256, 256));
  assert_null(gm__heap_drain(&heap, 5));
}

/* More entries in the request's own bin than a short look reaches, and only the last of them fits. */
static void test_the_last_of_a_long_bin_is_found(void **state) {
  (void)state;
  enum { COUNT = 40 };
  gm__heap_bins *bins = test_calloc(1, sizeof *bins);
  gm__heap heap = {{bins}};
  gm__span spans[COUNT] = {{0}};
  for (uint64_t i = 0; i < COUNT; i++) {
    spans[i] = (gm__span){.address = i << 32, .bytes = (i == 0 ? 1048 : 1025) * UNIT};
    gm__heap_put(&heap, &spans[i], 0);
  }
  assert_ptr_equal(gm__heap_find(&heap, 0, 1040 * UNIT, UNIT), &spans[0]);
  assert_null(gm__heap_find(&heap, 0, 1049 * UNIT, UNIT));
  test_free(bins);
}

static void test_alignment_is_part_of_the_fit(void **state) {
  (void)state;
  gm__span span = {.address = 0x1100, .bytes = 0x1000};
  assert_int_equal(gm__span_pad(&span, 0x1000), 0xf00);
  assert_true(gm__span_fits(&span, 0x100, 0x1000));
  assert_false(gm__span_fits(&span, 0x101, 0x1000));
  assert_false(gm__span_fits(&span, 0x100, 0x10000));
  assert_false(gm__span_fits(&span, UINT64_MAX, 1));
}

static void test_a_map_too_large_for_the_host_is_refused(void **state) {
  (void)state;
  assert_true(gm__span_map_size(1) > 0);
  assert_true(gm__span_map_size(UINT64_MAX) == 0 || sizeof(size_t) == 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_against_the_oracle),
      cmocka_unit_test(test_bins_rise_with_size),
      cmocka_unit_test(test_a_group_without_bins_has_no_holes),
      cmocka_unit_test(test_the_last_of_a_long_bin_is_found),
      cmocka_unit_test(test_alignment_is_part_of_the_fit),
      cmocka_unit_test(test_a_map_too_large_for_the_host_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
