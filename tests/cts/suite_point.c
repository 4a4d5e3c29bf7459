/* A point promises this: once it has passed, whoever may know of it sees the bytes; until then nobody is told so. The
 * bytes are read on another stream that waits for nothing, so a point that lies shows. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "cts/cts.h"

enum { POINT_BYTES = 1 << 18, POINT_FEW = 4096 };

/* The kinds of work that end with a point. */
typedef enum point_kind {
  POINT_FILL,
  POINT_COPY,
  POINT_WRITE,
  POINT_READ,
  POINT_MANY,
  POINT_RECT,
  POINT_RECT_READ,
  POINT_RECT_COPY,
  POINT_RECORD,
  POINT_COPIED,
  POINT_KINDS
} point_kind;

static const char *const point_names[] = {"fill",         "copy",           "copy_to_device", "copy_to_host",
                                          "copy_many",    "rect_to_device", "rect_to_host",   "rect_copy",
                                          "point_record", "point_copy"};

/* How somebody learns that the work is done. */
typedef enum point_way {
  POINT_POLL,    /* point_done */
  POINT_WAIT,    /* point_wait without a limit */
  POINT_PATIENT, /* with a limit that is nearly none */
  POINT_STEPS,   /* with a short limit, again and again */
  POINT_SYNC,    /* stream_sync */
  POINT_DEVICE,  /* device_sync */
  POINT_STREAM   /* point_wait_on: the other stream waits */
} point_way;

typedef struct point_scene {
  void *work, *other;         /* streams */
  gm_memory src, dst;         /* both get `value` */
  unsigned char *host, *want; /* POINT_BYTES each */
  uint64_t bytes;             /* of the work that is asked about */
  uint32_t value;
} point_scene;

static void point_end(point_scene *scene) { free(scene->host); }

static bool point_begin(cts *t, point_scene *scene) {
  *scene = (point_scene){.host = malloc((size_t)POINT_BYTES * 2)};
  if (!cts_check(t, scene->host, "host memory", __FILE__, __LINE__)) return false;
  scene->want = scene->host + POINT_BYTES;
  if (cts_stream(t, &scene->work) && cts_stream(t, &scene->other) && cts_memory(t, t->type, POINT_BYTES, &scene->src) &&
      cts_memory(t, t->type, POINT_BYTES, &scene->dst))
    return true;
  point_end(scene);
  return false;
}

static gm_status point_fill(cts *t, void *stream, const gm_memory *memory, uint64_t bytes, const uint32_t *value,
                            gm_backend_point *out) {
  return t->ops->fill(t->device, stream, memory, 0, bytes, value, 4, out, &t->err);
}

/* Work that nobody asks about: what comes after it has something to wait for. */
static gm_status point_before(cts *t, void *stream, const gm_memory *memory, const uint32_t *value) {
  gm_backend_point point = {0};
  gm_status status = point_fill(t, stream, memory, POINT_BYTES, value, &point);
  if (status == GM_OK) t->ops->point_release(t->device, &point, GM_CLOSE_NORMAL);
  return status ? status : cts_order(t, stream);
}

static gm_status point_many(cts *t, point_scene *scene, gm_backend_point *out) {
  enum { ITEMS = 4 };
  const uint64_t each = scene->bytes / ITEMS;
  gm_copy_item items[ITEMS];
  for (uint64_t i = 0; i < ITEMS; i++) items[i] = (gm_copy_item){&scene->src, i * each, &scene->dst, i * each, each};
  return t->ops->copy_many(t->device, scene->work, items, ITEMS, out, &t->err);
}

/* The point of work that is the last one before, or of a copy of its point. */
static gm_status point_derived(cts *t, point_scene *scene, point_kind kind, gm_backend_point *out) {
  gm_backend_point first = {0};
  gm_status status = point_fill(t, scene->work, &scene->dst, scene->bytes, &scene->value, &first);
  if (status) return status;
  status = kind == POINT_RECORD ? t->ops->point_record(t->device, scene->work, out, &t->err)
                                : t->ops->point_copy(t->device, &first, out, &t->err);
  t->ops->point_release(t->device, &first, GM_CLOSE_NORMAL);
  return status;
}

