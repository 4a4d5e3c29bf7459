#include "core/tier/disk/disk_side.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Invariant: gm removes a file only where its beginning has the number that its name has, and nobody has it locked. A
 * tier's own file never has such a name: it lost it when it got the tier's. */

enum { SIDE_NAME_MOST = 228 /* of the tier's name; with what follows it fits into a name */ };

void gm__disk_side_name(const gm__disk_tier *tier, uint64_t store, char out[GM__DATA_NAME_SIZE]) {
  snprintf(out, GM__DATA_NAME_SIZE, "%.*s.%016" PRIx64 ".compact", SIDE_NAME_MOST, tier->place.name, store);
}

/* The number that stands in the name of a side file of the tier. False: it is none. */
static bool side_number(const gm__disk_tier *tier, const char *name, uint64_t *out) {
  char same[GM__DATA_NAME_SIZE];
  gm__disk_side_name(tier, 0, same);
  const size_t before = (size_t)(strchr(same + strnlen(tier->place.name, SIDE_NAME_MOST), '.') - same) + 1;
  if (strlen(name) != strlen(same) || memcmp(name, same, before) != 0) return false;
  *out = strtoull(name + before, NULL, 16);
  gm__disk_side_name(tier, *out, same);
  return strcmp(name, same) == 0;
}

static void side_visit(void *user, const char *name) {
  const gm__disk_tier *tier = user;
  unsigned char start[GM__DISK_START];
  uint64_t named, store;
  gm__data_place side = {.folder = tier->place.folder};
  gm__data_file file;
  if (!side_number(tier, name, &named)) return;
  snprintf(side.name, sizeof side.name, "%s", name);
  if (gm__data_place_file(&side, tier->path, true, &file, NULL)) return; /* its maker is at work */
  gm_status status = gm__data_file_read(&file, tier->path, 0, start, sizeof start, NULL);
  if (!status) status = gm__disk_super_read(start, tier->path, &store, NULL);
  if (!status && store == named) gm__data_place_remove(&tier->place, name);
  gm__data_file_close(&file, true);
}

void gm__disk_side_tidy(const gm__disk_tier *tier) {
  gm__data_place_names(&tier->place, side_visit, (void *)(uintptr_t)tier);
}
