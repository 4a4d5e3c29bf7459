/* Random refusals on a device. The change that gm_explain names is made, and the request is asked again. It is served,
 * or the change was said to be a lower bound. Needs cmocka.h included before.
 *
 *   change_scene_on("null", &params, true, 80 * MIB, 1000); */
#ifndef GM_TESTS_SUPPORT_CHANGE_SCENE_H
#define GM_TESTS_SUPPORT_CHANGE_SCENE_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gm/config.h"
#include "gm/pool.h"
#include "gm/quota.h"
#include "gm/reserve.h"
#include "gm/stream.h"
#include "support/random.h"

#ifndef MIB
#define MIB (UINT64_C(1) << 20)
#endif

enum {
  CHANGE_BLOCKS = 160,
  CHANGE_HOLDS = 12,
  CHANGE_STREAMS = 3,
  CHANGE_KINDS = 24,
  CHANGE_PIECES = 64,
  CHANGE_STEPS = 12
};

typedef struct change_scene {
  gm_context *ctx;
  gm_device *device;
  bool limits;                        /* nobody else uses the device: bounds by its figures hold still */
  uint64_t most;                      /* bytes of the largest cap */
  gm_stream *streams[CHANGE_STREAMS]; /* NULL: the host's order */
  void (*work)(struct change_scene *scene, gm_pool *pool, const gm_block *block, gm_stream *stream); /* may be NULL */
  void (*pass)(struct change_scene *scene); /* all work of streams is done; may be NULL */

  uint64_t random, seed;
  long refused, served, at_once; /* at_once: by the first change */
  long bounds, wrong;            /* the first change did not serve: and was said to be a lower bound, or not */
  long wrongs[CHANGE_KINDS];
  gm_pool_params params;
  long named[CHANGE_KINDS], helped[CHANGE_KINDS],
      less[CHANGE_KINDS]; /* less: a smaller change would have helped, too */
  char first[1600];       /* the first that went wrong */

  /* of a round */
  gm_pool *pool, *other;
  gm_block blocks[CHANGE_BLOCKS];
  gm_stream *of[CHANGE_BLOCKS];
  int count;
  gm_reservation *holds[CHANGE_HOLDS];
  uint64_t cap, quota, keep_free, total;
  double fraction;
  uint32_t tag;
} change_scene;

static inline uint64_t change_draw(change_scene *s, uint64_t below) { return test_random(&s->random) % below; }

static inline bool change_chance(change_scene *s, uint64_t of) { return change_draw(s, of) == 0; }

static inline void change_ok(gm_status status, const gm_error *err) {
  if (status) fail_msg("%s: %s", err->op, err->message);
}

/* ---- a round's pool ---- */

static inline void change_set_limits(change_scene *s) {
  char text[32];
  gm_error err;
  gm_pool *fresh = NULL;
  snprintf(text, sizeof text, "%.12f", s->fraction);
  change_ok(gm_config_set(s->ctx, "memory_fraction", text, &err), &err);
  snprintf(text, sizeof text, "%" PRIu64, s->keep_free);
  change_ok(gm_config_set(s->ctx, "min_free_bytes", text, &err), &err);
  change_ok(gm_pool_create(s->device, NULL, &fresh, &err), &err); /* a new pool has the configuration read anew */
  change_ok(gm_pool_destroy(fresh, &err), &err);
}

static inline void change_open(change_scene *s) {
  gm_error err;
  gm_pool_params params = {.struct_size = sizeof params};
  const bool capped = !s->limits || change_draw(s, 3) != 0;
  s->cap = capped ? (4 + change_draw(s, s->most / MIB - 4)) * MIB + change_draw(s, 2) * 4096 : GM_NO_LIMIT;
  s->total = gm_device_get_info(s->device)->total_bytes;
  s->fraction = s->limits && change_chance(s, 4) ? 0.2 + (double)change_draw(s, 600) / 1000 : 1;
  s->keep_free = s->limits && s->fraction == 1 && change_chance(s, 4) ? change_draw(s, s->total) : 0;
  change_set_limits(s);
  params.strategy = (gm_strategy)change_draw(s, 3);
  params.no_vmm = change_chance(s, 2);
  params.track = change_chance(s, 4);
  params.max_bytes = s->cap;
  params.flags = change_chance(s, 8) ? GM_POOL_NO_TRIM : 0;
  s->params = params;
  change_ok(gm_pool_create(s->device, &params, &s->pool, &err), &err);
  change_ok(gm_pool_create(s->device, &params, &s->other, &err), &err);
  s->tag = gm_tag(s->ctx, "t");
  s->quota = change_chance(s, 4) ? (1 + change_draw(s, 20)) * MIB : 0;
  if (s->quota) change_ok(gm_pool_set_quota(s->pool, s->tag, s->quota, 0, 0, &err), &err);
  s->count = 0;
}

