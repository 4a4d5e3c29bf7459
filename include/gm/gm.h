/* All of gm, but for the native objects of each API: an engine adds the gm/native_*.h of those that it shares. */
#ifndef GM_GM_H
#define GM_GM_H

#include "gm/backend.h"
#include "gm/buffer.h"
#include "gm/config.h"
#include "gm/context.h"
#include "gm/copy.h"
#include "gm/device.h"
#include "gm/device_info.h"
#include "gm/dtype.h"
#include "gm/export.h"
#include "gm/load.h"
#include "gm/memory_info.h"
#include "gm/model.h"
#include "gm/native.h"
#include "gm/pool.h"
#include "gm/pressure.h"
#include "gm/probe.h"
#include "gm/raw_figures.h"
#include "gm/report.h"
#include "gm/request.h"
#include "gm/services.h"
#include "gm/size.h"
#include "gm/stats.h"
#include "gm/status.h"
#include "gm/stream.h"
#include "gm/stream_kind.h"
#include "gm/trace.h"
#include "gm/tracker.h"
#include "gm/version.h"

#endif
