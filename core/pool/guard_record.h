/* Inside of a pool's guard: its records, and what is written to and read from their memory. */
#ifndef GM_CORE_POOL_GUARD_RECORD_H
#define GM_CORE_POOL_GUARD_RECORD_H

#include "core/base/thread.h"
#include "core/pool/guard.h"
#include "core/pool/pool.h"

#define GM__GUARD_PATIENCE_NS UINT64_C(1000000000)

typedef enum gm__guard_state {
  GM__GUARD_OUT = 0, /* the caller's */
  GM__GUARD_LEAVING, /* freed; the stream's work, and the reading of the zones, may be under way */
  GM__GUARD_HELD,    /* its zones were good; kept to see whether somebody writes to it */
  GM__GUARD_BROKEN   /* freed and damaged: nobody gets it any more */
} gm__guard_state;

/* One guarded block. [0, front) lies before it, `usable` bytes are the caller's. */
struct gm__guard_record {
  gm__guard_record *prev, *next;
  void *heap;       /* what a tool calls the driver allocation */
  gm_block raw;     /* as the pool knows it */
  gm_memory memory; /* where it is */
  uint64_t offset;  /* of the raw block's first byte, in `memory` */
  uint64_t front, usable;
  uint64_t track_id;
  gm_backend_point point; /* of the last work on it that gm gave a stream */
  bool has_point;
  bool freed;     /* under the pool's lock */
  bool looked_at; /* while it is the caller's: a thread reads its zones, without the guard's lock */
  bool poisoned;  /* holds the pattern of freed memory */
  bool ordered;   /* its point comes after all work on it */
  bool damaged;   /* told */
  bool unread;    /* its zones could not be read, or not yet */
  bool late;      /* its zones are read when its point has passed */
  uint8_t state;  /* gm__guard_state */
  uint32_t tag;
  uint64_t turn;        /* of the last reap that waited for it; in `at_work`: when it came there */
  unsigned char seen[]; /* what the zones held: before, behind */
};

typedef struct gm__guard_list {
  gm__guard_record *first, *last; /* oldest first */
  uint32_t count;
} gm__guard_list;

/* A record is in one list. Who has the driver do something about it takes it out of `out` or `leaving` first, into
 * `at_work`, and lets go of the lock: no other thread touches it then. */
struct gm__guard {
  bool poison, check_freed, shadow;
  bool regions; /* a tool is told of each block */
  uint64_t zone;
  gm__mutex lock;   /* of all below; no callback, no driver is called under it but for points that are asked for */
  gm__cond changed; /* a record is `looked_at` no more */
  gm__guard_list out, leaving, broken;
  gm__guard_list at_work;
  uint64_t turns; /* clock of `turn` */
  uint32_t held;  /* in `leaving` */
  uint64_t damaged;
  gm_damage first, last;
};

void gm__guard_list_add(gm__guard_list *list, gm__guard_record *record);
void gm__guard_list_remove(gm__guard_list *list, gm__guard_record *record);

/* The record of that list is the calling thread's alone until the other call, which puts it into `list` (NULL: into
 * none). With the lock. */
void gm__guard_begin_work(gm__guard *guard, gm__guard_list *list, gm__guard_record *record);
void gm__guard_end_work(gm__guard *guard, gm__guard_list *list, gm__guard_record *record);

/* True: *out is the damage of a block whose work has passed, and is noted. With the lock. */
bool gm__guard_settle(gm_pool *pool, gm__guard_record *record, gm_damage *out);

/* The damage goes to the log. Without the lock. */
void gm__guard_tell(const gm_pool *pool, const gm_damage *damage);

gm__guard_record *gm__guard_record_new(const gm_pool *pool);
void gm__guard_record_release(const gm_pool *pool, gm__guard_record *record);

/* Write zones and, with `fresh`, the pattern of new memory. `stream` NULL: done on return. */
gm_status gm__guard_mark(gm_pool *pool, gm__guard_record *record, gm_stream *stream, bool fresh, gm_error *err);

/* Read the zones into `seen`, and write the pattern of freed memory where the pool does that. `stream` NULL: done on
 * return. */
gm_status gm__guard_leave(gm_pool *pool, gm__guard_record *record, gm_stream *stream, gm_error *err);

/* Remember where the stream is done with it; later work of the stream follows. */
gm_status gm__guard_note_point(gm_pool *pool, gm__guard_record *record, gm_stream *stream, gm_error *err);

/* Read the zones into `seen` now. */
gm_status gm__guard_look(gm_pool *pool, gm__guard_record *record, gm_error *err);

/* What the zones in `seen` say; what the memory itself says of a freed block. True: *out is its damage. */
bool gm__guard_judge(const gm__guard *guard, const gm__guard_record *record, gm_damage *out);
bool gm__guard_judge_freed(gm_pool *pool, const gm__guard_record *record, gm_damage *out);

/* Has the work passed that gm gave a stream? Waits up to `patience_ns`; the point is given back then. */
bool gm__guard_passed(gm_pool *pool, gm__guard_record *record, uint64_t patience_ns);

/* Later work of the stream follows what the guard wrote on another one, or that is done. False: neither can be had, and
 * the record keeps its point. */
bool gm__guard_wait_on(gm_pool *pool, gm__guard_record *record, const gm_stream *on);

void gm__guard_drop_point(gm_pool *pool, gm__guard_record *record);

/* `damage` in a sentence. */
void gm__guard_text(const gm_pool *pool, const gm_damage *damage, char *text, size_t capacity);

#endif
