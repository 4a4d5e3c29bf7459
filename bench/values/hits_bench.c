/* Hits of gm_cache on recorded accesses: S3-FIFO and LRU, beside the optimum, which knows the future (Belady).
 *
 * A trace is a text file with one access a line, whose first word is the key. The rest of a line is ignored, and so is
 * a line that begins with '#' or '*', or is empty. "-" is the standard input, for a trace that is packed. Each object
 * counts as one. The room is a part of the number of distinct keys.
 *
 * usage: gm_hits_bench TRACE... */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gm/cache.h"

enum { LINE_MOST = 4096, TABLE_LEAST = 1 << 10 };

typedef struct trace {
  uint32_t *keys; /* numbers of keys, in the order of the accesses */
  size_t count, most;
  char **names; /* open addressing: a word, and its number */
  uint32_t *numbers;
  size_t places;
  uint32_t distinct;
} trace;

typedef struct later { /* a key in the cache, and when it is needed again */
  size_t next;
  uint32_t key;
} later;

static void *need(void *memory) {
  if (memory) return memory;
  fprintf(stderr, "gm_hits_bench: no memory\n");
  exit(1);
}

/* ---- reading ---- */

static size_t place_of(const trace *t, const char *word) {
  uint64_t hash = 14695981039346656037U;
  for (const char *c = word; *c; c++) hash = (hash ^ (unsigned char)*c) * 1099511628211U;
  size_t at = (size_t)(hash ^ hash >> 29) & (t->places - 1);
  while (t->names[at] && strcmp(t->names[at], word) != 0) at = (at + 1) & (t->places - 1);
  return at;
}

static void table_grow(trace *t) {
  trace larger = *t;
  larger.places = t->places ? t->places * 2 : TABLE_LEAST;
  larger.names = need(calloc(larger.places, sizeof(char *)));
  larger.numbers = need(calloc(larger.places, sizeof(uint32_t)));
  for (size_t i = 0; i < t->places; i++) {
    if (!t->names[i]) continue;
    const size_t at = place_of(&larger, t->names[i]);
    larger.names[at] = t->names[i];
    larger.numbers[at] = t->numbers[i];
  }
  free(t->names), free(t->numbers);
  *t = larger;
}

static void trace_add(trace *t, const char *word) {
  if (t->distinct >= t->places / 2) table_grow(t);
  const size_t at = place_of(t, word);
  if (!t->names[at]) {
    t->names[at] = need(strdup(word));
    t->numbers[at] = t->distinct++;
  }
  if (t->count == t->most) {
    t->most = t->most ? t->most * 2 : TABLE_LEAST;
    t->keys = need(realloc(t->keys, t->most * sizeof(uint32_t)));
  }
  t->keys[t->count++] = t->numbers[at];
}

static bool trace_read(trace *t, const char *path) {
  char line[LINE_MOST];
  FILE *file = strcmp(path, "-") ? fopen(path, "r") : stdin;
  if (!file) return false;
  while (fgets(line, sizeof line, file)) {
    const char *word = strtok(line, " \t\r\n,;");
    if (word && *word != '#' && *word != '*') trace_add(t, word);
  }
  const bool good = !ferror(file) && t->count;
  if (file != stdin) fclose(file);
  return good;
}

static void trace_end(trace *t) {
  for (size_t i = 0; i < t->places; i++) free(t->names[i]);
  free(t->names), free(t->numbers), free(t->keys);
}

/* ---- hits ---- */

static uint64_t hits_of(gm_context *ctx, const trace *t, gm_cache_policy policy, size_t room) {
  gm_cache *cache = NULL;
  gm_cache_stats stats = {.struct_size = sizeof stats};
  gm_error err = {.status = GM_OK};
  const gm_cache_params params = {.struct_size = sizeof params, .policy = policy, .max_entries = room};
  gm_status status = gm_cache_create(ctx, &params, &cache, &err);
  for (size_t i = 0; i < t->count && !status; i++) {
    gm_cache_lease *lease;
    if (gm_cache_get(cache, &t->keys[i], sizeof t->keys[i], &lease, NULL, NULL) == GM_OK)
      gm_cache_return(lease);
    else
      status = gm_cache_put(cache, &t->keys[i], sizeof t->keys[i], NULL, 1, NULL, &err);
  }
  if (!status) status = gm_cache_get_stats(cache, &stats, &err);
  if (status) fprintf(stderr, "gm_hits_bench: %s: %s\n", err.op, err.message);
  gm_cache_destroy(cache, NULL);
  if (status) exit(1);
  return stats.hits;
}

