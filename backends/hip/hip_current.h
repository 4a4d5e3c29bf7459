/* What a call must find in the calling thread, for its length: the device current, the capture mode relaxed; and put
 * back after it, the thread's last error too. */
#ifndef GM_BACKENDS_HIP_CURRENT_H
#define GM_BACKENDS_HIP_CURRENT_H

#include "backends/hip/hip_device.h"

typedef struct gm__hip_scope {
  const gm__hip_syms *hip;
  int before;     /* the device that was current */
  bool switched;  /* gm's is current in its place */
  bool clean;     /* the thread had no error pending: what gm's calls leave is taken away */
  bool exchanged; /* `mode` is the thread's own capture mode */
  hipStreamCaptureMode mode;
} gm__hip_scope;

/* DEVICE_LOST without asking HIP where that is known. On failure nothing is to be left. */
gm_status gm__hip_enter(gm__hip_device *device, gm__hip_scope *out, gm_error *err);

/* The same for giving back: GM_OK is the only answer on a lost device, with *out_gone true and nothing entered. */
gm_status gm__hip_enter_release(gm__hip_device *device, gm__hip_scope *out, bool *out_gone, gm_error *err);

void gm__hip_leave(const gm__hip_scope *scope);

#endif