static inline void change_hold(change_scene *s) {
  const int holds = s->limits && change_chance(s, 3) ? (int)change_draw(s, CHANGE_HOLDS) : 0;
  for (int i = 0; i < CHANGE_HOLDS; i++) {
    const gm_reserve_params params = {.struct_size = sizeof params, .bytes = (1 + change_draw(s, 4)) * MIB};
    s->holds[i] = NULL;
    if (i < holds && gm_reserve(s->device, &params, &s->holds[i], NULL)) s->holds[i] = NULL;
  }
}

static inline void change_pass(change_scene *s) {
  gm_error err;
  if (s->pass) s->pass(s);
  for (int i = 0; i < CHANGE_STREAMS; i++) {
    if (s->streams[i]) change_ok(gm_stream_passed(s->streams[i], NULL, &err), &err);
  }
}

static inline void change_free_at(change_scene *s, int at) {
  gm_stream *stream = s->of[at];
  if (s->work && stream && change_chance(s, 2)) s->work(s, s->pool, &s->blocks[at], stream);
  assert_int_equal(gm_free(s->pool, &s->blocks[at], stream), GM_OK);
  s->count--;
  s->blocks[at] = s->blocks[s->count];
  s->of[at] = s->of[s->count];
}

static inline void change_close(change_scene *s) {
  gm_error err;
  for (int i = 0; i < CHANGE_HOLDS; i++) gm_reservation_cancel(s->holds[i]);
  change_pass(s);
  change_ok(gm_pool_destroy_force(s->pool, &err), &err);
  change_ok(gm_pool_destroy(s->other, &err), &err);
}

/* ---- a refusal ---- */

static inline gm_request change_request(change_scene *s) {
  gm_request request = {.bytes =
                            change_chance(s, 4) ? test_log_uniform(&s->random, MIB) : 1000 + change_draw(s, 6 * MIB)};
  request.tag = change_chance(s, 2) ? s->tag : 0;
  request.stream = s->streams[change_draw(s, CHANGE_STREAMS)];
  if (change_chance(s, 3)) request.flags |= GM_INSERT_WAIT;
  if (change_chance(s, 16)) request.flags |= GM_ALLOW_SPANS;
  if (change_chance(s, 16)) request.align = UINT32_C(1) << (8 + change_draw(s, 9));
  if (change_chance(s, 24)) request.bytes += change_draw(s, 2 * s->most);
  return request;
}

/* Fills the pool until it refuses. False: it did not. */
static inline bool change_provoke(change_scene *s, gm_request *request) {
  for (int turn = 0; turn < 3 * CHANGE_BLOCKS && s->count < CHANGE_BLOCKS; turn++) {
    *request = change_request(s);
    gm_block *block = &s->blocks[s->count];
    const gm_acquire answer = gm_alloc(s->pool, request, block);
    if (answer == GM_ACQUIRE_INVALID) continue;
    if (!gm_acquired(answer)) return true;
    s->of[s->count++] = answer > GM_ACQUIRE_FRESH ? NULL : request->stream; /* the test waits for no one */
    if (answer > GM_ACQUIRE_FRESH) change_pass(s);
    if (s->count > 4 && change_chance(s, 4)) change_free_at(s, (int)change_draw(s, (uint64_t)s->count));
  }
  return false;
}

/* ---- the change ---- */

static inline bool change_ask(change_scene *s, const gm_request *request) {
  gm_block block;
  const gm_acquire answer = gm_alloc(s->pool, request, &block);
  if (!gm_acquired(answer)) return false;
  if (answer > GM_ACQUIRE_FRESH) change_pass(s);
  assert_int_equal(gm_free(s->pool, &block, NULL), GM_OK);
  return true;
}

static inline bool change_split(change_scene *s, const gm_request *request, uint64_t bytes) {
  gm_block pieces[2 * CHANGE_PIECES];
  int count = 0;
  bool served = bytes > 0;
  for (uint64_t left = request->bytes; left && served; count += served) {
    gm_request piece = *request;
    piece.bytes = left < bytes ? left : bytes;
    served = count < 2 * CHANGE_PIECES && gm_acquired(gm_alloc(s->pool, &piece, &pieces[count]));
    left -= piece.bytes;
  }
  change_pass(s);
  while (count > 0) assert_int_equal(gm_free(s->pool, &pieces[--count], NULL), GM_OK);
  return served;
}

