#include "core/pages/page_order.h"

#include "core/base/alloc.h"
#include "core/pages/page_keys.h"

/* Invariants. A page without holds is in the stack, in a list, or was never taken (`fresh`). Stamps in a list never
 * fall from its first page to its last. If the first one waits, all do: one look at each list is enough. A
 * page's stamp is 0, or in [passed_below, next_step) or below it. `available` counts pages whose stamps are below
 * `passed_below`; `waiting` counts the others, each at its stamp. */

static gm__page_list *order_list(gm_pages *set, const gm__page *page) { return &set->order.lists[page->list]; }

static bool order_passed(const gm__page_order *order, uint64_t stamp) { return stamp < order->passed_below; }

bool gm__page_order_begin(gm_pages *set) {
  gm__page_order *order = &set->order;
  for (uint32_t i = 0; i < GM__PAGE_LISTS; i++) order->lists[i] = (gm__page_list){GM__NO_NODE, GM__NO_NODE, 0};
  order->fresh = set->planes.pool ? set->max_pages : set->keep_first;
  order->available = set->max_pages - order->fresh;
  order->next_step = order->passed_below = 1;
  order->stack = gm__alloc_array(gm__pages_services(set), set->max_pages, sizeof *order->stack);
  return order->stack != NULL;
}

void gm__page_order_end(gm_pages *set) {
  gm__release(gm__pages_services(set), set->order.stack, set->max_pages * sizeof *set->order.stack);
}

static void order_append(gm_pages *set, gm_page page) {
  gm__page *record = &set->pages[page];
  gm__page_list *list = order_list(set, record);
  record->hold.previous = list->last;
  record->hold.next = GM__NO_NODE;
  *(list->last != GM__NO_NODE ? &set->pages[list->last].hold.next : &list->first) = page;
  list->last = page;
  list->count++;
  if (record->list) set->order.listed |= UINT64_C(1) << (record->list - 1);
}

static void order_unlink(gm_pages *set, gm_page page) {
  gm__page *record = &set->pages[page];
  gm__page_list *list = order_list(set, record);
  const uint32_t next = record->hold.next, previous = record->hold.previous;
  *(previous != GM__NO_NODE ? &set->pages[previous].hold.next : &list->first) = next;
  *(next != GM__NO_NODE ? &set->pages[next].hold.previous : &list->last) = previous;
  if (!--list->count && record->list) set->order.listed &= ~(UINT64_C(1) << (record->list - 1));
}

void gm__page_retire(gm_pages *set, gm_page page) {
  gm__page_order *order = &set->order;
  gm__page *record = &set->pages[page];
  const bool waits = order->passed_below != order->next_step;
  record->stamp = waits ? order->next_step - 1 : 0;
  if (waits)
    order->waiting[record->stamp % GM_PAGE_STEPS_MOST]++;
  else
    order->available++;
  if (!record->keyed && !waits) {
    order->stack[order->stacked++] = page;
    return;
  }
  record->list = record->keyed ? (uint8_t)(1 + record->priority) : 0;
  order_append(set, page);
}

void gm__page_lift(gm_pages *set, gm_page page) {
  gm__page_order *order = &set->order;
  const uint64_t stamp = set->pages[page].stamp;
  order_unlink(set, page);
  if (order_passed(order, stamp))
    order->available--;
  else
    order->waiting[stamp % GM_PAGE_STEPS_MOST]--;
}

/* The first page of a list, out of it; GM_NO_PAGE: there is none, or it waits. */
static gm_page order_pop(gm_pages *set, uint32_t list) {
  const gm_page page = set->order.lists[list].first;
  if (page == GM__NO_NODE || !order_passed(&set->order, set->pages[page].stamp)) return GM_NO_PAGE;
  order_unlink(set, page);
  return page;
}

/* The first page of the least priority, of all idle ones or of those alone whose keys are dropped. */
static gm_page order_next_idle(gm_pages *set, bool dropped) {
  gm_page page = GM_NO_PAGE;
  for (uint64_t left = set->order.listed; left && page == GM_NO_PAGE; left &= left - 1) {
    const uint32_t list = 1 + (uint32_t)__builtin_ctzll(left);
    const gm_page first = set->order.lists[list].first;
    if (!dropped || set->pages[first].keyed != set->keys.generation) page = order_pop(set, list);
  }
  return page;
}

