/* gm's disk tier beside SQLite and LevelDB, for tensors of 4 KiB to 64 MiB, in one run. The bytes are random, so that
 * nothing can be packed. Each figure is the median of the runs; between two runs all are opened anew.
 *
 *   put           all values, then one flush, after which all are durable
 *   durable put   values that are durable when their put returns
 *   get           all values in mixed order, into the caller's memory, from the page cache
 *   on disk       bytes that the files take, over the bytes of the values
 *
 * usage: gm_disk_bench [--bytes N[K|M|G]] [--most N[K|M|G]] [--runs N] [--folder PATH] */
#include <dirent.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "disk_peer.h"

enum { RUNS_MOST = 32, PATH_MOST = 512, COUNT_MOST = 4096, DURABLE_MOST = 64 };

static const disk_peer *const peers[] = {
    &disk_peer_gm,
#ifdef GM_BENCH_SQLITE
    &disk_peer_sqlite,
#endif
#ifdef GM_BENCH_LEVELDB
    &disk_peer_leveldb,
#endif
};
enum { PEERS = sizeof peers / sizeof *peers };

enum { PUT, DURABLE_PUT, GET, ON_DISK, FIGURES };

typedef struct bench {
  uint64_t total, most; /* bytes of all values of a size; of the largest */
  unsigned runs;
  const char *folder;
  char path[PATH_MOST];
  unsigned char *random, *room; /* twice the largest value; one value */
  size_t bytes, count;          /* of one value; values */
} bench;

bool disk_peer_fail(const char *who, const char *what, const char *why) {
  fprintf(stderr, "gm_disk_bench: %s: %s: %s\n", who, what, why);
  return false;
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- folders ---- */

static bool folder_path(char path[PATH_MOST], const char *folder, const char *name) {
  const int length = snprintf(path, PATH_MOST, "%s/%s", folder, name);
  return length > 0 && length < PATH_MOST;
}

/* Bytes that the files below take. With `remove` they go. */
static uint64_t folder_walk(const char *folder, bool remove) {
  uint64_t bytes = 0;
  char path[PATH_MOST];
  DIR *dir = opendir(folder);
  for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
    struct stat is;
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    if (!folder_path(path, folder, entry->d_name) || lstat(path, &is)) continue;
    bytes += (uint64_t)is.st_blocks * 512;
    if (S_ISDIR(is.st_mode))
      bytes += folder_walk(path, remove);
    else if (remove)
      unlink(path);
  }
  if (dir) closedir(dir);
  if (remove) rmdir(folder);
  return bytes;
}

static bool folder_make(bench *b) {
  return (folder_path(b->path, b->folder, "gm_disk_bench.XXXXXX") && mkdtemp(b->path)) ||
         disk_peer_fail("folder", b->folder, "cannot be used");
}

/* ---- one run ---- */

static const unsigned char *value_of(const bench *b, size_t i) { return b->random + i * 4096 % b->most; }

static bool put_all(const bench *b, const disk_peer *peer, void *self, size_t count) {
  char key[32];
  for (size_t i = 0; i < count; i++) {
    snprintf(key, sizeof key, "tensor/%06zu", i);
    if (!peer->put(self, key, value_of(b, i), b->bytes)) return false;
  }
  return true;
}

static bool get_all(const bench *b, const disk_peer *peer, void *self) {
  char key[32];
  for (size_t i = 0; i < b->count; i++) {
    const size_t at = i * 7919 % b->count; /* a prime above COUNT_MOST: each value once */
    snprintf(key, sizeof key, "tensor/%06zu", at);
    if (!peer->get(self, key, b->room, b->bytes)) return false;
    if (memcmp(b->room, value_of(b, at), 64) != 0) return disk_peer_fail(peer->name, key, "other bytes came back");
  }
  return true;
}

static double rate(const bench *b, size_t count, double from) {
  return (double)count * (double)b->bytes / (seconds_now() - from);
}

static bool run_plain(bench *b, const disk_peer *peer, double figures[FIGURES]) {
  void *self = NULL;
  if (!folder_make(b)) return false;
  bool good = peer->open(&self, b->path, false, b->bytes);
  double from = seconds_now();
  good = good && put_all(b, peer, self, b->count) && peer->flush(self);
  figures[PUT] = rate(b, b->count, from);
  good = good && get_all(b, peer, self); /* warms up */
  from = seconds_now();
  good = good && get_all(b, peer, self);
  figures[GET] = rate(b, b->count, from);
  good = self && peer->close(self) && good;
  figures[ON_DISK] = (double)folder_walk(b->path, false) / ((double)b->count * (double)b->bytes);
  folder_walk(b->path, true);
  return good;
}