/* Blocks that lie beside each other, as far as that is known. */
static inline void change_free(change_scene *s, uint64_t bytes) {
  for (uint64_t done = 0; s->count && done < bytes;) {
    int last = 0;
    for (int i = 1; i < s->count; i++) {
      if (s->blocks[i].address > s->blocks[last].address) last = i;
    }
    done += s->blocks[last].bytes;
    s->of[last] = NULL;
    change_free_at(s, last);
  }
}

static inline void change_cancel(change_scene *s, uint64_t bytes) {
  uint64_t done = 0;
  for (int i = 0; i < CHANGE_HOLDS && done < bytes; i++) {
    gm_reservation_info info = {.struct_size = sizeof info};
    if (!s->holds[i]) continue;
    assert_int_equal(gm_reservation_read(s->holds[i], &info, NULL), GM_OK);
    done += info.left_bytes;
    gm_reservation_cancel(s->holds[i]);
    s->holds[i] = NULL;
  }
}

/* A bound that is raised by `bytes`. */
static inline void change_raise(change_scene *s, const gm_explanation *why, uint64_t bytes) {
  gm_error err;
  switch (why->change) {
    case GM_CHANGE_RAISE_CAP: change_ok(gm_pool_set_max_bytes(s->pool, s->cap + bytes, &err), &err); break;
    case GM_CHANGE_RAISE_QUOTA:
      change_ok(gm_pool_set_quota(s->pool, why->change_tag, s->quota + bytes, 0, 0, &err), &err);
      break;
    default: break;
  }
}

static inline void change_lower(change_scene *s, uint64_t bytes) {
  if (s->fraction < 1) {
    s->fraction += ((double)bytes + 1) / (double)s->total;
    if (s->fraction > 1) s->fraction = 1;
  } else {
    s->keep_free = s->keep_free > bytes ? s->keep_free - bytes : 0;
  }
  change_set_limits(s);
}

static inline bool change_make(change_scene *s, const gm_request *request, const gm_explanation *why) {
  gm_request less = *request;
  switch (why->change) {
    case GM_CHANGE_RAISE_CAP:
    case GM_CHANGE_RAISE_QUOTA:
      change_raise(s, why, why->change_bytes - 1);
      if (!s->params.flags && !(request->flags & GM_ALLOW_SPANS) && change_ask(s, request)) s->less[why->change]++;
      change_raise(s, why, why->change_bytes);
      *(why->change == GM_CHANGE_RAISE_CAP ? &s->cap : &s->quota) += why->change_bytes;
      return change_ask(s, request);
    case GM_CHANGE_SPLIT: return change_split(s, request, why->change_bytes);
    case GM_CHANGE_FREE: change_free(s, why->change_bytes); return change_ask(s, request);
    case GM_CHANGE_CANCEL: change_cancel(s, why->change_bytes); return change_ask(s, request);
    case GM_CHANGE_LOWER_RESERVE: change_lower(s, why->change_bytes); return change_ask(s, request);
    case GM_CHANGE_ASK_LESS: less.bytes -= why->change_bytes; return less.bytes && change_ask(s, &less);
    case GM_CHANGE_SETTLE:
      for (int i = 0; i < CHANGE_STREAMS; i++) {
        if (s->pass) s->pass(s);
        if (gm_stream_id(s->streams[i]) == why->change_stream) gm_stream_passed(s->streams[i], NULL, NULL);
      }
      return why->change_stream && change_ask(s, request);
    case GM_CHANGE_WAIT:
      if (s->pass) s->pass(s);
      less.deadline_ns = UINT64_C(1000000000);
      return change_ask(s, &less);
    default: return false;
  }
}

static inline void change_note_wrong(change_scene *s, const gm_request *request, const gm_explanation *why) {
  s->wrongs[why->change]++;
  if (s->wrong++) return;
  snprintf(s->first, sizeof s->first,
           "seed %" PRIu64 ": %s, %s %" PRIu64 " did not help. Asked %" PRIu64 " (flags %u, align %u, stream %" PRIu64
           "), cap %" PRIu64 ", quota %" PRIu64 ", fraction %f, keep %" PRIu64 ", in use %" PRIu64 ", pooled %" PRIu64
           ", largest %" PRIu64 ", free %" PRIu64 ": %s",
           s->seed, gm_refusal_cause_name(why->cause), gm_change_name(why->change), why->change_bytes, request->bytes,
           request->flags, request->align, gm_stream_id(request->stream), s->cap, s->quota, s->fraction, s->keep_free,
           why->in_use_bytes, why->pooled_bytes, why->largest_pooled_bytes, why->device_free_bytes, why->text);
}