static gm_status point_submit(cts *t, point_scene *scene, point_kind kind, gm_backend_point *out) {
  const gm_copy_item item = {.src = &scene->src, .dst = &scene->dst, .bytes = scene->bytes};
  const gm_rect rect = {.row_bytes = scene->bytes / 8, .rows = 4, .slices = 2};
  switch (kind) {
    case POINT_FILL: return point_fill(t, scene->work, &scene->dst, scene->bytes, &scene->value, out);
    case POINT_COPY: return t->ops->copy(t->device, scene->work, &item, out, &t->err);
    case POINT_WRITE:
      return t->ops->copy_to_device(t->device, scene->work, &scene->dst, 0, scene->want, scene->bytes, out, &t->err);
    case POINT_READ:
      return t->ops->copy_to_host(t->device, scene->work, &scene->src, 0, scene->host, scene->bytes, out, &t->err);
    case POINT_MANY: return point_many(t, scene, out);
    case POINT_RECT:
      return t->ops->rect_to_device(t->device, scene->work, &scene->dst, scene->want, &rect, out, &t->err);
    case POINT_RECT_READ:
      return t->ops->rect_to_host(t->device, scene->work, &scene->src, scene->host, &rect, out, &t->err);
    case POINT_RECT_COPY:
      return t->ops->rect_copy(t->device, scene->work, &scene->dst, &scene->src, &rect, out, &t->err);
    default: return point_derived(t, scene, kind, out);
  }
}

static bool point_reads(point_kind kind) { return kind == POINT_READ || kind == POINT_RECT_READ; }

/* A stream that waits for bytes in host memory has nothing to show for it. */
static bool point_has(const cts *t, point_kind kind, point_way way) {
  if (point_reads(kind) && way == POINT_STREAM) return false;
  if (kind == POINT_MANY) return t->has & CTS_MANY;
  if (kind >= POINT_RECT && kind <= POINT_RECT_COPY) return t->has & CTS_RECT;
  return kind != POINT_COPIED || t->mode->ops->point_copy;
}

/* Asking helps the work on. An engine that has much to do may need long: after two seconds the stream is waited for. */
static gm_status point_poll(cts *t, void *stream, const gm_backend_point *point) {
  const uint64_t begin = gm__now_ns();
  bool done = false;
  gm_status status = t->ops->stream_flush(t->device, stream, &t->err);
  while (status == GM_OK && !done && gm__now_ns() - begin < 2000000000u) {
    status = t->ops->point_done(t->device, point, &done, &t->err);
    if (!done) sched_yield();
  }
  if (status == GM_OK && !done) status = t->ops->stream_sync(t->device, stream, &t->err);
  if (status == GM_OK && !done) status = t->ops->point_done(t->device, point, &done, &t->err);
  if (status == GM_OK) cts_check(t, done, "the stream is done, and the point has passed", __FILE__, __LINE__);
  return status;
}

static gm_status point_steps(cts *t, const gm_backend_point *point) {
  gm_status status = GM_ERR_TIMEOUT;
  while (status == GM_ERR_TIMEOUT) status = t->ops->point_wait(t->device, point, 200000, &t->err);
  return status;
}

static gm_status point_learn(cts *t, point_scene *scene, point_way way, const gm_backend_point *point) {
  switch (way) {
    case POINT_POLL: return point_poll(t, scene->work, point);
    case POINT_WAIT: return t->ops->point_wait(t->device, point, UINT64_MAX, &t->err);
    case POINT_PATIENT: return t->ops->point_wait(t->device, point, UINT64_MAX - 1, &t->err);
    case POINT_STEPS: return point_steps(t, point);
    case POINT_DEVICE: return t->ops->device_sync(t->device, &t->err);
    case POINT_SYNC: return t->ops->stream_sync(t->device, scene->work, &t->err);
    default: return t->ops->point_wait_on(t->device, scene->other, point, &t->err);
  }
}

/* A point that has passed stays so, for every way to ask, also when its stream has more to do. */
static void point_stays_passed(cts *t, const gm_backend_point *point) {
  bool done = false;
  CTS_OK(t, t->ops->point_done(t->device, point, &done, &t->err));
  CTS_CHECK(t, done);
  CTS_OK(t, t->ops->point_wait(t->device, point, 0, &t->err));
  CTS_OK(t, t->ops->point_wait(t->device, point, 1, &t->err));
}

