#include "gm_torch.h"

#include <stdio.h>

#include "../shared/cards.h"
#include "../shared/engines.h"
#include "graph_pools.h"

static void tell(const char *what, ptrdiff_t bytes) {
  (void)fprintf(stderr, "gm: torch: %s of %td bytes: %s\n", what, bytes, gm_engines_why());
}

static void *alloc(gm_card *card, uint64_t bytes, int ordinal, void *stream) {
  void *pointer = NULL;
  if (gm_graph_pools_alloc(card, ordinal, bytes, stream, &pointer)) return pointer;
  pointer = gm_card_alloc(card, gm_card_pool(card), bytes, stream);
  return pointer ? pointer : gm_graph_pools_alloc_unclaimed(card, ordinal, bytes, stream);
}

void *gm_torch_alloc(ptrdiff_t bytes, int ordinal, void *stream) {
  gm_card *card = bytes > 0 ? gm_card_of(ordinal) : NULL;
  void *pointer = card ? alloc(card, (uint64_t)bytes, ordinal, stream) : NULL;
  if (bytes > 0 && !pointer) tell("allocation", bytes);
  return pointer;
}

/* The card's own pool answers INVALID_ARGUMENT for a block of a graph's. */
void gm_torch_free(void *pointer, ptrdiff_t bytes, int ordinal, void *stream) {
  gm_card *card = gm_card_if_open(ordinal);
  if (!pointer) return;
  gm_status status = card ? gm_card_free(card, gm_card_pool(card), pointer, stream) : GM_ERR_NOT_FOUND;
  if (card && status == GM_ERR_INVALID_ARGUMENT) status = gm_graph_pools_free(card, pointer, stream);
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
  gm_graph_pools_sweep();
}

void gm_torch_memory_fraction(double fraction, int ordinal) {
  uint64_t free_bytes = 0, total = 0;
  gm_card *card = gm_card_of(ordinal);
  if (!card || !(fraction > 0 && fraction <= 1) || gm_cards_memory(ordinal, &free_bytes, &total)) return;
  (void)gm_pool_set_max_bytes(gm_card_pool(card), fraction < 1 ? (uint64_t)(fraction * (double)total) : 0, NULL);
  gm_graph_pools_set_fraction(ordinal, fraction);
}

void *gm_torch_base_alloc(void *pointer, size_t *out_bytes) {
  uint64_t bytes = 0;
  void *base = gm_cards_base(pointer, &bytes);
  if (base) *out_bytes = (size_t)bytes;
  return base;
}

/* Where gm cannot find the stream, all streams use the memory. A use that gm cannot note is waited for. */
static void use_on(gm_card *card, const gm_pointer_info *found, void *stream) {
  gm_stream *order = gm_card_stream(card, stream);
  const gm_status status =
      order ? gm_use_on(found->pool, &found->block, order) : gm_use_on_all(found->pool, &found->block);
  if (status && (!order || gm_stream_sync(order, NULL))) tell("record_stream", (ptrdiff_t)found->block.bytes);
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

void gm_torch_pool_begin(int ordinal, gm_torch_pool_id id, const gm_torch_filter *filter) {
  const gm_torch_filter all = {0};
  if (gm_card_of(ordinal) && gm_graph_pools_begin(ordinal, id, filter ? filter : &all)) return;
  if (filter && filter->drop) filter->drop(filter->user);
  tell("a graph's pool: allocation", 0);
}

void gm_torch_end_allocate_to_pool(int ordinal, gm_torch_pool_id id) { gm_graph_pools_end(ordinal, id); }

void gm_torch_release_pool(int ordinal, gm_torch_pool_id id) { gm_graph_pools_release(ordinal, id); }
