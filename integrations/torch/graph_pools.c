#include "graph_pools.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "../shared/engines.h"

/* Invariant: pools are made, used and destroyed inside the lock. So no thread uses a pool that another one destroys.
 * Where no pool is begun, an allocation reads one number. */

typedef struct graph_pool {
  struct graph_pool *next;
  gm_pool *pool; /* NULL: nothing was asked of it yet */
  gm_torch_pool_id id;
  int ordinal;
  unsigned users;         /* begins that were not released */
  uint64_t begun;         /* when it was begun; 0: it takes no allocations now */
  gm_torch_filter filter; /* while it is begun */
} graph_pool;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static graph_pool *pools;
static double fractions[GM_CARDS_MOST]; /* 0: no bound */
static uint64_t begins;                 /* so far */
static _Atomic unsigned begun_count;

static graph_pool *find(int ordinal, gm_torch_pool_id id) {
  graph_pool *entry = pools;
  while (entry && (entry->ordinal != ordinal || entry->id.first != id.first || entry->id.second != id.second))
    entry = entry->next;
  return entry;
}

static graph_pool *find_or_add(int ordinal, gm_torch_pool_id id) {
  graph_pool *entry = find(ordinal, id);
  if (!entry && (entry = calloc(1, sizeof *entry))) {
    *entry = (graph_pool){.next = pools, .id = id, .ordinal = ordinal};
    pools = entry;
  }
  return entry;
}

/* Destroys the pool if nobody names it. One with blocks, or with work of a captured stream, answers BUSY and stays. */
static void drop_unused(graph_pool *entry) {
  graph_pool **link = &pools;
  if (entry->users || entry->begun || gm_pool_destroy(entry->pool, NULL)) return;
  while (*link != entry) link = &(*link)->next;
  *link = entry->next;
  free(entry);
}

/* Stops the pool from taking allocations. Returns its filter, to be dropped outside of the lock. */
static gm_torch_filter stop(graph_pool *entry) {
  const gm_torch_filter filter = entry->filter;
  if (entry->begun) atomic_fetch_sub(&begun_count, 1);
  entry->begun = 0;
  entry->filter = (gm_torch_filter){0};
  return filter;
}

static void drop(const gm_torch_filter *filter) {
  if (filter->drop) filter->drop(filter->user);
}

bool gm_graph_pools_begin(int ordinal, gm_torch_pool_id id, const gm_torch_filter *filter) {
  gm_torch_filter older = {0};
  pthread_mutex_lock(&lock);
  graph_pool *entry = find_or_add(ordinal, id);
  if (entry) {
    older = stop(entry);
    entry->users++;
    entry->begun = ++begins;
    entry->filter = *filter;
    atomic_fetch_add(&begun_count, 1);
  }
  pthread_mutex_unlock(&lock);
  drop(&older);
  return entry != NULL;
}

/* Ends the pool's turn. `released`: one begin is taken back, and the turn ends with the last one. */
static void leave(int ordinal, gm_torch_pool_id id, bool released) {
  gm_torch_filter filter = {0};
  pthread_mutex_lock(&lock);
  graph_pool *entry = find(ordinal, id);
  if (entry && released && entry->users) entry->users--;
  if (entry && (!released || !entry->users)) filter = stop(entry);
  if (entry) drop_unused(entry);
  pthread_mutex_unlock(&lock);
  drop(&filter);
}

void gm_graph_pools_end(int ordinal, gm_torch_pool_id id) { leave(ordinal, id, false); }

void gm_graph_pools_release(int ordinal, gm_torch_pool_id id) { leave(ordinal, id, true); }

void gm_graph_pools_sweep(void) {
  pthread_mutex_lock(&lock);
  for (graph_pool *entry = pools, *next; entry; entry = next) {
    next = entry->next;
    drop_unused(entry);
  }
  pthread_mutex_unlock(&lock);
}

void gm_graph_pools_set_fraction(int ordinal, double fraction) {
  pthread_mutex_lock(&lock);
  fractions[ordinal] = fraction;
  pthread_mutex_unlock(&lock);
}

static void *alloc(graph_pool *entry, gm_card *card, uint64_t bytes, void *stream) {
  const gm_pool_params params = {.struct_size = sizeof params,
                                 .name = "graph",
                                 .no_vmm = true,
                                 .memory_fraction = fractions[entry->ordinal],
                                 .flags = GM_POOL_CAPTURES};
  gm_error err = {.status = GM_OK};
  if (!entry->pool && gm_pool_create(gm_pool_device(gm_card_pool(card)), &params, &entry->pool, &err)) {
    gm_engines_note(&err);
    return NULL;
  }
  return gm_card_alloc(card, entry->pool, bytes, stream);
}

bool gm_graph_pools_alloc(gm_card *card, int ordinal, uint64_t bytes, void *stream, void **out) {
  graph_pool *first = NULL;
  if (!atomic_load(&begun_count)) return false;
  pthread_mutex_lock(&lock);
  for (graph_pool *entry = pools; entry; entry = entry->next) {
    if (!entry->begun || entry->ordinal != ordinal || (first && first->begun < entry->begun)) continue;
    if (!entry->filter.wants || entry->filter.wants(entry->filter.user, stream)) first = entry;
  }
  if (first) *out = alloc(first, card, bytes, stream);
  pthread_mutex_unlock(&lock);
  return first != NULL;
}

void *gm_graph_pools_alloc_unclaimed(gm_card *card, int ordinal, uint64_t bytes, void *stream) {
  gm_explanation why = {.struct_size = sizeof why};
  const gm_torch_pool_id none = {0, 0}; /* torch's own ids are never that */
  void *pointer = NULL;
  if (gm_explain(gm_card_pool(card), NULL, &why, NULL) || why.last_failure.status != GM_ERR_BUSY) return NULL;
  pthread_mutex_lock(&lock);
  graph_pool *entry = find_or_add(ordinal, none);
  if (entry) pointer = alloc(entry, card, bytes, stream);
  if (entry) drop_unused(entry); /* where there was no memory */
  pthread_mutex_unlock(&lock);
  return pointer;
}

gm_status gm_graph_pools_free(gm_card *card, void *pointer, const void *stream) {
  gm_pointer_info found = {.struct_size = sizeof found};
  pthread_mutex_lock(&lock);
  gm_status status = gm_pointer_find(gm_pool_device(gm_card_pool(card)), pointer, &found);
  graph_pool *entry = pools;
  while (entry && entry->pool != found.pool) entry = entry->next;
  if (status == GM_OK) status = entry ? gm_card_free(card, entry->pool, pointer, stream) : GM_ERR_NOT_FOUND;
  if (status == GM_OK) drop_unused(entry);
  pthread_mutex_unlock(&lock);
  return status;
}
