/* Memory pressure: how full a memory is, in five levels; and watches, which tell a program of changes. Every function
 * is thread-safe. */
#ifndef GM_PRESSURE_H
#define GM_PRESSURE_H

#include <stdint.h>

#include "gm/status.h"

GM_BEGIN_DECLS

/* Levels of the ratio used / total. Memory that gm can give back on demand counts as free. */
typedef enum gm_pressure_level {
  GM_PRESSURE_LOW = 0,      /* below the threshold `medium` */
  GM_PRESSURE_MEDIUM = 1,   /* from the threshold `medium` on */
  GM_PRESSURE_HIGH = 2,     /* from the threshold `high` on */
  GM_PRESSURE_CRITICAL = 3, /* above the threshold `critical` */
  GM_PRESSURE_BORROWED = 4  /* whatever the ratio: the process's group holds memory of a card beyond its soft limit.
                               Under  NVIDIA's MPS the process may be ended when others need that memory (gm_memory_info.
                               borrowed_bytes). Give it back first */
} gm_pressure_level;

/* Thresholds as ratios: 0 < medium < high < critical <= 1, and 0 <= hysteresis < medium. A level is entered at once. It
 * is left only when the ratio falls below its threshold - hysteresis. Never grows. */
typedef struct gm_pressure_thresholds {
  double medium;     /* 0.60 */
  double high;       /* 0.80 */
  double critical;   /* 0.95 */
  double hysteresis; /* 0.02 */
} gm_pressure_thresholds;

/* The default thresholds. */
#define GM_PRESSURE_THRESHOLDS_DEFAULT \
  { 0.60, 0.80, 0.95, 0.02 }

/* Returns the word of a level: "low", "medium", "high", "critical" or "borrowed". Another number gives "?". The string
 * is static and never NULL. */
GM_API const char *gm_pressure_level_name(gm_pressure_level level);

struct gm_context;
struct gm_device;
struct gm_pool;

/* The pressure on a memory at one moment. Pooled memory, which gm can give back on demand, counts as free. */
typedef struct gm_pressure {
  uint32_t struct_size;
  gm_pressure_level level; /* with hysteresis: it depends on the levels answered before */
  double ratio;            /* used / total, 0 to 1; 1 also when there is no memory at all */
  uint64_t used_bytes;
  uint64_t total_bytes;
} gm_pressure;

/* Returns the pressure on a device's memory now, by the thresholds of the configuration (pressure.medium and so on).
 * The caller sets out->struct_size. After a failure `out` is unchanged. Errors: FORKED, OUT_OF_HOST_MEMORY.
 * INVALID_ARGUMENT: also where thresholds are out of order; the message names them. UNAVAILABLE: the figures are
 * unknown. */
GM_API gm_status gm_device_pressure(struct gm_device *device, gm_pressure *out, gm_error *err);

/* Returns the pressure on a pool: the bytes it has handed out, of those it may take. It may take its cap, or what the
 * device leaves it. Its thresholds are those of the configuration, or its own (gm_pool_configure). Errors: those of
 * gm_device_pressure. */
GM_API gm_status gm_pool_pressure(struct gm_pool *pool, gm_pressure *out, gm_error *err);

/* Returns the pressure on the host memory that this process may have. Errors: those of gm_device_pressure. */
GM_API gm_status gm_host_pressure(struct gm_context *ctx, gm_pressure *out, gm_error *err);

/* ---- watches ---- */

/* The thing that a watch looks at. */
typedef enum gm_pressure_scope {
  GM_PRESSURE_OF_POOL = 0,
  GM_PRESSURE_OF_DEVICE = 1,
  GM_PRESSURE_OF_HOST = 2
} gm_pressure_scope;

typedef struct gm_pressure_watch gm_pressure_watch;

/* The figures that a watch gives to its callback. Its pointers are borrowed until the callback returns. */
typedef struct gm_pressure_event {
  uint32_t struct_size;
  gm_pressure_scope scope;
  gm_pressure_level from, to; /* never the same; `from` is LOW at the first call */
  const gm_pressure *now;     /* its level is `to` */
  gm_pressure_watch *watch;   /* for gm_pressure_watch_end */
} gm_pressure_event;

