/* Red zones around blocks and patterns in new or freed memory, to find memory bugs. gm_pool_params asks for them
 * (red_zone_bytes and debug). So do the keys debug.red_zone_bytes, debug.poison and debug.check_freed. A pool without
 * them pays nothing. See docs/debugging.md. */
#ifndef GM_DEBUG_H
#define GM_DEBUG_H

#include "gm/pool.h"

GM_BEGIN_DECLS

/* Patterns, repeated from the first byte. Two of them in a row are a NaN in every floating-point format. */
#define GM_DEBUG_FRESH_PATTERN "\xCD\xFF"
#define GM_DEBUG_FREED_PATTERN "\xDD\xFF"

typedef enum gm_damage_kind {
  GM_DAMAGE_NONE = 0,
  GM_DAMAGE_BEFORE = 1,    /* bytes before the block were written */
  GM_DAMAGE_BEHIND = 2,    /* bytes behind its end were written */
  GM_DAMAGE_AFTER_FREE = 3 /* the block was written after it was freed */
} gm_damage_kind;

/* The block that was damaged, and the place. */
typedef struct gm_damage {
  gm_damage_kind kind;
  uint64_t address;     /* of the block */
  uint64_t bytes;       /* of the block */
  int64_t offset;       /* first wrong byte, counted from the block's first; negative: before it */
  uint32_t tag;         /* of the block's request */
  uint8_t found;        /* the wrong byte */
  uint64_t track_id;    /* id of its entry in the pool's tracker; 0: none */
  uint64_t reserved[2]; /* 0 */
} gm_damage;

typedef struct gm_check_report {
  uint32_t struct_size;
  uint64_t checked;   /* blocks that this call examined */
  uint64_t unchecked; /* blocks that this call could not examine: work on them is under way, or the device does not
                         answer */
  uint64_t damaged;   /* blocks found damaged in the pool's life; each is in quarantine, or will be when it is freed */
  gm_damage first;    /* the first damage that was found */
  gm_damage last;     /* the latest damage that was found */
  char text[256];     /* `last` as a sentence; "" when nothing is damaged */
} gm_check_report;

/* Examines all memory that the pool guards. That is the zones of live blocks and of blocks freed meanwhile. With
 * check_freed it is also the contents of the blocks held back. The call waits up to a second for each block whose work
 * has not passed. `out` may be NULL.
 *
 * GM_OK: no damage was ever found, or the pool guards nothing. DAMAGED: `out` is filled, and `err` names the damage.
 * Errors: INVALID_ARGUMENT, FORKED. Thread-safe. */
GM_API gm_status gm_pool_check(gm_pool *pool, gm_check_report *out, gm_error *err);

GM_END_DECLS

#endif
