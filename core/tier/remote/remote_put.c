#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/tier/remote/remote_key.h"
#include "core/tier/remote/remote_old.h"
#include "core/tier/remote/remote_run.h"
#include "core/tier/remote/remote_turn.h"
#include "core/tier/remote/remote_value.h"

/* Invariants. The manifest goes to the server after all chunks, and only when the server has said that it has them for
 * good. Chunks that no manifest names yet expire by themselves, so a put that ends in the middle leaves nothing. Once
 * the manifest was sent, only the server's refusal makes its chunks needless.
 *
 * A version is current once, in one piece of time: its manifest is sent once. Where the answer is lost, gm asks for
 * what is there. If that is another version, this one may have been current before, and its chunks may expire. So gm
 * puts the value again, as a new version. */

typedef struct put_chunks {
  gm__remote_request requests[GM__REMOTE_WINDOW];
  gm__remote_chunk_key keys[GM__REMOTE_WINDOW];
} put_chunks;

typedef struct put_state {
  gm__remote_tier *tier;
  gm__remote_key key;
  gm__manifest manifest;
  unsigned char *bytes; /* of the manifest */
  const gm_tier_part *parts;
  size_t count;
  size_t part; /* where the next chunk begins */
  uint64_t within;
  put_chunks *chunks;  /* NULL: the value lies in the manifest */
  unsigned char *room; /* for chunks that lie in several parts; NULL: not yet needed */
  uint32_t sent;       /* chunks that the server may have */
} put_state;

enum { PUT_ROOM = GM__REMOTE_WINDOW * GM__REMOTE_CHUNK };

static gm_status put_no_memory(put_state *put) {
  return gm__fail(&put->tier->trouble, GM_ERR_OUT_OF_HOST_MEMORY, put->tier->op, "no host memory for the value");
}

/* Copies the next bytes of the parts. */
static void put_gather(put_state *put, unsigned char *to, uint64_t bytes) {
  while (bytes) {
    const gm_tier_part *part = &put->parts[put->part];
    const uint64_t piece = gm__min(bytes, part->bytes - put->within);
    if (piece) memcpy(to, (const unsigned char *)part->data + put->within, (size_t)piece);
    to += piece;
    bytes -= piece;
    put->within += piece;
    if (put->within < part->bytes) continue;
    put->part++;
    put->within = 0;
  }
}

/* The next bytes as one piece: where they lie, or in `slot` of the room. NULL: no host memory. */
static const void *put_next(put_state *put, uint32_t slot, uint32_t bytes) {
  while (put->parts[put->part].bytes == put->within) put->part++, put->within = 0;
  const gm_tier_part *part = &put->parts[put->part];
  if (part->bytes - put->within >= bytes) {
    const void *at = (const unsigned char *)part->data + put->within;
    put->within += bytes;
    return at;
  }
  if (!put->room) put->room = gm__alloc(gm__remote_services(put->tier), PUT_ROOM);
  if (!put->room) return NULL;
  unsigned char *to = put->room + (size_t)slot * GM__REMOTE_CHUNK;
  put_gather(put, to, bytes);
  return to;
}

static gm_status put_window(put_state *put, uint32_t first, uint32_t count) {
  gm__remote_tier *tier = put->tier;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t index = first + i, bytes = gm__manifest_chunk_bytes(&put->manifest, index);
    const void *data = put_next(put, i, bytes);
    if (!data) return put_no_memory(put);
    gm__manifest_set_checksum(put->bytes, index, gm__manifest_chunk_checksum(index, data, bytes));
    gm__remote_chunk_key *key = &put->chunks->keys[i];
    gm__remote_chunk_key_make(key, tier->where.prefix, put->manifest.version, index);
    put->chunks->requests[i] = (gm__remote_request){
        .args = {{"SET", 3}, {key->text, key->bytes}, {data, bytes}, {"PX", 2}, {NULL, 0}}, .count = 5, .key = 1};
    put->chunks->requests[i].args[4] = (gm_tier_part){GM__REMOTE_UNFINISHED_MS, strlen(GM__REMOTE_UNFINISHED_MS)};
  }
  gm_status status = gm__remote_run(tier, put->chunks->requests, count);
  if (status) return status;
  put->sent = first + count;
  for (uint32_t i = 0; i < count && !status; i++) {
    status = gm__remote_expect(tier, &put->chunks->requests[i], GM__REPLY_STATUS);
  }
  gm__remote_run_end(tier, put->chunks->requests, count);
  return status;
}

