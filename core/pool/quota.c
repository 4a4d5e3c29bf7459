#include "core/pool/quota.h"

#include <inttypes.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/pool/arena.h"
#include "core/pool/pool.h"

/* Invariants, under the lock: `used` of a tag is what was claimed for it and not unclaimed, at least what its blocks
 * hold; a claim that is granted leaves, for each priority from its tag's up, what tags up to that priority hold within
 * the sum of their quotas. A tag that may not borrow counts with its quota at most there: that it was lowered under
 * what the tag holds is no other tag's fault. The lock is the innermost. */

typedef struct quota {
  uint64_t bytes, used;
  uint32_t flags;
  int32_t priority;
  bool set;
} quota;

struct gm__quotas {
  gm__mutex lock;
  quota tags[GM_QUOTA_TAGS];
};

/* ---- claims ---- */

static uint64_t quota_counted(const quota *self) {
  return self->flags & GM_QUOTA_BORROW ? self->used : gm__min(self->used, self->bytes);
}

/* Tags up to that priority have room for `bytes` more between them. */
static bool quota_level_fits(const gm__quotas *quotas, int32_t priority, uint64_t bytes) {
  uint64_t granted = 0, used = bytes;
  for (uint32_t tag = 0; tag < GM_QUOTA_TAGS; tag++) {
    const quota *self = &quotas->tags[tag];
    if (!self->set || self->priority > priority) continue;
    granted = gm__add_sat(granted, self->bytes);
    used = gm__add_sat(used, quota_counted(self));
  }
  return used <= granted;
}

static bool quota_fits(const gm__quotas *quotas, uint32_t tag, uint64_t bytes) {
  const quota *self = &quotas->tags[tag];
  if (bytes > UINT64_MAX - self->used) return false; /* what the sum cannot hold could not be taken off it again */
  if (!self->set) return true;
  const bool own = self->used <= self->bytes && bytes <= self->bytes - self->used;
  bool fits = own || self->flags & GM_QUOTA_BORROW;
  for (uint32_t other = 0; other < GM_QUOTA_TAGS && fits; other++) {
    const quota *level = &quotas->tags[other];
    if (level->set && level->priority >= self->priority) fits = quota_level_fits(quotas, level->priority, bytes);
  }
  return fits;
}

static gm_status quota_ask(gm_pool *pool, uint32_t tag, uint64_t bytes, bool claim, gm_error *err) {
  gm__quotas *quotas = pool->quotas;
  if (!quotas || tag >= GM_QUOTA_TAGS) return GM_OK;
  gm__mutex_lock(&quotas->lock);
  quota *self = &quotas->tags[tag];
  const bool fits = quota_fits(quotas, tag, bytes);
  const uint64_t used = self->used, limit = self->set ? self->bytes : UINT64_MAX;
  if (fits && claim) self->used += bytes;
  gm__mutex_unlock(&quotas->lock);
  if (fits) return GM_OK;
  return gm__fail(err, GM_ERR_OVER_LIMIT, 0, "gm_alloc",
                  "the quota of tag \"%s\" has no room for %" PRIu64 " bytes: it holds %" PRIu64 " of %" PRIu64,
                  gm_tag_name(pool->device->ctx, tag), bytes, used, limit);
}

gm_status gm__quota_claim(gm_pool *pool, uint32_t tag, uint64_t bytes, gm_error *err) {
  return quota_ask(pool, tag, bytes, true, err);
}

gm_status gm__quota_check(gm_pool *pool, uint32_t tag, uint64_t bytes, gm_error *err) {
  return quota_ask(pool, tag, bytes, false, err);
}

void gm__quota_unclaim(gm_pool *pool, uint32_t tag, uint64_t bytes) {
  gm__quotas *quotas = pool->quotas;
  if (!quotas || tag >= GM_QUOTA_TAGS) return;
  gm__mutex_lock(&quotas->lock);
  quotas->tags[tag].used = gm__sub_sat(quotas->tags[tag].used, bytes);
  gm__mutex_unlock(&quotas->lock);
}

/* ---- the first quota of a pool ---- */

