/* Copies of a backend under the link model, as gm asks for them: pinned memory, streams and points of the seam. For
 * backends on a simulated driver. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_LINK_OPS_H
#define GM_TESTS_SUPPORT_LINK_OPS_H

#include <stdlib.h>
#include <string.h>

#include "gm/backend.h"
#include "support/link_model.h"

enum { LINK_OPS_SLOTS = 3, LINK_OPS_STREAMS = 3, LINK_OPS_BYTES = 1000000, LINK_OPS_PINNED = 1 };

typedef struct link_ops {
  const gm_backend_ops *ops;
  void *device;
  void (*say)(const char *command);
  link_journal_copy *copy;
  void *streams[LINK_OPS_STREAMS];
  gm_memory in[LINK_OPS_SLOTS], out[LINK_OPS_SLOTS], pinned[LINK_OPS_SLOTS];
  link_journal journal;
} link_ops;

static inline gm_memory link_ops_take(const link_ops *s, uint32_t type) {
  const gm_memory_params params = {.struct_size = sizeof params, .type = type, .bytes = LINK_OPS_BYTES};
  gm_memory memory = {0};
  assert_int_equal(s->ops->memory_alloc(s->device, &params, &memory, NULL), GM_OK);
  return memory;
}

static inline void link_ops_begin(link_ops *s) {
  for (int i = 0; i < LINK_OPS_STREAMS; i++) {
    gm_stream_kind kind;
    assert_int_equal(s->ops->stream_create(s->device, &s->streams[i], &kind, NULL), GM_OK);
  }
  for (int i = 0; i < LINK_OPS_SLOTS; i++) {
    s->in[i] = link_ops_take(s, 0);
    s->out[i] = link_ops_take(s, 0);
    s->pinned[i] = link_ops_take(s, LINK_OPS_PINNED);
    assert_non_null(s->pinned[i].host);
  }
}

static inline void link_ops_end(link_ops *s) {
  s->say("set LINK off");
  for (int i = 0; i < LINK_OPS_STREAMS; i++) s->ops->stream_close(s->device, s->streams[i], GM_CLOSE_NORMAL);
  for (int i = 0; i < LINK_OPS_SLOTS; i++) {
    s->ops->memory_free(s->device, &s->in[i], GM_CLOSE_NORMAL, NULL);
    s->ops->memory_free(s->device, &s->out[i], GM_CLOSE_NORMAL, NULL);
    s->ops->memory_free(s->device, &s->pinned[i], GM_CLOSE_NORMAL, NULL);
  }
}

static inline void link_ops_wait(const link_ops *s, gm_backend_point *point) {
  assert_int_equal(s->ops->point_wait(s->device, point, UINT64_MAX, NULL), GM_OK);
}

/* `stream` waits for `point`, which is released. */
static inline void link_ops_wait_on(const link_ops *s, int stream, gm_backend_point *point) {
  assert_int_equal(s->ops->point_wait_on(s->device, s->streams[stream], point, NULL), GM_OK);
  s->ops->point_release(s->device, point, GM_CLOSE_NORMAL);
  *point = (gm_backend_point){0};
}

/* up, a copy inside the device as the step, and down again into the same slot. `waits`: the host waits after each copy;
 * `host`: the memory of the host, of LINK_OPS_BYTES for each slot. */
static inline void link_ops_pipeline(link_ops *s, int steps, int depth, bool waits, unsigned char *const *host) {
  gm_backend_point up, step, downs[LINK_OPS_SLOTS] = {{0}};
  for (int i = 0; i < steps; i++) {
    const int slot = i % depth;
    const gm_copy_item copy = {.src = &s->in[slot], .dst = &s->out[slot], .bytes = LINK_OPS_BYTES};
    link_ops_wait(s, &downs[slot]); /* the host fills the slot anew */
    link_ops_wait_on(s, 0, &downs[slot]);
    memset(host[slot], i, LINK_OPS_BYTES);
    assert_int_equal(
        s->ops->copy_to_device(s->device, s->streams[0], &s->in[slot], 0, host[slot], LINK_OPS_BYTES, &up, NULL),
        GM_OK);
    if (waits) link_ops_wait(s, &up);
    link_ops_wait_on(s, 1, &up);
    assert_int_equal(s->ops->copy(s->device, s->streams[1], &copy, &step, NULL), GM_OK);
    link_ops_wait_on(s, 2, &step);
    memset(host[slot], 0xee, waits ? LINK_OPS_BYTES : 0);
    assert_int_equal(s->ops->copy_to_host(s->device, s->streams[2], &s->out[slot], 0, host[slot], LINK_OPS_BYTES,
                                          &downs[slot], NULL),
                     GM_OK);
    if (waits) link_ops_wait(s, &downs[slot]);
    if (waits) assert_int_equal(host[slot][LINK_OPS_BYTES - 1], i & 0xff);
  }
  for (int i = 0; i < depth; i++) {
    link_ops_wait(s, &downs[i]);
    s->ops->point_release(s->device, &downs[i], GM_CLOSE_NORMAL);
  }
  link_journal_take(&s->journal, s->copy);
}

/* One pipeline with and without what overlap needs. Stages of 1000, 500 and 800 microseconds. */
static inline void link_ops_play(link_ops *s) {
  static const gm__link_kind stages[] = {GM__LINK_H2D, GM__LINK_D2D, GM__LINK_D2H};
  static const char command[] = "set LINK h2d:1000,d2d:2000,d2h:1250";
  unsigned char *pinned[LINK_OPS_SLOTS], *pageable[LINK_OPS_SLOTS];
  for (int i = 0; i < LINK_OPS_SLOTS; i++) {
    pinned[i] = s->pinned[i].host;
    pageable[i] = malloc(LINK_OPS_BYTES);
    assert_non_null(pageable[i]);
  }
  s->say(command);
  link_ops_pipeline(s, 50, 3, false, pinned);
  assert_in_range(link_makespan(&s->journal), (50 * 1000 + 1300) * UINT64_C(990), (50 * 1000 + 1300) * UINT64_C(1010));
  assert_true(link_overlap_share(&s->journal, stages, 3) >= 0.97);
  assert_int_equal(link_bytes(&s->journal, GM__LINK_H2D), 50 * LINK_OPS_BYTES);
  assert_int_equal(link_bytes(&s->journal, GM__LINK_D2H), 50 * LINK_OPS_BYTES);
  s->say(command);
  link_ops_pipeline(s, 20, 3, true, pinned);
  assert_int_equal(link_makespan(&s->journal), 20 * 2300 * 1000);
  assert_true(link_overlap_share(&s->journal, stages, 3) == 0);
  s->say(command);
  link_ops_pipeline(s, 20, 1, false, pinned);
  assert_true(link_overlap_share(&s->journal, stages, 3) == 0);
  s->say(command);
  link_ops_pipeline(s, 20, 3, false, pageable);
  assert_true(link_overlap_share(&s->journal, stages, 3) == 0);
  for (int i = 0; i < LINK_OPS_SLOTS; i++) free(pageable[i]);
}

#endif
