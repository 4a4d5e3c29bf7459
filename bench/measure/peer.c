#include "bench/measure/peer.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* POSIX lets dlsym answer functions as void *; C does not let them be cast, so the bytes are copied. */
static bool peer_symbol(void *library, const char *name, void *out_function) {
  void *symbol = dlsym(library, name);
  memcpy(out_function, &symbol, sizeof symbol);
  return symbol != NULL;
}

static bool peer_required(void *library, const char *path, const char *name, void *out_function) {
  if (peer_symbol(library, name, out_function)) return true;
  fprintf(stderr, "gm_bench: %s: has no %s\n", path, name);
  return false;
}

int peer_open(const char *path, const char *config, peer_library *out) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "gm_bench: %s\n", dlerror());
    return -1;
  }
  bool complete = peer_required(library, path, "peer_init", &out->init) &&
                  peer_required(library, path, "peer_alloc", &out->alloc) &&
                  peer_required(library, path, "peer_free", &out->free) &&
                  peer_required(library, path, "peer_reserved", &out->reserved) &&
                  peer_required(library, path, "peer_name", &out->name);
  if (!complete) return -1;
  peer_symbol(library, "peer_reserved_peak", &out->reserved_peak);
  peer_symbol(library, "peer_reset_peak", &out->reset_peak);
  peer_symbol(library, "peer_upstream_calls", &out->upstream_calls);
  peer_symbol(library, "peer_free_cross", &out->free_cross);
  peer_symbol(library, "peer_threads", &out->threads);
  if (out->init(config) == 0) return 0;
  fprintf(stderr, "gm_bench: %s: cannot start with \"%s\"\n", path, config);
  return -1;
}
