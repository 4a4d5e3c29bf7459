/* The fronts of records in a file, and whether their values are whole. */
#ifndef GM_CORE_TIER_DISK_FRONT_H
#define GM_CORE_TIER_DISK_FRONT_H

#include "core/tier/disk/disk_tier.h"

/* Checks each chunk of a record's value against its checksum. `room` has as many bytes as the value, at most
 * GM__DISK_CHUNK. DAMAGED: it is another.
 */
gm_status gm__disk_verify(const gm__disk_tier *tier, const gm__disk_file *file, const gm__disk_record *record,
                          const unsigned char *front, unsigned char *room, gm_error *err);

/* Writes a record again as it is, so that the next sync waits for it. REQUIRES: writer's lock; gm__disk_verify. */
gm_status gm__disk_renew(const gm__disk_tier *tier, const gm__disk_record *record, const unsigned char *front,
                         gm_error *err);

/* Reads the front of a record. *out has *out_bytes bytes, and the caller releases it. DAMAGED: no such record is there.
 */
gm_status gm__disk_front_load(const gm__disk_tier *tier, const gm__disk_file *file, uint64_t at, uint64_t front_bytes,
                              gm__disk_record *record, unsigned char **out, gm_error *err);

#endif
