#include "tests/simulated/cuda/sim_context.h"

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_device.h"
#include "tests/simulated/cuda/sim_event.h"
#include "tests/simulated/cuda/sim_module.h"
#include "tests/simulated/cuda/sim_range.h"
#include "tests/simulated/cuda/sim_script.h"
#include "tests/simulated/cuda/sim_slab.h"
#include "tests/simulated/cuda/sim_stream.h"

enum { CONTEXT_STACK = 64 };

typedef struct context_primary {
  CUcontext context;
  int references;
  unsigned flags;
} context_primary;

static sim_slab context_slab = {.item_bytes = sizeof(struct CUctx_st)};
static context_primary context_primaries[SIM_MAX_DEVICES];
static uint64_t context_next_id = 1;
static _Thread_local CUcontext context_stack[CONTEXT_STACK];
static _Thread_local int context_depth;

CUcontext sim_context_current(void) { return context_depth ? context_stack[context_depth - 1] : NULL; }
bool sim_context_is_live(CUcontext context) { return sim_slab_is_live(&context_slab, context); }

int sim_context_count(int device) {
  int at = 0, count = 0;
  for (CUcontext context; (context = sim_slab_next(&context_slab, &at));)
    count += device < 0 || context->device == device;
  return count;
}

void sim_context_lose(int device, CUresult code) {
  int at = 0;
  for (CUcontext context; (context = sim_slab_next(&context_slab, &at));)
    if (context->device == device) context->sticky = code;
}

int sim_context_primary_references(void) {
  int count = 0;
  for (int i = 0; i < SIM_MAX_DEVICES; i++) count += context_primaries[i].references;
  return count;
}

