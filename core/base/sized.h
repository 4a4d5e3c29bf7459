/* Public structs that may grow: their first member is `uint32_t struct_size`, which the caller sets to its own sizeof.
 * A caller may be older or newer than gm, so its struct may be shorter or longer than gm's. gm works on a copy of its
 * own size: gm__sized_in makes it from what came in, gm__sized_out copies it to where the caller wants it. Thread-safe:
 * touches only what the caller passes. */
#ifndef GM_CORE_BASE_SIZED_H
#define GM_CORE_BASE_SIZED_H

#include <stddef.h>

#include "gm/status.h"

enum {
  GM__SIZED_LEAST =
      16, /* the first version of every struct was as large; the size of a pointer, an easy slip, is less */
  GM__SIZED_MOST = 65536 /* a larger one is no size, but what happened to lie there */
};

/* The caller's struct `theirs`, which is gm's `bytes` long, is there and has a size that can be. INVALID_ARGUMENT: it
 * is not so; the message names it `name`. */
gm_status gm__sized_check(const void *theirs, size_t bytes, const char *op, const char *name, gm_error *err);

/* `to` becomes what the caller's `from` says, in gm's size: members that an older caller does not know are zero.
 * INVALID_ARGUMENT as gm__sized_check; NOT_SUPPORTED: a newer caller has set a member that gm does not know. */
gm_status gm__sized_in(void *to, size_t bytes, const void *from, const char *op, const char *name, gm_error *err);

/* The caller's `to`, which passed gm__sized_check, becomes gm's `from`: never more than its struct_size, which stays.
 * Members that only a newer caller knows become zero. */
void gm__sized_out(void *to, const void *from, size_t bytes);

/* Entry `index` of an array of the caller's: the struct_size of its first entry is that of each. */
void *gm__sized_at(void *first, size_t index);

#endif
