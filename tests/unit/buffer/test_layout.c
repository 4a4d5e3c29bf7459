/* The layout of relocatable buffers, against a search through all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/buffer/buffer.h"
#include "support/random.h"

enum { BUFFERS = 300, MEMORIES = 7, PLACES = 1000, TURNS = 6000 };

static gm_buffer buffers[BUFFERS];
static bool in[BUFFERS];
static gm_buffer *top;

static gm_buffer *plain_below(uint64_t memory, uint64_t below) {
  gm_buffer *best = NULL;
  for (int i = 0; i < BUFFERS; i++) {
    const gm_block *block = &buffers[i].at.block;
    if (!in[i] || block->memory != memory || block->address >= below) continue;
    if (!best || block->address > best->at.block.address) best = &buffers[i];
  }
  return best;
}

static uint64_t plain_bytes(uint64_t memory) {
  uint64_t bytes = 0;
  for (int i = 0; i < BUFFERS; i++)
    bytes += in[i] && buffers[i].at.block.memory == memory ? buffers[i].at.block.bytes : 0;
  return bytes;
}

static void change(int i, uint64_t *seed) {
  gm_block *block = &buffers[i].at.block;
  if (in[i]) {
    gm__layout_take(&top, &buffers[i]);
  } else {
    buffers[i].id = (uint64_t)i + 1;
    buffers[i].bytes = 1 + test_random(seed) % 100;
    block->bytes = buffers[i].bytes + test_random(seed) % 16;
    block->memory = 1 + test_random(seed) % MEMORIES;
    block->address = test_random(seed) % PLACES * BUFFERS + (uint64_t)i; /* no two have one */
    gm__layout_add(&top, &buffers[i]);
  }
  in[i] = !in[i];
}

static void test_as_a_search_through_all(void **state) {
  (void)state;
  uint64_t seed = 11;
  for (int turn = 0; turn < TURNS; turn++) {
    change((int)(test_random(&seed) % BUFFERS), &seed);
    const uint64_t memory = test_random(&seed) % (MEMORIES + 2), below = test_random(&seed) % (PLACES * BUFFERS);
    gm_buffer *last = plain_below(memory, below);
    assert_ptr_equal(gm__layout_below(top, memory, below), last);
    if (last) assert_ptr_equal(gm__layout_at(top, memory, last->at.block.address), last);
    if (last) assert_null(gm__layout_at(top, memory, last->at.block.address - 1));
    assert_true(gm__layout_bytes(top, memory) == plain_bytes(memory));
  }
  for (int i = 0; i < BUFFERS; i++) gm__layout_take(&top, &buffers[i]); /* nothing, where it is not in */
  assert_null(top);
}

static size_t depth(const gm_buffer *at) {
  if (!at) return 0;
  const size_t lower = depth(at->layout.lower), higher = depth(at->layout.higher);
  return 1 + (lower > higher ? lower : higher);
}

/* In order, as a fresh pool hands blocks out: a tree without balance would be a list. */
static void test_the_tree_is_not_deep(void **state) {
  (void)state;
  enum { MANY = 4096 };
  gm_buffer *row = calloc(MANY, sizeof *row), *root = NULL;
  assert_non_null(row);
  for (uint64_t i = 0; i < MANY; i++) {
    row[i].id = i + 1;
    row[i].bytes = 1;
    row[i].at.block = (gm_block){.memory = 1, .address = i * 256, .bytes = 256};
    gm__layout_add(&root, &row[i]);
  }
  assert_true(depth(root) < 48); /* 12 at best */
  free(row);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_a_search_through_all),
                                     cmocka_unit_test(test_the_tree_is_not_deep)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
