/* A set of small numbers in the kernel's list form, "0-3,7": processors and memory nodes. */
#ifndef GM_CORE_BASE_ID_SET_H
#define GM_CORE_BASE_ID_SET_H

#include <stdbool.h>
#include <stdint.h>

enum { GM__ID_SET_MAX = 8192 };

typedef struct gm__id_set {
  uint64_t bits[GM__ID_SET_MAX / 64];
} gm__id_set;

/* Read a list. Blanks and a newline around it are allowed. Numbers from GM__ID_SET_MAX on are left out. False, with
 * `out` untouched: the text is empty, or no such list. */
bool gm__id_set_parse(const char *text, gm__id_set *out);

bool gm__id_set_has(const gm__id_set *set, uint64_t id);

/* The number of members that `a` and `b` have in common. With `b` NULL, the number of members of `a`. */
uint32_t gm__id_set_count(const gm__id_set *a, const gm__id_set *b);

#endif
