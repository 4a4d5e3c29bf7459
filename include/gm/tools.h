/* The headers that tools, tuning and larger engines need. It includes gm/gm.h and gm/trace_all.h.
 * - Other ways to get and keep memory: batch, cleanup, evictor, future, idle, managed, pool_set, quota, scope, spans,
 *   warm_up.
 * - Other devices and processes: peer, share.
 * - Bytes that change on their way: codec.
 * - Events: debug, fragmentation, perf, pressure, probe, raw_figures, tracker. */
#ifndef GM_TOOLS_H
#define GM_TOOLS_H

#include "gm/auto.h"
#include "gm/batch.h"
#include "gm/cleanup.h"
#include "gm/debug.h"
#include "gm/evictor.h"
#include "gm/file.h"
#include "gm/fragmentation.h"
#include "gm/future.h"
#include "gm/gm.h"
#include "gm/idle.h"
#include "gm/managed.h"
#include "gm/peer.h"
#include "gm/perf.h"
#include "gm/pipeline.h"
#include "gm/pool_set.h"
#include "gm/pressure.h"
#include "gm/probe.h"
#include "gm/quota.h"
#include "gm/raw_figures.h"
#include "gm/relocation.h"
#include "gm/scope.h"
#include "gm/share.h"
#include "gm/spans.h"
#include "gm/trace_all.h"
#include "gm/tracker.h"
#include "gm/warm_up.h"

#endif
