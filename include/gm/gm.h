/* The headers that every program needs: contexts, devices, streams, pools, reservations, copies, buffers, statistics
 * and statuses.
 *
 * gm/model_all.h has model files, estimates and loading. gm/tools.h has tuning, sharing and tools that watch. An engine
 * that lends its own device adds the gm/native_*.h of its API. Only backends need gm/backend.h. */
#ifndef GM_GM_H
#define GM_GM_H

#include "gm/buffer.h"
#include "gm/codec.h"
#include "gm/config.h"
#include "gm/context.h"
#include "gm/copy.h"
#include "gm/device.h"
#include "gm/device_info.h"
#include "gm/dtype.h"
#include "gm/explain.h"
#include "gm/export.h"
#include "gm/memory.h"
#include "gm/memory_info.h"
#include "gm/native.h"
#include "gm/pool.h"
#include "gm/request.h"
#include "gm/reserve.h"
#include "gm/services.h"
#include "gm/share_kind.h"
#include "gm/size.h"
#include "gm/stats.h"
#include "gm/status.h"
#include "gm/stream.h"
#include "gm/stream_kind.h"
#include "gm/transfer.h"
#include "gm/version.h"

#endif
