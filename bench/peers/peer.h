/* The exports of an adapter; README.md says what each does. */
#ifndef GM_BENCH_PEERS_PEER_H
#define GM_BENCH_PEERS_PEER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define PEER_API extern "C" __attribute__((visibility("default")))
#else
#define PEER_API __attribute__((visibility("default")))
#endif

PEER_API int peer_init(const char *config);
PEER_API void *peer_alloc(size_t bytes, uint64_t stream);
PEER_API void peer_free(void *pointer, size_t bytes, uint64_t stream);
PEER_API uint64_t peer_reserved(void);
PEER_API const char *peer_name(void);
PEER_API uint64_t peer_reserved_peak(void);
PEER_API void peer_reset_peak(void);
PEER_API uint64_t peer_upstream_calls(void);
PEER_API void peer_free_cross(void *pointer, size_t bytes, uint64_t home, uint64_t stream);
PEER_API int peer_threads(void);

#endif
