#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "bench/measure/ticks.h"
#include "bench/own/own.h"
#include "bench/own/session.h"
#include "gm/explain.h"
#include "gm/fragmentation.h"
#include "gm/tracker.h"

enum { SCALE_LARGE = 64, SCALE_TURNS = 5000 };

typedef struct scale_run {
  own_session session;
  const char *prefix; /* of the figures' names */
  FILE *out;
  gm_block *blocks, large[SCALE_LARGE];
  size_t count;
  uint64_t random;
} scale_run;

static uint64_t scale_random(scale_run *run) {
  run->random ^= run->random << 13;
  run->random ^= run->random >> 7;
  run->random ^= run->random << 17;
  return run->random;
}

static void scale_say(const scale_run *run, const char *name, double ns) {
  fprintf(run->out, "%s%s_ns %.17g\n", run->prefix, name, ns);
}

/* The worst of many calls. */
typedef struct scale_worst {
  uint64_t begin, all, most; /* ns */
  long first, pages;         /* of memory, that the call was the first to touch */
} scale_worst;

static long scale_pages(void) {
  struct rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_minflt : 0;
}

static void scale_begin(scale_worst *worst) {
  worst->first = scale_pages();
  worst->begin = ticks_ns();
}

static void scale_end(scale_worst *worst) {
  const uint64_t took = ticks_ns() - worst->begin;
  const long pages = scale_pages() - worst->first;
  worst->all += took;
  if (took > worst->most) worst->most = took;
  if (pages > worst->pages) worst->pages = pages;
}

static void scale_say_worst(const scale_run *run, const char *name, const scale_worst *worst, size_t count) {
  scale_say(run, name, (double)worst->all / (double)count);
  fprintf(run->out, "%s%s_most_ns %" PRIu64 "\n", run->prefix, name, worst->most);
  fprintf(run->out, "%s%s_most_pages %ld\n", run->prefix, name, worst->pages);
}

static bool scale_fill(scale_run *run, const char *name) {
  scale_worst worst = {.most = 0};
  for (size_t i = 0; i < run->count; i++) {
    const uint64_t bytes = 1024 + scale_random(run) % 8192;
    scale_begin(&worst);
    const bool taken = own_take(&run->session, bytes, &run->blocks[i]);
    scale_end(&worst);
    if (!taken) return false;
  }
  scale_say_worst(run, name, &worst, run->count);
  return true;
}

/* Neighbours do not go one after the other. */
static void scale_shuffle(scale_run *run) {
  for (size_t i = run->count - 1; i > 0; i--) {
    const size_t other = scale_random(run) % (i + 1);
    const gm_block block = run->blocks[i];
    run->blocks[i] = run->blocks[other];
    run->blocks[other] = block;
  }
}

static void scale_empty(scale_run *run, const char *name) {
  scale_shuffle(run);
  const uint64_t begin = ticks_ns();
  for (size_t i = 0; i < run->count; i++) gm_free(run->session.pool, &run->blocks[i], run->session.stream);
  if (name) scale_say(run, name, (double)(ticks_ns() - begin) / (double)run->count);
}

/* Blocks of 1 to 64 MiB; each turn one goes and one comes. */
static bool scale_churn(scale_run *run) {
  scale_worst worst = {.most = 0};
  for (size_t turn = 0; turn < SCALE_LARGE + SCALE_TURNS; turn++) {
    gm_block *block = &run->large[turn < SCALE_LARGE ? turn : scale_random(run) % SCALE_LARGE];
    const uint64_t bytes = (UINT64_C(1) << 20) + scale_random(run) % (UINT64_C(63) << 20);
    scale_begin(&worst);
    if (turn >= SCALE_LARGE) gm_free(run->session.pool, block, run->session.stream);
    const bool taken = own_take(&run->session, bytes, block);
    scale_end(&worst);
    if (!taken) return false;
  }
  for (size_t i = 0; i < SCALE_LARGE; i++) gm_free(run->session.pool, &run->large[i], run->session.stream);
  scale_say_worst(run, "large", &worst, SCALE_LARGE + SCALE_TURNS);
  return true;
}

