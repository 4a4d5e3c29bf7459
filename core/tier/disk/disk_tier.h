/* Inside of a disk tier: a file of records, and an index of the newest record of each key. */
#ifndef GM_CORE_TIER_DISK_TIER_H
#define GM_CORE_TIER_DISK_TIER_H

#include <stdatomic.h>

#include "core/base/data_place.h"
#include "core/base/file.h"
#include "core/base/key_map.h"
#include "core/context/context.h"
#include "core/tier/disk/disk_format.h"

/* An open file. The tier is one user of it, and each open value another. So a value can be read after a compaction has
 * given the tier another file. */
typedef struct gm__disk_file {
  gm__data_file file;
  uint64_t store;      /* the number that is in each of its records */
  bool start_is_whole; /* when it was opened, its beginning was as gm writes it */
  _Atomic uint32_t users;
} gm__disk_file;

typedef struct gm__disk_entry {
  gm__key_entry head;
  uint64_t at, bytes; /* of the record; 0: a compaction left it out, its value is lost */
  uint64_t value_bytes;
  uint64_t moved_at; /* its place in the file that a compaction writes; 0: it is left out */
  bool damaged;      /* there is a record, and its value is lost */
} gm__disk_entry;

typedef struct gm__disk_tier {
  gm_context *ctx;
  gm_tier_params params;
  char path[GM__FILE_PATH_SIZE]; /* as it was given, for messages */
  gm__data_place place;          /* where the tier's file lies */

  gm__mutex writer;     /* one thread writes, and changes what follows */
  uint64_t end;         /* of the last record */
  uint64_t flushed_end; /* `end` after the last flush or compaction; 0: there was none */
  uint64_t sequence;    /* of the last record */
  uint64_t seals;       /* the number of the last seal */
  uint64_t compact_at;  /* dead bytes with which a compaction is tried again that failed; 0: none failed */
  uint64_t *replaced;   /* places of records that are to be marked dead once their successors are on the disk */
  size_t replaced_count, replaced_capacity;
  unsigned char *chunk, *packed; /* buffer_bytes each, one behind the other */
  uint64_t buffer_bytes;         /* at most GM__DISK_CHUNK; 0: not yet needed */
  const char *stuck;             /* why nothing may be written until the tier was opened anew; NULL: it may */
  bool name_synced;              /* the file's name is on the disk */

  gm__mutex lock; /* guards what follows; taken inside `writer` */
  gm__disk_file *file;
  gm__key_map entries;
  uint64_t dead_bytes; /* of records that a compaction leaves out */
  gm_tier_stats stats;
} gm__disk_tier;

static inline const gm_services *gm__disk_services(const gm__disk_tier *tier) {
  return gm__context_services(tier->ctx);
}

#endif
