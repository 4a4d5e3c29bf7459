/* Packing as gzip by zlib, with memory from gm's services. Externally synchronised. */
#ifndef GM_CORE_TRACK_TRACE_PACK_H
#define GM_CORE_TRACK_TRACE_PACK_H

#include <stdbool.h>
#include <stddef.h>

#include "gm/services.h"
#include "gm/status.h"

typedef struct gm__trace_pack gm__trace_pack;

/* This build has zlib. */
bool gm__trace_pack_is_there(void);

/* OUT_OF_HOST_MEMORY, NOT_SUPPORTED. Services are borrowed. `path` is for messages. */
gm_status gm__trace_pack_create(const gm_services *services, const char *path, gm__trace_pack **out, gm_error *err);

/* What comes next. */
void gm__trace_pack_feed(gm__trace_pack *pack, const void *bytes, size_t count);

/* Packed bytes into `out`, as many as there are: less than `capacity` only when all that was fed is in. `last`: nothing
 * is fed any more, and what is left comes out. */
size_t gm__trace_pack_take(gm__trace_pack *pack, void *out, size_t capacity, bool last);

void gm__trace_pack_destroy(gm__trace_pack *pack); /* NULL is harmless */

#endif