/* Makes the change that gm_explain names. Where it was said to be a lower bound, the next one follows. */
static inline void change_follow(change_scene *s, const gm_request *request) {
  for (int step = 0; step < CHANGE_STEPS; step++) {
    gm_explanation why = {.struct_size = sizeof why};
    assert_int_equal(gm_explain(s->pool, request, &why, NULL), GM_OK);
    if (why.change == GM_CHANGE_FREE_ELSEWHERE) { /* that is not for this process to make */
      s->refused--;
      return;
    }
    if (!step) s->named[why.change]++;
    if (change_make(s, request, &why)) {
      s->served++;
      if (!step) s->at_once++;
      if (!step) s->helped[why.change]++;
      return;
    }
    if (!step) s->bounds += why.change_at_least;
    if (!why.change_at_least) {
      change_note_wrong(s, request, &why);
      return;
    }
    if (change_ask(s, request)) { /* streams have gone on */
      s->served++;
      return;
    }
  }
}

/* One round: a refusal, if the pool refuses, and its changes. */
static inline void change_round(change_scene *s) {
  gm_request request;
  change_open(s);
  change_hold(s);
  if (change_provoke(s, &request)) {
    s->refused++;
    change_follow(s, &request);
  }
  change_close(s);
}

static inline void change_scene_run(change_scene *s, long refusals, uint64_t seed) {
  const long until = s->refused + refusals;
  for (s->seed = seed; s->refused < until; s->seed++) {
    if (s->seed - seed > 100 * (uint64_t)refusals) {
      print_message("other programs hold the machine's memory: %ld of %ld refusals\n", s->refused, until);
      skip();
    }
    s->random = s->seed;
    change_round(s);
  }
}

/* Prints what was named, and what helped. */
static inline void change_scene_tell(const change_scene *s, const char *name) {
  printf("%s: %ld refusals, %ld served at once, %ld said to be a lower bound, %ld wrong, %ld served in the end\n", name,
         s->refused, s->at_once, s->bounds, s->wrong, s->served);
  for (int i = 0; i < CHANGE_KINDS; i++) {
    if (s->named[i])
      printf("  %s: %ld, helped %ld, wrong %ld, a byte less too %ld\n", gm_change_name((gm_change)i), s->named[i],
             s->helped[i], s->wrongs[i], s->less[i]);
  }
}

/* A change that is not said to be a lower bound always serves. The others serve in the end, but where blocks that are
 * too few or too far apart were freed. */
static inline void change_scene_check(const change_scene *s) {
  if (s->wrong) fail_msg("%ld of %ld: %s", s->wrong, s->refused, s->first);
  if (s->served * 100 < s->refused * 99) fail_msg("only %ld of %ld served", s->served, s->refused);
  if (s->at_once * 100 < s->refused * 80) fail_msg("only %ld of %ld served at once", s->at_once, s->refused);
}

/* `refusals` and the seed unless GM_TEST_REFUSALS and GM_TEST_SEED say otherwise; an eighth under a sanitizer, a
 * fortieth in other builds of few. */
static inline void change_scene_run_all(change_scene *s, const char *name, long refusals) {
  const char *count = getenv("GM_TEST_REFUSALS"), *seed = getenv("GM_TEST_SEED");
#ifdef GM_TEST_SANITIZED
  refusals /= 8;
#else
  if (getenv("TESTS_FEW")) refusals /= 40;
#endif
  change_ok(gm_config_set(s->ctx, "reserve.share", "off", NULL), NULL);
  change_scene_run(s, count ? strtol(count, NULL, 10) : refusals, seed ? strtoull(seed, NULL, 10) : 1);
  change_scene_tell(s, name);
}

/* On the first device of a backend that nobody else uses, or, without `limits`, that others use, too. */
static inline void change_scene_on(const char *backend, const gm_context_params *params, bool limits, uint64_t most,
                                   long refusals) {
  gm_error err = {.status = GM_OK};
  change_scene scene = {.limits = limits, .most = most};
  change_ok(gm_context_create(params, &scene.ctx, &err), &err);
  change_ok(gm_device_open_index(scene.ctx, backend, 0, &scene.device, &err), &err);
  change_scene_run_all(&scene, backend, refusals);
  change_scene_check(&scene);
  change_ok(gm_device_close(scene.device, &err), &err);
  change_ok(gm_context_destroy(scene.ctx, &err), &err);
}

#endif
