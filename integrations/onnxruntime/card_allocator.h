/* ONNX Runtime's memory on a CUDA card from gm, for programs that register an allocator with their environment.
 *
 * A provider that knows streams tells them with each request. Every call is thread-safe. */
#ifndef GM_INTEGRATIONS_ONNXRUNTIME_CARD_ALLOCATOR_H
#define GM_INTEGRATIONS_ONNXRUNTIME_CARD_ALLOCATOR_H

#include "gm/export.h"

GM_BEGIN_DECLS

struct OrtAllocator;
struct OrtApiBase;

/* Makes an allocator of a card's memory, for RegisterAllocator. A request without a stream is one of the legacy default
 * stream. Memory goes back in the order of the stream that it was asked for on. It is destroyed by
 * gm_ort_card_allocator_destroy. NULL: gm_engines_why has the reason. */
GM_API struct OrtAllocator *gm_ort_card_allocator_create(const struct OrtApiBase *base, int ordinal);
/* Destroys what gm_ort_card_allocator_create made, after UnregisterAllocator and after the last session that used it.
 * NULL is allowed. */
GM_API void gm_ort_card_allocator_destroy(struct OrtAllocator *allocator);

GM_END_DECLS

#endif
