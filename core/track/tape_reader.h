/* The events of one tape, from its first chunk to its last, once nobody writes it any more. Externally synchronised. */
#ifndef GM_CORE_TRACK_TAPE_READER_H
#define GM_CORE_TRACK_TAPE_READER_H

#include "core/track/recorder.h"

typedef struct gm__tape_event {
  uint64_t now;      /* its number among all events; 0: there is none any more */
  const char *label; /* of a mark, until the next event is asked for; else NULL */
  uint64_t bytes;    /* of an allocation, or of the label; 0: a free */
  uint64_t stream;   /* id */
  uint32_t number;   /* of the block */
} gm__tape_event;

typedef struct gm__tape_reader {
  gm__tape *tape; /* its words are those of the chunk that is read */
  uint32_t at, chunk, next;
  uint64_t stream;
  gm__tape_event event; /* the one to come */
} gm__tape_reader;

/* To the first event. IO. */
gm_status gm__tape_reader_begin(gm__tape_reader *reader, gm__tape *tape, gm_error *err);

/* To the event after this one. IO. */
gm_status gm__tape_reader_next(gm__tape_reader *reader, gm_error *err);

#endif
