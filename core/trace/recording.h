/* The end of a recording: its event buffers, merged by the numbers of their events, become a trace. */
#ifndef GM_CORE_TRACE_RECORDING_H
#define GM_CORE_TRACE_RECORDING_H

#include "core/track/recorder.h"
#include "gm/trace.h"

/* Writes the trace, with `comment` in its second line. No thread writes the event buffers any more. `out`: NULL, or
 * filled in but for struct_size. The call takes host memory for a table of the blocks that were alive at once. Errors:
 * what failed before, IO, OUT_OF_HOST_MEMORY. Then the file is left empty. */
gm_status gm__recorder_finish(gm__recorder *recorder, const char *comment, gm_recording *out, gm_error *err);

#endif
