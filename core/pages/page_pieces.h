/* Tables that grow by pieces: entries never move, and no call copies a table. */
#ifndef GM_CORE_PAGES_PAGE_PIECES_H
#define GM_CORE_PAGES_PAGE_PIECES_H

#include "core/pages/pages_state.h"

/* Makes room for `entries` entries, zeroed. False: no host memory; what was made stays. */
bool gm__page_pieces_reserve(const gm_services *services, gm__page_pieces *table, uint64_t entries);
void gm__page_pieces_end(const gm_services *services, gm__page_pieces *table);

static inline uint64_t gm__page_pieces_room(const gm__page_pieces *table) {
  return (uint64_t)table->count * GM__PAGE_PIECE;
}

#endif
