/* The parts of a schedule, for the files that make it up. */
#ifndef GM_TESTS_MODEL_SCHEDULE_PARTS_H
#define GM_TESTS_MODEL_SCHEDULE_PARTS_H

#include "model/late_driver.h"
#include "model/schedule.h"
#include "support/random.h"

enum { STREAMS = 4, LEASES = 24, BATCH = 4, FILLERS = 68, PER_CONTEXT = 2000, NOBODY = -1 };

/* A block that is out. Kernels write it and look whether its words are those; the last writer and all readers since
 * are known. */
typedef struct lease {
  gm_block block;
  uint64_t asked;
  uint32_t word;
  int taken_on;     /* stream in whose order it is the schedule's; NOBODY: in any */
  int writer;       /* stream of the last write; NOBODY: none is pending */
  uint32_t readers; /* streams that have read since */
  bool written, by_pointer;
} lease;

typedef struct schedule {
  uint64_t random, seed;
  late_driver *driver;
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  gm_stream *streams[STREAMS];
  uint32_t slots[STREAMS];       /* the driver's */
  uint32_t stream_count, insert; /* streams; of a hundred requests, how many let gm insert waits */
  uint32_t mutes;                /* of a hundred streams, how many gm may not submit to */
  uint32_t wishes;               /* of a hundred requests, how many ask for certain memory */
  uint32_t first_wish, wish_count;
  gm_stream *fillers[FILLERS]; /* which take places in the pool away from the others; NULL: closed */
  gm_point kept;               /* of some time ago; zero: none */
  uint64_t largest;
  lease leases[LEASES];
  uint32_t count, word;
  bool aloud;
  char why[160]; /* "": nothing is wrong */
} schedule;

static inline uint64_t below(schedule *s, uint64_t bound) { return test_random(&s->random) % bound; }
static inline bool chance(schedule *s, uint32_t percent) { return below(s, 100) < percent; }
static inline int any_stream(schedule *s) { return (int)below(s, s->stream_count); }
static inline bool is_mute(const schedule *s, int stream) {
  return stream != NOBODY && s->driver->streams[s->slots[stream]].mute;
}

void wrong(schedule *s, const char *what, uint64_t number);
void must(schedule *s, const char *what, gm_status status);
/* One line of what is done, for who looks at a schedule that failed. */
void say(const schedule *s, const char *what, const lease *l, int stream, int other);

/* ---- streams (schedule_streams.c): by gm, or past gm where gm may not submit ---- */

void open_stream(schedule *s, int stream);
/* Close it and open another in its place. */
void renew_stream(schedule *s, int stream);
void close_stream(schedule *s, int stream);
/* Wait until the stream has done all its work. */
void sync_stream(schedule *s, int stream);
/* Later work of stream `to` follows all that stream `from` was given so far, or the point. */
void follow(schedule *s, int to, int from);
void wait_for(schedule *s, int stream, const gm_point *point);
/* After all that the stream was given so far. The caller releases it. */
gm_point point_of(schedule *s, int stream);
/* Keep a point of the stream for later, and give back the one before; NOBODY: keep none. */
void keep_point(schedule *s, int stream);
/* Say gm_stream_passed with a point that comes after the stream's work. */
void tell_passed(schedule *s, int stream);
/* The engine waits for the work of all streams, and says so. */
void settle_all(schedule *s);

/* ---- wishes (schedule_wishes.c) ---- */

/* Draw which of all wishes the schedule has. Its requests come back to them, so that a thread knows them. */
void draw_wishes(schedule *s);
/* Make the request ask for certain memory, or not. */
void wish_for_memory(schedule *s, gm_request *request);
/* The block has what the request asks for. */
void check_wish(schedule *s, const gm_request *request, const gm_block *block);

/* So many other streams that this pool has no place of its own for all of them. */
void open_fillers(schedule *s);
void close_filler(schedule *s, uint32_t number);

#endif
