/* A set of small numbers in the kernel's list form, "0-3,7": processors and memory nodes. */
#ifndef GM_CORE_BASE_ID_SET_H
#define GM_CORE_BASE_ID_SET_H

#include <stdbool.h>
#include <stdint.h>

enum { GM__ID_SET_MAX = 8192 };

typedef struct gm__id_set {
  uint64_t bits[GM__ID_SET_MAX / 64];
} gm__id_set;

/* Read a list; blanks and a newline around it are allowed, numbers from GM__ID_SET_MAX on are left out. False, with
 * `out` untouched, when the text is empty or anything else. */
bool gm__id_set_parse(const char *text, gm__id_set *out);

bool gm__id_set_has(const gm__id_set *set, uint64_t id);

/* How many numbers are in `a` and, unless it is NULL, in `b`. */
uint32_t gm__id_set_count(const gm__id_set *a, const gm__id_set *b);

#endif
