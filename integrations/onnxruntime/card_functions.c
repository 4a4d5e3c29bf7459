/* A plain C function knows nothing but its own address. So each place in the table has functions that know the place.
 */
#include "card_functions.h"

#include <pthread.h>

#include "../shared/cards.h"
#include "../shared/engines.h"
#include "ort_open.h"

typedef struct lane {
  bool taken;
  int ordinal;
  void *stream;
} lane;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards who has which lane; a lane is read without it */
static lane lanes[GM_ORT_LANES];

static void *lane_alloc(unsigned place, size_t bytes) {
  void *pointer = bytes ? gm_cards_alloc(bytes, lanes[place].ordinal, lanes[place].stream) : NULL;
  if (bytes && !pointer) gm_ort_raise();
  return pointer;
}

static void lane_free(unsigned place, void *pointer) {
  if (pointer) (void)gm_cards_free(pointer, lanes[place].ordinal, lanes[place].stream);
}

static void lane_empty(unsigned place) {
  gm_card *card = gm_card_if_open(lanes[place].ordinal);
  if (card) (void)gm_pool_trim(gm_card_pool(card), 0);
}

#define LANES(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)

#define FUNCTIONS_OF(place)                                                     \
  static void *alloc_##place(size_t bytes) { return lane_alloc(place, bytes); } \
  static void free_##place(void *pointer) { lane_free(place, pointer); }        \
  static void empty_cache_##place(void) { lane_empty(place); }
LANES(FUNCTIONS_OF)

#define ROW_OF(place) {alloc_##place, free_##place, empty_cache_##place},
static const gm_ort_functions functions[GM_ORT_LANES] = {LANES(ROW_OF)};

/* The place of a pair. GM_ORT_LANES: it has none. REQUIRES: lock */
static unsigned place_of(int ordinal, const void *stream) {
  unsigned i = 0;
  while (i < GM_ORT_LANES && !(lanes[i].taken && lanes[i].ordinal == ordinal && lanes[i].stream == stream)) i++;
  return i;
}

/* REQUIRES: lock */
static unsigned free_place(void) {
  unsigned i = 0;
  while (i < GM_ORT_LANES && lanes[i].taken) i++;
  return i;
}

int gm_ort_card_functions(int ordinal, void *stream, gm_ort_functions *out) {
  const gm_error full = {GM_ERR_OVER_LIMIT, 0, "gm_ort_card_functions", "all pairs of functions are taken"};
  gm_card *card = gm_card_of(ordinal);
  if (!card || !gm_card_stream(card, stream)) return GM_ERR_UNAVAILABLE;
  pthread_mutex_lock(&lock);
  unsigned place = place_of(ordinal, stream);
  if (place == GM_ORT_LANES && (place = free_place()) < GM_ORT_LANES) lanes[place] = (lane){true, ordinal, stream};
  if (place < GM_ORT_LANES) *out = functions[place];
  pthread_mutex_unlock(&lock);
  if (place == GM_ORT_LANES) gm_engines_note(&full);
  return place < GM_ORT_LANES ? GM_OK : GM_ERR_OVER_LIMIT;
}

int gm_ort_card_functions_end(int ordinal, void *stream) {
  gm_card *card = gm_card_if_open(ordinal);
  gm_error err = {.status = GM_OK};
  const gm_status status = card ? gm_card_forget(card, stream, &err) : GM_OK;
  if (status) return gm_engines_note(&err), (int)status;
  pthread_mutex_lock(&lock);
  const unsigned place = place_of(ordinal, stream);
  if (place < GM_ORT_LANES) lanes[place].taken = false;
  pthread_mutex_unlock(&lock);
  return GM_OK;
}
