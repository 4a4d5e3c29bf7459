/* An allocator under measurement: a shared library with the functions of bench/peers/README.md. */
#ifndef GM_BENCH_PEER_H
#define GM_BENCH_PEER_H

#include <stddef.h>
#include <stdint.h>

typedef struct peer_library {
  int (*init)(const char *config);
  void *(*alloc)(size_t bytes, uint64_t stream);
  void (*free)(void *pointer, size_t bytes, uint64_t stream);
  uint64_t (*reserved)(void);
  const char *(*name)(void);
  /* NULL where the library has none: */
  uint64_t (*reserved_peak)(void);
  void (*reset_peak)(void);
  uint64_t (*upstream_calls)(void);
  void (*free_cross)(void *pointer, size_t bytes, uint64_t home, uint64_t stream);
  int (*threads)(void);
} peer_library;

/* Open it and call its init. 0; else -1 with the reason on standard error. It stays until the program ends. */
int peer_open(const char *path, const char *config, peer_library *out);

/* Free what was allocated on stream `home`, in the order of `stream`. */
static inline void peer_give_back(const peer_library *peer, void *pointer, size_t bytes, uint64_t home,
                                  uint64_t stream) {
  if (home != stream && peer->free_cross) {
    peer->free_cross(pointer, bytes, home, stream);
  } else {
    peer->free(pointer, bytes, stream);
  }
}

#endif