static void quota_count(gm__quotas *quotas, uint32_t tag, uint64_t bytes) {
  if (tag < GM_QUOTA_TAGS) quotas->tags[tag].used += bytes;
}

static void quota_count_arena(gm__quotas *quotas, gm__arena *arena) {
  gm__arena_lock(arena);
  for (uint32_t number = 1; number < gm__spans_count(&arena->spans); number++) {
    gm__span *span = gm__arena_span(arena, number);
    if (gm__span_is(span) == GM__SPAN_LIVE) quota_count(quotas, span->tag, gm__arena_bytes(arena, span) - span->slack);
  }
  gm__arena_unlock(arena);
}

/* What is out already. */
static void quota_count_pool(gm__quotas *quotas, gm_pool *pool) {
  gm__arena *arena;
  uint32_t cursor = 0;
  gm__mutex_lock(&pool->lock);
  for (gm__node *node; (node = gm__node_next(&pool->nodes, &cursor));) {
    if (node->state == GM__NODE_LIVE) quota_count(quotas, node->tag, node->requested);
  }
  gm__mutex_unlock(&pool->lock);
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) quota_count_arena(quotas, arena);
}

static gm_status quota_begin(gm_pool *pool, gm_error *err) {
  if (pool->quotas) return GM_OK;
  gm__quotas *quotas = gm__alloc(gm__context_services(pool->device->ctx), sizeof *quotas);
  if (!quotas) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_pool_set_quota", "no host memory for quotas");
  gm__mutex_init(&quotas->lock);
  quota_count_pool(quotas, pool);
  pool->fast_key = GM__HERE_NOBODY; /* the fast path knows no quotas */
  pool->quotas = quotas;
  return GM_OK;
}

void gm__quotas_end(gm_pool *pool, bool forked) {
  if (!pool->quotas) return;
  if (!forked) gm__mutex_destroy(&pool->quotas->lock);
  gm__release(gm__context_services(pool->device->ctx), pool->quotas, sizeof *pool->quotas);
}

/* ---- public ---- */

static gm_status quota_check_tag(const gm_pool *pool, uint32_t tag, const char *op, gm_error *err) {
  gm_status status = gm__pool_check(pool, op, err);
  if (status || tag < GM_QUOTA_TAGS) return status;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, op, "`tag` is %u, only tags below %d can have a quota", tag,
                  GM_QUOTA_TAGS);
}

gm_status gm_pool_set_quota(gm_pool *pool, uint32_t tag, uint64_t bytes, uint32_t flags, int32_t priority,
                            gm_error *err) {
  static const char op[] = "gm_pool_set_quota";
  gm_status status = quota_check_tag(pool, tag, op, err);
  if (!status && flags & ~(uint32_t)GM_QUOTA_BORROW) {
    status = gm__bad_argument(err, op, "`flags` has bits that are none: 0x%x", flags);
  }
  if (!status) status = quota_begin(pool, err);
  if (status) return status;
  gm__mutex_lock(&pool->quotas->lock);
  quota *self = &pool->quotas->tags[tag];
  *self = (quota){bytes, self->used, flags, priority, bytes != GM_NO_QUOTA};
  gm__mutex_unlock(&pool->quotas->lock);
  return GM_OK;
}

gm_status gm_pool_quota(gm_pool *pool, uint32_t tag, gm_quota *out, gm_error *err) {
  static const char op[] = "gm_pool_quota";
  quota self = {.bytes = GM_NO_QUOTA};
  gm_status status = gm__pool_check(pool, op, err);
  if (status) return status;
  if (!out || out->struct_size < sizeof *out) {
    return gm__bad_argument(err, op, out ? "`out->struct_size` is none that gm knows" : "`out` is NULL");
  }
  if (pool->quotas && tag < GM_QUOTA_TAGS) {
    gm__mutex_lock(&pool->quotas->lock);
    self = pool->quotas->tags[tag];
    gm__mutex_unlock(&pool->quotas->lock);
  }
  *out = (gm_quota){.struct_size = sizeof *out,
                    .flags = self.flags,
                    .priority = self.priority,
                    .bytes = pool->quotas && !self.set ? GM_NO_QUOTA : self.bytes,
                    .used_bytes = self.used};
  return GM_OK;
}
