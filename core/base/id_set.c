#include "core/base/id_set.h"

#include <string.h>

#include "core/base/decimal.h"
#include "core/base/saturate.h"

static void id_set_add(gm__id_set *set, uint64_t first, uint64_t last) {
  for (uint64_t id = first; id <= gm__min(last, GM__ID_SET_MAX - 1); id++) {
    set->bits[id / 64] |= UINT64_C(1) << (id % 64);
  }
}

static bool id_set_range(const char *text, const char **end, uint64_t *first, uint64_t *last) {
  if (!gm__decimal(text, end, first)) return false;
  *last = *first;
  if (**end == '-' && !gm__decimal(*end + 1, end, last)) return false;
  return *first <= *last;
}

bool gm__id_set_parse(const char *text, gm__id_set *out) {
  gm__id_set set = {0};
  const char *at = gm__skip_blanks(text);
  for (;;) {
    uint64_t first, last;
    if (!id_set_range(at, &at, &first, &last)) return false;
    id_set_add(&set, first, last);
    if (*at != ',') break;
    at++;
  }
  if (at[strspn(at, " \t\r\n")] != 0) return false;
  *out = set;
  return true;
}

bool gm__id_set_has(const gm__id_set *set, uint64_t id) {
  return id < GM__ID_SET_MAX && (set->bits[id / 64] >> (id % 64) & 1);
}

uint32_t gm__id_set_count(const gm__id_set *a, const gm__id_set *b) {
  uint32_t count = 0;
  for (uint32_t id = 0; id < GM__ID_SET_MAX; id++) count += gm__id_set_has(a, id) && (!b || gm__id_set_has(b, id));
  return count;
}