static void heap_push(later *heap, size_t *count, later one) {
  size_t at = (*count)++;
  for (; at && heap[(at - 1) / 2].next < one.next; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
  heap[at] = one;
}

static later heap_pop(later *heap, size_t *count) {
  const later top = heap[0], last = heap[--*count];
  size_t at = 0;
  for (size_t child; (child = 2 * at + 1) < *count; at = child) {
    if (child + 1 < *count && heap[child + 1].next > heap[child].next) child++;
    if (heap[child].next <= last.next) break;
    heap[at] = heap[child];
  }
  heap[at] = last;
  return top;
}

/* The object that is needed again last goes. An entry of the heap that does not say a key's latest "next" is out of
 * date. */
static uint64_t best_hits(const trace *t, size_t room) {
  size_t *next = need(calloc(t->count, sizeof *next)), *is = need(calloc(t->distinct, sizeof *is));
  later *heap = need(calloc(t->count, sizeof *heap));
  size_t heap_count = 0, used = 0, hits = 0;
  for (uint32_t key = 0; key < t->distinct; key++) is[key] = SIZE_MAX;
  for (size_t i = t->count; i--; is[t->keys[i]] = i) next[i] = is[t->keys[i]];
  memset(is, 0, t->distinct * sizeof *is); /* from here on: when the key is needed again; 0: it is not in the cache */
  for (size_t i = 0; i < t->count; i++) {
    const uint32_t key = t->keys[i];
    hits += is[key] != 0;
    used += is[key] == 0;
    while (used > room) {
      const later victim = heap_pop(heap, &heap_count);
      if (is[victim.key] != victim.next || victim.key == key) continue;
      is[victim.key] = 0;
      used--;
    }
    is[key] = next[i];
    heap_push(heap, &heap_count, (later){next[i], key});
  }
  free(next), free(is), free(heap);
  return hits;
}

static void run_trace(gm_context *ctx, const char *name, const trace *t) {
  static const unsigned percents[] = {1, 5, 10, 20, 50};
  for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
    const size_t room = (size_t)t->distinct * percents[i] / 100;
    if (room < 4) continue;
    const double all = (double)t->count / 100;
    const double lru = (double)hits_of(ctx, t, GM_CACHE_LRU, room) / all;
    const double s3fifo = (double)hits_of(ctx, t, GM_CACHE_S3FIFO, room) / all;
    printf("| %s | %zu | %" PRIu32 " | %zu (%u %%) | %.1f | %.1f | %.1f |\n", name, t->count, t->distinct, room,
           percents[i], lru, s3fifo, (double)best_hits(t, room) / all);
    fflush(stdout);
  }
}

int main(int argc, char **argv) {
  gm_context *ctx = NULL;
  if (argc < 2) {
    fprintf(stderr, "usage: gm_hits_bench TRACE...\n");
    return 2;
  }
  if (gm_context_create(NULL, &ctx, NULL)) return 1;
  printf("hits in percent of the accesses\n\n");
  printf("| trace | accesses | keys | room | LRU | S3-FIFO | optimum |\n|---|---|---|---|---|---|---|\n");
  int answer = 0;
  for (int i = 1; i < argc && !answer; i++) {
    trace t = {.keys = NULL};
    const char *slash = strrchr(argv[i], '/');
    if (trace_read(&t, argv[i]))
      run_trace(ctx, slash ? slash + 1 : argv[i], &t);
    else
      answer = fprintf(stderr, "gm_hits_bench: %s: cannot be read, or has no accesses\n", argv[i]) > 0;
    trace_end(&t);
  }
  gm_context_destroy(ctx, NULL);
  return answer;
}
