/* Streams by their names. Threads look up without a lock, while one thread changes the table. */
#ifndef GM_CORE_DEVICE_STREAM_TABLE_H
#define GM_CORE_DEVICE_STREAM_TABLE_H

#include <stdatomic.h>

#include "gm/backend.h"
#include "gm/stream.h"

typedef struct gm__stream_slots gm__stream_slots;

typedef struct gm__stream_table {
  _Atomic uint64_t turn;             /* odd: a thread is removing */
  _Atomic(gm__stream_slots *) slots; /* the newest; NULL: none yet */
  uint32_t count;
} gm__stream_table;

/* Find a stream. NULL: it is not there, or the table changed meanwhile; look again with the lock of the writers. */
gm_stream *gm__stream_table_find(const gm__stream_table *table, const gm_stream_name *name);

/* The caller keeps other writers out. Add: the name must be new; OUT_OF_HOST_MEMORY changes nothing. Remove: the name
 * must be there. Older: the stream whose name differs in words[1] only, with its name; NULL: there is none. Any: some
 * stream, with its name; NULL: the table is empty. */
gm_status gm__stream_table_add(gm__stream_table *table, const gm_services *services, const gm_stream_name *name,
                               gm_stream *stream);
void gm__stream_table_remove(gm__stream_table *table, const gm_stream_name *name);
gm_stream *gm__stream_table_older(const gm__stream_table *table, const gm_stream_name *name, gm_stream_name *out);
gm_stream *gm__stream_table_any(const gm__stream_table *table, gm_stream_name *out);

/* Releases the memory. Nobody looks up any more. */
void gm__stream_table_clear(gm__stream_table *table, const gm_services *services);

#endif