static void point_round(cts *t, point_scene *scene, point_kind kind, point_way way) {
  gm_backend_point point = {0};
  char what[100];
  scene->value++;
  cts_oracle_fill(scene->want, POINT_BYTES, (const unsigned char *)&scene->value, 4);
  memset(scene->host, 0, POINT_BYTES);
  CTS_OK(t, point_before(t, scene->work, &scene->dst, &(uint32_t){~scene->value}));
  CTS_OK(t, point_before(t, scene->work, &scene->src, &scene->value));
  snprintf(what, sizeof what, "the point of %s has passed, so the bytes are there", point_names[kind]);
  CTS_OK(t, point_submit(t, scene, kind, &point));
  CTS_OK(t, point_learn(t, scene, way, &point));
  if (!point_reads(kind)) {
    CTS_OK(t, t->ops->copy_to_host(t->device, scene->other, &scene->dst, 0, scene->host, scene->bytes, NULL, &t->err));
  }
  cts_same(t, scene->host, scene->want, scene->bytes, what);
  if (!t->failed) point_stays_passed(t, &point);
  CTS_OK(t, point_before(t, scene->work, &scene->src, &scene->value));
  if (!t->failed) point_stays_passed(t, &point);
  t->ops->point_release(t->device, &point, GM_CLOSE_NORMAL);
  CTS_OK(t, t->ops->stream_sync(t->device, scene->work, &t->err));
}

/* Much work and little: some drivers do little work on another way. */
static void point_kinds(cts *t, point_way way) {
  point_scene scene;
  if (!point_begin(t, &scene)) return;
  for (int i = 0; i < 2 * POINT_KINDS && !t->failed; i++) {
    const point_kind kind = (point_kind)(i / 2);
    scene.bytes = i % 2 ? POINT_FEW : POINT_BYTES;
    if (point_has(t, kind, way)) point_round(t, &scene, kind, way);
  }
  t->ops->stream_sync(t->device, scene.work, NULL); /* a case that failed leaves work on the host's bytes */
  point_end(&scene);
}

static void point_done_means_done(cts *t) { point_kinds(t, POINT_POLL); }
static void point_sync_means_done(cts *t) { point_kinds(t, POINT_SYNC); }
static void point_wait_on_means_done(cts *t) { point_kinds(t, POINT_STREAM); }

static void point_device_sync_means_done(cts *t) {
  if (t->ops->device_sync(t->device, &t->err) == GM_ERR_NOT_SUPPORTED)
    cts_skip(t, "the backend waits for no whole device");
  else
    point_kinds(t, POINT_DEVICE);
}

static gm_status point_called(void *user, gm_error *err) {
  ++*(int *)user;
  *err = (gm_error){.status = GM_ERR_TIMEOUT, .native_code = 7};
  return GM_ERR_TIMEOUT;
}

static void point_device_call_runs_once(cts *t) {
  int calls = 0;
  const gm_status status = t->ops->device_call(t->device, point_called, &calls, &t->err);
  if (status == GM_ERR_NOT_SUPPORTED) {
    cts_skip(t, "the backend runs no calls of other libraries");
    return;
  }
  CTS_CHECK(t, status == GM_ERR_TIMEOUT && t->err.native_code == 7);
  CTS_CHECK(t, calls == 1);
}

static void point_wait_means_done(cts *t) {
  point_kinds(t, POINT_WAIT);
  if (!t->failed) point_kinds(t, POINT_STEPS);
}

/* Work without a point is over when the call returns: another stream sees its bytes, and the host may use its own. */
static void point_none(cts *t, point_scene *scene, point_kind kind) {
  char what[100];
  snprintf(what, sizeof what, "%s without a point has returned, so the bytes are there", point_names[kind]);
  scene->value++;
  cts_oracle_fill(scene->want, POINT_BYTES, (const unsigned char *)&scene->value, 4);
  memset(scene->host, 0, POINT_BYTES);
  CTS_OK(t, point_before(t, scene->work, &scene->dst, &(uint32_t){~scene->value}));
  CTS_OK(t, point_before(t, scene->work, &scene->src, &scene->value));
  CTS_OK(t, point_submit(t, scene, kind, NULL));
  if (!point_reads(kind)) {
    CTS_OK(t, t->ops->copy_to_host(t->device, scene->other, &scene->dst, 0, scene->host, scene->bytes, NULL, &t->err));
  }
  cts_same(t, scene->host, scene->want, scene->bytes, what);
}

