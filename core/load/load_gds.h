/* Tensors of a load that go from the drive straight to a card, by GPUDirect Storage. These are large ones that lie to a
 * page in memory as they do in their file. All others go as by GM_LOAD_PATH_AUTO, and so does all that is left after
 * the first failure. One thread, but for the reads themselves. */
#ifndef GM_CORE_LOAD_LOAD_GDS_H
#define GM_CORE_LOAD_LOAD_GDS_H

#include <stdatomic.h>

#include "core/file/read_range.h"
#include "core/model/model.h"
#include "core/staging/gds.h"

struct gm__load_job;

/* One file. */
typedef struct gm__load_gds_file {
  struct gm__load_gds *all;
  gm__read_far far; /* for its ranges */
  gm__gds *gds;     /* NULL: not open */
  bool tried;
} gm__load_gds_file;

typedef struct gm__load_gds {
  const gm_model *model;
  gm__load_gds_file *each; /* by shard; NULL: nobody asked for that path */
  atomic_bool failed;      /* a read did */
  char why[192];           /* why something goes another way; "": nothing to say. After a failed read: its reason */
} gm__load_gds;

/* No file is open yet. gm__load_gds_end ends it, also after a failure. OUT_OF_HOST_MEMORY. */
gm_status gm__load_gds_make(gm__load_gds *gds, const gm_model *model, gm_error *err);
void gm__load_gds_end(gm__load_gds *gds);

/* How the block of a range is aligned, of which `asked` is wanted at least. */
uint32_t gm__load_gds_align(const gm__read_range *range, uint32_t asked);

/* Lets the ranges of a job that can go this way do so, and opens their files. The helper process tries cuFile first.
 * REQUIRES: blocks, and checksum files where they are compared. */
void gm__load_gds_aim(struct gm__load_job *job);

uint64_t gm__load_gds_host_bytes(const gm__load_gds *gds);

#endif
