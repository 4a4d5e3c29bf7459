/* gm_file_read: a read of one range, in the calling thread. */
#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/file/read.h"

static const char file_read_op[] = "gm_file_read";

static gm_status file_read_all(gm__read *read, gm_error *err) {
  for (;;) {
    gm__read_piece *piece = NULL;
    const gm_status status = gm__read_next(read, GM__NEVER, &piece, err);
    if (status != GM_OK || !piece) return status;
    gm__read_done(read, piece);
  }
}

gm_status gm_file_read(gm_file *file, uint64_t offset, void *to, uint64_t bytes, gm_error *err) {
  GM__UNCANCELLED();
  gm__read *read = NULL;
  if (!file) return gm__bad_argument(err, file_read_op, "`file` is NULL");
  if (file->fresh) return gm__bad_argument(err, file_read_op, "`file` is from gm_file_create: it can only be written");
  if (!to && bytes) return gm__bad_argument(err, file_read_op, "`to` is NULL");
  if (offset > file->input.bytes || bytes > file->input.bytes - offset) {
    return gm__bad_argument(err, file_read_op, "%llu bytes at %llu end behind the file, which has %llu",
                            (unsigned long long)bytes, (unsigned long long)offset,
                            (unsigned long long)file->input.bytes);
  }
  const gm__read_range range = {.file = file, .at = offset, .bytes = bytes, .to = to};
  const gm__read_params params = {.services = file->services};
  gm_status status = gm__read_start(&range, 1, &params, &read, err);
  if (status == GM_OK) status = file_read_all(read, err);
  gm__read_end(read);
  return status;
}