/* Called when the level has changed, with hysteresis. gm holds no lock meanwhile. The callback may allocate, free,
 * trim, and begin and end watches, its own too. It must not end the context, nor a pool or device that the calling
 * thread is using, and must not throw. It may call all other functions of gm. gm calls one callback of a context at a
 * time. A look that another thread, or the callback itself, wants meanwhile follows on this thread, at most three
 * times. */
typedef void (*gm_pressure_callback)(void *user, const gm_pressure_event *event);

/* Begins to watch the pressure on a device's memory, as gm_device_pressure reads it, other processes included. gm
 * starts no thread for it. It looks in gm_context_poll and in the monitor's thread. It looks in a thread whose request
 * took new driver memory of that device, and before it refuses a request for want of memory. So no refusal comes as a
 * surprise. Relief is seen at the next look, and so is what a pool hands out of memory that it keeps. A watch begins at
 * the level LOW, and has its own hysteresis. Each look reads the driver's figures.
 *
 * The caller ends *out by gm_pressure_watch_end. Until then the device stays open. Errors: INVALID_ARGUMENT, FORKED,
 * OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_pressure_watch_device(struct gm_device *device, gm_pressure_callback callback, void *user,
                                          gm_pressure_watch **out, gm_error *err);

/* Begins to watch the pressure on a pool, as gm_pool_pressure reads it, and otherwise as gm_pressure_watch_device does.
 * Until the watch has ended, the pool cannot be destroyed. Errors: those of gm_pressure_watch_device. */
GM_API gm_status gm_pressure_watch_pool(struct gm_pool *pool, gm_pressure_callback callback, void *user,
                                        gm_pressure_watch **out, gm_error *err);

/* Begins to watch the pressure on the host's memory, as gm_host_pressure reads it. gm looks in gm_context_poll and in
 * the monitor's thread only. Until the watch has ended, the context cannot be destroyed. Errors: those of
 * gm_pressure_watch_device. */
GM_API gm_status gm_pressure_watch_host(struct gm_context *ctx, gm_pressure_callback callback, void *user,
                                        gm_pressure_watch **out, gm_error *err);

/* Ends a watch. NULL is GM_OK. Its callback is not called any more. While another thread runs that callback, the call
 * waits for its return. A callback that ends its own watch does not wait. A callback must not wait for a thread that
 * ends its watch. INVALID_ARGUMENT, in debug builds: the watch has ended. */
GM_API gm_status gm_pressure_watch_end(gm_pressure_watch *watch, gm_error *err);

/* Looks at all watches of a context now, and calls their callbacks on this thread. Then it compacts and promotes the
 * pools that asked for it (gm_pool_compact_on_poll, gm_pool_promote_on_poll), has idle pools sleep (gm/idle.h), and
 * serves futures (gm/future.h). While another thread looks at watches, that thread looks once more, and this one goes
 * on. Errors: INVALID_ARGUMENT, FORKED. The first failure of a reading, as gm_device_pressure has it; gm looks at the
 * other watches all the same. */
GM_API gm_status gm_context_poll(struct gm_context *ctx, gm_error *err);

/* Starts a thread that polls the context, at once and then every `interval_ns` nanoseconds. 0 means 100 ms. Less than
 * a millisecond counts as one. All signals are blocked in it. A context has at most one monitor; a second start changes
 * its interval. gm_monitor_stop or gm_context_destroy ends it. A forked child has no monitor. Errors:
 * INVALID_ARGUMENT, FORKED, OUT_OF_HOST_MEMORY. BUSY: another thread stops the monitor. SYSTEM: there is no thread. */
GM_API gm_status gm_monitor_start(struct gm_context *ctx, uint64_t interval_ns, gm_error *err);

/* Stops the monitor, and waits for its thread; a running callback ends first. Without a monitor it does nothing. In a
 * callback on the monitor's thread it does not wait: the thread ends after that callback. INVALID_ARGUMENT: `ctx` is
 * NULL. */
GM_API gm_status gm_monitor_stop(struct gm_context *ctx, gm_error *err);

GM_END_DECLS

#endif
