#include "core/pages/page_planes.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/device/device.h"
#include "core/pages/page_settle.h"
#include "core/pages/pages.h"

/* ---- begin and end ---- */

static gm_status planes_check_request(const gm_request *request, const char *op, gm_error *err) {
  if (!request || !(request->bytes || request->stream)) return GM_OK;
  return gm__bad_argument(err, op, "`params->request` has bytes or a stream");
}

gm_status gm__page_planes_check(const gm_context *ctx, const gm_pages_params *params, const char *op, gm_error *err) {
  const bool memory =
      params->plane_bytes || params->request || params->planes || params->granule_pages || params->backed_pages;
  if (params->reserved) return gm__bad_argument(err, op, "`params->reserved` is not 0");
  if (!params->pool) return memory ? gm__bad_argument(err, op, "`params->pool` is NULL, and there are planes") : GM_OK;
  const gm_device *device = gm_pool_device(params->pool);
  if (!device || device->ctx != ctx) return gm__bad_argument(err, op, "`params->pool` is none of the context");
  if (!params->plane_bytes || !params->planes || params->planes > GM_PAGE_PLANES_MOST)
    return gm__bad_argument(err, op, "%u planes, not 1 to %d, or `params->plane_bytes` is NULL", params->planes,
                            GM_PAGE_PLANES_MOST);
  if (params->granule_pages > params->max_pages || params->backed_pages > params->max_pages)
    return gm__bad_argument(err, op, "granules of %u pages, %u backed pages, and %u pages", params->granule_pages,
                            params->backed_pages, params->max_pages);
  for (uint32_t k = 0; k < params->planes; k++) {
    const uint64_t bytes = params->plane_bytes[k];
    if (!bytes || bytes > UINT64_MAX / params->max_pages)
      return gm__bad_argument(err, op, "`params->plane_bytes[%u]` is %" PRIu64, k, bytes);
  }
  return planes_check_request(params->request, op, err);
}

bool gm__page_planes_begin(gm_pages *set, const gm_pages_params *params) {
  gm__page_planes *planes = &set->planes;
  const gm_services *services = gm__pages_services(set);
  if (!params->pool) return true;
  planes->pool = params->pool;
  if (params->request) planes->request = *params->request;
  planes->count = params->planes;
  planes->granule_pages = params->granule_pages ? params->granule_pages : set->max_pages;
  planes->granules = (set->max_pages - 1) / planes->granule_pages + 1;
  planes->bytes = gm__alloc_array(services, planes->count, sizeof *planes->bytes);
  planes->states = gm__alloc_array(services, planes->granules, sizeof *planes->states);
  planes->blocks = gm__alloc_array(services, (uint64_t)planes->granules * planes->count, sizeof *planes->blocks);
  if (planes->bytes) memcpy(planes->bytes, params->plane_bytes, planes->count * sizeof *planes->bytes);
  return planes->bytes && planes->states && planes->blocks;
}

void gm__page_planes_end(gm_pages *set) {
  gm__page_planes *planes = &set->planes;
  const gm_services *services = gm__pages_services(set);
  const size_t blocks = (size_t)planes->granules * planes->count;
  gm__release(services, planes->bytes, planes->count * sizeof *planes->bytes);
  gm__release(services, planes->states, planes->granules * sizeof *planes->states);
  gm__release(services, planes->blocks, blocks * sizeof *planes->blocks);
}

/* ---- blocks ---- */

static gm_block *planes_blocks(gm__page_planes *planes, uint32_t granule) {
  return &planes->blocks[(size_t)granule * planes->count];
}

/* Gives a granule's blocks back. One that is mapped stays, and the next growth finds it. */
static gm_status planes_free(gm__page_planes *planes, uint32_t granule, const char *op, gm_error *err) {
  gm_block *blocks = planes_blocks(planes, granule);
  gm_status first = GM_OK;
  for (uint32_t k = 0; k < planes->count; k++) {
    const gm_status status = blocks[k].bytes ? gm_free(planes->pool, &blocks[k], NULL) : GM_OK;
    if (status == GM_ERR_BUSY)
      first = gm__fail(err, status, op, "the block of granule %u in plane %u is mapped", granule, k);
    else
      blocks[k] = (gm_block){.bytes = 0};
  }
  return first;
}

