#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/tier/remote/remote_key.h"
#include "core/tier/remote/remote_run.h"
#include "core/tier/remote/remote_turn.h"
#include "core/tier/remote/remote_value.h"

/* Invariants. No byte goes out of a chunk whose checksum is not right. An open value is its manifest, which does not
 * change: a later put writes other chunks. */

typedef struct remote_value {
  gm__manifest manifest;
  gm__reply *bytes; /* the manifest as it came */
  size_t key_bytes;
  unsigned char key[];
} remote_value;

typedef struct get_chunks {
  gm__remote_request requests[GM__REMOTE_WINDOW];
  gm__remote_chunk_key keys[GM__REMOTE_WINDOW];
} get_chunks;

/* Asks for what stands under a key. */
static gm_status get_manifest(gm__remote_tier *tier, const void *key, size_t key_bytes, gm__reply **out) {
  gm__remote_key name;
  gm__remote_key_make(&name, tier->where.prefix, key, key_bytes);
  gm__remote_request request = {.args = {{"GET", 3}, {name.text, name.bytes}}, .count = 2, .key = 1};
  gm_status status = gm__remote_run(tier, &request, 1);
  if (status) return status;
  if (request.reply->kind == GM__REPLY_NIL) {
    status = gm__fail(&tier->trouble, GM_ERR_NOT_FOUND, tier->op, "the tier has no value of that key");
  } else {
    status = gm__remote_expect(tier, &request, GM__REPLY_STRING);
  }
  if (status)
    gm__remote_run_end(tier, &request, 1);
  else
    *out = request.reply;
  return status;
}

static gm_status get_open(gm__remote_tier *tier, remote_value *value, const void *key, size_t key_bytes) {
  memcpy(value->key, key, key_bytes);
  value->key_bytes = key_bytes;
  gm_status status = get_manifest(tier, key, key_bytes, &value->bytes);
  if (!status) {
    status = gm__manifest_read(value->bytes->text, value->bytes->bytes, key, key_bytes, &value->manifest, tier->op,
                               &tier->trouble);
  }
  if (status == GM_ERR_NOT_FOUND) gm__remote_count(tier, GM__REMOTE_MISSES);
  if (status == GM_ERR_DAMAGED) gm__remote_count(tier, GM__REMOTE_DAMAGED);
  if (!status) gm__remote_count(tier, GM__REMOTE_GETS);
  return status;
}

static void get_end(const gm__remote_tier *tier, remote_value *value, size_t key_bytes) {
  gm__reply_free(gm__remote_services(tier), value->bytes);
  gm__release(gm__remote_services(tier), value, sizeof *value + key_bytes);
}

gm_status gm__remote_value_open(void *own, const void *key, size_t key_bytes, void **out_value, uint64_t *out_bytes,
                                gm_error *err) {
  static const char op[] = "gm_tier_value_open";
  gm__remote_tier *tier = own;
  remote_value *value = gm__alloc(gm__remote_services(tier), sizeof *value + key_bytes);
  if (!value) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a value");
  gm_status status = gm__remote_enter(tier, op, err);
  if (!status) status = gm__remote_leave(tier, get_open(tier, value, key, key_bytes), err);
  if (status) {
    get_end(tier, value, key_bytes);
    return status;
  }
  *out_value = value;
  *out_bytes = value->manifest.value_bytes;
  return GM_OK;
}

void gm__remote_value_close(void *own, void *opened) {
  remote_value *value = opened;
  get_end(own, value, value->key_bytes);
}

/* ---- reading ---- */

/* A chunk is not there. Was the value replaced, or is it damaged? */
static gm_status get_missing(gm__remote_tier *tier, const remote_value *value) {
  gm__reply *now = NULL;
  gm__manifest manifest;
  const gm_status status = get_manifest(tier, value->key, value->key_bytes, &now);
  if (status && status != GM_ERR_NOT_FOUND) return status;
  const bool same = now && gm__manifest_peek(now->text, now->bytes, &manifest) &&
                    memcmp(manifest.version, value->manifest.version, sizeof manifest.version) == 0;
  gm__reply_free(gm__remote_services(tier), now);
  if (!same) {
    return gm__fail(&tier->trouble, GM_ERR_NOT_FOUND, tier->op,
                    "the value was replaced or removed over " GM__REMOTE_GRACE_MS " ms ago, and the server forgot it");
  }
  gm__remote_count(tier, GM__REMOTE_DAMAGED);
  return gm__fail(&tier->trouble, GM_ERR_DAMAGED, tier->op, "the server lost a chunk of the value");
}

