#include "core/pages/page_pieces.h"

#include "core/base/alloc.h"
#include "core/base/cancel.h"

/* The usual calls of a set reach a callback of the program here alone: its allocator. */
static bool pieces_add(const gm_services *services, gm__page_pieces *table) {
  GM__UNCANCELLED();
  if (table->count == table->room) {
    const uint32_t room = table->room ? 2 * table->room : 8;
    if (!gm__grow(services, &table->pieces, table->room * sizeof(void *), room * sizeof(void *))) return false;
    table->room = room;
  }
  void *piece = gm__alloc(services, GM__PAGE_PIECE * table->entry_bytes);
  if (piece) table->pieces[table->count++] = piece;
  return piece != NULL;
}

bool gm__page_pieces_reserve(const gm_services *services, gm__page_pieces *table, uint64_t entries) {
  while (gm__page_pieces_room(table) < entries) {
    if (!pieces_add(services, table)) return false;
  }
  return true;
}

void gm__page_pieces_end(const gm_services *services, gm__page_pieces *table) {
  for (uint32_t i = 0; i < table->count; i++)
    gm__release(services, table->pieces[i], GM__PAGE_PIECE * table->entry_bytes);
  gm__release(services, table->pieces, table->room * sizeof(void *));
}