static bool run_durable(bench *b, const disk_peer *peer, double figures[FIGURES]) {
  const size_t count = b->count < DURABLE_MOST ? b->count : DURABLE_MOST;
  void *self = NULL;
  if (!folder_make(b)) return false;
  bool good = peer->open(&self, b->path, true, b->bytes);
  const double from = seconds_now();
  good = good && put_all(b, peer, self, count);
  figures[DURABLE_PUT] = rate(b, count, from);
  good = self && peer->close(self) && good;
  folder_walk(b->path, true);
  return good;
}

/* ---- tables ---- */

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print_row(const bench *b, const disk_peer *peer, const double now[FIGURES], const double gm[FIGURES]) {
  const double mb = 1e6;
  printf("| %" PRIu64 " KiB | %s |", (uint64_t)b->bytes >> 10, peer->name);
  for (int i = PUT; i <= GET; i++) printf(" %.0f | %.2f |", now[i] / mb, gm[i] / now[i]);
  printf(" %.3f |\n", now[ON_DISK]);
  fflush(stdout);
}

static bool run_size(bench *b, size_t bytes) {
  static double all[PEERS][FIGURES][RUNS_MOST];
  double median[PEERS][FIGURES];
  b->bytes = bytes;
  b->count = b->total / bytes ? (size_t)(b->total / bytes) : 1;
  if (b->count > COUNT_MOST) b->count = COUNT_MOST;
  for (unsigned run = 0; run < b->runs; run++) {
    for (int p = 0; p < PEERS; p++) {
      double figures[FIGURES] = {0};
      if (!run_plain(b, peers[p], figures) || !run_durable(b, peers[p], figures)) return false;
      for (int f = 0; f < FIGURES; f++) all[p][f][run] = figures[f];
    }
  }
  for (int p = 0; p < PEERS; p++) {
    for (int f = 0; f < FIGURES; f++) {
      qsort(all[p][f], b->runs, sizeof(double), compare);
      median[p][f] = all[p][f][b->runs / 2];
    }
    print_row(b, peers[p], median[p], median[0]);
  }
  return true;
}

static uint64_t parse_number(const char *text) {
  char *end = NULL;
  const uint64_t value = strtoull(text, &end, 10);
  return value << (*end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0);
}

static bool parse(bench *b, int argc, char **argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--bytes"))
      b->total = parse_number(argv[i + 1]);
    else if (!strcmp(argv[i], "--most"))
      b->most = parse_number(argv[i + 1]);
    else if (!strcmp(argv[i], "--runs"))
      b->runs = (unsigned)parse_number(argv[i + 1]);
    else if (!strcmp(argv[i], "--folder"))
      b->folder = argv[i + 1];
    else
      return false;
  }
  return argc % 2 == 1 && b->runs >= 1 && b->runs <= RUNS_MOST && b->total && b->most >= 4096;
}

int main(int argc, char **argv) {
  bench b = {.total = UINT64_C(128) << 20, .most = UINT64_C(64) << 20, .runs = 3, .folder = "."};
  bool good = true;
  if (!parse(&b, argc, argv)) {
    fprintf(stderr, "usage: gm_disk_bench [--bytes N[K|M|G]] [--most N[K|M|G]] [--runs N] [--folder PATH]\n");
    return 2;
  }
  b.random = malloc((size_t)b.most * 2);
  b.room = malloc((size_t)b.most);
  if (!b.random || !b.room) {
    free(b.random);
    free(b.room);
    return 1;
  }
  uint64_t state = 88172645463325252U;
  for (size_t i = 0; i < b.most * 2; i++) {
    if (i % 8 == 0) state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    b.random[i] = (unsigned char)(state >> i % 8 * 8);
  }
  if (PEERS < 3)
    printf("SKIPPED PEERS: this build lacks SQLite or LevelDB: scripts/install bench, then configure again\n");
  printf("MB/s; \"gm x\": how many times as fast gm is\n\n");
  printf("| a value | | put | gm x | durable put | gm x | get | gm x | on disk / bytes |\n");
  printf("|---|---|---|---|---|---|---|---|---|\n");
  for (uint64_t bytes = 4096; good && bytes <= b.most; bytes *= bytes < 1 << 20 ? 16 : 8) good = run_size(&b, bytes);
  free(b.random);
  free(b.room);
  return good ? 0 : 1;
}
