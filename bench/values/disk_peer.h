/* Places on disk that keep values under keys: gm's disk tier and its peers, behind one table. */
#ifndef GM_BENCH_DISK_PEER_H
#define GM_BENCH_DISK_PEER_H

#include <stdbool.h>
#include <stddef.h>

/* All functions answer true, or false after they said why on stderr. */
typedef struct disk_peer {
  const char *name;
  /* Opens it in an empty folder. `each`: a put is durable when it returns. Otherwise flush makes all puts durable. */
  bool (*open)(void **self, const char *folder, bool each, size_t value_bytes);
  bool (*put)(void *self, const char *key, const void *value, size_t bytes);
  bool (*get)(void *self, const char *key, void *value, size_t bytes); /* into the caller's memory */
  bool (*flush)(void *self);
  bool (*close)(void *self);
} disk_peer;

extern const disk_peer disk_peer_gm;
#ifdef GM_BENCH_SQLITE
extern const disk_peer disk_peer_sqlite;
#endif
#ifdef GM_BENCH_LEVELDB
extern const disk_peer disk_peer_leveldb;
#endif

/* Says on stderr what failed, and answers false. */
bool disk_peer_fail(const char *who, const char *what, const char *why);

#endif