gm_status gm__page_pool_refused(gm_acquire answer, uint64_t bytes, const char *op, gm_error *err) {
  const gm_status status = answer == GM_ACQUIRE_EXHAUSTED    ? GM_ERR_OUT_OF_DEVICE_MEMORY
                           : answer == GM_ACQUIRE_OVER_LIMIT ? GM_ERR_OVER_LIMIT
                           : answer == GM_ACQUIRE_INVALID    ? GM_ERR_INVALID_ARGUMENT
                                                             : GM_ERR_DRIVER;
  return gm__fail(err, status, op, "the pool answers %s to %" PRIu64 " bytes", gm_acquire_name(answer), bytes);
}

/* Gets a granule's blocks, all or none but those that were mapped before. */
static gm_status planes_alloc(const gm_pages *set, gm__page_planes *planes, uint32_t granule, const char *op,
                              gm_error *err) {
  gm_block *blocks = planes_blocks(planes, granule);
  const uint32_t pages = gm__granule_first(set, granule + 1) - gm__granule_first(set, granule);
  gm_request request = planes->request;
  for (uint32_t k = 0; k < planes->count; k++) {
    if (blocks[k].bytes) continue;
    request.bytes = pages * planes->bytes[k];
    const gm_acquire answer = gm_alloc(planes->pool, &request, &blocks[k]);
    if (gm_acquired(answer)) continue;
    blocks[k] = (gm_block){.bytes = 0};
    planes_free(planes, granule, op, NULL);
    return gm__page_pool_refused(answer, request.bytes, op, err);
  }
  return GM_OK;
}

/* The set lives on without memory, as one of its blocks is mapped. */
static void planes_leave(gm_pages *set) {
  gm__page_planes *planes = &set->planes;
  gm__mutex_lock(&set->lock);
  for (uint32_t g = 0; g < planes->granules; g++) {
    if (planes->states[g] == GM__GRANULE_BACKED) planes->states[g] = GM__GRANULE_GOING;
  }
  gm__page_order_remove(set);
  memset(planes->states, GM__GRANULE_EMPTY, planes->granules * sizeof *planes->states);
  planes->backed = 0;
  gm__mutex_unlock(&set->lock);
}

gm_status gm__page_planes_release(gm_pages *set, const char *op, gm_error *err) {
  gm__page_planes *planes = &set->planes;
  gm_status first = GM_OK;
  for (uint32_t g = 0; g < planes->granules; g++) {
    const gm_status status = planes_free(planes, g, op, first ? NULL : err);
    if (!first) first = status;
  }
  if (first) planes_leave(set);
  return first;
}

/* ---- growth ---- */

/* A granule that has no memory, the first one, for this thread; `granules`: there is none. */
static uint32_t planes_come(gm__page_planes *planes) {
  for (uint32_t g = 0; g < planes->granules; g++) {
    if (planes->states[g] != GM__GRANULE_EMPTY) continue;
    planes->states[g] = GM__GRANULE_COMING;
    return g;
  }
  return planes->granules;
}

gm_status gm__page_planes_grow(gm_pages *set, uint32_t backed, const char *op, gm_error *err) {
  gm__page_planes *planes = &set->planes;
  gm_status status = GM_OK;
  gm__mutex_lock(&set->lock);
  while (!status && planes->backed < backed) {
    const uint32_t granule = planes_come(planes);
    if (granule == planes->granules) break; /* other threads are getting the rest */
    gm__mutex_unlock(&set->lock);
    status = planes_alloc(set, planes, granule, op, err);
    gm__mutex_lock(&set->lock);
    planes->states[granule] = status ? GM__GRANULE_EMPTY : GM__GRANULE_BACKED;
    if (status) break;
    const gm_page first = gm__granule_first(set, granule);
    planes->came++;
    planes->backed += gm__granule_first(set, granule + 1) - first;
    gm__page_order_add(set, first, gm__granule_first(set, granule + 1) - first);
  }
  return gm__pages_leave(set, status);
}

static gm_status planes_enter(gm_pages *pages, const char *op, gm_error *err) {
  const gm_status status = gm__pages_check(pages, op, err);
  if (status || pages->planes.pool) return status;
  return gm__bad_argument(err, op, "the set has no pool");
}

