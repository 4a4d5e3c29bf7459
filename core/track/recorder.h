/* One recording: its tapes, its files, what went wrong. Thread-safe but for opening, finishing and closing; it knows no
 * pool. */
#ifndef GM_CORE_TRACK_RECORDER_H
#define GM_CORE_TRACK_RECORDER_H

#include "core/base/output_file.h"
#include "core/base/thread.h"
#include "core/track/tape.h"
#include "gm/services.h"
#include "gm/trace.h"

enum { GM__RECORDER_TAPES = 129, GM__RECORDER_LINE = 64 /* bytes that one processor writes at a time */ };

typedef struct gm__recorder {
  char before[GM__RECORDER_LINE]; /* every thread writes the clock: nothing else is beside it */
  _Atomic uint64_t clock;
  char behind[GM__RECORDER_LINE];
  const gm_services *services; /* borrowed */
  char *path;                  /* owned, with its end mark */
  bool packed;
  gm__output_file file, scratch;
  _Atomic uint32_t slots; /* chunks in the scratch file that have an owner */
  _Atomic bool failed;    /* nothing is written any more */
  gm__mutex lock;         /* of the next */
  gm_error failure;       /* the first */
  uint64_t already_alive; /* blocks when it began */
  gm__tape *tapes[GM__RECORDER_TAPES];
} gm__recorder;

/* Makes or empties the file; packed where the path ends with ".gz". Services are borrowed. NOT_FOUND, IO,
 * OUT_OF_HOST_MEMORY; NOT_SUPPORTED: packed, without zlib in this build. */
gm_status gm__recorder_open(const gm_services *services, const char *path, gm__recorder **out, gm_error *err);

/* The tape with that number, made when it is not there; NULL without host memory, and the recording has failed. */
gm__tape *gm__recorder_tape(gm__recorder *recorder, uint32_t number);

/* Remember why the trace will not be whole, unless it was known. */
void gm__recorder_fail(gm__recorder *recorder, const gm_error *failure);

/* Something has failed so far: `err` gets what. */
bool gm__recorder_has_failed(gm__recorder *recorder, gm_error *err);

/* Put the tape's chunk away, so that it is empty. */
void gm__recorder_spill(gm__recorder *recorder, gm__tape *tape);

/* Nobody writes any more: write the trace, with `comment` in its second line. What failed before, IO,
 * OUT_OF_HOST_MEMORY: then the file is left empty. `out`: NULL, or filled in but for struct_size. */
gm_status gm__recorder_finish(gm__recorder *recorder, const char *comment, gm_recording *out, gm_error *err);

/* In a forked child no lock is touched. NULL is harmless. */
void gm__recorder_close(gm__recorder *recorder, bool forked);

#endif