static CUresult context_create(int device, unsigned flags, bool primary, CUcontext *out) {
  if (!sim_device_has_room(device, sim_script_now.context_bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUcontext context = sim_slab_take(&context_slab);
  if (!context) return CUDA_ERROR_OUT_OF_MEMORY;
  *context = (struct CUctx_st){.id = context_next_id++, .device = device, .flags = flags, .primary = primary};
  context->legacy = sim_queue_create(context, 0, 0);
  if (!context->legacy) {
    sim_slab_give(&context_slab, context);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  context->legacy->legacy = true;
  *out = context;
  return CUDA_SUCCESS;
}

/* Everything that was made in it goes with it, after its work. */
static void context_destroy(CUcontext context) {
  sim_queue_hold(0, false);
  sim_queue_wait_context(context);
  sim_stream_drop_context(context);
  sim_event_drop_context(context);
  sim_module_drop_context(context);
  sim_range_drop_context(context);
  sim_queue_close(context->legacy);
  sim_slab_give(&context_slab, context);
}

static CUresult context_push(CUcontext context) {
  if (!sim_context_is_live(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (context_depth == CONTEXT_STACK) return CUDA_ERROR_INVALID_VALUE;
  context_stack[context_depth++] = context;
  return CUDA_SUCCESS;
}

static CUresult context_retain(CUcontext *out, CUdevice device) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_device_exists(device)) return CUDA_ERROR_INVALID_DEVICE;
  context_primary *primary = &context_primaries[device];
  if (!primary->context) {
    CUresult result = context_create(device, primary->flags, true, &primary->context);
    if (result) return result;
  }
  primary->references++;
  *out = sim_script_now.hostile_null ? NULL : primary->context;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
  CUresult result = sim_enter(sim_id_cuDevicePrimaryCtxRetain);
  if (result) return result;
  return sim_leave(context_retain(out, device));
}

static CUresult context_release(CUdevice device, bool all) {
  if (!sim_device_exists(device)) return CUDA_ERROR_INVALID_DEVICE;
  context_primary *primary = &context_primaries[device];
  if (!all && !primary->references) return CUDA_ERROR_INVALID_CONTEXT;
  if (!all && --primary->references) return CUDA_SUCCESS;
  CUcontext context = primary->context;
  primary->context = NULL;
  primary->references = 0;
  if (context) context_destroy(context);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  CUresult result = sim_enter(sim_id_cuDevicePrimaryCtxRelease_v2);
  if (result) return result;
  return sim_leave(context_release(device, false));
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  CUresult result = sim_enter(sim_id_cuDevicePrimaryCtxReset_v2);
  if (result) return result;
  return sim_leave(context_release(device, true));
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  CUresult result = sim_enter(sim_id_cuDevicePrimaryCtxSetFlags_v2);
  if (result) return result;
  if (!sim_device_exists(device)) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  if (flags & ~(unsigned)CU_CTX_FLAGS_MASK) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  context_primaries[device].flags = flags;
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
  CUresult result = sim_enter(sim_id_cuDevicePrimaryCtxGetState);
  if (result) return result;
  if (!sim_device_exists(device)) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  if (!flags || !active) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  *flags = context_primaries[device].flags;
  *active = context_primaries[device].context != NULL;
  return sim_leave(CUDA_SUCCESS);
}

static CUresult context_create_current(CUcontext *out, unsigned flags, CUdevice device) {
  if (!out || (flags & ~(unsigned)CU_CTX_FLAGS_MASK)) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_device_exists(device)) return CUDA_ERROR_INVALID_DEVICE;
  CUcontext context = NULL;
  CUresult result = context_create(device, flags, false, &context);
  if (result) return result;
  *out = context;
  return context_push(context);
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device) {
  CUresult result = sim_enter(sim_id_cuCtxCreate_v2);
  if (result) return result;
  return sim_leave(context_create_current(out, flags, device));
}

CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned flags, CUdevice device) {
  CUresult result = sim_enter(sim_id_cuCtxCreate_v4);
  if (result) return result;
  if (params) return sim_leave(CUDA_ERROR_NOT_SUPPORTED);
  return sim_leave(context_create_current(out, flags, device));
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  CUresult result = sim_enter(sim_id_cuCtxDestroy_v2);
  if (result) return result;
  if (!sim_context_is_live(context) || context->primary) return sim_leave(CUDA_ERROR_INVALID_CONTEXT);
  if (sim_context_current() == context) context_depth--;
  context_destroy(context);
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  CUresult result = sim_enter(sim_id_cuCtxPushCurrent_v2);
  if (result) return result;
  return sim_leave(context_push(context));
}

CUresult cuCtxPopCurrent_v2(CUcontext *out) {
  CUresult result = sim_enter(sim_id_cuCtxPopCurrent_v2);
  if (result) return result;
  if (!context_depth) return sim_leave(CUDA_ERROR_INVALID_CONTEXT);
  if (out) *out = sim_context_current();
  context_depth--;
  return sim_leave(CUDA_SUCCESS);
}

/* Replaces the top of the stack; NULL takes it away. */
CUresult cuCtxSetCurrent(CUcontext context) {
  CUresult result = sim_enter(sim_id_cuCtxSetCurrent);
  if (result) return result;
  if (context && !sim_context_is_live(context)) return sim_leave(CUDA_ERROR_INVALID_CONTEXT);
  if (context_depth) context_depth--;
  return sim_leave(context ? context_push(context) : CUDA_SUCCESS);
}

CUresult cuCtxGetCurrent(CUcontext *out) {
  CUresult result = sim_enter(sim_id_cuCtxGetCurrent);
  if (result) return result;
  if (!out) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  *out = sim_context_current();
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuCtxGetDevice(CUdevice *out) {
  CUresult result = sim_enter(sim_id_cuCtxGetDevice);
  if (result) return result;
  if (!out) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  *out = sim_context_current()->device;
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuCtxGetFlags(unsigned *out) {
  CUresult result = sim_enter(sim_id_cuCtxGetFlags);
  if (result) return result;
  if (!out) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  *out = sim_context_current()->flags;
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *out) {
  CUresult result = sim_enter(sim_id_cuCtxGetId);
  if (result) return result;
  if (!context) context = sim_context_current();
  if (!sim_context_is_live(context)) return sim_leave(CUDA_ERROR_INVALID_CONTEXT);
  if (!out) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  *out = context->id;
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned *out) {
  CUresult result = sim_enter(sim_id_cuCtxGetApiVersion);
  if (result) return result;
  if (!context) context = sim_context_current();
  if (!sim_context_is_live(context)) return sim_leave(CUDA_ERROR_INVALID_CONTEXT);
  if (!out) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  *out = 3020;
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuCtxSynchronize(void) {
  CUresult result = sim_enter(sim_id_cuCtxSynchronize);
  if (result) return result;
  return sim_leave(sim_queue_wait_context(sim_context_current()));
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  CUresult result = sim_enter(sim_id_cuCtxGetStreamPriorityRange);
  if (result) return result;
  if (least) *least = 0;
  if (greatest) *greatest = SIM_STREAM_GREATEST_PRIORITY;
  return sim_leave(CUDA_SUCCESS);
}

static CUresult context_peer(CUcontext peer, unsigned flags, bool enable) {
  CUcontext context = sim_context_current();
  if (!sim_context_is_live(peer) || peer == context) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_device_reaches(context->device, peer->device)) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  uint64_t bit = (uint64_t)1 << peer->device;
  if (enable && (context->peers & bit)) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  if (!enable && !(context->peers & bit)) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  context->peers ^= bit;
  return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  CUresult result = sim_enter(sim_id_cuCtxEnablePeerAccess);
  if (result) return result;
  return sim_leave(context_peer(peer, flags, true));
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  CUresult result = sim_enter(sim_id_cuCtxDisablePeerAccess);
  if (result) return result;
  return sim_leave(context_peer(peer, 0, false));
}
