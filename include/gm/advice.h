/* What a recorded trace says about the program that it was recorded from, and what to set for it (F58). Pure: nothing
 * is allocated on a device, nothing is set. Thread-safe. */
#ifndef GM_ADVICE_H
#define GM_ADVICE_H

#include "gm/stats.h"
#include "gm/trace.h"

GM_BEGIN_DECLS

enum {
  GM_TRACE_CLASSES = 65,      /* as gm_size_class */
  GM_TRACE_BRIEF_EVENTS = 16, /* a block that lives for fewer events is brief */
  GM_ADVICE_GROWTH_BLOCKS = 1000
};

#define GM_ADVICE_HIT_RATE 0.5
#define GM_ADVICE_FRAGMENTATION 0.3

typedef struct gm_trace_profile {
  uint32_t struct_size; /* set by the caller: sizeof(gm_trace_profile) */
  uint64_t events;      /* allocations, frees and marks */
  uint64_t allocs, frees, marks;
  uint64_t total_bytes; /* of all allocations; saturates */
  uint64_t peak_live_bytes, peak_live_blocks;
  uint64_t end_live_bytes, end_live_blocks; /* never freed */
  uint64_t distinct_sizes;
  uint64_t repeats;                               /* allocations of a size that was asked for before */
  uint64_t small_allocs;                          /* of at most 1 MiB */
  uint64_t brief_allocs;                          /* freed within GM_TRACE_BRIEF_EVENTS */
  uint64_t streams;                               /* highest number of a stream + 1; 0: no allocation */
  uint64_t moved_frees;                           /* on another stream than the allocation's */
  uint64_t growth_blocks, growth_bytes;           /* most that was allocated between two marks and never freed; not what
                                                     follows a first mark "params" or "start": that is meant to stay */
  uint64_t growth_times;                          /* between how many marks it was more than GM_ADVICE_GROWTH_BLOCKS */
  uint64_t class_peak_blocks[GM_TRACE_CLASSES];   /* most blocks of a gm_size_class live at once */
  uint64_t class_largest_bytes[GM_TRACE_CLASSES]; /* largest request of that class */
} gm_trace_profile;

/* Read the trace to its end. `services` as for gm_trace_open. Errors: those of gm_trace_open and gm_trace_next;
 * INVALID_ARGUMENT: an argument is NULL, or struct_size is none that gm knows. *out is complete only with GM_OK. */
GM_API gm_status gm_trace_profile_read(const gm_services *services, const char *path, gm_trace_profile *out,
                                       gm_error *err);

/* The classes of a profile as the key `warmup` takes them, "4K:3,1M:12": as many blocks as were live at once, largest
 * first. What does not fit is left out, so that the text is always one that the key takes. Returns its length. */
GM_API size_t gm_trace_profile_warm_up(const gm_trace_profile *profile, char *text, size_t capacity);

typedef enum gm_advice_kind {
  GM_ADVICE_WARM_UP = 1,  /* hit rate below GM_ADVICE_HIT_RATE */
  GM_ADVICE_COALESCE = 2, /* 1 - peak_requested / peak_reserved above GM_ADVICE_FRAGMENTATION */
  GM_ADVICE_LEAK = 3      /* more than GM_ADVICE_GROWTH_BLOCKS between two marks never freed */
} gm_advice_kind;

/* One piece of advice. Never grows. */
typedef struct gm_advice {
  gm_advice_kind kind;
  char why[256];      /* one sentence, with the figure and the threshold */
  char setting[1280]; /* "key = value", as a configuration file has it */
} gm_advice;

/* Advice, at most one of each kind: where the hit rate is below 0.5, the fragmentation at the peak above 0.3, or more
 * than 1000 blocks between two marks are never freed. It comes from a pool's statistics (NULL: none) and a trace's
 * profile (NULL: none; then GM_ADVICE_WARM_UP has no list to set, and its `setting` is ""). Fills at most `capacity` of
 * `out` and returns how many there are. */
GM_API size_t gm_advise(const gm_stats *stats, const gm_trace_profile *profile, gm_advice *out, size_t capacity);

GM_END_DECLS

#endif
