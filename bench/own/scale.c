#include <stdlib.h>

#include "bench/measure/ticks.h"
#include "bench/own/own.h"
#include "bench/own/session.h"

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

static bool scale_fill(scale_run *run, const char *name, const char *name_of_most) {
  uint64_t most = 0;
  const uint64_t begin = ticks_ns();
  for (size_t i = 0; i < run->count; i++) {
    const uint64_t at = ticks_ns();
    if (!own_take(&run->session, 1024 + scale_random(run) % 8192, &run->blocks[i])) return false;
    const uint64_t took = ticks_ns() - at;
    if (took > most) most = took;
  }
  scale_say(run, name, (double)(ticks_ns() - begin) / (double)run->count);
  scale_say(run, name_of_most, (double)most);
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

/* Of 1 to 64 MiB; each turn one goes and one comes. */
static bool scale_churn(scale_run *run) {
  uint64_t most = 0, all = 0;
  for (size_t turn = 0; turn < SCALE_LARGE + SCALE_TURNS; turn++) {
    gm_block *block = &run->large[turn < SCALE_LARGE ? turn : scale_random(run) % SCALE_LARGE];
    const uint64_t bytes = (UINT64_C(1) << 20) + scale_random(run) % (UINT64_C(63) << 20), begin = ticks_ns();
    if (turn >= SCALE_LARGE) gm_free(run->session.pool, block, run->session.stream);
    if (!own_take(&run->session, bytes, block)) return false;
    const uint64_t took = ticks_ns() - begin;
    all += took;
    if (took > most) most = took;
  }
  for (size_t i = 0; i < SCALE_LARGE; i++) gm_free(run->session.pool, &run->large[i], run->session.stream);
  scale_say(run, "large", (double)all / (SCALE_LARGE + SCALE_TURNS));
  scale_say(run, "large_most", (double)most);
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
  if (!scale_fill(run, "alloc", "alloc_most") || !scale_churn(run)) return -1;
  scale_empty(run, "free");
  const uint64_t begin = ticks_ns();
  gm_pool_trim(run->session.pool, 0);
  scale_say(run, "trim", (double)(ticks_ns() - begin));
  if (!scale_fill(run, "again", "again_most")) return -1;
  scale_empty(run, NULL);
  return scale_close(run) ? 0 : -1;
}

int own_scale(size_t pairs, unsigned runs, FILE *out) {
  (void)runs;
  int result = 0;
  for (int no_vmm = 0; no_vmm < 2 && result == 0; no_vmm++) {
    scale_run run = {.prefix = no_vmm ? "no_vmm_" : "", .out = out, .count = pairs, .random = 88172645463325252};
    run.blocks = calloc(pairs, sizeof *run.blocks);
    result = own_begin(&run.session, (own_wish){.no_vmm = no_vmm});
    if (result == 0) result = run.blocks ? scale_measure(&run) : -1;
    result = own_end(&run.session, result);
    free(run.blocks);
  }
  return result;
}
