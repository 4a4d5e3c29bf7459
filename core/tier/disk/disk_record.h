/* Writing records to a disk tier's file. REQUIRES, for each function: the writer's lock. */
#ifndef GM_CORE_TIER_DISK_RECORD_H
#define GM_CORE_TIER_DISK_RECORD_H

#include "core/tier/disk/disk_tier.h"

/* Makes the buffers large enough for the chunks of a value of so many bytes. Their contents are lost. */
gm_status gm__disk_buffers(gm__disk_tier *tier, uint64_t value_bytes, gm_error *err);

/* Writes a whole record behind the last one. After a failure the file ends where it ended before. *out is the record.
 */
gm_status gm__disk_write(gm__disk_tier *tier, gm__disk_kind kind, const void *key, size_t key_bytes,
                         const gm_tier_part *parts, uint64_t value_bytes, gm__disk_record *out, gm_error *err);

/* Appends a record without a value. */
gm_status gm__disk_append(gm__disk_tier *tier, gm__disk_kind kind, const void *key, size_t key_bytes, gm_error *err);

/* Makes room for one more place of a record that is to be marked dead. */
gm_status gm__disk_replaced_reserve(gm__disk_tier *tier, gm_error *err);

#endif
