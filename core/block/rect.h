/* Boxes of bytes (gm_rect): the check of what a caller says. Pure; no lock, no driver. */
#ifndef GM_CORE_BLOCK_RECT_H
#define GM_CORE_BLOCK_RECT_H

#include <stdbool.h>

#include "gm/memory.h"
#include "gm/status.h"

/* Copies the caller's box, with every pitch set. *out_empty: it has no bytes, and pitches stay. INVALID_ARGUMENT: NULL,
 * or rows or slices that overlap. */
gm_status gm__rect_read(const gm_rect *given, const char *op, gm_rect *out, bool *out_empty, gm_error *err);

/* Bytes from the first to the last one of a side, of a box that is not empty. UINT64_MAX: more than there can be. */
uint64_t gm__rect_src_span(const gm_rect *rect);
uint64_t gm__rect_dst_span(const gm_rect *rect);

/* INVALID_ARGUMENT unless `span` bytes from `offset` on can lie behind the host pointer. */
gm_status gm__rect_check_host(const void *pointer, uint64_t offset, uint64_t span, const char *name, const char *op,
                              gm_error *err);

/* Do both sides share bytes, in one memory where they begin at `src` and `dst`? True also where that takes a closer
 * look: the sides overlap and have other pitches. */
bool gm__rect_meets_itself(const gm_rect *rect, uint64_t src, uint64_t dst);

#endif
