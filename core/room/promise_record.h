/* The contents of the file of promises: a head, and records of one length. The layout is that of this machine. Pure. */
#ifndef GM_CORE_ROOM_PROMISE_RECORD_H
#define GM_CORE_ROOM_PROMISE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/host/task.h"
#include "gm/status.h"

enum {
  GM__PROMISE_CARD_BYTES = 16,
  GM__PROMISE_RECORDS = 256,
  GM__PROMISE_RECORD_BYTES = 64, /* of the head, too */
  GM__PROMISE_FILE_BYTES = (GM__PROMISE_RECORDS + 1) * GM__PROMISE_RECORD_BYTES
};

/* `owner` promises `bytes` on a card, more than 0. */
typedef struct gm__promise {
  uint8_t card[GM__PROMISE_CARD_BYTES];
  uint64_t bytes;
  gm__task owner;
} gm__promise;

/* Where the record with that number begins in the file. */
uint64_t gm__promise_at(uint32_t record);

/* A number for a card, the one that all processes find. */
uint64_t gm__promise_hash(const uint8_t card[GM__PROMISE_CARD_BYTES]);

void gm__promise_head(unsigned char out[GM__PROMISE_RECORD_BYTES]);

/* FORMAT: it is not the head of such a file, or it is one of another version. `path` is for the message. */
gm_status gm__promise_head_check(const char *path, const unsigned char head[GM__PROMISE_RECORD_BYTES], gm_error *err);

/* A promise as a record. One of 0 bytes makes a free record. */
void gm__promise_pack(const gm__promise *promise, unsigned char out[GM__PROMISE_RECORD_BYTES]);

/* False: the record is free, or damaged, or was written by half. */
bool gm__promise_unpack(const unsigned char record[GM__PROMISE_RECORD_BYTES], gm__promise *out);

#endif
