#include "bench/own/own.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/measure/ticks.h"
#include "bench/own/session.h"
#include "gm/future.h"

enum { OWN_FIRST = 10000, OWN_BLOCKS = 110000, OWN_LIVE = 1000, OWN_BYTES = 1 << 20 };

/* ---- metadata ---- */

int own_metadata(size_t pairs, unsigned runs, FILE *out) {
  (void)pairs, (void)runs; /* the same in every run */
  own_session self;
  size_t taken = 0, before = 0;
  gm_block *blocks = calloc(OWN_BLOCKS, sizeof *blocks);
  int result = own_begin(&self, (own_wish){0});
  while (result == 0 && blocks && taken < OWN_BLOCKS) {
    if (taken == OWN_FIRST) before = self.host_bytes;
    if (!own_take(&self, 4096 + taken % 97 * 4096, &blocks[taken])) break;
    taken++;
  }
  if (taken < OWN_BLOCKS) result = -1;
  if (result == 0) {
    fprintf(out, "bytes_per_block %.17g\n", (double)(self.host_bytes - before) / (OWN_BLOCKS - OWN_FIRST));
  }
  while (taken > 0) gm_free(self.pool, &blocks[--taken], self.stream);
  free(blocks);
  return own_end(&self, result);
}

/* ---- pairs ---- */

/* Pairs of a request and a free. */
typedef bool own_round_of(own_session *self, const gm_request *request, size_t pairs);

static bool own_pair_round(own_session *self, const gm_request *request, size_t pairs) {
  gm_block block;
  for (size_t i = 0; i < pairs; i++) {
    if (gm_alloc(self->pool, request, &block) > GM_ACQUIRE_FRESH) return false;
    if (gm_free(self->pool, &block, request->stream) != GM_OK) return false;
  }
  return true;
}

static bool own_future_round(own_session *self, const gm_request *request, size_t pairs) {
  gm_future future;
  for (size_t i = 0; i < pairs; i++) {
    if (!gm_alloc_async(self->pool, request, &future) || future.status != GM_OK) return false;
    if (gm_free(self->pool, &future.block, request->stream) != GM_OK) return false;
  }
  return true;
}

static int own_pair_time(own_session *self, own_round_of *round, const gm_request *request, size_t pairs, unsigned runs,
                         FILE *out) {
  uint64_t least = UINT64_MAX;
  for (unsigned run = 0; run <= runs; run++) {
    const uint64_t begin = ticks_ns();
    if (!round(self, request, pairs)) return -1;
    const uint64_t took = ticks_ns() - begin;
    if (run > 0 && took < least) least = took;
  }
  fprintf(out, "pair_ns %.17g\n", (double)least / (2.0 * (double)pairs));
  return 0;
}

/* `wishes`: what the requests ask of their memory. */
static int own_pair_of(own_wish wish, gm_request wishes, size_t pairs, unsigned runs, FILE *out) {
  own_session self;
  int result = own_begin(&self, wish);
  wishes.bytes = OWN_BYTES;
  wishes.stream = self.stream;
  if (result == 0)
    result = own_pair_time(&self, wish.future ? own_future_round : own_pair_round, &wishes, pairs, runs, out);
  return own_end(&self, result);
}

int own_plain_pair(size_t pairs, unsigned runs, FILE *out) {
  return own_pair_of((own_wish){0}, (gm_request){0}, pairs, runs, out);
}

int own_typed_pair(size_t pairs, unsigned runs, FILE *out) {
  return own_pair_of((own_wish){0}, (gm_request){.must_be = GM_DEVICE_ACCESSIBLE, .memory_types = 1}, pairs, runs, out);
}

int own_rare_pair(size_t pairs, unsigned runs, FILE *out) {
  return own_pair_of((own_wish){0}, (gm_request){.usage = GM_USAGE_UNIFORM, .memory_types = 1}, pairs, runs, out);
}

int own_fixed_pair(size_t pairs, unsigned runs, FILE *out) {
  return own_pair_of((own_wish){.fixed = true}, (gm_request){0}, pairs, runs, out);
}

int own_future_pair(size_t pairs, unsigned runs, FILE *out) {
  return own_pair_of((own_wish){.future = true}, (gm_request){0}, pairs, runs, out);
}

/* ---- performance scopes ---- */

/* With a pair in each scope, so that the peaks have something to begin anew. */
static bool own_scope_round(own_session *self, const gm_request *request, size_t pairs) {
  for (size_t i = 0; i < pairs; i++) {
    gm_perf_scope scope;
    gm_perf_report report = {.struct_size = sizeof report};
    if (gm_perf_begin(self->pool, "step", &scope, &self->err) != GM_OK) return false;
    if (!own_pair_round(self, request, 1)) return false;
    if (gm_perf_end(&scope, &report, &self->err) != GM_OK) return false;
  }
  return true;
}

