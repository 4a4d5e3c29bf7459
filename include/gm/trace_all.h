/* Everything about what a program did with its memory, and advice on it: recordings, traces, profiles, the summary. It
 * includes gm/gm.h. The library is libgm_trace, which has gm_pool_warm_up_from_trace of gm/warm_up.h, too. */
#ifndef GM_TRACE_ALL_H
#define GM_TRACE_ALL_H

#include "gm/advice.h"
#include "gm/gm.h"
#include "gm/profile.h"
#include "gm/record.h"
#include "gm/report.h"
#include "gm/trace.h"

#endif
