/* Reads and checks a request. */
#ifndef GM_CORE_HEAP_REQUEST_READ_H
#define GM_CORE_HEAP_REQUEST_READ_H

#include "core/heap/heap.h"

/* Reads a request into *out. gm_alloc and gm_explain both judge a request here, so their answers agree. `patterns`: a
 * guard writes to each block, which is work on the request's stream. Errors name the member. INVALID_ARGUMENT.
 * NOT_SUPPORTED: a later version has it, the device cannot do it, or the engine forbids it. */
gm_status gm__want_read(const gm__heap *heap, const gm_request *request, bool patterns, gm__want *out, gm_error *err);

/* The preferred flags of a valid request that no memory has which serves. */
uint32_t gm__want_missing(const gm__heap *heap, const gm_request *request);

/* Sets the request's size to `bytes`, which include what a guard puts around the block. */
void gm__want_size(const gm__heap *heap, uint64_t bytes, gm__want *want);

#endif