gm_page gm__page_next(gm_pages *set) {
  gm__page_order *order = &set->order;
  order->available--;
  if (order->stacked) return order->stack[--order->stacked];
  gm_page page = order_pop(set, 0);
  if (page != GM_NO_PAGE) return page;
  if (order->fresh < set->max_pages) return order->fresh++;
  if (order->dropped) page = order_next_idle(set, true);
  if (page == GM_NO_PAGE) return order_next_idle(set, false);
  order->dropped--;
  return page;
}

bool gm__page_rests(const gm_pages *set, gm_page page) {
  const gm__page *record = &set->pages[page];
  return !record->hold.count && order_passed(&set->order, record->stamp);
}

void gm__page_order_add(gm_pages *set, gm_page first, uint32_t count) {
  gm__page_order *order = &set->order;
  const gm_page least = first || !set->keep_first ? first : 1;
  for (gm_page page = first + count; page > least; page--) order->stack[order->stacked++] = page - 1;
  order->available += first + count - least;
}

/* REQUIRES: the page is in a list, or away, or the first one that is kept. */
static void order_leave(gm_pages *set, gm_page page) {
  gm__page *record = &set->pages[page];
  if (!page && set->keep_first) return;
  if (record->list == GM__PAGE_AWAY) {
    record->list = 0;
    return;
  }
  order_unlink(set, page);
  set->order.available--;
  if (!record->keyed) return;
  if (record->keyed != set->keys.generation) set->order.dropped--;
  gm__page_key_remove(set, page);
  set->evicted++;
}

void gm__page_order_remove(gm_pages *set) {
  gm__page_order *order = &set->order;
  const gm__page_planes *planes = &set->planes;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < order->stacked; i++) {
    const gm_page page = order->stack[i];
    if (planes->states[page / planes->granule_pages] == GM__GRANULE_GOING)
      set->pages[page].list = GM__PAGE_AWAY;
    else
      order->stack[kept++] = page;
  }
  order->available -= order->stacked - kept;
  order->stacked = kept;
  for (uint32_t g = 0; g < planes->granules; g++) {
    if (planes->states[g] != GM__GRANULE_GOING) continue;
    for (gm_page page = gm__granule_first(set, g); page < gm__granule_first(set, g + 1); page++) order_leave(set, page);
  }
}

uint64_t gm__page_step_begin(gm_pages *set) {
  gm__page_order *order = &set->order;
  if (!gm__page_step_has_room(set)) return 0;
  order->ended[order->next_step % GM_PAGE_STEPS_MOST] = false;
  order->of_copy[order->next_step % GM_PAGE_STEPS_MOST] = false;
  order->open_steps++;
  return order->next_step++;
}

bool gm__page_step_is_open(const gm_pages *set, uint64_t step) {
  const gm__page_order *order = &set->order;
  return step >= order->passed_below && step < order->next_step && !order->ended[step % GM_PAGE_STEPS_MOST];
}

bool gm__page_step_end(gm_pages *set, uint64_t step) {
  gm__page_order *order = &set->order;
  if (!gm__page_step_is_open(set, step)) return false;
  order->ended[step % GM_PAGE_STEPS_MOST] = true;
  order->open_steps--;
  while (order->passed_below < order->next_step && order->ended[order->passed_below % GM_PAGE_STEPS_MOST]) {
    uint32_t *waiting = &order->waiting[order->passed_below++ % GM_PAGE_STEPS_MOST];
    order->available += *waiting;
    *waiting = 0;
  }
  return true;
}

uint32_t gm__page_idle(const gm_pages *set) {
  uint32_t sum = 0;
  for (uint32_t i = 1; i < GM__PAGE_LISTS; i++) sum += set->order.lists[i].count;
  return sum;
}

uint32_t gm__page_waiting(const gm_pages *set) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < GM_PAGE_STEPS_MOST; i++) sum += set->order.waiting[i];
  return sum;
}
