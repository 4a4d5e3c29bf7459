#include "core/room/promise_record.h"

#include <stddef.h>
#include <string.h>

#include "core/base/error.h"

enum { PROMISE_VERSION = 1 };

typedef struct promise_head {
  char name[16];
  uint32_t version, records, record_bytes;
  uint8_t rest[36];
} promise_head;

typedef struct promise_record {
  uint8_t card[GM__PROMISE_CARD_BYTES];
  uint64_t bytes; /* 0: free */
  uint64_t space, start;
  uint64_t pid;
  uint64_t rest;
  uint64_t check;
} promise_record;

_Static_assert(sizeof(promise_head) == GM__PROMISE_RECORD_BYTES, "the head has the length of a record");
_Static_assert(sizeof(promise_record) == GM__PROMISE_RECORD_BYTES, "records have one length");

/* FNV-1a. All builds of gm must agree, so gm__checksum does not serve. */
static uint64_t promise_fnv(const void *data, size_t bytes) {
  const unsigned char *byte = data;
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < bytes; i++) hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
  return hash;
}

uint64_t gm__promise_at(uint32_t record) { return (record + UINT64_C(1)) * GM__PROMISE_RECORD_BYTES; }

uint64_t gm__promise_hash(const uint8_t card[GM__PROMISE_CARD_BYTES]) {
  return promise_fnv(card, GM__PROMISE_CARD_BYTES);
}

void gm__promise_head(unsigned char out[GM__PROMISE_RECORD_BYTES]) {
  const promise_head head = {.name = "gm promises\n",
                             .version = PROMISE_VERSION,
                             .records = GM__PROMISE_RECORDS,
                             .record_bytes = GM__PROMISE_RECORD_BYTES};
  memcpy(out, &head, sizeof head);
}

gm_status gm__promise_head_check(const char *path, const unsigned char head[GM__PROMISE_RECORD_BYTES], gm_error *err) {
  promise_head expected;
  gm__promise_head((unsigned char *)&expected);
  if (memcmp(head, &expected, sizeof expected) == 0) return GM_OK;
  if (memcmp(head, expected.name, sizeof expected.name) == 0) {
    return gm__fail(err, GM_ERR_FORMAT, "open", "%.300s: another version of gm keeps its promises there", path);
  }
  return gm__fail(err, GM_ERR_FORMAT, "open", "%.300s: is no file of promises; remove it", path);
}

void gm__promise_pack(const gm__promise *promise, unsigned char out[GM__PROMISE_RECORD_BYTES]) {
  promise_record record = {
      .bytes = promise->bytes, .space = promise->owner.space, .start = promise->owner.start, .pid = promise->owner.pid};
  memset(out, 0, sizeof record);
  if (promise->bytes == 0) return;
  memcpy(record.card, promise->card, sizeof record.card);
  record.check = promise_fnv(&record, offsetof(promise_record, check));
  memcpy(out, &record, sizeof record);
}

bool gm__promise_unpack(const unsigned char packed[GM__PROMISE_RECORD_BYTES], gm__promise *out) {
  promise_record record;
  memcpy(&record, packed, sizeof record);
  if (record.bytes == 0 || record.check != promise_fnv(&record, offsetof(promise_record, check))) return false;
  if (record.pid > UINT32_MAX) return false;
  *out = (gm__promise){.bytes = record.bytes,
                       .owner = {.space = record.space, .start = record.start, .pid = (uint32_t)record.pid}};
  memcpy(out->card, record.card, sizeof out->card);
  return true;
}
