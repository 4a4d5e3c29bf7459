#include "core/tier/remote/remote_old.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/tier/remote/remote_key.h"
#include "core/tier/remote/remote_run.h"

typedef struct old_batch {
  gm__remote_request requests[GM__REMOTE_BATCH];
  gm__remote_chunk_key keys[GM__REMOTE_BATCH];
} old_batch;

static void old_request(gm__remote_request *request, const gm__remote_chunk_key *key, gm__remote_fate fate) {
  static const char *const words[] = {"PERSIST", "PEXPIRE", "DEL"};
  *request = (gm__remote_request){.key = 1, .count = fate == GM__REMOTE_EXPIRE ? 3 : 2};
  request->args[0] = (gm_tier_part){words[fate], strlen(words[fate])};
  request->args[1] = (gm_tier_part){key->text, key->bytes};
  request->args[2] = (gm_tier_part){GM__REMOTE_GRACE_MS, strlen(GM__REMOTE_GRACE_MS)};
}

/* A chunk that nothing had to be done for: it is there for good, or it is not there at all. */
static gm_status old_is_there(gm__remote_tier *tier, const gm_tier_part *key) {
  gm__remote_request request = {.args = {{"EXISTS", 6}, *key}, .count = 2, .key = 1};
  gm_status status = gm__remote_run(tier, &request, 1);
  if (status) return status;
  status = gm__remote_expect(tier, &request, GM__REPLY_INTEGER);
  if (!status && request.reply->number != 1) {
    status = gm__fail(&tier->trouble, GM_ERR_TIMEOUT, tier->op, "the server lost a chunk before the value was whole");
  }
  gm__remote_run_end(tier, &request, 1);
  return status;
}

static gm_status old_check(gm__remote_tier *tier, const gm__remote_request *requests, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    gm_status status = gm__remote_expect(tier, &requests[i], GM__REPLY_INTEGER);
    if (!status && requests[i].reply->number != 1) status = old_is_there(tier, &requests[i].args[1]);
    if (status) return status;
  }
  return GM_OK;
}

static gm_status old_some(gm__remote_tier *tier, old_batch *batch, const gm__manifest *manifest, uint32_t first,
                          uint32_t count, gm__remote_fate fate) {
  for (uint32_t i = 0; i < count; i++) {
    gm__remote_chunk_key_make(&batch->keys[i], tier->where.prefix, manifest->version, first + i);
    old_request(&batch->requests[i], &batch->keys[i], fate);
  }
  gm_status status = gm__remote_run(tier, batch->requests, count);
  if (status) return status;
  if (fate == GM__REMOTE_PERSIST) status = old_check(tier, batch->requests, count);
  gm__remote_run_end(tier, batch->requests, count);
  return status;
}

gm_status gm__remote_old_set(gm__remote_tier *tier, const gm__manifest *manifest, uint32_t count,
                             gm__remote_fate fate) {
  old_batch *batch = gm__alloc(gm__remote_services(tier), sizeof *batch);
  if (!batch) return gm__fail(&tier->trouble, GM_ERR_OUT_OF_HOST_MEMORY, tier->op, "no host memory for requests");
  gm_status status = GM_OK;
  for (uint32_t done = 0; !status && done < count; done += GM__REMOTE_BATCH) {
    status = old_some(tier, batch, manifest, done, (uint32_t)gm__min(count - done, GM__REMOTE_BATCH), fate);
  }
  gm__release(gm__remote_services(tier), batch, sizeof *batch);
  return status;
}

void gm__remote_old_expire(gm__remote_tier *tier, const gm__reply *reply, const gm__manifest *except) {
  gm__manifest old;
  if (reply->kind != GM__REPLY_STRING || !gm__manifest_peek(reply->text, reply->bytes, &old)) return;
  if (except && memcmp(old.version, except->version, sizeof old.version) == 0) return;
  if (old.chunks) (void)gm__remote_old_set(tier, &old, old.chunks, GM__REMOTE_EXPIRE);
}
