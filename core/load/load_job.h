/* One call of gm_model_load: what its steps share. First blocks for all tensors, then their bytes in the order of the
 * files, then verification. */
#ifndef GM_CORE_LOAD_LOAD_JOB_H
#define GM_CORE_LOAD_LOAD_JOB_H

#include <stdatomic.h>

#include "core/load/load_files.h"
#include "core/load/load_gds.h"
#include "core/load/load_lane.h"
#include "core/load/load_places.h"
#include "core/load/load_sums.h"
#include "core/load/loaded_model.h"

enum { GM__LOAD_LARGE = 1 << 20 /* tensors from here on lie in memory as they do in their file, where that helps */ };

typedef struct gm__load_job {
  const gm_model *model;
  gm_load_params params;
  gm__load_places *places; /* those of `loaded` */
  gm_loaded_model *loaded;
  gm__load_files files;
  gm__load_lanes lanes;
  gm__load_gds gds;
  /* By tensor. The range of its file that this call reads, with its address where the host writes it straight; 0 bytes:
   * nothing is read. */
  gm__read_range *ranges;
  bool *mapped;         /* by tensor: its block lies in its file; NULL: none may */
  const char *unmapped; /* why some that might lie there do not; NULL: nothing to say */
  uint64_t *left;       /* by tensor, of its range: what has not arrived; NULL: nobody asks */
  /* By tensor, NULL without verify: the sum of the checksums of its parts, as they arrived. A part is what lies in one
   * stretch of piece_bytes of the file. The seed of a part is where it begins. */
  _Atomic(uint64_t) *sums;
  gm__load_sums file_sums; /* with verify: checksum files, where there are any */
  uint64_t piece_bytes;
  uint32_t workers; /* threads; 0: the caller does all */
  bool resumes;     /* an earlier call has made the blocks, and read a part */
  bool kept;        /* the call failed, and what has arrived is noted in `loaded` */
  gm_load_progress progress;
  gm_load_result result;
  uint64_t read_bytes; /* host memory of the read */
} gm__load_job;

/* Tells `progress` where the load is. CANCELLED: the caller wants no more. */
gm_status gm__load_report(gm__load_job *job, uint64_t tensor, gm_error *err);

/* A block for every chosen tensor, and its range. */
gm_status gm__load_blocks(gm__load_job *job, gm_error *err);

/* Where a tensor's block may be its part of the file, makes it so: *out_host is where its range lies. Otherwise it is
 * NULL, and nothing is done. Errors: those of gm_block_wrap, IO. */
gm_status gm__load_map_tensor(gm__load_job *job, uint64_t index, const gm__read_range *range, unsigned char **out_host,
                              gm_error *err);

/* All bytes, into the blocks. On return nothing is under way. */
gm_status gm__load_read(gm__load_job *job, gm_error *err);

/* Compares all bytes in the blocks with what arrived, or with what the files' checksum files say. IO: some differ. */
gm_status gm__load_verify(gm__load_job *job, gm_error *err);

/* The bytes of tensor `index` from byte `from` on that arrive as one part. */
static inline uint64_t gm__load_part_bytes(const gm__load_job *job, uint64_t index, uint64_t from) {
  uint64_t extent;
  return gm__read_range_part(&job->ranges[index], job->piece_bytes, from, &extent);
}

/* Where the byte `from` of the range of tensor `index` lies in its block. */
static inline uint64_t gm__load_block_at(const gm__load_job *job, uint64_t index, uint64_t from) {
  return job->loaded->there ? job->loaded->there[index] + from : from;
}

static inline bool gm__load_is_mapped(const gm__load_job *job, uint64_t index) {
  return job->mapped && job->mapped[index];
}

/* The lane of a tensor that the host does not write straight. */
static inline const gm__load_lane *gm__load_lane_at(const gm__load_job *job, uint64_t index) {
  return job->ranges[index].room->user;
}

#endif
