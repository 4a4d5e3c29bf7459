#include "core/pool/quota.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/pool/arena.h"
#include "core/pool/pool.h"

/* Invariants. Each block that is out is counted once, where its lock is held: when it is handed out, or when the first
 * quota of the pool came; and taken off when its owner gives it back. The first quota comes while threads allocate:
 * with the pool's lock, and then inside of each arena's, what is out there is counted, and what comes and goes from
 * then on counts itself; an arena made meanwhile begins so. Requests claim only when all is counted: one that began
 * before is counted when it is handed out.
 *
 * Under the lock: `used` of a tag is what is counted and claimed; a claim that is granted leaves, for each priority
 * from its tag's up, what tags up to that priority hold within the sum of their quotas. A tag that may not borrow
 * counts with its quota at most there: that it was lowered under what the tag holds is no other tag's fault. The lock
 * is the innermost. */

typedef struct quota {
  uint64_t bytes, used;
  uint32_t flags;
  int32_t priority;
  bool set;
} quota;

struct gm__quotas {
  atomic_bool complete; /* all that is out is counted */
  gm__mutex lock;       /* of all below */
  quota tags[GM_QUOTA_TAGS];
  uint32_t set_count, set_tags[GM_QUOTA_TAGS]; /* that have one, by rising priority */
};

/* ---- claims ---- */

static uint64_t quota_counted(const quota *self) {
  return self->flags & GM_QUOTA_BORROW ? self->used : gm__min(self->used, self->bytes);
}

/* For each priority from that of the tag up, tags up to that priority have room for `bytes` more between them. */
static bool quota_levels_fit(const gm__quotas *quotas, const quota *self, uint64_t bytes) {
  uint64_t granted = 0, used = bytes;
  for (uint32_t i = 0; i < quotas->set_count; i++) {
    const quota *at = &quotas->tags[quotas->set_tags[i]];
    const bool more = i + 1 < quotas->set_count;
    granted = gm__add_sat(granted, at->bytes);
    used = gm__add_sat(used, quota_counted(at));
    if (at->priority < self->priority || (more && quotas->tags[quotas->set_tags[i + 1]].priority == at->priority))
      continue;
    if (used > granted) return false;
  }
  return true;
}

static bool quota_fits(const gm__quotas *quotas, uint32_t tag, uint64_t bytes) {
  const quota *self = &quotas->tags[tag];
  if (bytes > UINT64_MAX - self->used) return false; /* what the sum cannot hold could not be taken off it again */
  if (!self->set) return true;
  const bool own = self->used <= self->bytes && bytes <= self->bytes - self->used;
  return (own || self->flags & GM_QUOTA_BORROW) && quota_levels_fit(quotas, self, bytes);
}

/* NULL: no tag has had one yet, or not all is counted. */
static gm__quotas *quota_of(const gm_pool *pool) {
  gm__quotas *quotas = atomic_load_explicit(&pool->quotas, memory_order_acquire);
  return quotas && atomic_load_explicit(&quotas->complete, memory_order_acquire) ? quotas : NULL;
}

static gm_status quota_ask(gm_pool *pool, gm__quotas *quotas, const gm__want *want, bool claim, gm_error *err) {
  const uint32_t tag = want->tag;
  if (!quotas || tag >= GM_QUOTA_TAGS) return GM_OK;
  gm__mutex_lock(&quotas->lock);
  quota *self = &quotas->tags[tag];
  const bool fits = quota_fits(quotas, tag, want->bytes);
  const uint64_t used = self->used, limit = self->set ? self->bytes : UINT64_MAX;
  if (fits && claim) self->used += want->bytes;
  gm__mutex_unlock(&quotas->lock);
  if (fits) return GM_OK;
  return gm__fail(err, GM_ERR_OVER_LIMIT, 0, "gm_alloc",
                  "the quota of tag \"%s\" has no room for %" PRIu64 " bytes: it holds %" PRIu64 " of %" PRIu64,
                  gm_tag_name(pool->device->ctx, tag), want->bytes, used, limit);
}

gm_status gm__quota_claim(gm_pool *pool, gm__want *want, gm_error *err) {
  gm__quotas *quotas = quota_of(pool);
  const gm_status status = quota_ask(pool, quotas, want, true, err);
  want->claimed = quotas && status == GM_OK;
  return status;
}

gm_status gm__quota_check(gm_pool *pool, const gm__want *want, gm_error *err) {
  return quota_ask(pool, quota_of(pool), want, false, err);
}

void gm__quota_unclaim(gm_pool *pool, const gm__want *want) {
  if (want->claimed) gm__quota_leave(gm__pool_quotas(pool), want->tag, want->bytes);
}