/* Work of each kind follows a wait of its stream. The work that is waited for has the same bytes, and is the earlier.
 */
static void point_behind_a_wait(cts *t, point_scene *scene, point_kind kind) {
  const bool reads = point_reads(kind);
  const uint32_t value = ++scene->value, wrong = ~value;
  gm_backend_point before = {0}, point = {0};
  char what[100];
  snprintf(what, sizeof what, "%s waits for what its stream waits for", point_names[kind]);
  cts_oracle_fill(scene->want, POINT_BYTES, (const unsigned char *)&value, 4);
  memset(scene->host, 0, POINT_BYTES);
  CTS_OK(t, point_before(t, scene->other, &scene->src, reads ? &wrong : &value));
  CTS_OK(t, t->ops->stream_sync(t->device, scene->other, &t->err));
  CTS_OK(t,
         point_fill(t, scene->other, reads ? &scene->src : &scene->dst, POINT_BYTES, reads ? &value : &wrong, &before));
  CTS_OK(t, t->ops->point_wait_on(t->device, scene->work, &before, &t->err));
  CTS_OK(t, point_submit(t, scene, kind, &point));
  CTS_OK(t, cts_reach(t, &point));
  CTS_OK(t, cts_reach(t, &before));
  if (!reads) {
    CTS_OK(t, t->ops->copy_to_host(t->device, scene->work, &scene->dst, 0, scene->host, scene->bytes, NULL, &t->err));
  }
  cts_same(t, scene->host, scene->want, scene->bytes, what);
}

/* Each kind of copy and fill, much and little. */
static void point_works(cts *t, void (*check)(cts *t, point_scene *scene, point_kind kind)) {
  point_scene scene;
  if (!point_begin(t, &scene)) return;
  for (int i = 0; i < 2 * POINT_RECORD && !t->failed; i++) {
    const point_kind kind = (point_kind)(i / 2);
    scene.bytes = i % 2 ? POINT_FEW : POINT_BYTES;
    if (point_has(t, kind, POINT_WAIT)) check(t, &scene, kind);
  }
  t->ops->stream_sync(t->device, scene.work, NULL); /* a case that failed leaves work on the host's bytes */
  point_end(&scene);
}

static void point_none_means_done(cts *t) { point_works(t, point_none); }
static void point_wait_on_holds_all_kinds(cts *t) { point_works(t, point_behind_a_wait); }

/* Sums of a moment and a limit that is nearly endless do not wrap. */
static void point_wait_is_patient(cts *t) {
  point_scene scene;
  if (!point_begin(t, &scene)) return;
  scene.bytes = POINT_BYTES;
  point_round(t, &scene, POINT_FILL, POINT_PATIENT);
  point_end(&scene);
}

/* A point is of the work before it. Here the stream itself waits for what another one does after that point, so a
 * point that passes with later work alone never passes. */
static void point_passes_before_later_work(cts *t) {
  const uint32_t value = 7;
  gm_backend_point first, second, third;
  void *a, *b;
  gm_memory memory;
  if (!cts_stream(t, &a) || !cts_stream(t, &b) || !cts_memory(t, t->type, POINT_BYTES, &memory)) return;
  CTS_OK(t, point_before(t, a, &memory, &value));
  CTS_OK(t, t->ops->point_record(t->device, a, &first, &t->err));
  CTS_OK(t, t->ops->point_wait_on(t->device, b, &first, &t->err));
  CTS_OK(t, point_fill(t, b, &memory, POINT_BYTES, &value, &second));
  CTS_OK(t, t->ops->point_wait_on(t->device, a, &second, &t->err));
  CTS_OK(t, point_fill(t, a, &memory, POINT_BYTES, &value, &third));
  CTS_OK(t, t->ops->point_wait(t->device, &third, 100000000000u, &t->err));
  point_stays_passed(t, &first);
  if (!t->failed) point_stays_passed(t, &second);
  t->ops->point_release(t->device, &first, GM_CLOSE_NORMAL);
  t->ops->point_release(t->device, &second, GM_CLOSE_NORMAL);
  t->ops->point_release(t->device, &third, GM_CLOSE_NORMAL);
}