gm_status gm_pages_grow(gm_pages *pages, uint32_t backed_pages, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pages_grow";
  const gm_status status = planes_enter(pages, op, err);
  if (status) return status;
  if (backed_pages > pages->max_pages)
    return gm__bad_argument(err, op, "`backed_pages` is %u, and the set has %u", backed_pages, pages->max_pages);
  return gm__page_planes_grow(pages, backed_pages, op, err);
}

/* ---- trim ---- */

/* Can the granule go? With `idle`, also one with idle pages. */
static bool granule_rests(const gm_pages *set, uint32_t granule, bool idle) {
  if (set->planes.states[granule] != GM__GRANULE_BACKED || (!granule && set->keep_first)) return false;
  for (gm_page page = gm__granule_first(set, granule); page < gm__granule_first(set, granule + 1); page++) {
    if (!gm__page_rests(set, page) || (!idle && set->pages[page].keyed)) return false;
  }
  return true;
}

/* Chooses granules that go. Returns their pages. */
static uint32_t planes_choose(gm_pages *set, uint32_t backed, bool idle) {
  gm__page_planes *planes = &set->planes;
  uint32_t gone = 0;
  for (uint32_t g = planes->granules; g-- > 0;) {
    const uint32_t pages = gm__granule_first(set, g + 1) - gm__granule_first(set, g);
    if (planes->backed < pages || planes->backed - pages < backed || !granule_rests(set, g, idle)) continue;
    planes->states[g] = GM__GRANULE_GOING;
    planes->backed -= pages;
    gone += pages;
  }
  return gone;
}

/* REQUIRES: not the lock; this thread trims. */
static gm_status planes_go(gm_pages *set, const char *op, gm_error *err) {
  gm__page_planes *planes = &set->planes;
  gm_status first = GM_OK;
  for (uint32_t g = 0; g < planes->granules; g++) {
    gm__mutex_lock(&set->lock);
    const bool going = planes->states[g] == GM__GRANULE_GOING;
    gm__mutex_unlock(&set->lock);
    if (!going) continue;
    const gm_status status = planes_free(planes, g, op, first ? NULL : err);
    if (!first) first = status;
    gm__mutex_lock(&set->lock);
    planes->states[g] = GM__GRANULE_EMPTY;
    gm__mutex_unlock(&set->lock);
  }
  return first;
}

gm_status gm_pages_trim(gm_pages *pages, uint32_t backed_pages, uint32_t *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pages_trim";
  gm_status status = planes_enter(pages, op, err);
  if (status) return status;
  if (out) *out = 0;
  gm__mutex_lock(&pages->lock);
  gm__pages_settle(pages);
  if (pages->planes.trimming) return gm__pages_leave(pages, GM_OK);
  pages->planes.trimming = true;
  uint32_t gone = planes_choose(pages, backed_pages, false);
  gone += planes_choose(pages, backed_pages, true);
  if (gone) gm__page_order_remove(pages);
  gm__mutex_unlock(&pages->lock);
  if (gone) status = planes_go(pages, op, err);
  gm__mutex_lock(&pages->lock);
  pages->planes.trimming = false;
  if (out) *out = gone;
  return gm__pages_leave(pages, status);
}

/* ---- places ---- */

gm_status gm_pages_place(gm_pages *pages, uint32_t plane, gm_page page, gm_block *out, uint64_t *out_offset,
                         gm_error *err) {
  static const char op[] = "gm_pages_place";
  const gm_status status = planes_enter(pages, op, err);
  if (status) return status;
  if (!out || !out_offset) return gm__bad_argument(err, op, "`out` or `out_offset` is NULL");
  if (plane >= pages->planes.count)
    return gm__bad_argument(err, op, "`plane` is %u, not below %u", plane, pages->planes.count);
  if (page >= pages->max_pages) return gm__bad_argument(err, op, "page %u is none of %u", page, pages->max_pages);
  gm__mutex_lock(&pages->lock);
  const gm_block *block = gm__page_block(pages, plane, page);
  if (!block) return gm__pages_leave(pages, gm__bad_argument(err, op, "page %u has no memory", page));
  *out = *block;
  *out_offset = gm__page_offset(pages, plane, page);
  return gm__pages_leave(pages, GM_OK);
}
