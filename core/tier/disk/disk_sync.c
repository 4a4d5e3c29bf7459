#include "core/tier/disk/disk_sync.h"

#include "core/base/error.h"

gm_status gm__disk_is_stuck(const gm__disk_tier *tier, gm_error *err) {
  if (!tier->stuck) return GM_OK;
  return gm__fail(err, GM_ERR_IO, "disk tier", "%.200s: %s: close and open the tier", tier->path, tier->stuck);
}

gm_status gm__disk_sync(gm__disk_tier *tier, gm_error *err) {
  gm_status status = gm__disk_is_stuck(tier, err);
  if (status) return status;
  status = gm__data_file_sync(&tier->file->file, tier->path, err);
  if (!status && !tier->name_synced) {
    status = gm__data_place_sync(&tier->place, &tier->file->file, tier->path, err);
    tier->name_synced = !status;
  }
  if (status) tier->stuck = "the disk did not take what was written before";
  return status;
}