/* Points that are given back leave those of others alone, also where a backend uses their records again. */
static void point_release_spares_others(cts *t) {
  enum { COUNT = 8 };
  point_scene scene;
  gm_backend_point points[COUNT];
  if (!point_begin(t, &scene)) return;
  for (uint32_t i = 0; i < COUNT && !t->failed; i++) {
    const uint32_t value = i == COUNT - 1 ? 99 : i;
    cts_status(t, point_fill(t, scene.work, &scene.dst, POINT_BYTES, &value, &points[i]), GM_OK, "fill", __FILE__,
               __LINE__);
    if (!t->failed) cts_status(t, cts_order(t, scene.work), GM_OK, "order", __FILE__, __LINE__);
    if (i < COUNT - 1) t->ops->point_release(t->device, &points[i], GM_CLOSE_NORMAL);
  }
  if (!t->failed) cts_status(t, point_poll(t, scene.work, &points[COUNT - 1]), GM_OK, "polling", __FILE__, __LINE__);
  cts_oracle_fill(scene.want, POINT_BYTES, (const unsigned char *)&(uint32_t){99}, 4);
  const gm_status read =
      t->ops->copy_to_host(t->device, scene.other, &scene.dst, 0, scene.host, POINT_BYTES, NULL, &t->err);
  if (!t->failed) cts_status(t, read, GM_OK, "copy_to_host", __FILE__, __LINE__);
  if (!t->failed) cts_same(t, scene.host, scene.want, POINT_BYTES, "the last of eight points");
  t->ops->point_release(t->device, &points[COUNT - 1], GM_CLOSE_NORMAL);
  point_end(&scene);
}

/* ---- waiting for several ---- */

typedef struct point_join {
  void *from[2], *to[2];
  gm_memory parts[2], whole[2], later;
} point_join;

static bool join_begin(cts *t, point_join *join) {
  for (int i = 0; i < 2; i++) {
    if (!cts_stream(t, &join->from[i]) || !cts_stream(t, &join->to[i]) ||
        !cts_memory(t, t->type, POINT_BYTES, &join->parts[i]) ||
        !cts_memory(t, t->type, (uint64_t)POINT_BYTES * 2, &join->whole[i]))
      return false;
  }
  return cts_memory(t, t->type, POINT_BYTES, &join->later);
}

/* Copies both parts into one whole, on a stream that waits for both points. All its later work waits. */
static gm_status join_copy(cts *t, const point_join *join, int to, const gm_backend_point *points,
                           gm_backend_point *out) {
  gm_status status = GM_OK;
  for (int i = 0; i < 2 && !status; i++) {
    status = t->ops->point_wait_on(t->device, join->to[to], &points[i], &t->err);
  }
  for (int i = 0; i < 2 && !status; i++) {
    const gm_copy_item item = {
        .src = &join->parts[i], .dst = &join->whole[to], .dst_offset = (uint64_t)i * POINT_BYTES, .bytes = POINT_BYTES};
    if (i) t->ops->point_release(t->device, out, GM_CLOSE_NORMAL);
    status = t->ops->copy(t->device, join->to[to], &item, out, &t->err);
    if (!status) status = cts_order(t, join->to[to]);
  }
  return status;
}

static void join_read(cts *t, const point_join *join, int to, const uint32_t *values) {
  uint32_t got[4] = {0};
  for (uint64_t i = 0; i < 4; i++) { /* the first and the last word of each part */
    const uint64_t at = i / 2 * POINT_BYTES + (i % 2 ? POINT_BYTES - 4 : 0);
    CTS_OK(t, t->ops->copy_to_host(t->device, join->to[to], &join->whole[to], at, &got[i], 4, NULL, &t->err));
    cts_same(t, (const unsigned char *)&got[i], (const unsigned char *)&values[i / 2], 4,
             i < 2 ? "the first part of two" : "the second part of two");
    if (t->failed) return;
  }
}

