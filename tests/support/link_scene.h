/* A link model by itself, with four lanes, for tests. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_LINK_SCENE_H
#define GM_TESTS_SUPPORT_LINK_SCENE_H

#include "support/link_model.h"

enum { OPS = 2048, LANES = 4, MB = 1000000 };

static gm__link_model model;
static gm__link_lane lanes[LANES];
static gm__link_op ops[OPS];
static size_t used;
static link_journal journal;

static inline void begin(const char *spec) {
  assert_null(gm__link_read(spec, &model));
  model.journal = journal.lines;
  model.capacity = LINK_JOURNAL_LINES;
  for (int i = 0; i < LANES; i++) gm__link_lane_open(&model, &lanes[i]);
  used = 0;
}

static inline gm__link_op *add(int lane, gm__link_kind kind, uint64_t bytes) {
  assert_true(used < OPS);
  gm__link_op *op = &ops[used++];
  *op = (gm__link_op){.entry = {.kind = kind, .bytes = bytes}};
  gm__link_submit(&model, &lanes[lane], op);
  return op;
}

static inline gm__link_op *add_named(int lane, gm__link_kind kind, const char *name) {
  gm__link_op *op = add(lane, kind, 0);
  op->name = name;
  return op;
}

/* `lane` waits for `op`, which another lane has. */
static inline void wait_for(int lane, const gm__link_op *op) {
  add(lane, GM__LINK_MARK, 0)->after = op->entry.sequence;
}

/* The host waits for `op`. */
static inline void host_waits(const gm__link_op *op) {
  while (!gm__link_ended(&model, op->entry.sequence)) assert_non_null(gm__link_next(&model, UINT64_MAX));
}

static inline void run(void) {
  while (gm__link_next(&model, UINT64_MAX)) {}
  journal.count = (size_t)model.entries;
}

static inline void end(void) {
  for (int i = 0; i < LANES; i++) {
    assert_null(lanes[i].head);
    gm__link_lane_close(&model, &lanes[i]);
  }
  assert_null(model.lanes);
}

#endif
