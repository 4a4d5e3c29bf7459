/* gm behind the interface through which a replay harness drives its allocators (README.md of this folder). It is the
 * pool of one device, by pointer, as an engine would use it. One peer in a process. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gm/gm.h"

#define PEER_API __attribute__((visibility("default")))

#ifndef GM_PEER_CUDA
#define GM_PEER_CUDA ""
#endif

enum { PEER_STREAMS = 65536 };

int peer_init(const char *config);
void *peer_alloc(size_t bytes, uint64_t stream);
void peer_free(void *pointer, size_t bytes, uint64_t stream);
uint64_t peer_reserved(void);
uint64_t peer_reserved_peak(void);
uint64_t peer_upstream_calls(void);
const char *peer_name(void);
int peer_threads(void);

static struct {
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  bool unsized;
  char name[64];
  gm_stream *streams[PEER_STREAMS];
} peer;

/* The size of the device, in MiB. */
static unsigned long long peer_capacity(void) {
  const char *mib = getenv("FAKECUDA_CAP_MIB"), *gib = getenv("FAKECUDA_CAP_GIB");
  if (mib && *mib) return strtoull(mib, NULL, 10);
  return gib && *gib ? strtoull(gib, NULL, 10) * 1024 : 80ULL * 1024;
}

/* A bit of the words of a configuration: "bucket,unsized". */
static bool peer_asked(const char *config, const char *word) {
  size_t length = strlen(word);
  for (const char *at = config; (at = strstr(at, word)); at += length) {
    if ((at == config || at[-1] == ',') && (at[length] == ',' || !at[length])) return true;
  }
  return false;
}

static gm_status peer_open_device(bool cuda, gm_error *err) {
  char options[64], total[32];
  snprintf(options, sizeof options, "null:capacity=%lluM", peer_capacity());
  snprintf(total, sizeof total, "%llum", peer_capacity());
  if (cuda) {
    setenv("SIMCUDA_TOTAL", total, 1);
    setenv("SIMCUDA_CONTEXT_BYTES", "0", 1);
  }
  gm_context_params params = {.struct_size = sizeof params,
                              .backend_options = options,
                              .libraries = *GM_PEER_CUDA ? "cuda=" GM_PEER_CUDA : NULL,
                              .ignore_environment = true};
  gm_status status = gm_context_create(&params, &peer.ctx, err);
  if (status == GM_OK) status = gm_config_set(peer.ctx, "memory_fraction", "1", err);
  if (status == GM_OK) status = gm_config_set(peer.ctx, "min_free_bytes", "0", err);
  return status == GM_OK ? gm_device_open_index(peer.ctx, cuda ? "cuda" : "null", 0, &peer.device, err) : status;
}

/* The first word that no configuration has, and its length; NULL: all are known. */
static const char *peer_unknown(const char *config, size_t *out_length) {
  static const char *const known[] = {"default", "bucket", "best_fit", "fixed", "novmm", "unsized", "cuda"};
  if (!*config) return NULL;
  for (const char *at = config;; at++) {
    const size_t length = strcspn(at, ",");
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
      found = found || (strlen(known[i]) == length && strncmp(known[i], at, length) == 0);
    }
    *out_length = length;
    if (!found) return at;
    at += length;
    if (!*at) return NULL;
  }
}

static gm_status peer_open(const char *config, gm_error *err) {
  gm_pool_params params = {.struct_size = sizeof params, .name = "peer"};
  if (peer_asked(config, "bucket")) params.strategy = GM_STRATEGY_BUCKET;
  if (peer_asked(config, "best_fit")) params.strategy = GM_STRATEGY_BEST_FIT;
  if (peer_asked(config, "fixed")) params.strategy = GM_STRATEGY_FIXED;
  params.no_vmm = peer_asked(config, "novmm");
  peer.unsized = peer_asked(config, "unsized");
  gm_status status = peer_open_device(peer_asked(config, "cuda"), err);
  return status == GM_OK ? gm_pool_create(peer.device, &params, &peer.pool, err) : status;
}

PEER_API int peer_init(const char *config) {
  gm_error err = {.status = GM_OK};
  size_t length = 0;
  if (!config) config = "";
  const char *unknown = peer_unknown(config, &length);
  if (unknown) {
    fprintf(stderr, "gm_peer: no configuration has the word \"%.*s\"\n", (int)length, unknown);
    return 1;
  }
  snprintf(peer.name, sizeof peer.name, "gm%s%s", *config ? " " : "", config);
  if (peer_open(config, &err) == GM_OK) return 0;
  fprintf(stderr, "gm_peer: %s: %s\n", err.op, err.message);
  return 1;
}

/* A stream of a trace has its own in gm, made when it is first named. */
static void peer_make_stream(uint64_t number) {
  gm_error err;
  if (gm_stream_create(peer.device, &peer.streams[number % PEER_STREAMS], &err) != GM_OK) abort();
}

/* The first of a stream. Apart, so that the others are one jump. */
static __attribute__((noinline, cold)) void *peer_first_alloc(size_t bytes, uint64_t stream) {
  peer_make_stream(stream);
  return peer_alloc(bytes, stream);
}

PEER_API void *peer_alloc(size_t bytes, uint64_t stream) {
  gm_stream *own = peer.streams[stream % PEER_STREAMS];
  return own ? gm_malloc(peer.pool, bytes, own) : peer_first_alloc(bytes, stream);
}

static __attribute__((noinline, cold)) void peer_first_free(void *pointer, size_t bytes, uint64_t stream) {
  peer_make_stream(stream);
  peer_free(pointer, bytes, stream);
}

/* The harness learns of a block that is not freed by what stays reserved, as with its other allocators. */
PEER_API void peer_free(void *pointer, size_t bytes, uint64_t stream) {
  gm_stream *own = peer.streams[stream % PEER_STREAMS];
  if (peer.unsized) bytes = 0;
  if (!own) {
    peer_first_free(pointer, bytes, stream);
  } else {
    gm_free_ptr(peer.pool, pointer, bytes, own);
  }
}

static gm_stats peer_stats(void) {
  gm_stats stats = {.struct_size = sizeof stats};
  gm_pool_stats(peer.pool, &stats);
  return stats;
}

PEER_API uint64_t peer_reserved(void) { return peer_stats().reserved_bytes; }

PEER_API uint64_t peer_reserved_peak(void) { return peer_stats().peak_reserved_bytes; }

PEER_API uint64_t peer_upstream_calls(void) { return peer_stats().driver_allocs; }

PEER_API const char *peer_name(void) { return peer.name; }

PEER_API int peer_threads(void) { return 1; }
