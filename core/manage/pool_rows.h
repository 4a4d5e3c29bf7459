/* The figures of all pools of a context, of their tags and of their devices, as one look found them. They stay as they
 * are when the pools go. One thread at a time uses one. */
#ifndef GM_CORE_MANAGE_POOL_ROWS_H
#define GM_CORE_MANAGE_POOL_ROWS_H

#include <stddef.h>

#include "core/base/inner.h"
#include "gm/context.h"
#include "gm/stats.h"
#include "gm/tracker.h"

enum { GM__ROW_DEVICE = 32, GM__ROW_NAME = 48 };

typedef struct gm__device_row {
  uint64_t id;
  char device[GM__ROW_DEVICE]; /* "cuda:0": a device that was opened twice has two rows */
  char name[128], driver[32];
  uint64_t memory_bytes; /* that the device has, or GM_UNKNOWN_BYTES */
  uint64_t up_bytes, down_bytes, up_copies, down_copies, useful_bytes;
} gm__device_row;

typedef struct gm__pool_row {
  uint64_t id;
  char name[GM__ROW_NAME], device[GM__ROW_DEVICE];
  gm_stats stats;
  size_t first_tag, tag_count; /* its rows of `tags` */
} gm__pool_row;

typedef struct gm__pool_rows {
  const gm_services *services;
  gm__device_row *devices;
  gm__pool_row *pools;
  gm_tag_total *tags;
  size_t device_count, device_room, pool_count, pool_room, tag_count, tag_room;
} gm__pool_rows;

/* Looks at all pools, under the context's lock, which it leaves after some hundred of them. It calls no driver.
 * OUT_OF_HOST_MEMORY. Whatever it answers, gm__pool_rows_clear ends `out`. */
GM__INNER gm_status gm__pool_rows_read(gm_context *ctx, gm__pool_rows *out);
GM__INNER void gm__pool_rows_clear(gm__pool_rows *rows);

#endif
