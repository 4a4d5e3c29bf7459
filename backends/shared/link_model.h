/* A model of what moves bytes. Links have a bandwidth and a latency. An engine does one thing at a time. The work of a
 * lane (a stream) goes in order. A virtual clock tells the time, and a journal what ran when. The model plays discrete
 * events: of all work that could begin, the earliest begins. So the same calls give the same journal, however busy the
 * machine is.
 *
 * The clock stands still until its owner lets work end (gm__link_next) or lets time pass (gm__link_reach). Host code
 * takes no time. The model takes no memory, knows no real clock, and has no lock: the owner has one. Simulated CUDA and
 * HIP, and the null backend, are owners. All of them are without a model until a test switches it on. */
#ifndef GM_BACKENDS_SHARED_LINK_MODEL_H
#define GM_BACKENDS_SHARED_LINK_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum { GM__LINK_DEVICES = 64, GM__LINK_COSTS = 32, GM__LINK_PEERS = 32, GM__LINK_NAME = 48 };

typedef enum gm__link_kind {
  GM__LINK_MARK,    /* takes no time: an event, a wait, a free in stream order */
  GM__LINK_H2D,     /* from host memory to a device */
  GM__LINK_D2H,     /* from a device to host memory */
  GM__LINK_D2D,     /* inside one device: copies, fills */
  GM__LINK_PEER,    /* from `device` to `peer` */
  GM__LINK_COMPUTE, /* a kernel */
  GM__LINK_HOST,    /* the host's own work in a lane: no engine, so lanes do not wait for each other */
  GM__LINK_KINDS
} gm__link_kind;

typedef struct gm__link_rate {
  uint64_t mbps;       /* 10^6 bytes per second; 0: no time for bytes */
  uint64_t latency_ns; /* of each piece of work, on its engine */
} gm__link_rate;

typedef struct gm__link_cost { /* of kernels and host work of one name; "*": of kernels of any other name */
  char name[GM__LINK_NAME];
  uint64_t ns;
} gm__link_cost;

typedef struct gm__link_peer { /* both directions between two devices */
  uint32_t devices[2];
  gm__link_rate rate;
} gm__link_peer;

/* One line of the journal: work that has ended. */
typedef struct gm__link_entry {
  uint64_t sequence, lane; /* numbers of the work and of its lane */
  gm__link_kind kind;
  uint32_t device, peer;
  bool pageable;
  uint64_t bytes;
  uint64_t to, from; /* addresses of its `bytes`; 0: none or unknown */
  uint64_t ready, start, end;
} gm__link_entry;

typedef struct gm__link_lane gm__link_lane;

/* One piece of work, in the owner's memory until gm__link_next gives it back. */
typedef struct gm__link_op {
  gm__link_entry entry; /* the owner sets kind, device, peer, pageable, bytes, to, from */
  uint64_t after;       /* number of work in another lane that must have ended; 0: none */
  uint64_t cost_ns;     /* of COMPUTE and HOST, beside what the name costs */
  const char *name;     /* of COMPUTE and HOST; NULL: no name. Read when the work begins */
  struct gm__link_op *next;
  gm__link_lane *lane;
  bool is_ready, runs;
} gm__link_op;

/* A stream. In the owner's memory from gm__link_lane_open to gm__link_lane_close. */
struct gm__link_lane {
  gm__link_lane *next;
  gm__link_op *head, *tail;
  uint64_t number;
};

typedef struct gm__link_model {
  gm__link_rate rates[GM__LINK_KINDS]; /* of H2D, D2H, D2D */
  uint64_t pageable_mbps;              /* of copies from and to pageable memory; 0: as other copies */
  bool half_duplex;                    /* H2D and D2H share one engine */
  uint64_t jitter;                     /* each duration changes by up to so many percent, at random */
  uint64_t poll_ns;                    /* what a look that finds work unfinished costs the host */
  uint64_t seed;                       /* of the random numbers; never 0 */
  gm__link_cost costs[GM__LINK_COSTS];
  uint32_t cost_count;
  gm__link_peer peers[GM__LINK_PEERS];
  uint32_t peer_count;

  bool (*gate)(const gm__link_op *op); /* the owner's own rule, asked when all others allow `op`; NULL: none */
  gm__link_entry *journal;             /* the owner's; the newest lines, line n at n % capacity */
  uint64_t capacity, entries;          /* lines that fit, not 0; lines ever written */

  uint64_t now; /* virtual nanoseconds */
  uint64_t sequence, lanes_made;
  gm__link_lane *lanes;
  uint64_t busy_until[GM__LINK_DEVICES][GM__LINK_KINDS]; /* each engine */
  uint64_t early;                                        /* uses of memory before the work on it had ended */
  gm__link_entry early_work, early_use;                  /* the first: the work, and what came too early */
} gm__link_model;

/* Read a description such as "h2d:25000:8,d2h:25000:8,d2d:400000:2,engines:1,pageable:12000,peer:0-1:50000:5,
 * kernel:scale:400,jitter:20,poll:1000,seed:7". Links are MB/s and microseconds of latency. Kernels and host work are
 * microseconds by name. Jitter is percent, and the cost of a poll nanoseconds. Kinds that the text leaves out take no
 * time; two engines; polls cost 1000. Sets all of `out` but for the owner's members, which become 0. NULL: done; else
 * the word that is wrong, inside `spec`. */
const char *gm__link_read(const char *spec, gm__link_model *out);

/* A lane without work. */
void gm__link_lane_open(gm__link_model *model, gm__link_lane *lane);

/* It may have work in it: that is forgotten, and the owner has it back. */
void gm__link_lane_close(gm__link_model *model, gm__link_lane *lane);

/* Put `op` at the end of its lane, at this moment. Returns its number, from 1. */
uint64_t gm__link_submit(gm__link_model *model, gm__link_lane *lane, gm__link_op *op);

/* The next work to end, no later than `limit`; the clock stands at its end. The owner has it back, and does now what it
 * does to memory. NULL: no work ends by then, and the clock stands where the last one ended. */
gm__link_op *gm__link_next(gm__link_model *model, uint64_t limit);

/* Let the clock reach `moment`, after gm__link_next has said NULL for it. The clock never goes back. */
void gm__link_reach(gm__link_model *model, uint64_t moment);

/* Has the work of this number ended? Numbers that were never given out have. */
bool gm__link_ended(const gm__link_model *model, uint64_t sequence);

/* The host reads or writes `bytes` at `at` now. False, and counted as early: work that has not ended writes there, or
 * reads there what the host is about to overwrite. */
bool gm__link_use(gm__link_model *model, uint64_t at, uint64_t bytes, bool writes);

/* Work that has just ended (gm__link_next) read or wrote a further range, from its start to its end. */
void gm__link_touch(gm__link_model *model, const gm__link_op *op, uint64_t at, uint64_t bytes, bool writes);

/* Copy the newest lines, oldest first, at most `capacity`. Returns how many were ever written. */
uint64_t gm__link_copy_journal(const gm__link_model *model, gm__link_entry *out, uint64_t capacity);

/* Forget the journal and what came early. The clock and the work stay. */
void gm__link_clear(gm__link_model *model);

/* moment + ns, at most UINT64_MAX. */
uint64_t gm__link_later(uint64_t moment, uint64_t ns);

#endif
