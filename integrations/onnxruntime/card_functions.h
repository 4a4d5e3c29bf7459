/* The functions that ONNX Runtime's CUDA provider takes for a card's memory: its options gpu_external_alloc,
 * gpu_external_free and gpu_external_empty_cache are addresses of plain C functions.
 *
 * Those are told no card and no stream. So each pair of a card and a stream has functions of its own, and the provider
 * has to compute on that stream (user_compute_stream). Every call is thread-safe.
 *
 * ONNX Runtime takes these options from Python. Its C interface accepts them and drops them (seen with 1.31); programs
 * in C register an allocator (card_allocator.h). */
#ifndef GM_INTEGRATIONS_ONNXRUNTIME_CARD_FUNCTIONS_H
#define GM_INTEGRATIONS_ONNXRUNTIME_CARD_FUNCTIONS_H

#include <stddef.h>

#include "gm/export.h"

GM_BEGIN_DECLS

/* How many pairs of a card and a stream can have functions. */
enum { GM_ORT_LANES = 16 };

/* The functions that the three options want. An allocation that fails throws, as in gm_onnxruntime.h. Never grows. */
typedef struct gm_ort_functions {
  void *(*alloc)(size_t bytes);
  void (*free)(void *pointer);
  void (*empty_cache)(void);
} gm_ort_functions;

/* Writes the functions for a card and a native stream, which stay valid. A pair that has functions gets these.
 * Returns 0, or a gm_status: OVER_LIMIT after GM_ORT_LANES pairs, UNAVAILABLE where the card or the stream cannot be
 * used. gm_engines_why has the reason. */
GM_API int gm_ort_card_functions(int ordinal, void *stream, gm_ort_functions *out);
/* Takes the functions of a pair back, after the last session that had them, and before the stream is destroyed. Returns
 * 0, also for a pair without functions, or the gm_status of gm_stream_forget. */
GM_API int gm_ort_card_functions_end(int ordinal, void *stream);

GM_END_DECLS

#endif
