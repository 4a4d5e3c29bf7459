/* Inside of a guard: the records of its blocks, and what is written to and read from their memory. */
#ifndef GM_CORE_GUARD_GUARD_RECORD_H
#define GM_CORE_GUARD_GUARD_RECORD_H

#include "core/base/thread.h"
#include "core/guard/guard.h"

#define GM__GUARD_PATIENCE_NS UINT64_C(1000000000)

typedef enum gm__guard_state {
  GM__GUARD_OUT = 0, /* the caller has the block */
  GM__GUARD_LEAVING, /* freed; the stream's work, and the reading of the zones, may be under way */
  GM__GUARD_HELD,    /* freed, with good zones; held back to see whether somebody writes to it */
  GM__GUARD_BROKEN   /* freed and damaged; nobody gets it any more */
} gm__guard_state;

/* One guarded block. The bytes [0, front) lie before the caller's, and `usable` bytes are the caller's. */
struct gm__guard_record {
  gm__guard_record *prev, *next;
  void *heap;       /* a profiler's name for the driver allocation */
  gm_block raw;     /* as the heap knows it */
  gm_memory memory; /* its memory */
  uint64_t offset;  /* of the raw block's first byte, in `memory` */
  uint64_t front, usable;
  uint64_t track_id;
  gm_backend_point point; /* of the last work that gm gave a stream on it */
  bool has_point;
  bool looked_at; /* while the caller has it: a thread reads its zones without the guard's lock */
  bool poisoned;  /* holds the pattern of freed memory */
  bool ordered;   /* its point comes after all work on it */
  bool damaged;   /* reported */
  bool unread;    /* its zones could not be read, or not yet */
  bool late;      /* its zones are read when its point has passed */
  uint8_t state;  /* gm__guard_state */
  uint32_t tag;
  uint64_t turn;        /* of the last reap that waited for it; in `at_work`: when it came there */
  unsigned char seen[]; /* what the zones held: before, then behind */
};

typedef struct gm__guard_list {
  gm__guard_record *first, *last; /* oldest first */
  uint32_t count;
} gm__guard_list;

/* A record is in one list. A thread that has the driver work on a record moves it to `at_work` and unlocks the guard.
 * No other thread touches the record then. */
struct gm__guard {
  gm__heap *heap;
  bool poison, check_freed, shadow;
  bool regions; /* a profiler is told of each block */
  uint64_t zone;
  gm__mutex lock;   /* guards all below; no callback and no driver runs under it, but for questions about points */
  gm__cond changed; /* signalled when a record is `looked_at` no more */
  gm__guard_list out, leaving, broken;
  gm__guard_list at_work;
  uint64_t turns; /* clock of `turn` */
  uint32_t held;  /* how many of `leaving` are held back */
  uint64_t damaged;
  gm_damage first, last;
};

void gm__guard_list_add(gm__guard_list *list, gm__guard_record *record);

/* Moves the record from `list` to `at_work`: it is the calling thread's alone until the other call. That one puts it
 * into `list`, or into none for NULL. REQUIRES: guard lock. */
void gm__guard_begin_work(gm__guard *guard, gm__guard_list *list, gm__guard_record *record);
void gm__guard_end_work(gm__guard *guard, gm__guard_list *list, gm__guard_record *record);

/* Judges a block whose work has passed. True: it is damaged, and *out, which is noted, says how. REQUIRES: guard
 * lock. */
bool gm__guard_settle(gm__guard *guard, gm__guard_record *record, gm_damage *out);

/* Writes the damage to the log. REQUIRES: no lock. */
void gm__guard_tell(const gm__guard *guard, const gm_damage *damage);

/* The block as the caller sees it. */
gm_block gm__guard_block(const gm__guard_record *record);

gm__guard_record *gm__guard_record_new(const gm__guard *guard);
void gm__guard_record_release(const gm__guard *guard, gm__guard_record *record);

/* Writes the zones and, with `fresh`, the pattern of new memory. `stream` NULL: the work is done on return. */
gm_status gm__guard_write(gm__guard *guard, gm__guard_record *record, gm_stream *stream, bool fresh, gm_error *err);

/* Reads the zones into `seen`, and writes the pattern of freed memory where the guard does that. `stream` NULL: the
 * work is done on return. */
gm_status gm__guard_leave(gm__guard *guard, gm__guard_record *record, gm_stream *stream, gm_error *err);

/* Keeps a point of the stream after the guard's work. Later work of the stream follows that work. */
gm_status gm__guard_note_point(gm__guard *guard, gm__guard_record *record, gm_stream *stream, gm_error *err);

/* Reads the zones into `seen` now. */
gm_status gm__guard_look(gm__guard *guard, gm__guard_record *record, gm_error *err);

/* Judges the zones in `seen`, or the memory itself of a freed block. True: *out is the damage. */
bool gm__guard_judge(const gm__guard *guard, const gm__guard_record *record, gm_damage *out);
bool gm__guard_judge_freed(gm__guard *guard, const gm__guard_record *record, gm_damage *out);

/* Has the work passed that gm gave a stream? Waits up to `patience_ns`. Then the point is released. */
bool gm__guard_passed(gm__guard *guard, gm__guard_record *record, uint64_t patience_ns);

/* Makes later work of the stream follow what the guard wrote on another stream. False: the driver can neither wait nor
 * say that the work is done, and the record keeps its point. */
bool gm__guard_wait_on(gm__guard *guard, gm__guard_record *record, const gm_stream *on);

void gm__guard_drop_point(gm__guard *guard, gm__guard_record *record);

/* Writes the damage as a sentence. */
void gm__guard_text(const gm__guard *guard, const gm_damage *damage, char *text, size_t capacity);

#endif
