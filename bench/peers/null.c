/* The loop itself: addresses that only rise, frees that do nothing. */
#include "bench/peers/peer.h"

static _Thread_local uintptr_t null_next = 1 << 20;

PEER_API int peer_init(const char *config) {
  (void)config;
  return 0;
}

PEER_API void *peer_alloc(size_t bytes, uint64_t stream) {
  (void)bytes, (void)stream;
  return (void *)(null_next += 256);
}

PEER_API void peer_free(void *pointer, size_t bytes, uint64_t stream) { (void)pointer, (void)bytes, (void)stream; }

PEER_API uint64_t peer_reserved(void) { return 0; }

PEER_API const char *peer_name(void) { return "null"; }

PEER_API int peer_threads(void) { return 1; }
