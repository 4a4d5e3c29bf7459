/* The documents' OptimizedPipeline over any engine. Frames are read while others go up. A kernel carries a state from
 * frame to frame, and a second kernel makes each frame's result. Results come down while the next frames are at work.
 * The state stays on the device; one copy reads it at the end. */
#ifndef GM_EXAMPLES_OPTIMIZED_H
#define GM_EXAMPLES_OPTIMIZED_H

#include "gm/pipeline.h"

enum { FRAMES = 60, INPUTS = 256, STATES = 64 };

/* y = x * transpose(w) + b, negative ones cut off with relu: 1 row. */
typedef struct dense_call {
  const gm_block *x, *w, *b;
  gm_block *y;
  uint32_t inputs, outputs;
  int relu;
} dense_call;

typedef struct optimized {
  gm_context *context;
  gm_device *device;
  gm_stream *stream; /* the engine's */
  gm_pool *pool;
  gm_block evolve, post, zero; /* weights of both kernels, and a bias of zeros */
  gm_block state[2];           /* now, and next */
  uint32_t frames_read, frames_written;
  /* The engine: submit the call to its queue. After the last call of a step, `done` may become a point of the queue. */
  int (*dense)(void *engine, gm_pool *pool, const dense_call *call);
  int (*step_begins)(void *engine, gm_stream *stream, uint64_t index);
  gm_status (*step_ends)(void *engine, gm_stream *stream, gm_point *done, gm_error *err);
  void *engine;
  const char *name;
  float got[FRAMES][STATES];
  gm_error err;
} optimized;

/* Makes a context, and adopts the engine's device and queue on it. 0: done, else the reason has been printed. */
int optimized_adopt(optimized *o, const gm_native_device *device, const gm_native_stream *queue);

/* Runs all frames and compares with plain C. The engine has filled in device, stream and its calls; what gm made is
 * gone afterwards, but for context, device and stream. The program's exit code. */
int optimized_run(optimized *o);

/* Closes stream, device and context. */
int optimized_close(optimized *o);

int optimized_failed(const optimized *o, const char *what);

#endif