static gm_status get_chunk(gm__remote_tier *tier, const remote_value *value, uint32_t index,
                           const gm__remote_request *request, uint64_t offset, unsigned char *dst, uint64_t bytes) {
  const gm__reply *reply = request->reply;
  if (reply->kind == GM__REPLY_NIL) return get_missing(tier, value);
  const gm_status status = gm__remote_expect(tier, request, GM__REPLY_STRING);
  if (status) return status;
  if (reply->bytes != gm__manifest_chunk_bytes(&value->manifest, index) ||
      gm__manifest_chunk_checksum(index, reply->text, reply->bytes) !=
          gm__manifest_checksum(value->bytes->text, index)) {
    gm__remote_count(tier, GM__REMOTE_DAMAGED);
    return gm__fail(&tier->trouble, GM_ERR_DAMAGED, tier->op, "the value on the server is damaged");
  }
  const uint64_t begin = (uint64_t)index * GM__REMOTE_CHUNK, from = gm__max(begin, offset);
  const uint64_t to = gm__min(begin + reply->bytes, offset + bytes);
  memcpy(dst + (from - offset), reply->text + (from - begin), (size_t)(to - from));
  return GM_OK;
}

static gm_status get_window(gm__remote_tier *tier, const remote_value *value, get_chunks *chunks, uint32_t first,
                            uint32_t count, uint64_t offset, void *dst, uint64_t bytes) {
  for (uint32_t i = 0; i < count; i++) {
    gm__remote_chunk_key *key = &chunks->keys[i];
    gm__remote_chunk_key_make(key, tier->where.prefix, value->manifest.version, first + i);
    chunks->requests[i] = (gm__remote_request){.args = {{"GET", 3}, {key->text, key->bytes}}, .count = 2, .key = 1};
  }
  gm_status status = gm__remote_run(tier, chunks->requests, count);
  for (uint32_t i = 0; i < count && !status; i++) {
    status = get_chunk(tier, value, first + i, &chunks->requests[i], offset, dst, bytes);
  }
  gm__remote_run_end(tier, chunks->requests, count);
  return status;
}

static gm_status get_range(gm__remote_tier *tier, const remote_value *value, uint64_t offset, void *dst,
                           uint64_t bytes) {
  const uint32_t end = (uint32_t)((offset + bytes - 1) / GM__REMOTE_CHUNK) + 1;
  get_chunks *chunks = gm__alloc(gm__remote_services(tier), sizeof *chunks);
  if (!chunks) {
    return gm__fail(&tier->trouble, GM_ERR_OUT_OF_HOST_MEMORY, tier->op, "no host memory for requests");
  }
  gm_status status = GM_OK;
  for (uint32_t first = (uint32_t)(offset / GM__REMOTE_CHUNK); !status && first < end; first += GM__REMOTE_WINDOW) {
    const uint32_t count = (uint32_t)gm__min(end - first, GM__REMOTE_WINDOW);
    status = get_window(tier, value, chunks, first, count, offset, dst, bytes);
  }
  gm__release(gm__remote_services(tier), chunks, sizeof *chunks);
  return status;
}

gm_status gm__remote_value_read(void *own, void *opened, uint64_t offset, void *dst, uint64_t bytes, gm_error *err) {
  gm__remote_tier *tier = own;
  const remote_value *value = opened;
  if (!value->manifest.chunks) {
    memcpy(dst, value->bytes->text + GM__MANIFEST_HEAD + offset, (size_t)bytes);
    return GM_OK;
  }
  const gm_status status = gm__remote_enter(tier, "gm_tier_value_read", err);
  return status ? status : gm__remote_leave(tier, get_range(tier, value, offset, dst, bytes), err);
}