/* The chunks, with their checksums in the manifest. */
static gm_status put_chunks_all(put_state *put) {
  gm_status status = GM_OK;
  for (uint32_t first = 0; !status && first < put->manifest.chunks; first += GM__REMOTE_WINDOW) {
    status = put_window(put, first, (uint32_t)gm__min(put->manifest.chunks - first, GM__REMOTE_WINDOW));
  }
  return status ? status : gm__remote_old_set(put->tier, &put->manifest, put->manifest.chunks, GM__REMOTE_PERSIST);
}

/* The answer to the manifest was lost, and the server carries it out no more if it has not done so. Is it there? */
static gm_status put_is_there(put_state *put, bool *out) {
  gm__remote_tier *tier = put->tier;
  gm__remote_request request = {
      .args = {{"GETRANGE", 8}, {put->key.text, put->key.bytes}, {"0", 1}, {"47", 2}}, .count = 4, .key = 1};
  gm__manifest now;
  const gm_status status = gm__remote_run(tier, &request, 1);
  if (status) return status;
  *out = request.reply->kind == GM__REPLY_STRING &&
         gm__manifest_peek(request.reply->text, request.reply->bytes, &now) &&
         memcmp(now.version, put->manifest.version, sizeof now.version) == 0;
  gm__remote_run_end(tier, &request, 1);
  return GM_OK;
}

/* The fate of a version whose put failed. */
typedef enum put_fate {
  PUT_REFUSED = 0, /* it never was current, and never will be */
  PUT_UNKNOWN,     /* it may be current */
  PUT_CURRENT,     /* it is: only the answer was lost */
  PUT_REPLACED     /* it is not, but may have been; and never will be again */
} put_fate;

/* The fate of a version whose manifest was lost on the way. Where the time of the request is up, nobody asks. */
static put_fate put_settle(put_state *put, uint64_t deadline) {
  const gm_error why = put->tier->trouble;
  bool there = false;
  const bool asked = !gm__deadline_passed(deadline) && put_is_there(put, &there) == GM_OK;
  put->tier->trouble = why;
  if (!asked) return PUT_UNKNOWN;
  return there ? PUT_CURRENT : PUT_REPLACED;
}

static gm_status put_manifest(put_state *put, put_fate *out_fate) {
  gm__remote_tier *tier = put->tier;
  gm__remote_request request = {
      .args = {{"GETSET", 6}, {put->key.text, put->key.bytes}, {put->bytes, gm__manifest_bytes(&put->manifest)}},
      .count = 3,
      .key = 1,
      .once = true};
  const uint64_t deadline = gm__deadline_after(tier->timeout_ns);
  gm_status status = gm__remote_run(tier, &request, 1);
  if (status && request.lost) *out_fate = put_settle(put, deadline);
  if (status) return status;
  if (request.reply->kind != GM__REPLY_NIL) status = gm__remote_expect(tier, &request, GM__REPLY_STRING);
  if (!status) gm__remote_old_expire(tier, request.reply, &put->manifest);
  gm__remote_run_end(tier, &request, 1);
  return status;
}

/* A put of one version. *out_fate is of one that failed. */
static gm_status put_version(put_state *put, const void *key, size_t key_bytes, put_fate *out_fate) {
  gm_status status = GM_OK;
  *out_fate = PUT_REFUSED;
  put->part = 0;
  put->within = 0;
  put->sent = 0;
  if (getrandom(put->manifest.version, GM__MANIFEST_VERSION, 0) != GM__MANIFEST_VERSION) {
    return gm__fail(&put->tier->trouble, GM_ERR_SYSTEM, "getrandom", "the system has no random number");
  }
  if (put->manifest.chunks)
    status = put_chunks_all(put);
  else
    put_gather(put, put->bytes + GM__MANIFEST_HEAD, put->manifest.value_bytes);
  if (status) return status;
  gm__manifest_finish(put->bytes, &put->manifest, key, key_bytes);
  return put_manifest(put, out_fate);
}

/* The chunks of a version that failed. Somebody may read one that was current. A server that does not answer is not
 * asked. */
