/* Advice on settings for a program, from a trace that was recorded of it. Nothing here allocates on a device, and
 * nothing is set. Every function is thread-safe. */
#ifndef GM_ADVICE_H
#define GM_ADVICE_H

#include "gm/stats.h"
#include "gm/trace.h"

GM_BEGIN_DECLS

enum {
  GM_TRACE_CLASSES = 65,      /* as many as gm_size_class has */
  GM_TRACE_BRIEF_EVENTS = 16, /* a block that lives for fewer events is brief */
  GM_TRACE_SMALL = 1 << 20,   /* a larger block is not small */
  GM_ADVICE_GROWTH_BLOCKS = 1000
};

#define GM_ADVICE_HIT_RATE 0.5
#define GM_ADVICE_FRAGMENTATION 0.3
#define GM_ADVICE_SCATTERED 0.1

typedef struct gm_trace_profile {
  uint32_t struct_size; /* set by the caller: sizeof(gm_trace_profile) */
  uint64_t events;      /* allocations, frees and marks */
  uint64_t allocs, frees, marks;
  uint64_t total_bytes; /* of all allocations; stops at 2^64-1 */
  uint64_t peak_live_bytes, peak_live_blocks;
  uint64_t end_live_bytes, end_live_blocks; /* blocks never freed */
  uint64_t distinct_sizes;
  uint64_t repeats;                               /* allocations of a size that was asked for before */
  uint64_t small_allocs;                          /* allocations of at most GM_TRACE_SMALL bytes */
  uint64_t brief_allocs;                          /* blocks freed within GM_TRACE_BRIEF_EVENTS */
  uint64_t streams;                               /* highest stream number + 1; 0: no allocation */
  uint64_t moved_frees;                           /* frees on another stream than the allocation's */
  uint64_t growth_blocks, growth_bytes;           /* most that was allocated between two marks and never freed; not
                                                     counted after a first mark "params" or "start", where memory is
                                                     meant to stay */
  uint64_t growth_times;                          /* pairs of marks between which it was more than
                                                     GM_ADVICE_GROWTH_BLOCKS */
  uint64_t class_peak_blocks[GM_TRACE_CLASSES];   /* most blocks of a size class (gm_size_class) that lived at once */
  uint64_t class_largest_bytes[GM_TRACE_CLASSES]; /* largest request of the size class */
} gm_trace_profile;

/* Reads a trace to its end. `services` may be NULL (malloc). *out is complete only after GM_OK. Errors: those of
 * gm_trace_open and gm_trace_next. INVALID_ARGUMENT: an argument is NULL, or gm does not know struct_size. */
GM_API gm_status gm_trace_profile_read(const gm_services *services, const char *path, gm_trace_profile *out,
                                       gm_error *err);

/* Writes the size classes of a profile in the form of the key `warmup`, such as "4K:3,1M:12". Each class has as many
 * blocks as lived at once, and the largest class comes first. Classes that do not fit are left out, so that the key
 * takes every text. Returns the length of the text. */
GM_API size_t gm_trace_profile_warm_up(const gm_trace_profile *profile, char *text, size_t capacity);

typedef enum gm_advice_kind {
  GM_ADVICE_WARM_UP = 1,  /* the hit rate is below GM_ADVICE_HIT_RATE */
  GM_ADVICE_COALESCE = 2, /* gm_stats_fragmentation is above GM_ADVICE_FRAGMENTATION, and scattered_bytes are more than
                             GM_ADVICE_SCATTERED of the reserved ones. gm_pool_compact joins such holes, which lie
                             between blocks; gm_pool_coalesce and the key coalescing_threshold do not */
  GM_ADVICE_LEAK = 3      /* more than GM_ADVICE_GROWTH_BLOCKS between two marks were never freed */
} gm_advice_kind;

/* One piece of advice. Never grows. */
typedef struct gm_advice {
  gm_advice_kind kind;
  char why[256];      /* one sentence, with the figure, the threshold, and when the call helps */
  char setting[1280]; /* "key = value", as a configuration file has it; "": nothing to set */
  char call[64];      /* the function of gm that helps, such as "gm_pool_compact"; "": none */
} gm_advice;

/* Gives advice, at most one piece of each kind (gm_advice_kind). It comes from a pool's statistics and a trace's
 * profile; either may be NULL. Without a profile GM_ADVICE_WARM_UP has an empty `setting`. Idle memory, which a trim
 * gives back, is no reason for advice: a pool keeps it for reuse. Fills at most `capacity` entries of `out`, and
 * returns how many pieces there are. */
GM_API size_t gm_advise(const gm_stats *stats, const gm_trace_profile *profile, gm_advice *out, size_t capacity);

GM_END_DECLS

#endif
