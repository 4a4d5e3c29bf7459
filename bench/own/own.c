#include "bench/own/own.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/measure/ticks.h"
#include "gm/gm.h"

enum { OWN_FIRST = 10000, OWN_BLOCKS = 110000, OWN_LIVE = 1000, OWN_BYTES = 1 << 20 };

typedef struct own_session {
  atomic_size_t host_bytes; /* that gm holds */
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  gm_stream *stream;
  uint32_t tag;
  gm_error err;
} own_session;

static void *own_alloc(void *user, size_t bytes, size_t align) {
  own_session *self = user;
  void *memory = NULL;
  if (posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, bytes) != 0) return NULL;
  self->host_bytes += bytes;
  return memory;
}

static void own_release(void *user, void *memory, size_t bytes) {
  own_session *self = user;
  self->host_bytes -= bytes;
  free(memory);
}

static int own_begin(own_session *self, bool track) {
  const gm_services services = {.alloc = own_alloc, .release = own_release, .user = self};
  const gm_context_params params = {.struct_size = sizeof params,
                                    .services = &services,
                                    .backend_options = "null:capacity=1T",
                                    .ignore_environment = true};
  const gm_pool_params pool = {.struct_size = sizeof pool, .name = "bench", .track = track};
  *self = (own_session){.err = {.status = GM_OK}};
  gm_status status = gm_context_create(&params, &self->ctx, &self->err);
  if (status == GM_OK) status = gm_config_set(self->ctx, "memory_fraction", "1", &self->err);
  if (status == GM_OK) status = gm_config_set(self->ctx, "min_free_bytes", "0", &self->err);
  if (status == GM_OK) status = gm_device_open_index(self->ctx, "null", 0, &self->device, &self->err);
  if (status == GM_OK) status = gm_pool_create(self->device, &pool, &self->pool, &self->err);
  if (status == GM_OK) status = gm_stream_create(self->device, &self->stream, &self->err);
  if (status == GM_OK && track) self->tag = gm_tag(self->ctx, "bench");
  return status == GM_OK ? 0 : -1;
}

/* What was not begun is not closed. */
static int own_end(own_session *self, int result) {
  gm_error closing = {.status = GM_OK};
  if (result != 0) fprintf(stderr, "gm_bench: %s\n", self->err.message[0] ? self->err.message : "no memory");
  if (self->pool) gm_pool_destroy(self->pool, &closing);
  if (self->stream) gm_stream_close(self->stream, &closing);
  if (self->device) gm_device_close(self->device, &closing);
  if (self->ctx) gm_context_destroy(self->ctx, &closing);
  if (closing.status != GM_OK) fprintf(stderr, "gm_bench: %s\n", closing.message);
  return closing.status == GM_OK ? result : -1;
}

static bool own_take(own_session *self, uint64_t bytes, gm_block *out) {
  const gm_request request = {.bytes = bytes, .stream = self->stream, .tag = self->tag};
  return gm_alloc(self->pool, &request, out) <= GM_ACQUIRE_FRESH;
}

/* ---- metadata ---- */

int own_metadata(size_t pairs, unsigned runs, FILE *out) {
  (void)pairs, (void)runs; /* the same in every run */
  own_session self;
  size_t taken = 0, before = 0;
  gm_block *blocks = calloc(OWN_BLOCKS, sizeof *blocks);
  int result = own_begin(&self, false);
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
    result = own_begin(&self, tracked);
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
    result = own_begin(&self, false);
    if (result == 0) {
      result = recorded ? own_record(&self, path, pairs, runs, out) : own_time(&self, pairs, runs, "plain_ns", out);
    }
    result = own_end(&self, result);
  }
  unlink(path);
  return result;
}

own_case *own_find(const char *name) {
  if (strcmp(name, "metadata") == 0) return own_metadata;
  if (strcmp(name, "tracking") == 0) return own_tracking;
  return strcmp(name, "recording") == 0 ? own_recording : NULL;
}
