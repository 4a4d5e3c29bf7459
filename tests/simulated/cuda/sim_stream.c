#include "tests/simulated/cuda/sim_stream.h"

#include <pthread.h>
#include <stdlib.h>

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_capture.h"
#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_link.h"
#include "tests/simulated/cuda/sim_pool.h"
#include "tests/simulated/cuda/sim_script.h"
#include "tests/simulated/cuda/sim_slab.h"

struct CUstream_st {
  sim_queue *queue;
};

enum { STREAM_PER_THREAD = 64 };

typedef struct stream_own {
  uint64_t context_id;
  sim_queue *queue;
} stream_own;

_Thread_local bool sim_stream_null_is_per_thread;
static _Thread_local stream_own stream_owned[STREAM_PER_THREAD];
static sim_slab stream_slab = {.item_bytes = sizeof(struct CUstream_st)};
static pthread_key_t stream_key;
static pthread_once_t stream_once = PTHREAD_ONCE_INIT;

static bool stream_is_open(const sim_queue *queue) {
  for (const sim_queue *open = sim_queues; open; open = open->next)
    if (open == queue) return !open->closed;
  return false;
}

/* At the end of a thread its streams go, after their work. */
static void stream_thread_ends(void *owned) {
  if (sim_call_exiting()) return;
  pthread_mutex_lock(&sim_lock);
  stream_own *own = owned;
  for (int i = 0; i < STREAM_PER_THREAD; i++) {
    sim_queue *queue = own[i].queue;
    if (queue && stream_is_open(queue) && queue->context_id == own[i].context_id) sim_queue_close(queue);
    own[i] = (stream_own){0};
  }
  pthread_mutex_unlock(&sim_lock);
}

static void stream_make_key(void) { pthread_key_create(&stream_key, stream_thread_ends); }

static sim_queue *stream_of_thread(CUcontext context) {
  stream_own *empty = NULL;
  for (int i = 0; i < STREAM_PER_THREAD; i++) {
    stream_own *own = &stream_owned[i];
    if (own->context_id == context->id) return own->queue;
    if (!empty && (!own->queue || !stream_is_open(own->queue))) empty = own;
  }
  if (!empty) return NULL;
  pthread_once(&stream_once, stream_make_key);
  pthread_setspecific(stream_key, stream_owned);
  sim_queue *queue = sim_queue_create(context, 0, 0);
  if (!queue) return NULL;
  queue->per_thread = true;
  *empty = (stream_own){context->id, queue};
  return queue;
}

