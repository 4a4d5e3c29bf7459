/* Sets of address ranges that do not overlap, each kept as it was added. Externally synchronised. */
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
  gm__cpu_span *all; /* by rising address */
  size_t count, capacity;
} gm__cpu_spans;

void gm__cpu_spans_init(gm__cpu_spans *spans, const gm_services *services);
void gm__cpu_spans_clear(gm__cpu_spans *spans);

/* Room for one more, so that adding it cannot fail. False: no host memory. */
bool gm__cpu_spans_room(gm__cpu_spans *spans);

/* `span` must touch none that is there, and there must be room. */
void gm__cpu_spans_add(gm__cpu_spans *spans, gm__cpu_span span);

/* The one that holds the address: there must be one. */
gm__cpu_span gm__cpu_spans_at(const gm__cpu_spans *spans, uint64_t address);

/* Forgets all that lie in `span`. */
void gm__cpu_spans_remove(gm__cpu_spans *spans, gm__cpu_span span);

bool gm__cpu_spans_touch(const gm__cpu_spans *spans, gm__cpu_span span); /* any byte of it is in one */
bool gm__cpu_spans_hold(const gm__cpu_spans *spans, gm__cpu_span span);  /* one holds it all */
bool gm__cpu_spans_cover(const gm__cpu_spans *spans, gm__cpu_span span); /* all of it, by one or several */
bool gm__cpu_spans_tile(const gm__cpu_spans *spans, gm__cpu_span span);  /* the same, by whole ones */

#endif