/* One call that looks at all blocks. */
static void scale_say_call(const scale_run *run, const char *name, const scale_worst *worst) {
  scale_say(run, name, (double)worst->most);
  fprintf(run->out, "%s%s_pages %ld\n", run->prefix, name, worst->pages);
}

static bool scale_look(scale_run *run) {
  gm_pool *pool = run->session.pool;
  gm_error *err = &run->session.err;
  gm_explanation why = {.struct_size = sizeof why};
  gm_fragmentation found = {.struct_size = sizeof found};
  const gm_request request = {.bytes = 4096};
  scale_worst explain = {.most = 0}, fragmentation = {.most = 0}, track = {.most = 0}, untrack = {.most = 0};
  scale_begin(&explain);
  gm_status status = gm_explain(pool, &request, &why, err);
  scale_end(&explain);
  scale_begin(&fragmentation);
  if (!status) status = gm_pool_fragmentation(pool, &found, err);
  scale_end(&fragmentation);
  scale_begin(&track);
  if (!status) status = gm_pool_set_tracking(pool, true, err);
  scale_end(&track);
  scale_begin(&untrack);
  if (!status) status = gm_pool_set_tracking(pool, false, err);
  scale_end(&untrack);
  scale_say_call(run, "explain", &explain);
  scale_say_call(run, "fragmentation", &fragmentation);
  scale_say_call(run, "track", &track);
  scale_say_call(run, "untrack", &untrack);
  return status == GM_OK;
}

/* Every second block is free on the stream, which is done: the next requests move what it has passed. */
static bool scale_pass(scale_run *run) {
  own_session *session = &run->session;
  scale_worst worst = {.most = 0};
  for (size_t i = 0; i < run->count; i += 2) gm_free(session->pool, &run->blocks[i], session->stream);
  if (gm_stream_sync(session->stream, &session->err) != GM_OK) return false;
  for (size_t i = 0; i < run->count; i += 2) {
    const gm_request request = {.bytes = 1024}; /* of the host: it finds nothing that the stream may still use */
    scale_begin(&worst);
    const gm_acquire answer = gm_alloc(session->pool, &request, &run->blocks[i]);
    scale_end(&worst);
    if (answer > GM_ACQUIRE_FRESH) return false;
  }
  scale_say_worst(run, "passed", &worst, run->count / 2 + 1);
  return true;
}

static bool scale_close(scale_run *run) {
  own_session *session = &run->session;
  const uint64_t begin = ticks_ns();
  if (gm_stream_close(session->stream, &session->err) != GM_OK) return false;
  session->stream = NULL;
  scale_say(run, "close", (double)(ticks_ns() - begin));
  return true;
}

static int scale_measure(scale_run *run) {
  if (!scale_fill(run, "alloc") || !scale_churn(run) || !scale_look(run) || !scale_pass(run)) return -1;
  scale_empty(run, "free");
  const uint64_t begin = ticks_ns();
  gm_pool_trim(run->session.pool, 0);
  scale_say(run, "trim", (double)(ticks_ns() - begin));
  if (!scale_fill(run, "again")) return -1;
  scale_empty(run, NULL);
  return scale_close(run) ? 0 : -1;
}

int own_scale(size_t pairs, unsigned runs, FILE *out) {
  (void)runs;
  int result = 0;
  for (int no_vmm = 0; no_vmm < 2 && result == 0; no_vmm++) {
    scale_run run = {.prefix = no_vmm ? "no_vmm_" : "", .out = out, .count = pairs, .random = 88172645463325252};
    run.blocks = calloc(pairs, sizeof *run.blocks);
    result = own_begin(&run.session, (own_wish){.no_vmm = no_vmm, .own_memory = true});
    if (result == 0) result = run.blocks ? scale_measure(&run) : -1;
    result = own_end(&run.session, result);
    free(run.blocks);
  }
  return result;
}
