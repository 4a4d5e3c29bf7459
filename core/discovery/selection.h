/* A choice of a device: the candidates in order, each with its figures. Not thread-safe: one thread makes one choice.
 */
#ifndef GM_CORE_DISCOVERY_SELECTION_H
#define GM_CORE_DISCOVERY_SELECTION_H

#include "gm/device.h"

/* How much of another reason fits into one. */
enum { GM__CHOOSING_REASON = 160 };

/* Why a candidate was not taken; "": it may be. */
typedef struct gm__choosing_why {
  char text[sizeof(((gm_rejection *)0)->why)];
} gm__choosing_why;

typedef struct gm__choosing gm__choosing;

/* Reads the devices and their figures. Errors as gm_select_backend_for_bytes has them, but NOT_FOUND. The caller ends
 * *out. */
gm_status gm__choosing_begin(gm_context *ctx, uint64_t bytes, const gm_select_params *params, gm__choosing **out,
                             gm_error *err);

/* The first candidate on which the bytes fit. Fills *out also for NOT_FOUND, which lists all with their reasons. */
gm_status gm__choosing_best(gm__choosing *self, gm_selection *out, gm_error *err);

/* Takes what gm__choosing_best has chosen out of the choice. */
void gm__choosing_refuse(gm__choosing *self, const gm_selection *chosen, const gm__choosing_why *why);

/* Do the bytes fit where these are the figures of the open device? */
void gm__choosing_judge(const gm__choosing *self, const gm_memory_info *memory, gm__choosing_why *why);

/* NULL: nothing. */
void gm__choosing_end(gm__choosing *self);

#endif
