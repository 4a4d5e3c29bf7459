/* Inside of a context, for the floors above. A floor keeps its own state out of this struct: it registers a
 * destructor. */
#ifndef GM_CORE_CONTEXT_CONTEXT_H
#define GM_CORE_CONTEXT_CONTEXT_H

#include <stdatomic.h>

#include "core/base/inner.h"
#include "core/base/thread.h"
#include "gm/context.h"

typedef struct gm__config gm__config;

/* Runs at gm_context_destroy, last registered first; `forked` true in a forked child: host memory only, no lock. */
typedef void (*gm__destructor)(void *object, bool forked);

typedef struct gm__destructor_entry {
  gm__destructor run;
  void *object;
} gm__destructor_entry;

/* Slots for what floors hang onto a context: one each. */
typedef enum gm__slot {
  GM__SLOT_REGISTRY,
  GM__SLOT_POOLS,
  GM__SLOT_PEERS,
  GM__SLOT_TIERS,
  GM__SLOT_WATCHES,
  GM__SLOT_MONITOR,
  GM__SLOT_PERF,
  GM__SLOT_COUNT
} gm__slot;

#define GM__MAX_DESTRUCTORS 8

enum { GM__TAGS_MAX = 4095, GM__TAG_PLACES = 8192 }; /* a name is found by its hash, in twice as many places */

struct gm_context {
  gm_services services; /* complete: every member set but perhaps `log` */
  uint64_t generation;  /* of the process at creation: see process.h */
  gm__config *config;
  char *backends; /* copies of the parameters; "" where they were NULL */
  char *probe_helper;
  char *libraries;
  char *backend_options;
  char *host_root;
  gm_symbol_hook symbol_hook;
  void *symbol_hook_user;
  gm_left_open_hook left_open;
  void *left_open_user;
  bool ignore_environment;

  _Atomic uint64_t next_id;                /* streams, pools, buffers: never reused */
  _Atomic int host_pressure;               /* gm_pressure_level said last */
  _Atomic uint64_t share_mode;             /* of reserve.share, with the change it was read at: card_turn.c */
  _Atomic(void (*)(gm_context *)) on_poll; /* what a higher floor does in gm_context_poll; NULL: nothing */
  _Atomic(void (*)(gm_context *)) on_wait; /* serves futures (core/pool/serve.c); NULL: there never was one */
  _Atomic uint32_t children;               /* objects that keep the context alive: devices, trackers, watches */

  gm__mutex lock; /* tags, destructors, slots, list link below is under the process lock */
  gm__destructor_entry destructors[GM__MAX_DESTRUCTORS];
  uint32_t destructor_count;
  void *slots[GM__SLOT_COUNT];
  struct gm_device *evicting; /* devices with evictors: core/device/evictor.c */
  char (*tags)[32];           /* tags[i] is the name of tag i + 1 */
  uint16_t *tag_places;       /* tags by the hash of their names; 0: none */
  uint32_t tag_count;
  struct gm__object *dead, *dead_last; /* destroyed objects, oldest first, in debug builds: object.h */
  uint32_t dead_count;
  struct gm__object *kept; /* objects whose names stay known: gm__object_keep */
};

/* True when a forked child looks at its parent's context. */
GM__INNER bool gm__context_forked(const gm_context *ctx);

/* GM_OK; INVALID_ARGUMENT for NULL; FORKED. Fills `err`. Every public call begins with it. */
GM__INNER gm_status gm__context_check(const gm_context *ctx, const char *op, gm_error *err);

/* Run `run` when the context is destroyed. One for each floor, at most GM__MAX_DESTRUCTORS. */
GM__INNER void gm__context_on_destroy(gm_context *ctx, gm__destructor run, void *object);

/* Puts `object` into the slot, and runs `run` for it when the context is destroyed. Does nothing if the slot is taken.
 * Returns what is in the slot. */
void *gm__context_hang(gm_context *ctx, gm__slot slot, gm__destructor run, void *object);

/* Returns what is in the slot. NULL: nothing. */
void *gm__context_hung(gm_context *ctx, gm__slot slot);

GM__INNER uint64_t gm__context_next_id(gm_context *ctx); /* from 1 */
static inline const gm_services *gm__context_services(const gm_context *ctx) { return &ctx->services; }

#endif