static int own_scope_time(own_session *self, size_t pairs, unsigned runs, FILE *out) {
  const gm_request request = {.bytes = OWN_BYTES, .stream = self->stream};
  uint64_t least = UINT64_MAX;
  for (unsigned run = 0; run <= runs; run++) {
    const uint64_t begin = ticks_ns();
    if (!own_scope_round(self, &request, pairs)) return -1;
    const uint64_t took = ticks_ns() - begin;
    if (run > 0 && took < least) least = took;
  }
  fprintf(out, "scope_ns %.17g\n", (double)least / (double)pairs);
  return 0;
}

int own_scope(size_t pairs, unsigned runs, FILE *out) {
  own_session self;
  int result = own_begin(&self, (own_wish){0});
  if (result == 0) result = own_scope_time(&self, pairs, runs, out);
  return own_end(&self, result);
}

/* ---- tracking ---- */

/* A thousand blocks stay alive, of which one goes and comes each time: what is tracked is a table in use. */
static bool own_round(own_session *self, gm_block *blocks, size_t pairs) {
  for (size_t i = 0; i < pairs; i++) {
    gm_block *block = &blocks[i * 611 % OWN_LIVE];
    if (gm_free(self->pool, block, self->stream) != GM_OK || !own_take(self, OWN_BYTES, block)) return false;
  }
  return true;
}

static int own_time(own_session *self, size_t pairs, unsigned runs, const char *name, FILE *out) {
  gm_block blocks[OWN_LIVE];
  uint64_t least = UINT64_MAX;
  for (size_t i = 0; i < OWN_LIVE; i++) {
    if (!own_take(self, OWN_BYTES, &blocks[i])) return -1;
  }
  for (unsigned run = 0; run <= runs; run++) {
    uint64_t begin = ticks_ns();
    if (!own_round(self, blocks, pairs)) return -1;
    uint64_t took = ticks_ns() - begin;
    if (run > 0 && took < least) least = took;
  }
  for (size_t i = 0; i < OWN_LIVE; i++) gm_free(self->pool, &blocks[i], self->stream);
  fprintf(out, "%s %.17g\n", name, (double)least / (2.0 * (double)pairs));
  return 0;
}

int own_tracking(size_t pairs, unsigned runs, FILE *out) {
  int result = 0;
  for (int tracked = 0; tracked < 2 && result == 0; tracked++) {
    own_session self;
    result = own_begin(&self, (own_wish){.track = tracked});
    if (result == 0) result = own_time(&self, pairs, runs, tracked ? "tracked_ns" : "plain_ns", out);
    result = own_end(&self, result);
  }
  return result;
}

/* ---- recording ---- */

static int own_record(own_session *self, const char *path, size_t pairs, unsigned runs, FILE *out) {
  gm_recording recording = {.struct_size = sizeof recording};
  if (gm_pool_record_begin(self->pool, path, &self->err) != GM_OK) return -1;
  const int result = own_time(self, pairs, runs, "recorded_ns", out);
  const uint64_t begin = ticks_ns();
  if (gm_pool_record_end(self->pool, &recording, &self->err) != GM_OK || result != 0) return -1;
  const double took = (double)(ticks_ns() - begin);
  fprintf(out, "written_ns %.17g\n", took / (double)(recording.allocs + recording.frees));
  return 0;
}

int own_recording(size_t pairs, unsigned runs, FILE *out) {
  const char *folder = getenv("TMPDIR");
  char path[4096];
  int result = 0;
  snprintf(path, sizeof path, "%s/gm_bench.%ld.gmtrace", folder && folder[0] ? folder : "/tmp", (long)getpid());
  for (int recorded = 0; recorded < 2 && result == 0; recorded++) {
    own_session self;
    result = own_begin(&self, (own_wish){0});
    if (result == 0) {
      result = recorded ? own_record(&self, path, pairs, runs, out) : own_time(&self, pairs, runs, "plain_ns", out);
    }
    result = own_end(&self, result);
  }
  unlink(path);
  return result;
}

own_case *own_find(const char *name) {
  static const struct {
    const char *name;
    own_case *run;
  } cases[] = {{"metadata", own_metadata},   {"tracking", own_tracking},     {"recording", own_recording},
               {"scale", own_scale},         {"plain-pair", own_plain_pair}, {"typed-pair", own_typed_pair},
               {"rare-pair", own_rare_pair}, {"fixed-pair", own_fixed_pair}, {"future-pair", own_future_pair},
               {"scope", own_scope},         {"devices", own_devices}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    if (strcmp(name, cases[i].name) == 0) return cases[i].run;
  }
  return NULL;
}
