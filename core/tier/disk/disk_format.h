/* The bytes of a disk tier's file (docs/inside/disk-tier.md): written by these functions, and read as hostile input.
 * Pure: no file, no memory of their own. */
#ifndef GM_CORE_TIER_DISK_FORMAT_H
#define GM_CORE_TIER_DISK_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/tier.h"

enum {
  GM__DISK_START = 4096,    /* where the first record may begin */
  GM__DISK_UNIT = 64,       /* records begin at multiples of it */
  GM__DISK_HEAD = 80,       /* bytes of a record before its key */
  GM__DISK_ENTRY = 16,      /* bytes of a chunk in the table of a record */
  GM__DISK_CHUNK = 1 << 20, /* bytes of a value in one chunk; the last one may have less */
  GM__DISK_STATE_AT = 8     /* where in a record its state lies */
};

#define GM__DISK_VALUE_MOST (UINT64_C(1) << 50)
#define GM__DISK_LIVE UINT64_C(0x6c69766576616c75)
#define GM__DISK_DEAD UINT64_C(0x9396a9f1a25a7b3c) /* there is a newer one of its key */
#define GM__DISK_VOID UINT64_C(0x3ac5500d5cb19ee7) /* a crash tore it, so it never counted */

typedef enum gm__disk_kind {
  GM__DISK_PUT = 1,
  GM__DISK_REMOVE = 2, /* a key without a value */
  GM__DISK_FLUSHED = 3 /* all that stands before is on the disk; no key, no value */
} gm__disk_kind;

typedef struct gm__disk_record {
  uint64_t at;    /* in the file */
  uint64_t bytes; /* of the whole record, a multiple of GM__DISK_UNIT */
  uint64_t value_bytes;
  uint64_t sequence; /* rises with each record of a file */
  uint64_t state;    /* GM__DISK_LIVE, GM__DISK_DEAD, GM__DISK_VOID, or damaged */
  uint32_t kind, key_bytes, chunks;
} gm__disk_record;

typedef struct gm__disk_chunk {
  uint32_t bytes; /* in the file */
  uint32_t codec; /* gm_tier_codec, not AUTO */
  uint64_t checksum;
} gm__disk_chunk;

/* ---- the beginning of a file ---- */

/* Fills GM__DISK_START bytes. */
void gm__disk_super_write(unsigned char *out, uint64_t store);

/* Reads GM__DISK_START bytes. FORMAT: no file of a disk tier, of another version, or of another kind of checksum. */
gm_status gm__disk_super_read(const unsigned char *in, const char *path, uint64_t *out_store, gm_error *err);

/* Whether GM__DISK_START bytes that were read are as gm writes them, seals aside: both copies, and nothing else. */
bool gm__disk_start_is_whole(const unsigned char *in, uint64_t store);

/* ---- seals: how far the file reached when it was flushed ----
 *
 * A file has places for two, which are written in turn. So a crash that tears one leaves the one before. */

enum { GM__DISK_SEALS = 2, GM__DISK_SEAL_BYTES = 32 };

typedef struct gm__disk_seal {
  uint64_t end;    /* records up to here were on the disk; 0: there is no seal */
  uint64_t number; /* counted from 1 */
} gm__disk_seal;

/* Where in the beginning of a file the seal of a number lies. */
uint64_t gm__disk_seal_at(uint64_t number);

void gm__disk_seal_write(unsigned char *out, const gm__disk_seal *seal, uint64_t store);

/* Reads one of GM__DISK_SEAL_BYTES. A damaged one, or one of another file, is none. */
gm__disk_seal gm__disk_seal_read(const unsigned char *in, uint64_t store);

/* ---- records: the front is head, key and table of chunks ---- */

uint32_t gm__disk_chunks_of(uint64_t value_bytes);

/* The bytes of chunk `index` of a value before it was packed. */
uint32_t gm__disk_chunk_plain(const gm__disk_record *record, uint32_t index);

uint64_t gm__disk_front_bytes(const gm__disk_record *record);

/* Reads a head of GM__DISK_HEAD bytes that lies at `at` of a file of `file_bytes`. False: no record begins there. */
bool gm__disk_head_read(const unsigned char *head, uint64_t at, uint64_t store, uint64_t file_bytes,
                        gm__disk_record *out);

/* Checks a whole front, whose head was read into `record`: its checksum, and that the chunks fill the record. */
bool gm__disk_front_is_right(const unsigned char *front, const gm__disk_record *record);

/* Fills the head of a front whose key and table are there already. */
void gm__disk_front_finish(unsigned char *front, const gm__disk_record *record, uint64_t store);

gm__disk_chunk gm__disk_chunk_read(const unsigned char *front, const gm__disk_record *record, uint32_t index);
void gm__disk_chunk_write(unsigned char *front, const gm__disk_record *record, uint32_t index,
                          const gm__disk_chunk *chunk);

/* The checksum of a chunk's bytes in the file. Equal bytes elsewhere have another one. */
uint64_t gm__disk_chunk_checksum(const gm__disk_record *record, uint32_t index, const void *bytes, uint32_t count);

/* The 8 bytes of a state. */
void gm__disk_state_write(unsigned char *out, uint64_t state);

#endif
