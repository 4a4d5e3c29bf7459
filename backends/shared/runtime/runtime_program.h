/* gm's own programs on one device. The driver makes one ready when somebody first wants it, which takes up to seconds.
 * Every caller must be able to go without. Thread-safe. */
#ifndef GM_BACKENDS_SHARED_RUNTIME_RUNTIME_PROGRAM_H
#define GM_BACKENDS_SHARED_RUNTIME_RUNTIME_PROGRAM_H

#include "backends/shared/runtime/runtime.h"

/* REQUIRES: no other thread knows the device. */
void gm__runtime_programs_open(gm__runtime_device *device);

/* Launches `blocks` groups of `threads`. The device is entered. Answers the driver's code. With success, *out_done
 * false says that nothing was launched. Another thread makes the program ready, or the engine captures a stream that it
 * lent. Or there is no program, now and for ever: the log says why, once. A code other than success tells of a lost
 * device. */
int gm__runtime_launch(gm__runtime_device *device, gm__runtime_program_id id, uint64_t blocks, uint32_t threads,
                       void *stream, void **parameters, bool *out_done);

/* At closing, with the device entered. No program runs any more: gm's own streams have ended, and gm_stream_close
 * waited for the engine's. */
void gm__runtime_programs_unload(gm__runtime_device *device);

/* Submits small copies by a program: the answer is how many of them, from the first on. *out_code is success, or tells
 * of a lost device. */
uint32_t gm__runtime_scatter(gm__runtime_device *device, void *stream, const gm_copy_item *items, uint32_t count,
                             int *out_code);

#endif
