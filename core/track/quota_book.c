#include "core/track/quota_book.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/thread.h"
#include "core/context/context.h"
#include "gm/tracker.h"

/* Invariants, under the lock. `used` of a tag is what its blocks hold, and what requests under way have taken. Each
 * grant leaves this true for every priority from its tag's up: tags up to there hold no more than the sum of their
 * quotas. A tag that may not borrow counts there with its quota at most. Its quota may have been lowered under what it
 * holds, which is no other tag's fault. */

typedef struct quota {
  uint64_t bytes, used;
  uint32_t flags;
  int32_t priority;
  bool set;
} quota;

struct gm__quotas {
  gm_context *ctx;
  atomic_bool complete; /* all that is out is counted */
  gm__mutex lock;       /* of all below */
  quota tags[GM_QUOTA_TAGS];
  uint32_t set_count, set_tags[GM_QUOTA_TAGS]; /* that have one, by rising priority */
};

/* ---- room ---- */

static uint64_t quota_counted(const quota *self) {
  return self->flags & GM_QUOTA_BORROW ? self->used : gm__min(self->used, self->bytes);
}

/* The bytes that are missing for `bytes` more, at the priority from the tag's up that has least. At each of them the
 * sum of the quotas of all tags up to there counts. */
static uint64_t quota_levels_lack(const gm__quotas *quotas, const quota *self, uint64_t bytes) {
  uint64_t granted = 0, used = bytes, lack = 0;
  for (uint32_t i = 0; i < quotas->set_count; i++) {
    const quota *at = &quotas->tags[quotas->set_tags[i]];
    const bool more = i + 1 < quotas->set_count;
    granted = gm__add_sat(granted, at->bytes);
    used = gm__add_sat(used, quota_counted(at));
    if (at->priority < self->priority || (more && quotas->tags[quotas->set_tags[i + 1]].priority == at->priority))
      continue;
    lack = gm__max(lack, gm__sub_sat(used, granted));
  }
  return lack;
}

static bool quota_fits(const gm__quotas *quotas, uint32_t tag, uint64_t bytes) {
  const quota *self = &quotas->tags[tag];
  if (bytes > UINT64_MAX - self->used) return false; /* what the sum cannot hold could not be taken off it again */
  if (!self->set) return true;
  const bool own = self->used <= self->bytes && bytes <= self->bytes - self->used;
  return (own || self->flags & GM_QUOTA_BORROW) && !quota_levels_lack(quotas, self, bytes);
}

uint64_t gm__quota_lack(gm__quotas *quotas, uint32_t tag, uint64_t bytes) {
  if (tag >= GM_QUOTA_TAGS) return 0;
  gm__mutex_lock(&quotas->lock);
  const quota *self = &quotas->tags[tag];
  const uint64_t own = self->flags & GM_QUOTA_BORROW ? 0 : gm__sub_sat(gm__add_sat(self->used, bytes), self->bytes);
  const uint64_t lack = self->set ? gm__max(own, quota_levels_lack(quotas, self, bytes)) : 0;
  gm__mutex_unlock(&quotas->lock);
  return lack;
}

static gm_status quota_ask(gm__quotas *quotas, uint32_t tag, uint64_t bytes, bool take, gm_error *err) {
  if (tag >= GM_QUOTA_TAGS) return GM_OK;
  gm__mutex_lock(&quotas->lock);
  quota *self = &quotas->tags[tag];
  const bool fits = quota_fits(quotas, tag, bytes);
  const uint64_t used = self->used, limit = self->set ? self->bytes : UINT64_MAX;
  if (fits && take) self->used += bytes;
  gm__mutex_unlock(&quotas->lock);
  if (fits) return GM_OK;
  return gm__fail(err, GM_ERR_OVER_LIMIT, "gm_alloc",
                  "the quota of tag \"%s\" has no room for %" PRIu64 " bytes: it holds %" PRIu64 " of %" PRIu64
                  "; free blocks of the tag, or raise its quota",
                  gm_tag_name(quotas->ctx, tag), bytes, used, limit);
}

gm_status gm__quota_take(gm__quotas *quotas, uint32_t tag, uint64_t bytes, gm_error *err) {
  return quota_ask(quotas, tag, bytes, true, err);
}

gm_status gm__quota_check(gm__quotas *quotas, uint32_t tag, uint64_t bytes, gm_error *err) {
  return quota_ask(quotas, tag, bytes, false, err);
}

/* ---- counting ---- */

static void quota_add(gm__quotas *quotas, uint32_t tag, uint64_t bytes) {
  if (tag >= GM_QUOTA_TAGS) return;
  gm__mutex_lock(&quotas->lock);
  quotas->tags[tag].used += bytes;
  gm__mutex_unlock(&quotas->lock);
}

void gm__quota_enter(gm__quotas *quotas, uint32_t tag, uint64_t bytes) { quota_add(quotas, tag, bytes); }

void gm__quota_leave(gm__quotas *quotas, uint32_t tag, uint64_t bytes) { quota_add(quotas, tag, 0 - bytes); }

/* ---- what the quotas are ---- */

static void quota_list(gm__quotas *quotas) {
  quotas->set_count = 0;
  for (uint32_t tag = 0; tag < GM_QUOTA_TAGS; tag++) {
    if (!quotas->tags[tag].set) continue;
    uint32_t at = quotas->set_count++;
    for (; at > 0 && quotas->tags[quotas->set_tags[at - 1]].priority > quotas->tags[tag].priority; at--) {
      quotas->set_tags[at] = quotas->set_tags[at - 1];
    }
    quotas->set_tags[at] = tag;
  }
}

void gm__quota_set(gm__quotas *quotas, uint32_t tag, uint64_t bytes, uint32_t flags, int32_t priority) {
  gm__mutex_lock(&quotas->lock);
  quota *self = &quotas->tags[tag];
  *self = (quota){bytes, self->used, flags, priority, bytes != GM_NO_QUOTA};
  quota_list(quotas);
  gm__mutex_unlock(&quotas->lock);
}

void gm__quota_get(gm__quotas *quotas, uint32_t tag, gm_quota *out) {
  gm__mutex_lock(&quotas->lock);
  const quota *self = &quotas->tags[tag];
  out->flags = self->flags;
  out->priority = self->priority;
  out->bytes = self->set ? self->bytes : GM_NO_QUOTA;
  out->used_bytes = self->used;
  gm__mutex_unlock(&quotas->lock);
}

/* ---- begin and end ---- */

gm__quotas *gm__quotas_new(gm_context *ctx) {
  gm__quotas *quotas = gm__alloc(gm__context_services(ctx), sizeof *quotas);
  if (!quotas) return NULL;
  quotas->ctx = ctx;
  gm__mutex_init(&quotas->lock, GM__RANK_QUOTAS);
  return quotas;
}

void gm__quotas_complete(gm__quotas *quotas) { atomic_store_explicit(&quotas->complete, true, memory_order_release); }

bool gm__quotas_are_complete(const gm__quotas *quotas) {
  return quotas && atomic_load_explicit(&quotas->complete, memory_order_acquire);
}

void gm__quotas_release(gm__quotas *quotas, bool forked) {
  if (!quotas) return;
  if (!forked) gm__mutex_destroy(&quotas->lock);
  gm__release(gm__context_services(quotas->ctx), quotas, sizeof *quotas);
}
