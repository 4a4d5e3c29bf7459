/* An allocator of host memory, which is never touched: HOST_NAME, HOST_ALLOC(bytes), HOST_FREE(pointer, bytes) and
 * HOST_RESERVED() make it glibc (by itself), mimalloc or jemalloc. It has no device, so no capacity and no driver
 * calls.
 */
#include <malloc.h>
#include <stdlib.h>

#include "bench/peers/peer.h"

#if defined(HOST_MIMALLOC)
#include <mimalloc.h>
#define HOST_NAME "mimalloc"
#define HOST_ALLOC(bytes) mi_malloc(bytes)
#define HOST_FREE(pointer, bytes) mi_free_size(pointer, bytes)
#elif defined(HOST_JEMALLOC)
#include <jemalloc/jemalloc.h>
#define HOST_NAME "jemalloc"
#define HOST_ALLOC(bytes) mallocx(bytes, 0)
#define HOST_FREE(pointer, bytes) sdallocx(pointer, bytes, 0)
#else
#define HOST_NAME "glibc"
#define HOST_ALLOC(bytes) malloc(bytes)
#define HOST_FREE(pointer, bytes) free(pointer)
#endif

PEER_API int peer_init(const char *config) {
  (void)config;
  return 0;
}

PEER_API void *peer_alloc(size_t bytes, uint64_t stream) {
  (void)stream;
  return HOST_ALLOC(bytes);
}

PEER_API void peer_free(void *pointer, size_t bytes, uint64_t stream) {
  (void)bytes, (void)stream;
  HOST_FREE(pointer, bytes);
}

/* Not asked for: what a host allocator keeps says nothing of a device's memory. */
PEER_API uint64_t peer_reserved(void) { return 0; }

PEER_API const char *peer_name(void) { return HOST_NAME; }

PEER_API int peer_threads(void) { return 1; }
