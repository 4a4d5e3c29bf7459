#include "core/staging/gds.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/env.h"
#include "core/base/error.h"
#include "core/discovery/cufile.h"

static const char gds_op[] = "cuFileRead";
enum { GDS_PIECE = 16 << 20 }; /* bytes of one call */

struct gm__gds {
  const gm_services *services;
  gm__cufile file;
  char path[];
};

/* The helper has seen cuFile open in this process's world: later files need no helper. */
static atomic_bool gds_was_good;

static size_t gds_size(const char *path) { return sizeof(gm__gds) + strlen(path) + 1; }

gm_status gm__gds_open(gm_context *ctx, const char *path, gm__gds **out, gm_error *err) {
  const char *library = ctx->ignore_environment ? NULL : gm__env("GM_CUFILE_LIBRARY");
  const gm_services *services = gm__context_services(ctx);
  gm_status status = GM_OK;
  if (!atomic_load(&gds_was_good)) status = gm__cufile_probe(ctx, library, path, err);
  if (status) return status;
  gm__gds *gds = gm__alloc(services, gds_size(path));
  if (!gds) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gds_open", "no host memory for an open file");
  gds->services = services;
  memcpy(gds->path, path, strlen(path) + 1);
  status = gm__cufile_open(services, library, path, NULL, NULL, &gds->file, err);
  if (status) {
    gm__release(services, gds, gds_size(path));
    return status;
  }
  atomic_store(&gds_was_good, true);
  *out = gds;
  return GM_OK;
}

bool gm__gds_is(const gm__gds *gds, const gm__input_file *file) { return gm__input_file_is(file, gds->file.fd); }

void gm__gds_close(gm__gds *gds) {
  if (!gds) return;
  gm__cufile_close(&gds->file);
  gm__release(gds->services, gds, gds_size(gds->path));
}

void gm__gds_middle(uint64_t offset, uint64_t address, uint64_t bytes, uint64_t *out_front, uint64_t *out_middle) {
  const uint64_t front = (GM__GDS_ALIGN - offset % GM__GDS_ALIGN) % GM__GDS_ALIGN;
  *out_front = *out_middle = 0;
  if (offset % GM__GDS_ALIGN != address % GM__GDS_ALIGN || bytes < front) return;
  const uint64_t middle = (bytes - front) / GM__GDS_ALIGN * GM__GDS_ALIGN;
  if (!middle) return;
  *out_front = front;
  *out_middle = middle;
}

/* Tells why a read brought nothing. */
static gm_status gds_failed(const gm__gds *gds, ssize_t got, int error, uint64_t at, gm_error *err) {
  if (!got) return gm__fail(err, GM_ERR_IO, gds_op, "%.300s: ends before byte %" PRIu64, gds->path, at);
  if (got == -1)
    return gm__fail_native(err, GM_ERR_IO, error, gds_op, "%.300s: byte %" PRIu64 ": %s", gds->path, at,
                           strerror(error));
  return gm__fail_native(err, GM_ERR_NOT_SUPPORTED, (int32_t)-got, gds_op,
                         "%.300s: byte %" PRIu64 ": cuFile's error %lld", gds->path, at, (long long)-got);
}

/* A short read is one to go on from. cuFile may bring less than whole pages; the next read is then not aligned, and
 * cuFile takes care of that by itself. */
gm_status gm__gds_read(gm__gds *gds, uint64_t offset, uintptr_t address, uint64_t bytes, gm_error *err) {
  if ((offset | address | bytes) % GM__GDS_ALIGN) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, gds_op, "%.300s: the read of byte %" PRIu64 " is not aligned to %d",
                    gds->path, offset, GM__GDS_ALIGN);
  }
  if (offset > INT64_MAX || bytes > INT64_MAX - offset) {
    return gm__fail_native(err, GM_ERR_IO, EOVERFLOW, gds_op, "%.300s: no file has byte %" PRIu64, gds->path, offset);
  }
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t piece = bytes - done < GDS_PIECE ? bytes - done : GDS_PIECE;
    const ssize_t got =
        gds->file.calls.read(gds->file.handle, (void *)address, (size_t)piece, (off_t)(offset + done), (off_t)done);
    const int error = errno;
    if (got == -1 && error == EINTR) continue;
    if (got <= 0) return gds_failed(gds, got, error, offset + done, err);
    if ((uint64_t)got > piece)
      return gm__fail(err, GM_ERR_IO, gds_op, "%.300s: cuFile says that it read more than was asked", gds->path);
    done += (uint64_t)got;
  }
  return GM_OK;
}
