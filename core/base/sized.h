/* Public structs that may grow. Their first member is `uint32_t struct_size`, which the caller sets to its own sizeof.
 * A caller may be older or newer than gm, so its struct may be shorter or longer than gm's. gm works on a copy of its
 * own size: gm__sized_in makes it from the caller's struct, and gm__sized_out copies it back. Thread-safe: these
 * functions touch only the caller's arguments. */
#ifndef GM_CORE_BASE_SIZED_H
#define GM_CORE_BASE_SIZED_H

#include <stddef.h>

#include "core/base/inner.h"
#include "gm/status.h"

enum {
  GM__SIZED_LEAST =
      16, /* the first version of every struct had at least this size; the size of a pointer, an easy slip, is less */
  GM__SIZED_MOST = 65536 /* no struct is larger: a larger number is garbage */
};

/* Check that the caller's struct `theirs` is not NULL and has a possible size. gm's own has `bytes`. INVALID_ARGUMENT
 * calls the struct `name`. */
GM__INNER gm_status gm__sized_check(const void *theirs, size_t bytes, const char *op, const char *name, gm_error *err);

/* Check the caller's `from`, and copy it to `to` in gm's size. Members that an older caller does not know become zero.
 * INVALID_ARGUMENT as gm__sized_check. NOT_SUPPORTED: a newer caller has set a member that gm does not know. */
GM__INNER gm_status gm__sized_in(void *to, size_t bytes, const void *from, const char *op, const char *name,
                                 gm_error *err);

/* gm__sized_in for entry `index` of a caller's array, all of whose entries have the size of the first. */
gm_status gm__sized_in_at(void *to, size_t bytes, const void *first, size_t index, const char *op, const char *name,
                          gm_error *err);

/* Copy gm's `from` to the caller's `to`, never more than its struct_size, which stays. Members that only a newer caller
 * knows become zero. REQUIRES: `to` has passed gm__sized_check. */
GM__INNER void gm__sized_out(void *to, const void *from, size_t bytes);

/* Entry `index` of a caller's array. The struct_size of its first entry holds for every entry. */
void *gm__sized_at(void *first, size_t index);

#endif
