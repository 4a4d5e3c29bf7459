#include "gm_cupy.h"

#include "../shared/cards.h"

void *gm_cupy_malloc(void *user, size_t bytes, int ordinal) {
  (void)user;
  return bytes ? gm_cards_alloc(bytes, ordinal, NULL) : NULL;
}

void gm_cupy_free(void *user, void *pointer, int ordinal) {
  (void)user;
  if (pointer) (void)gm_cards_free(pointer, ordinal, NULL);
}
