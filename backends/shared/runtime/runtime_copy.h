/* Copies: work on a stream. */
#ifndef GM_BACKENDS_SHARED_RUNTIME_RUNTIME_COPY_H
#define GM_BACKENDS_SHARED_RUNTIME_RUNTIME_COPY_H

#include "backends/shared/runtime/runtime.h"

/* The way of a copy, by which of its ends are the host's. */
gm__runtime_way gm__runtime_way_of(bool from_host, bool to_host);

/* Submit one copy between two places of memory; nothing for 0 bytes. Returns the driver's code. */
int gm__runtime_copy_enqueue(const gm__runtime_device *device, void *stream, const gm_copy_item *item);

#endif
