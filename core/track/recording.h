/* The end of a recording: its tapes, merged by the numbers of their events, become a trace. */
#ifndef GM_CORE_TRACK_RECORDING_H
#define GM_CORE_TRACK_RECORDING_H

#include "core/track/recorder.h"

/* Write the trace; *out gets what is in it. Host memory: a table of the blocks that were alive at once. IO,
 * OUT_OF_HOST_MEMORY. */
gm_status gm__recording_write(gm__recorder *recorder, const char *comment, gm_recording *out, gm_error *err);

#endif
