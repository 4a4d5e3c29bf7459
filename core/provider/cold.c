#include "core/provider/cold.h"

#include "core/base/alloc.h"

void gm__cold_clear(const gm_services *services, gm__cold *cold) {
  for (gm__mapping *next; cold->mappings; cold->mappings = next) {
    next = cold->mappings->next;
    gm__release(services, cold->mappings, sizeof *cold->mappings);
  }
}
