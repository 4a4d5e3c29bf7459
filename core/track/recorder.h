/* One recording: its event buffers, its files, its failures. Opening, settling and closing are for one thread; the rest
 * is thread-safe. It knows no pool. */
#ifndef GM_CORE_TRACK_RECORDER_H
#define GM_CORE_TRACK_RECORDER_H

#include "core/base/inner.h"
#include "core/base/output_file.h"
#include "core/base/thread.h"
#include "core/track/event_buffer.h"
#include "gm/services.h"

enum { GM__RECORDER_BUFFERS = 129, GM__RECORDER_LINE = 64 /* bytes that one processor writes at a time */ };

/* The taker of the chunks of a recording without files. */
typedef struct gm__recorder_sink {
  /* Takes the events of the chunk in memory. REQUIRES: the lock of the event buffer. OUT_OF_HOST_MEMORY. */
  gm_status (*take)(struct gm__recorder_sink *sink, gm__event_buffer *events);
  void (*end)(struct gm__recorder_sink *sink); /* the recording ends: releases the sink */
} gm__recorder_sink;

typedef struct gm__recorder {
  char before[GM__RECORDER_LINE]; /* every thread writes the clock: no other member shares its cache line */
  _Atomic uint64_t clock;
  char behind[GM__RECORDER_LINE];
  const gm_services *services; /* borrowed */
  char *path;                  /* owned, with its end mark; NULL: it has a sink */
  gm__recorder_sink *sink;     /* owned; NULL: it has files */
  bool packed;
  void (*save)(void *pool); /* ends the recording of a pool that ends; of who began it. NULL: it has a sink */
  gm__output_file file, scratch;
  _Atomic uint32_t slots; /* chunks of the scratch file that have an owner */
  _Atomic bool failed;    /* nothing is written any more */
  gm__mutex lock;         /* of the next member */
  gm_error failure;       /* the first */
  uint64_t already_alive; /* blocks that were out when it began */
  gm__event_buffer *buffers[GM__RECORDER_BUFFERS];
} gm__recorder;

/* Makes or empties the file. It is packed when the path ends with ".gz". Services are borrowed. NOT_FOUND, IO,
 * OUT_OF_HOST_MEMORY; NOT_SUPPORTED: packed, and this build has no zlib. */
GM__INNER gm_status gm__recorder_open(const gm_services *services, const char *path, gm__recorder **out, gm_error *err);

/* A recording without files. It owns the sink from then on, also after a failure. OUT_OF_HOST_MEMORY. */
GM__INNER gm_status gm__recorder_open_sink(const gm_services *services, gm__recorder_sink *sink, gm__recorder **out,
                                           gm_error *err);

/* True for a recording that writes a file. NULL: there is none. */
static inline bool gm__recorder_writes(const gm__recorder *recorder) { return recorder && !recorder->sink; }

/* The event buffer with that number, made by the first call. NULL without host memory: the recording has failed. */
gm__event_buffer *gm__recorder_buffer(gm__recorder *recorder, uint32_t number);

/* True when something has failed so far; `err` gets the reason. */
GM__INNER bool gm__recorder_has_failed(gm__recorder *recorder, gm_error *err);

/* Writes the event buffer's chunk to the scratch file, or gives it to the sink. The event buffer is empty afterwards.
 * REQUIRES: the lock of the event buffer. */
GM__INNER void gm__recorder_spill(gm__recorder *recorder, gm__event_buffer *events);

/* Writes the last chunk of each event buffer that has chunks in the scratch file. Call it when no thread writes any
 * more. Returns what failed before, or IO. */
GM__INNER gm_status gm__recorder_settle(gm__recorder *recorder, gm_error *err);

/* Ends the recording. A forked child touches no lock. NULL is harmless. */
GM__INNER void gm__recorder_close(gm__recorder *recorder, bool forked);

#endif