CUresult sim_stream_queue(CUstream stream, sim_queue **out) {
  CUcontext context = sim_context_current();
  if (!stream) stream = sim_stream_null_is_per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  if (stream == CU_STREAM_LEGACY) {
    *out = context->legacy;
    return CUDA_SUCCESS;
  }
  if (stream == CU_STREAM_PER_THREAD) {
    *out = stream_of_thread(context);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (!sim_slab_is_live(&stream_slab, stream)) return CUDA_ERROR_INVALID_HANDLE;
  *out = stream->queue;
  return CUDA_SUCCESS;
}

static void stream_destroy(CUstream stream) {
  sim_queue_close(stream->queue);
  sim_slab_give(&stream_slab, stream);
}

void sim_stream_drop_context(CUcontext context) {
  int at = 0;
  for (CUstream stream; (stream = sim_slab_next(&stream_slab, &at));)
    if (stream->queue->context_id == context->id) stream_destroy(stream);
  for (sim_queue *queue = sim_queues, *next; queue; queue = next) {
    next = queue->next;
    if (queue->context_id == context->id && queue->per_thread && !queue->closed) sim_queue_close(queue);
  }
}

int sim_stream_count(void) { return stream_slab.live_count; }

static CUresult stream_create(CUstream *out, unsigned flags, int priority) {
  if (!out || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  if (sim_script_now.hostile_null) return *out = NULL, CUDA_SUCCESS;
  CUstream stream = sim_slab_take(&stream_slab);
  if (!stream) return CUDA_ERROR_OUT_OF_MEMORY;
  if (priority > 0) priority = 0;
  if (priority < SIM_STREAM_GREATEST_PRIORITY) priority = SIM_STREAM_GREATEST_PRIORITY;
  stream->queue = sim_queue_create(sim_context_current(), flags, priority);
  if (!stream->queue) {
    sim_slab_give(&stream_slab, stream);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = stream;
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *out, unsigned flags) {
  CUresult result = sim_enter(sim_id_cuStreamCreate);
  if (result) return result;
  return sim_leave(stream_create(out, flags, 0));
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority) {
  CUresult result = sim_enter(sim_id_cuStreamCreateWithPriority);
  if (result) return result;
  return sim_leave(stream_create(out, flags, priority));
}

/* The work goes on; the handle is free to be handed out again. */
CUresult cuStreamDestroy_v2(CUstream stream) {
  CUresult result = sim_enter(sim_id_cuStreamDestroy_v2);
  if (result) return result;
  if (!sim_slab_is_live(&stream_slab, stream)) return sim_leave(CUDA_ERROR_INVALID_HANDLE);
  stream_destroy(stream);
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuStreamQuery(CUstream stream) {
  CUresult result = sim_enter(sim_id_cuStreamQuery);
  if (result) return result;
  sim_queue *queue = NULL;
  result = sim_stream_queue(stream, &queue);
  if (!result) result = sim_capture_forbids_wait(queue);
  if (!result && queue->head) result = CUDA_ERROR_NOT_READY;
  if (result == CUDA_ERROR_NOT_READY) sim_link_poll();
  return sim_leave(result);
}

CUresult cuStreamSynchronize(CUstream stream) {
  CUresult result = sim_enter(sim_id_cuStreamSynchronize);
  if (result) return result;
  sim_queue *queue = NULL;
  result = sim_stream_queue(stream, &queue);
  if (!result) result = sim_capture_forbids_wait(queue);
  return sim_leave(result ? result : sim_queue_wait(queue));
}

CUresult cuStreamGetPriority(CUstream stream, int *out) {
  CUresult result = sim_enter(sim_id_cuStreamGetPriority);
  if (result) return result;
  sim_queue *queue = NULL;
  result = out ? sim_stream_queue(stream, &queue) : CUDA_ERROR_INVALID_VALUE;
  if (!result) *out = queue->priority;
  return sim_leave(result);
}

CUresult cuStreamGetFlags(CUstream stream, unsigned *out) {
  CUresult result = sim_enter(sim_id_cuStreamGetFlags);
  if (result) return result;
  sim_queue *queue = NULL;
  result = out ? sim_stream_queue(stream, &queue) : CUDA_ERROR_INVALID_VALUE;
  if (!result) *out = queue->flags;
  return sim_leave(result);
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *out) {
  CUresult result = sim_enter(sim_id_cuStreamGetId);
  if (result) return result;
  sim_queue *queue = NULL;
  result = out ? sim_stream_queue(stream, &queue) : CUDA_ERROR_INVALID_VALUE;
  if (!result) *out = queue->id;
  return sim_leave(result);
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *out) {
  CUresult result = sim_enter(sim_id_cuStreamGetCtx);
  if (result) return result;
  sim_queue *queue = NULL;
  result = out ? sim_stream_queue(stream, &queue) : CUDA_ERROR_INVALID_VALUE;
  if (!result) *out = queue->context;
  return sim_leave(result);
}

typedef struct stream_host_op {
  sim_op op;
  CUhostFn function;
  CUstreamCallback callback;
  CUstream stream;
  void *user;
} stream_host_op;

static CUresult stream_host_run(sim_op *op, sim_queue *queue) {
  (void)queue;
  const stream_host_op *host = (stream_host_op *)op;
  if (host->function) host->function(host->user);
  if (host->callback) host->callback(host->stream, CUDA_SUCCESS, host->user);
  return CUDA_SUCCESS;
}

static CUresult stream_add_host(CUstream stream, CUhostFn function, CUstreamCallback callback, void *user) {
  if (!function && !callback) return CUDA_ERROR_INVALID_VALUE;
  sim_queue *queue = NULL;
  CUresult result = sim_stream_queue(stream, &queue);
  if (result) return result;
  stream_host_op *host = sim_op_create(sizeof *host);
  if (!host) return CUDA_ERROR_OUT_OF_MEMORY;
  host->op.run = stream_host_run;
  host->op.on_host = true;
  host->op.link = (gm__link_op){.entry = {.kind = GM__LINK_HOST}, .name = "host_function"};
  host->function = function;
  host->callback = callback;
  host->stream = stream;
  host->user = user;
  return sim_queue_add(queue, &host->op);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *user) {
  CUresult result = sim_enter(sim_id_cuLaunchHostFunc);
  if (result) return result;
  return sim_leave(stream_add_host(stream, function, NULL, user));
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *user, unsigned flags) {
  CUresult result = sim_enter(sim_id_cuStreamAddCallback);
  if (result) return result;
  if (flags) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  return sim_leave(stream_add_host(stream, NULL, callback, user));
}