static void put_clean(put_state *put, put_fate fate, gm_status status) {
  const gm_error why = put->tier->trouble;
  if (!put->sent || fate == PUT_UNKNOWN || (fate == PUT_REFUSED && status == GM_ERR_TIMEOUT)) return;
  (void)gm__remote_old_set(put->tier, &put->manifest, put->sent,
                           fate == PUT_REPLACED ? GM__REMOTE_EXPIRE : GM__REMOTE_DELETE);
  put->tier->trouble = why;
}

/* Tries again at least once, and as long as there is time. */
static gm_status put_all(put_state *put, const void *key, size_t key_bytes) {
  uint64_t deadline = 0;
  for (;;) {
    put_fate fate;
    const gm_status status = put_version(put, key, key_bytes, &fate);
    if (!status || fate == PUT_CURRENT) return GM_OK;
    put_clean(put, fate, status);
    if (fate != PUT_REPLACED || (deadline && gm__deadline_passed(deadline))) return status;
    if (!deadline) deadline = gm__deadline_after(put->tier->timeout_ns);
    put->tier->retries++;
  }
}

static gm_status put_begin(put_state *put) {
  const gm_services *services = gm__remote_services(put->tier);
  for (size_t i = 0; i < put->count; i++) put->manifest.value_bytes += put->parts[i].bytes;
  if (put->manifest.value_bytes > (uint64_t)GM__REMOTE_CHUNKS_MOST * GM__REMOTE_CHUNK) {
    return gm__fail(&put->tier->trouble, GM_ERR_OVER_LIMIT, put->tier->op,
                    "%" PRIu64 " bytes are more than the 2^40 of a remote tier", put->manifest.value_bytes);
  }
  put->manifest.chunks = gm__manifest_chunks_of(put->manifest.value_bytes);
  put->bytes = gm__alloc(services, gm__manifest_bytes(&put->manifest));
  if (put->bytes && put->manifest.chunks) put->chunks = gm__alloc(services, sizeof *put->chunks);
  return !put->bytes || (put->manifest.chunks && !put->chunks) ? put_no_memory(put) : GM_OK;
}

static void put_end(put_state *put) {
  const gm_services *services = gm__remote_services(put->tier);
  gm__release(services, put->chunks, sizeof *put->chunks);
  gm__release(services, put->room, PUT_ROOM);
  gm__release(services, put->bytes, gm__manifest_bytes(&put->manifest));
}

gm_status gm__remote_put(void *own, const void *key, size_t key_bytes, const gm_tier_part *parts, size_t count,
                         gm_error *err) {
  gm__remote_tier *tier = own;
  put_state put = {.tier = tier, .parts = parts, .count = count};
  gm_status status = gm__remote_enter(tier, "gm_tier_put", err);
  if (status) return status;
  gm__remote_key_make(&put.key, tier->where.prefix, key, key_bytes);
  status = put_begin(&put);
  if (!status) status = put_all(&put, key, key_bytes);
  put_end(&put);
  if (!status) gm__remote_count(tier, GM__REMOTE_PUTS);
  return gm__remote_leave(tier, status, err);
}

/* A removal whose answer was lost finds nothing any more when it is tried again. */
gm_status gm__remote_remove(void *own, const void *key, size_t key_bytes, gm_error *err) {
  gm__remote_tier *tier = own;
  gm__remote_key name;
  gm_status status = gm__remote_enter(tier, "gm_tier_remove", err);
  if (status) return status;
  gm__remote_key_make(&name, tier->where.prefix, key, key_bytes);
  gm__remote_request request = {.args = {{"GETDEL", 6}, {name.text, name.bytes}}, .count = 2, .key = 1};
  status = gm__remote_run(tier, &request, 1);
  if (status) return gm__remote_leave(tier, status, err);
  const bool nothing = request.reply->kind == GM__REPLY_NIL;
  if (!nothing) status = gm__remote_expect(tier, &request, GM__REPLY_STRING);
  if (nothing && !request.lost) {
    status = gm__fail(&tier->trouble, GM_ERR_NOT_FOUND, tier->op, "the tier has no value of that key");
  }
  if (!status) {
    gm__remote_old_expire(tier, request.reply, NULL);
    gm__remote_count(tier, GM__REMOTE_REMOVES);
  }
  gm__remote_run_end(tier, &request, 1);
  return gm__remote_leave(tier, status, err);
}
