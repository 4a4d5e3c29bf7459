#include "gm_torch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../shared/cards.h"
#include "../shared/engines.h"
#include "graph_pools.h"

static pthread_mutex_t graphs = PTHREAD_MUTEX_INITIALIZER; /* guards the graph pools */

static void tell(const char *what, ptrdiff_t bytes) {
  (void)fprintf(stderr, "gm: torch: %s of %td bytes: %s\n", what, bytes, gm_engines_why());
}

void *gm_torch_alloc(ptrdiff_t bytes, int ordinal, void *stream) {
  gm_card *card = bytes > 0 ? gm_card_of(ordinal) : NULL;
  if (bytes <= 0) return NULL;
  pthread_mutex_lock(&graphs);
  gm_pool *graph = gm_graph_pools_current(ordinal);
  pthread_mutex_unlock(&graphs);
  void *pointer = card ? gm_card_alloc(card, graph ? graph : gm_card_pool(card), (uint64_t)bytes, stream) : NULL;
  if (!pointer) tell("allocation", bytes);
  return pointer;
}

/* The card's own pool answers INVALID_ARGUMENT for a block of a graph's. */
void gm_torch_free(void *pointer, ptrdiff_t bytes, int ordinal, void *stream) {
  gm_card *card = gm_card_if_open(ordinal);
  gm_stream *order = card && pointer ? gm_card_stream(card, stream) : NULL;
  if (!pointer) return;
  gm_status status = order ? gm_free_ptr(gm_card_pool(card), pointer, 0, order) : GM_ERR_NOT_FOUND;
  if (status == GM_ERR_INVALID_ARGUMENT) {
    pthread_mutex_lock(&graphs);
    status = gm_graph_pools_free(ordinal, pointer, order);
    pthread_mutex_unlock(&graphs);
  }
  if (status) (void)fprintf(stderr, "gm: torch: free of %td bytes: %s\n", bytes, gm_status_name(status));
}

void gm_torch_init(int count) {
  for (int i = 0; i < count; i++)
    if (!gm_card_of(i)) tell("opening a card: allocation", 0);
}

void gm_torch_reset(void) {
  for (int i = 0; i < GM_CARDS_MOST; i++) {
    gm_card *card = gm_card_if_open(i);
    if (card) (void)gm_pool_trim(gm_card_pool(card), 0);
  }
}

void gm_torch_memory_fraction(double fraction, int ordinal) {
  uint64_t free_bytes = 0, total = 0;
  gm_card *card = gm_card_of(ordinal);
  if (!card || !(fraction > 0 && fraction <= 1) || gm_cards_memory(ordinal, &free_bytes, &total)) return;
  (void)gm_pool_set_max_bytes(gm_card_pool(card), fraction < 1 ? (uint64_t)(fraction * (double)total) : 0, NULL);
}

void *gm_torch_base_alloc(void *pointer, size_t *out_bytes) {
  uint64_t bytes = 0;
  void *base = gm_cards_base(pointer, &bytes);
  if (base) *out_bytes = (size_t)bytes;
  return base;
}

/* A use that gm cannot note is waited for. */
static void use_on(gm_card *card, const gm_pointer_info *found, void *stream) {
  gm_stream *order = gm_card_stream(card, stream);
  if (!order || gm_use_on(found->pool, &found->block, order) == GM_OK) return;
  if (gm_stream_sync(order, NULL)) tell("record_stream", (ptrdiff_t)found->block.bytes);
}

void gm_torch_record_stream(void *pointer, void *stream) {
  gm_pointer_info found = {.struct_size = sizeof found};
  for (int i = 0; i < GM_CARDS_MOST; i++) {
    gm_card *card = gm_card_if_open(i);
    if (!card || gm_pointer_find(gm_pool_device(gm_card_pool(card)), pointer, &found)) continue;
    use_on(card, &found, stream);
    return;
  }
}

/* How much a graph's pool takes before the capture. */
static uint64_t capture_bytes(gm_pool *pool) {
  const char *wanted = getenv("GM_TORCH_CAPTURE_BYTES");
  return wanted ? strtoull(wanted, NULL, 10) : gm_engines_figure(pool, "peak_in_use_bytes");
}

void gm_torch_begin_allocate_to_pool(int ordinal, gm_torch_pool_id id, const void *filter) {
  gm_error err = {.status = GM_OK};
  gm_card *card = gm_card_of(ordinal);
  (void)filter;
  if (!card) return;
  gm_pool *pool = gm_card_pool(card);
  pthread_mutex_lock(&graphs);
  if (gm_graph_pools_begin(ordinal, id, gm_pool_device(pool), capture_bytes(pool), &err)) gm_engines_note(&err);
  pthread_mutex_unlock(&graphs);
  if (err.status) tell("a graph's pool: allocation", 0);
}

void gm_torch_end_allocate_to_pool(int ordinal, gm_torch_pool_id id) {
  pthread_mutex_lock(&graphs);
  gm_graph_pools_end(ordinal, id);
  pthread_mutex_unlock(&graphs);
}

void gm_torch_release_pool(int ordinal, gm_torch_pool_id id) {
  pthread_mutex_lock(&graphs);
  gm_graph_pools_release(ordinal, id);
  pthread_mutex_unlock(&graphs);
}
