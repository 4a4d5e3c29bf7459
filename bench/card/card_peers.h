/* The allocators that are compared, all in one process on one device. */
#ifndef GM_BENCH_CARD_PEERS_H
#define GM_BENCH_CARD_PEERS_H

#include "bench/card/card_driver.h"
#include "bench/card/card_rows.h"
#include "gm/gm.h"

enum { CARD_PEERS = 4 };

typedef struct card_peer card_peer;
struct card_peer {
  const char *name;
  void *(*alloc)(const card_peer *self, uint64_t bytes); /* NULL: refused */
  void (*free)(const card_peer *self, void *pointer, uint64_t bytes);
  void (*tidy)(const card_peer *self); /* gives back what is kept; NULL: nothing is */
  struct card *card;
};

typedef struct card {
  card_driver driver;
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  gm_stream *stream;
  gm_error err;
  gm_card_torch torch;
  card_peer peers[CARD_PEERS];
  size_t peer_count;
} card;

/* `torch` may be NULL. NULL, or why not. Closed with card_close, after a failure, too. */
const char *card_open(card *out, const gm_card_torch *torch);

/* Closes gm's objects. The primary context stays retained until the process ends. */
void card_close(card *self);

#endif
