/* How a page set and its owners begin and end, and what they tell of themselves. */
#include <inttypes.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/sized.h"
#include "core/context/process.h"
#include "core/pages/page_keys.h"
#include "core/pages/page_pieces.h"
#include "core/pages/page_planes.h"
#include "core/pages/page_settle.h"
#include "core/pages/pages.h"

/* ---- begin and end ---- */

static gm_status pages_params_read(const gm_context *ctx, const gm_pages_params *params, gm_pages_params *out,
                                   gm_error *err) {
  static const char op[] = "gm_pages_create";
  const gm_status status = gm__sized_in(out, sizeof *out, params, op, "params", err);
  if (status) return status;
  if (!out->max_pages || out->max_pages > GM_PAGES_MOST)
    return gm__bad_argument(err, op, "`params->max_pages` is %u, not 1 to %d", out->max_pages, GM_PAGES_MOST);
  if (out->flags & ~(uint32_t)GM_PAGES_KEEP_FIRST)
    return gm__bad_argument(err, op, "`params->flags` is %#x, which has an unknown flag", out->flags);
  if (out->reserve > out->max_pages)
    return gm__bad_argument(err, op, "`params->reserve` is %u, more than %u pages", out->reserve, out->max_pages);
  return gm__page_planes_check(ctx, out, op, err);
}

/* Gives back all that the set has. */
static void pages_end(gm_pages *set, bool forked) {
  gm_context *ctx = set->ctx;
  const gm_services *services = gm__pages_services(set);
  gm__page_planes_end(set);
  gm__page_keys_end(set);
  gm__page_holds_end(set);
  gm__page_pieces_end(services, &set->owners.table);
  gm__page_order_end(set);
  gm__release(services, set->pages, set->max_pages * sizeof *set->pages);
  if (!forked) gm__mutex_destroy(&set->lock);
  gm__object_end(ctx, &set->head);
  atomic_fetch_sub(&ctx->children, 1);
}

static gm_status pages_begin(gm_pages *set, gm_context *ctx, const gm_pages_params *asked, gm_error *err) {
  set->ctx = ctx;
  set->generation_at = gm__process_generation_at();
  set->generation = ctx->generation;
  set->max_pages = asked->max_pages;
  set->reserve = asked->reserve;
  set->keep_first = asked->flags & GM_PAGES_KEEP_FIRST;
  set->owners = (gm__page_owners){.table.entry_bytes = sizeof(gm__page_owner),
                                  .closed_first = GM__NO_NODE,
                                  .closed_last = GM__NO_NODE,
                                  .turn = gm__page_owner_turn()};
  gm__mutex_init(&set->lock, GM__RANK_LEAF);
  atomic_fetch_add(&ctx->children, 1);
  set->pages = gm__alloc_array(gm__pages_services(set), set->max_pages, sizeof *set->pages);
  if (set->pages && gm__page_planes_begin(set, asked) && gm__page_order_begin(set) && gm__page_holds_begin(set) &&
      gm__page_keys_begin(set))
    return GM_OK;
  const uint32_t pages = set->max_pages;
  pages_end(set, false);
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_pages_create", "no host memory for %u pages", pages);
}

