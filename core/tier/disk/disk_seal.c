#include "core/tier/disk/disk_seal.h"

/* Invariant: the newest seal never says more than the file has, whatever crash comes. So a file that ends before it was
 * cut, or lost records. */

gm_status gm__disk_seal_put(gm__disk_tier *tier, const gm__disk_file *file, uint64_t end, gm_error *err) {
  unsigned char bytes[GM__DISK_SEAL_BYTES];
  const gm__disk_seal seal = {end, tier->seals + 1};
  gm__disk_seal_write(bytes, &seal, file->store);
  const gm_status status =
      gm__data_file_write(&file->file, tier->path, gm__disk_seal_at(seal.number), bytes, sizeof bytes, err);
  if (!status) tier->seals = seal.number;
  return status;
}

gm_status gm__disk_seal_find(gm__disk_tier *tier, uint64_t *out_end, gm_error *err) {
  gm_status status = GM_OK;
  *out_end = tier->seals = 0;
  for (uint64_t i = 0; i < GM__DISK_SEALS && !status; i++) {
    unsigned char bytes[GM__DISK_SEAL_BYTES];
    status = gm__data_file_read(&tier->file->file, tier->path, gm__disk_seal_at(i), bytes, sizeof bytes, err);
    const gm__disk_seal seal = status ? (gm__disk_seal){0, 0} : gm__disk_seal_read(bytes, tier->file->store);
    if (seal.number <= tier->seals) continue;
    tier->seals = seal.number;
    *out_end = seal.end;
  }
  return status;
}
