/* Sets of address ranges that do not overlap. Each range stays as it was added. The caller synchronises. */
#ifndef GM_BACKENDS_CPU_CPU_SPANS_H
#define GM_BACKENDS_CPU_CPU_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/services.h"

typedef struct gm__cpu_span {
  uint64_t begin, end; /* begin < end */
} gm__cpu_span;

typedef struct gm__cpu_spans {
  const gm_services *services;
  gm__cpu_span *all; /* ordered by address */
  size_t count, capacity;
} gm__cpu_spans;

void gm__cpu_spans_init(gm__cpu_spans *spans, const gm_services *services);
void gm__cpu_spans_clear(gm__cpu_spans *spans);

/* Make room for one more range, so that the next add cannot fail. False: no host memory. */
bool gm__cpu_spans_room(gm__cpu_spans *spans);

/* REQUIRES: `span` touches no range of the set, and the set has room. */
void gm__cpu_spans_add(gm__cpu_spans *spans, gm__cpu_span span);

/* The range that holds `address`. REQUIRES: there is one. */
gm__cpu_span gm__cpu_spans_at(const gm__cpu_spans *spans, uint64_t address);

/* Remove every range that lies in `span`. */
void gm__cpu_spans_remove(gm__cpu_spans *spans, gm__cpu_span span);

bool gm__cpu_spans_touch(const gm__cpu_spans *spans, gm__cpu_span span); /* a range holds some byte of `span` */
bool gm__cpu_spans_hold(const gm__cpu_spans *spans, gm__cpu_span span);  /* one range holds all of `span` */
bool gm__cpu_spans_cover(const gm__cpu_spans *spans, gm__cpu_span span); /* the ranges together hold all of `span` */
bool gm__cpu_spans_tile(const gm__cpu_spans *spans, gm__cpu_span span);  /* whole ranges together are `span` */

#endif