static void join_round(cts *t, const point_join *join, const uint32_t *values) {
  gm_backend_point points[2] = {{0}}, ends[2] = {{0}};
  for (int i = 0; i < 2; i++) {
    CTS_OK(t, point_before(t, join->from[i], &join->parts[i], &(uint32_t){0}));
    CTS_OK(t, point_fill(t, join->from[i], &join->parts[i], POINT_BYTES, &values[i], &points[i]));
  }
  CTS_OK(t, point_before(t, join->from[0], &join->later, &values[0])); /* the point is not the last one of its stream */
  for (int to = 0; to < 2; to++) CTS_OK(t, join_copy(t, join, to, points, &ends[to]));
  for (int i = 0; i < 2; i++) t->ops->point_release(t->device, &points[i], GM_CLOSE_NORMAL);
  for (int to = 2; to-- > 0;) CTS_OK(t, cts_reach(t, &ends[to]));
  for (int to = 0; to < 2 && !t->failed; to++) join_read(t, join, to, values);
}

/* Two streams wait for the points of two others, and each waits for both. */
static void point_wait_on_several(cts *t) {
  point_join join;
  if (!join_begin(t, &join)) return;
  for (uint32_t round = 1; round < 4 && !t->failed; round++) {
    join_round(t, &join, (const uint32_t[]){round, round + 100});
  }
}

/* A stream that waits for a point waits for it, too, when the point's stream has been closed meanwhile. */
static void point_wait_on_outlives_its_stream(cts *t) {
  uint32_t got = 0;
  void *waits, *closes;
  gm_memory from, to;
  if (!cts_stream(t, &waits) || !cts_memory(t, t->type, POINT_BYTES, &from) ||
      !cts_memory(t, t->type, POINT_BYTES, &to))
    return;
  for (uint32_t value = 1; value < 4; value++) {
    const gm_copy_item item = {.src = &from, .dst = &to, .bytes = POINT_BYTES};
    gm_backend_point point = {0}, copied = {0};
    if (!cts_stream(t, &closes)) return;
    CTS_OK(t, point_before(t, closes, &from, &(uint32_t){0}));
    CTS_OK(t, point_fill(t, closes, &from, POINT_BYTES, &value, &point));
    CTS_OK(t, t->ops->point_wait_on(t->device, waits, &point, &t->err));
    CTS_OK(t, t->ops->copy(t->device, waits, &item, &copied, &t->err));
    t->ops->point_release(t->device, &point, GM_CLOSE_NORMAL);
    cts_close_last_stream(t, GM_CLOSE_NORMAL);
    CTS_OK(t, cts_order(t, waits));
    CTS_OK(t, cts_reach(t, &copied));
    CTS_OK(t, t->ops->copy_to_host(t->device, waits, &to, POINT_BYTES - 4, &got, 4, NULL, &t->err));
    CTS_CHECK(t, got == value);
  }
}

#define POINT_NEEDS (CTS_STREAMS | CTS_POINTS | CTS_CONTENTS | CTS_EACH_TYPE)

static const cts_case point_cases[] = {
    {"point.done_means_done", point_done_means_done, POINT_NEEDS},
    {"point.wait_means_done", point_wait_means_done, POINT_NEEDS},
    {"point.wait_is_patient", point_wait_is_patient, POINT_NEEDS},
    {"point.wait_on_means_done", point_wait_on_means_done, POINT_NEEDS},
    {"point.none_means_done", point_none_means_done, POINT_NEEDS},
    {"point.wait_on_holds_all_kinds", point_wait_on_holds_all_kinds, POINT_NEEDS},
    {"point.wait_on_several", point_wait_on_several, POINT_NEEDS},
    {"point.wait_on_outlives_its_stream", point_wait_on_outlives_its_stream, POINT_NEEDS},
    {"point.passes_before_later_work", point_passes_before_later_work, CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
    {"point.release_spares_others", point_release_spares_others, POINT_NEEDS},
    {"stream.sync_means_done", point_sync_means_done, POINT_NEEDS},
    {"stream.device_sync_means_done", point_device_sync_means_done, POINT_NEEDS},
    {"device.call_runs_once", point_device_call_runs_once, POINT_NEEDS},
};
const cts_suite cts_point_suite = {point_cases, sizeof point_cases / sizeof point_cases[0]};
