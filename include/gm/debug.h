/* Finding memory bugs: red zones around blocks, patterns in memory that is new or freed (F77). Asked for with
 * gm_pool_params (red_zone_bytes, debug) or by configuration (debug.red_zone_bytes, debug.poison, debug.check_freed);
 * a pool without them pays nothing. docs/debugging.md tells how to use it. */
#ifndef GM_DEBUG_H
#define GM_DEBUG_H

#include "gm/pool.h"

GM_BEGIN_DECLS

/* Patterns, repeated from the first byte. Two of them are no number in every floating-point format. */
#define GM_DEBUG_FRESH_PATTERN "\xCD\xFF"
#define GM_DEBUG_FREED_PATTERN "\xDD\xFF"

typedef enum gm_damage_kind {
  GM_DAMAGE_NONE = 0,
  GM_DAMAGE_BEFORE = 1,    /* bytes before the block were written */
  GM_DAMAGE_BEHIND = 2,    /* bytes behind its end were written */
  GM_DAMAGE_AFTER_FREE = 3 /* the block was written after it was freed */
} gm_damage_kind;

/* Which block was damaged, and where. */
typedef struct gm_damage {
  gm_damage_kind kind;
  uint64_t address;     /* of the block */
  uint64_t bytes;       /* of the block */
  int64_t offset;       /* of the first byte that is wrong, from the block's first; negative: before it */
  uint32_t tag;         /* of its request */
  uint8_t found;        /* the wrong byte */
  uint64_t track_id;    /* its entry in the pool's tracker; 0: none */
  uint64_t reserved[2]; /* 0 */
} gm_damage;

typedef struct gm_check_report {
  uint32_t struct_size;
  uint64_t checked;   /* blocks that this call looked at */
  uint64_t unchecked; /* blocks that could not be looked at: work on them is under way, or the device does not answer */
  uint64_t damaged;   /* blocks found damaged in the pool's life; each is in quarantine, or will be when it is freed */
  gm_damage first;    /* the first that was found */
  gm_damage last;     /* the latest; the same when there is only one */
  char text[256];     /* `last` in a sentence; "" when nothing is damaged */
} gm_check_report;

/* Look at all that the pool guards: the zones of blocks that are out and of those freed meanwhile, and with check_freed
 * the contents of those held back. Waits up to a second for each block whose work has not passed. `out` may be NULL.
 * GM_OK: nothing was ever found, also in a pool that guards nothing. DAMAGED: see *out (filled then, too) and `err`.
 * INVALID_ARGUMENT, FORKED. Thread-safe. */
GM_API gm_status gm_pool_check(gm_pool *pool, gm_check_report *out, gm_error *err);

GM_END_DECLS

#endif