/* ---- counting ---- */

static void quota_add(gm__quotas *quotas, uint32_t tag, uint64_t bytes) {
  if (tag < GM_QUOTA_TAGS) quotas->tags[tag].used += bytes;
}

void gm__quota_enter(gm__quotas *quotas, const gm__want *want) {
  if (want->claimed) return;
  gm__mutex_lock(&quotas->lock);
  quota_add(quotas, want->tag, want->bytes);
  gm__mutex_unlock(&quotas->lock);
}

void gm__quota_leave(gm__quotas *quotas, uint32_t tag, uint64_t bytes) {
  gm__mutex_lock(&quotas->lock);
  quota_add(quotas, tag, 0 - bytes);
  gm__mutex_unlock(&quotas->lock);
}

/* ---- the first quota of a pool ---- */

static void quota_count_arena(gm__quotas *quotas, gm__arena *arena) {
  gm__mutex_lock(&quotas->lock);
  for (uint32_t number = 1; number < gm__spans_count(&arena->spans); number++) {
    gm__span *span = gm__arena_span(arena, number);
    if (gm__arena_is_out(arena, number)) quota_add(quotas, span->tag, gm__arena_requested(arena, span));
  }
  gm__mutex_unlock(&quotas->lock);
}

static void quota_count_arenas(gm__quotas *quotas, gm_pool *pool) {
  gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    gm__arena_lock(arena);
    if (!arena->quotas) { /* else made since */
      quota_count_arena(quotas, arena);
      gm__arena_count_in(arena, quotas);
    }
    gm__arena_unlock(arena);
  }
}

static void quota_count_nodes(gm__quotas *quotas, gm_pool *pool) {
  uint32_t cursor = 0;
  gm__mutex_lock(&pool->lock);
  gm__mutex_lock(&quotas->lock);
  for (gm__node *node; (node = gm__node_next(&pool->nodes, &cursor));) {
    if (gm__node_is_out(node)) quota_add(quotas, node->tag, node->requested);
  }
  gm__mutex_unlock(&quotas->lock);
  atomic_store_explicit(&pool->quotas, quotas, memory_order_release);
  gm__mutex_unlock(&pool->lock);
}

/* With the gate. */
static gm_status quota_begin(gm_pool *pool, gm_error *err) {
  if (quota_of(pool)) return GM_OK;
  gm__quotas *quotas = gm__alloc(gm__context_services(pool->device->ctx), sizeof *quotas);
  if (!quotas) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_pool_set_quota", "no host memory for quotas");
  gm__mutex_init(&quotas->lock, GM__RANK_QUOTAS);
  quota_count_nodes(quotas, pool);
  quota_count_arenas(quotas, pool);
  atomic_store_explicit(&quotas->complete, true, memory_order_release);
  return GM_OK;
}

void gm__quotas_end(gm_pool *pool, bool forked) {
  gm__quotas *quotas = gm__pool_quotas(pool);
  if (!quotas) return;
  if (!forked) gm__mutex_destroy(&quotas->lock);
  gm__release(gm__context_services(pool->device->ctx), quotas, sizeof *quotas);
}

/* ---- public ---- */

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
  if (status) return status;
  gm__mutex_lock(&pool->gate);
  status = quota_begin(pool, err);
  gm__mutex_unlock(&pool->gate);
  if (status) return status;
  gm__quotas *quotas = quota_of(pool);
  gm__mutex_lock(&quotas->lock);
  quota *self = &quotas->tags[tag];
  *self = (quota){bytes, self->used, flags, priority, bytes != GM_NO_QUOTA};
  quota_list(quotas);
  gm__mutex_unlock(&quotas->lock);
  return GM_OK;
}

gm_status gm_pool_quota(gm_pool *pool, uint32_t tag, gm_quota *out, gm_error *err) {
  static const char op[] = "gm_pool_quota";
  quota self = {.set = false};
  gm_status status = gm__pool_check(pool, op, err);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  gm__quotas *quotas = quota_of(pool);
  if (quotas && tag < GM_QUOTA_TAGS) {
    gm__mutex_lock(&quotas->lock);
    self = quotas->tags[tag];
    gm__mutex_unlock(&quotas->lock);
  }
  const gm_quota told = {.struct_size = sizeof told,
                         .flags = self.flags,
                         .priority = self.priority,
                         .bytes = self.set ? self.bytes : GM_NO_QUOTA,
                         .used_bytes = self.used};
  gm__sized_out(out, &told, sizeof told);
  return GM_OK;
}