gm_status gm_pages_create(gm_context *ctx, const gm_pages_params *params, gm_pages **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pages_create";
  gm_pages_params asked;
  gm_status status = gm__context_check(ctx, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  status = pages_params_read(ctx, params, &asked, err);
  if (status) return status;
  gm_pages *set = gm__object_new(ctx, GM__KIND_PAGES, sizeof *set);
  if (!set) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a page set");
  status = pages_begin(set, ctx, &asked, err);
  if (status) return status;
  status = gm__page_planes_grow(set, asked.backed_pages, op, err);
  if (!status) {
    *out = set;
    return GM_OK;
  }
  gm__page_planes_release(set, op, NULL);
  pages_end(set, false);
  return status;
}

static gm_status pages_busy(gm_pages *set, gm_error *err) {
  static const char op[] = "gm_pages_destroy";
  gm__mutex_lock(&set->lock);
  gm__pages_settle(set);
  const gm__page_owner *owner = gm__page_owner_any(set);
  gm_status status = GM_OK;
  if (owner)
    status = gm__fail(err, GM_ERR_BUSY, op, "%u owners are open, of which \"%s\" holds %u pages", set->owners.open,
                      owner->tag, owner->pages);
  else if (set->order.open_steps)
    status = gm__fail(err, GM_ERR_BUSY, op, "%u steps are open, the oldest is %" PRIu64, set->order.open_steps,
                      set->order.passed_below);
  else if (set->tables)
    status = gm__fail(err, GM_ERR_BUSY, op, "%u tables are not destroyed", set->tables);
  return gm__pages_leave(set, status);
}

gm_status gm_pages_destroy(gm_pages *pages, gm_error *err) {
  GM__UNCANCELLED();
  if (!pages) return GM_OK;
  gm_status status = gm__pages_check(pages, "gm_pages_destroy", err);
  if (status == GM_ERR_INVALID_ARGUMENT) return status;
  const bool forked = status == GM_ERR_FORKED; /* no lock then: nobody is left who could release it */
  status = forked ? GM_OK : pages_busy(pages, err);
  if (!status && !forked) status = gm__page_planes_release(pages, "gm_pages_destroy", err);
  if (!status) pages_end(pages, forked);
  return status;
}

/* ---- owners ---- */

gm_status gm_page_owner_open(gm_pages *pages, const char *tag, uint32_t *out, gm_error *err) {
  static const char op[] = "gm_page_owner_open";
  if (!tag || !out) return gm__bad_argument(err, op, "`%s` is NULL", tag ? "out" : "tag");
  gm_error why;
  gm_status status = gm__pages_enter(pages, op, err);
  if (status) return status;
  const gm__page_owner *owner = gm__page_owner_new(pages, tag, op, &why);
  if (owner)
    *out = owner->number;
  else
    status = why.status;
  if (!owner && err) *err = why;
  return gm__pages_leave(pages, status);
}

gm_status gm_page_owner_close(gm_pages *pages, uint32_t owner, gm_error *err) {
  static const char op[] = "gm_page_owner_close";
  const gm_status status = gm__pages_enter(pages, op, err);
  if (status) return status;
  gm__page_owner *found = gm__page_owner_find(pages, owner);
  if (!found) return gm__pages_leave(pages, gm__page_owner_fault(pages, owner, op, err));
  while (found->last != GM__NO_NODE) gm__page_release(pages, found, gm__page_of_node(pages, found->last));
  gm__page_owner_end(pages, found);
  return gm__pages_leave(pages, GM_OK);
}

gm_status gm_page_owner_list(gm_pages *pages, uint32_t owner, gm_page *out, uint32_t capacity, uint32_t *out_count,
                             gm_error *err) {
  static const char op[] = "gm_page_owner_list";
  if (!out_count || (capacity && !out)) return gm__bad_argument(err, op, "`out` or `out_count` is NULL");
  const gm_status status = gm__pages_enter(pages, op, err);
  if (status) return status;
  const gm__page_owner *found = gm__page_owner_find(pages, owner);
  if (!found) return gm__pages_leave(pages, gm__page_owner_fault(pages, owner, op, err));
  uint32_t node = found->first;
  for (uint32_t i = 0; i < capacity && node != GM__NO_NODE; i++, node = gm__page_node(pages, node)->next)
    out[i] = gm__page_of_node(pages, node);
  *out_count = found->pages;
  return gm__pages_leave(pages, GM_OK);
}

/* ---- figures ---- */

gm_status gm_pages_get_stats(gm_pages *pages, gm_pages_stats *out, gm_error *err) {
  static const char op[] = "gm_pages_get_stats";
  gm_status status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (!status) status = gm__pages_enter(pages, op, err);
  if (status) return status;
  gm__pages_settle(pages);
  gm_pages_stats now = {.struct_size = sizeof now,
                        .pages = pages->max_pages,
                        .held = pages->held,
                        .idle = gm__page_idle(pages),
                        .waiting = gm__page_waiting(pages),
                        .owners = pages->owners.open,
                        .steps = pages->order.open_steps,
                        .holds = pages->hold_count,
                        .taken = pages->taken,
                        .refused = pages->refused,
                        .found = pages->found,
                        .evicted = pages->evicted,
                        .copied = pages->copied,
                        .backed = pages->planes.pool ? pages->planes.backed : pages->max_pages};
  const bool has_first = !pages->planes.pool || pages->planes.states[0] == GM__GRANULE_BACKED;
  now.free = now.backed - (has_first && pages->keep_first) - now.held - now.idle;
  gm__mutex_unlock(&pages->lock);
  gm__sized_out(out, &now, sizeof now);
  return GM_OK;
}
