/* State of the model test: what it knows of the blocks that are out, and how it complains. For gm_model_test.c alone.
 */
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
#include "gm/tracker.h"
#include "support/counted_services.h"
#include "support/random.h"

enum { MAX_LIVE = 512, MAX_STREAMS = 16, MAX_THREADS = 16, ROUNDS = 8, WINDOW = 4096, SCRATCH = 4 << 20 };

typedef struct owned {
  gm_block block;
  uint64_t asked, pattern;
  gm_stream *stream; /* where its last work was submitted; NULL: nothing of it is running */
  bool by_pointer, filled;
} owned;

typedef struct model {
  counted_services host;
  gm_context *ctx;
  gm_device *device;
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
  gm_block ranges[MAX_LIVE + MAX_THREADS]; /* every live block */
  uint32_t range_count;
  atomic_uint_fast64_t passed, failed, allocs, refused;
} model;

typedef struct worker {
  model *m;
  uint64_t random;
  uint64_t ops;
} worker;

static void complain(model *m, const char *format, ...) {
  va_list args;
  if (atomic_fetch_add(&m->failed, 1) >= 20) return;
  va_start(args, format);
  fputs("failed: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
}

#define CHECK(m, condition, ...)         \
  do {                                   \
    if (condition) {                     \
      atomic_fetch_add(&(m)->passed, 1); \
    } else {                             \
      complain((m), __VA_ARGS__);        \
    }                                    \
  } while (0)

#define CHECK_OK(m, call)                                                     \
  do {                                                                        \
    gm_error err = {.status = GM_OK};                                         \
    gm_status status = (call);                                                \
    CHECK(m, status == GM_OK, "%s: %s", gm_status_name(status), err.message); \
  } while (0)

static uint64_t roll(worker *w) { return test_random(&w->random); }
static uint64_t below(worker *w, uint64_t bound) { return roll(w) % bound; }
static bool chance(worker *w, uint32_t percent) { return below(w, 100) < percent; }

#endif
