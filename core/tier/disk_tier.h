/* Inside of a disk tier: a file of records, and an index of the newest record of each key. */
#ifndef GM_CORE_TIER_DISK_TIER_H
#define GM_CORE_TIER_DISK_TIER_H

#include <stdatomic.h>

#include "core/base/data_file.h"
#include "core/base/file.h"
#include "core/context/context.h"
#include "core/tier/disk_format.h"
#include "core/tier/key_map.h"

/* An open file. The tier is one user of it, and each open value another. So a value can be read after a compaction has
 * given the tier another file. */
typedef struct gm__disk_file {
  gm__data_file file;
  uint64_t store; /* the number that is in each of its records */
  _Atomic uint32_t users;
} gm__disk_file;

typedef struct gm__disk_entry {
  gm__key_entry head;
  uint64_t at, bytes; /* of the record */
  uint64_t value_bytes;
  uint64_t moved_at; /* its place in the file that a compaction writes */
  bool damaged;      /* there is a record, and its value is lost */
} gm__disk_entry;

typedef struct gm__disk_tier {
  gm_context *ctx;
  gm_tier_params params;
  char path[GM__FILE_PATH_SIZE];
  char fresh_path[GM__FILE_PATH_SIZE]; /* where a new file is written before it gets the name of the old one */

  gm__mutex writer;    /* one thread writes, and changes what follows */
  uint64_t end;        /* of the last record */
  uint64_t flushed_at; /* of the last record of kind FLUSHED; 0: none */
  uint64_t sequence;   /* of the last record */
  uint64_t *replaced;  /* places of records that are to be marked dead once their successors are on the disk */
  size_t replaced_count, replaced_capacity;
  unsigned char *chunk, *packed; /* GM__DISK_CHUNK bytes each; NULL: not yet needed */
  bool stuck;                    /* a record that failed could not be cut off: nothing may be written behind it */

  gm__mutex lock; /* guards what follows; taken inside `writer` */
  gm__disk_file *file;
  gm__key_map entries;
  uint64_t dead_bytes; /* of records that a compaction leaves out */
  gm_tier_stats stats;
} gm__disk_tier;

static inline const gm_services *gm__disk_services(const gm__disk_tier *tier) {
  return gm__context_services(tier->ctx);
}

/* ---- files (disk_file.c) ---- */

/* Makes a file with no record at `fresh_path`, locked. The caller drops *out. */
gm_status gm__disk_file_make(gm__disk_tier *tier, gm__disk_file **out, gm_error *err);

/* Opens the tier's file, and makes it where there is none and the tier may write. */
gm_status gm__disk_file_open(gm__disk_tier *tier, gm__disk_file **out, gm_error *err);

/* Ends one use of a file; the last one closes it. NULL is allowed. */
void gm__disk_file_drop(const gm__disk_tier *tier, gm__disk_file *file);

/* ---- the index at opening (disk_scan.c) ---- */

gm_status gm__disk_scan(gm__disk_tier *tier, gm_error *err);

/* Checks each chunk of a record's value against its checksum. `room` has GM__DISK_CHUNK bytes. DAMAGED: it is another.
 */
gm_status gm__disk_verify(const gm__disk_tier *tier, const gm__disk_file *file, const gm__disk_record *record,
                          const unsigned char *front, unsigned char *room, gm_error *err);

/* Reads the front of a record. *out has *out_bytes bytes, and the caller releases it. DAMAGED: no such record is there.
 */
gm_status gm__disk_front_load(const gm__disk_tier *tier, const gm__disk_file *file, uint64_t at, uint64_t front_bytes,
                              gm__disk_record *record, unsigned char **out, gm_error *err);

/* ---- writing (disk_put.c); REQUIRES: writer's lock ---- */

/* Has the writer its chunk buffers? They are made at the first need. */
gm_status gm__disk_buffers(gm__disk_tier *tier, gm_error *err);

/* Appends a record without a value. */
gm_status gm__disk_append(gm__disk_tier *tier, gm__disk_kind kind, const void *key, size_t key_bytes, gm_error *err);

/* Makes room for one more place of a record that is to be marked dead. */
gm_status gm__disk_replaced_reserve(gm__disk_tier *tier, gm_error *err);

gm_status gm__disk_put(void *own, const void *key, size_t key_bytes, const gm_tier_part *parts, size_t count,
                       gm_error *err);
gm_status gm__disk_remove(void *own, const void *key, size_t key_bytes, gm_error *err);

/* ---- flushing and compacting (disk_flush.c) ---- */

gm_status gm__disk_flush(void *own, gm_error *err);

/* As gm__disk_flush. REQUIRES: writer's lock. */
gm_status gm__disk_flush_now(gm__disk_tier *tier, gm_error *err);

/* Writes a file of the newest records, and puts it in the place of the tier's file. REQUIRES: writer's lock. */
gm_status gm__disk_compact(gm__disk_tier *tier, gm_error *err);

/* ---- reading (disk_get.c) ---- */

gm_status gm__disk_value_open(void *own, const void *key, size_t key_bytes, void **out_value, uint64_t *out_bytes,
                              gm_error *err);
gm_status gm__disk_value_read(void *own, void *value, uint64_t offset, void *dst, uint64_t bytes, gm_error *err);
void gm__disk_value_close(void *own, void *value);

#endif
