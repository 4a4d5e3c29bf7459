/* Reads the events of one event buffer, from its first chunk to its last. No thread writes the event buffer any more.
 * The caller synchronises. */
#ifndef GM_CORE_TRACE_EVENT_READER_H
#define GM_CORE_TRACE_EVENT_READER_H

#include "core/track/recorder.h"

typedef struct gm__event {
  uint64_t now;      /* its number among all events; 0: there are no more */
  const char *label; /* of a mark, until the next event is read; else NULL */
  uint64_t bytes;    /* of an allocation, or of the label; 0: a free */
  uint64_t stream;   /* id */
  uint32_t number;   /* of the block */
} gm__event;

typedef struct gm__event_reader {
  gm__event_buffer *events; /* the words in memory are those of the chunk that is read */
  uint32_t at, chunk, next;
  uint64_t stream;
  gm__event event; /* the next one */
} gm__event_reader;

/* Goes to the first event. IO. */
gm_status gm__event_reader_begin(gm__event_reader *reader, gm__event_buffer *events, gm_error *err);

/* Goes to the next event. IO. */
gm_status gm__event_reader_next(gm__event_reader *reader, gm_error *err);

#endif
