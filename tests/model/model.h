/* State of the model test: what it knows of the blocks that are out, and how it complains. */
#ifndef GM_TESTS_MODEL_MODEL_H
#define GM_TESTS_MODEL_MODEL_H

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gm/copy.h"
#include "gm/perf.h"
#include "gm/spans.h"
#include "gm/tracker.h"
#include "support/counted_services.h"
#include "support/random.h"

enum {
  MAX_LIVE = 512,
  MAX_HELD = 32,
  MAX_STREAMS = 16,
  MAX_THREADS = 16,
  ROUNDS = 8,
  WINDOW = 4096,
  SCRATCH = 4 << 20
};

typedef struct owned {
  gm_block block;
  uint64_t asked, pattern;
  uint64_t in_use;   /* what the pool has out for it */
  uint32_t spans;    /* memories that it lies in */
  gm_stream *stream; /* where its last work was submitted; NULL: nothing of it is running */
  uint32_t tag;
  bool by_pointer, filled, long_lived;
} owned;

typedef struct model {
  counted_services host;
  gm_context *ctx;
  gm_device *device;
  gm_device *lender; /* where `device` is adopted from it; else NULL */
  uint64_t adopted;  /* not 0: CUDA's device is adopted */
  gm_pool *pool;
  gm_stream *streams[MAX_STREAMS];
  gm_pool *scratch_pool; /* beside the pool under test: work that keeps a stream busy goes there */
  gm_block scratch;
  uint32_t stream_count, threads, tags[4];
  uint64_t seed, ops, cap, largest;
  bool guarded;           /* the pool has red zones, and checks what was freed */
  uint64_t zero_segments; /* new memory is zeroed, and requests for zeros rely on that */
  uint64_t no_vmm;        /* driver allocations only */
  uint64_t untracked;     /* nobody keeps a record of the blocks: the pool's short ways are taken */
  bool has_memory;        /* contents can be read back */
  pthread_mutex_t lock;
  owned table[MAX_LIVE]; /* blocks that no thread holds */
  uint32_t table_count;
  gm_block ranges[4 * (MAX_LIVE + MAX_THREADS * MAX_HELD)]; /* every live block; each memory of one that has several */
  uint32_t range_count;
  uint64_t spans; /* requests may be served by several memories */
  uint64_t quota; /* of each tag; 0: none is set */
  uint64_t stream_wish;
  uint32_t types;        /* bit 1 << index for each memory type that a request may name */
  uint32_t mapped_types; /* those of them that GM_MAPPED may get */
  atomic_uint_fast64_t passed, failed, allocs, refused, spanned;
  atomic_uint_fast64_t held[4]; /* by tag, of those with a quota: what was asked for and is not yet given back */
  atomic_bool uncounted;        /* the pool served requests of its own, or of a batch that was refused */
} model;

typedef struct worker {
  model *m;
  uint64_t random;
  uint64_t ops;
} worker;

void complain(model *m, const char *format, ...);

#define CHECK(m, condition, ...)         \
  do {                                   \
    if (condition) {                     \
      atomic_fetch_add(&(m)->passed, 1); \
    } else {                             \
      complain((m), __VA_ARGS__);        \
    }                                    \
  } while (0)

#define CHECK_OK(m, call)                                                                 \
  do {                                                                                    \
    gm_error err = {.status = GM_OK};                                                     \
    const gm_status check_status = (call);                                                \
    CHECK(m, check_status == GM_OK, "%s: %s", gm_status_name(check_status), err.message); \
  } while (0)

static inline uint64_t roll(worker *w) { return test_random(&w->random); }
static inline uint64_t below(worker *w, uint64_t bound) { return roll(w) % bound; }
static inline bool chance(worker *w, uint32_t percent) { return below(w, 100) < percent; }

static inline gm_stream *any_stream(worker *w) { return w->m->streams[below(w, w->m->stream_count)]; }

/* ---- the table (model.c) ---- */

/* A live block; it overlaps no other. Ends it. */
void add_range(model *m, const gm_block *block);
void remove_range(model *m, const gm_block *block);

/* Into the table, false: it is full; any one out of it, false: it is empty. */
bool put(model *m, const owned *o);
bool pick(worker *w, owned *out);

/* ---- steps (steps.c) ---- */

/* A block of the worker's own, most often filled; false: refused. Then it goes into the table, or back to the pool. */
bool take(worker *w, uint64_t bytes, owned *out);
void keep(worker *w, owned *o);
void give(worker *w, const owned *o);
/* The checks of blocks that came in another way than by take. */
void welcome(worker *w, owned *o);
/* Its contents are those that were written. */
void verify(worker *w, owned *o, gm_stream *stream);

void step_take(worker *w);
void step_give(worker *w);
void step_use(worker *w);

/* ---- patterns (patterns.c): a few steps that belong together ---- */

void step_tidy(worker *w);
void step_pattern(worker *w);

#endif
