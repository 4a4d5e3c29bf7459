/* How a pool asks its device or its upstream for memory. It keeps within the share of the device that gm may take. One
 * thread at a time asks, timed and counted. */
#ifndef GM_CORE_PROVIDER_ASK_H
#define GM_CORE_PROVIDER_ASK_H

#include "core/provider/provider.h"
#include "core/room/card_turn.h"

/* One growth of a pool: it asks once or several times in one turn of the card. Zero-initialised.
 *
 *   gm__growth growth = {.begun = false};
 *   status = gm__ask(provider, &growth, ...);    // any number of them
 *   gm__growth_end_turn(provider, &growth);      // other threads and processes may ask
 *   ... gm__growth_touch for the memory, where it can be used ...
 *   status = gm__growth_finish(provider, &growth, status, returned); */
typedef struct gm__growth {
  gm__card_turn turn;
  bool begun;         /* the turn is this thread's */
  uint64_t drawn;     /* bytes of the pool's promises */
  uint64_t untouched; /* of them: they may come at their first use only */
  uint64_t touched;   /* of them: they have come */
} gm__growth;

/* Asks for `bytes` for the request; *token is the upstream's. `want` NULL: asks the device for physical memory of the
 * type of the pool's pages, whose handle comes in out->handle. OVER_LIMIT: nobody was asked. The turn of the card goes
 * on until gm__growth_end_turn. */
gm_status gm__ask(gm__provider *provider, gm__growth *growth, const gm__want *want, uint64_t bytes, gm_memory *out,
                  void **token, gm_error *err);

void gm__growth_end_turn(gm__growth *growth);

/* Has the device really give what was taken of a promise, if it lies in these bytes. Without a way to do so GM_OK: then
 * others may not have the bytes until the reservation ends. COMMIT's answers. REQUIRES: only locks above GROW. */
gm_status gm__growth_touch(gm__provider *provider, gm__growth *growth, const gm_memory *memory, uint64_t offset,
                           uint64_t bytes, gm_error *err);

/* Counts memory that has come, in the pool and for other pools, which may ask for it. REQUIRES: no lock but turns. */
void gm__growth_count(gm__provider *provider, uint64_t bytes);

/* The end of a growth. After a failure the pool is promised again what had not come. It is promised again what it drew
 * of the `returned` bytes that went back to the device. Returns `status`. REQUIRES: only locks above GROW. */
gm_status gm__growth_finish(gm__provider *provider, gm__growth *growth, gm_status status, uint64_t returned);

/* Commits the memory if the request wants that and the backend could not do it while it allocated. That is so for an
 * upstream's memory, and where committing takes a queue that gm may not make. */
gm_status gm__ask_commit(const gm__provider *provider, gm__growth *growth, const gm__want *want, uint64_t bytes,
                         const gm_memory *memory, gm_error *err);

#endif
