#include "core/device/watch.h"

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/thread_here.h"

/* Invariants. One thread of a context looks at a time, `looker`; whoever comes meanwhile leaves `again` behind and
 * goes. So no thread waits for a callback but one that ends its watch. `looked` is the watch that the looker has in its
 * hands outside of the lock: it is not released before that is over. `next` is where the looker goes on, and whoever
 * takes that watch out of the list moves it. */

enum { WATCH_ROUNDS = 4 }; /* a callback that grows each time it is called does not keep the thread for ever */

typedef struct watch_list {
  gm_context *ctx;
  gm__mutex lock;
  gm__cond done; /* the looker has laid down a watch */
  gm_pressure_watch *first, *next, *looked;
  const void *looker; /* NULL: nobody looks */
  bool again;
} watch_list;

struct gm_pressure_watch {
  gm__object head;
  watch_list *list;
  gm_pressure_watch *before, *behind;
  gm__watched what;
  _Atomic int level; /* of the looker alone */
  bool blind;        /* its subject is gone */
  bool out;          /* somebody ends it, or has ended it */
  bool orphan;       /* its own callback has ended it: the looker releases it */
};

/* A name of the calling thread that no other living thread has. */
static const void *watch_self(void) { return &gm__here; }

/* ---- the list ---- */

static void watch_list_destroy(void *object, bool forked) {
  watch_list *list = object;
  if (!forked) {
    gm__mutex_destroy(&list->lock);
    gm__cond_destroy(&list->done);
  }
  gm__release(gm__context_services(list->ctx), list, sizeof *list);
}

/* NULL: there was never a watch. */
static watch_list *watch_list_of(gm_context *ctx) { return gm__context_hung(ctx, GM__SLOT_WATCHES); }

gm_status gm__watches_prepare(gm_context *ctx, const char *op, gm_error *err) {
  if (watch_list_of(ctx)) return GM_OK;
  watch_list *list = gm__alloc(gm__context_services(ctx), sizeof *list);
  if (!list) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a list of watches");
  list->ctx = ctx;
  gm__mutex_init(&list->lock, GM__RANK_LEAF);
  gm__cond_init(&list->done);
  const bool first = gm__context_hang(ctx, GM__SLOT_WATCHES, watch_list_destroy, list) == list;
  if (!first) watch_list_destroy(list, false);
  return GM_OK;
}

/* ---- begin and end ---- */

/* REQUIRES: list lock. */
static void watch_link(watch_list *list, gm_pressure_watch *watch) {
  watch->behind = list->first;
  if (watch->behind) watch->behind->before = watch;
  list->first = watch;
}

/* REQUIRES: list lock, but in a forked child. */
static void watch_unlink(watch_list *list, gm_pressure_watch *watch) {
  if (list->next == watch) list->next = watch->behind;
  if (watch->behind) watch->behind->before = watch->before;
  if (watch->before) {
    watch->before->behind = watch->behind;
  } else {
    list->first = watch->behind;
  }
}

gm_status gm__watch_begin(const gm__watched *what, const char *op, gm_pressure_watch **out, gm_error *err) {
  if (!what->callback || !out) return gm__bad_argument(err, op, "`%s` is NULL", out ? "callback" : "out");
  const gm_status status = gm__watches_prepare(what->ctx, op, err);
  if (status) return status;
  gm_pressure_watch *watch = gm__object_new(what->ctx, GM__KIND_WATCH, sizeof *watch);
  if (!watch) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a watch");
  watch->list = watch_list_of(what->ctx);
  watch->what = *what;
  atomic_fetch_add(what->guests, 1);
  *out = watch; /* before another thread can call its callback */
  gm__mutex_lock(&watch->list->lock);
  watch_link(watch->list, watch);
  gm__mutex_unlock(&watch->list->lock);
  if (what->device) atomic_fetch_add(&what->device->watches, 1);
  return GM_OK;
}

/* The watched object may end from now on. */
static void watch_let_go(const gm__watched *what) {
  if (what->device) atomic_fetch_sub(&what->device->watches, 1);
  atomic_fetch_sub(what->guests, 1);
}

static gm_status watch_has_ended(gm_error *err) {
  return gm__bad_argument(err, "gm_pressure_watch_end", "`watch` has ended");
}

/* In a forked child nobody looks. */
static gm_status watch_abandon(gm_pressure_watch *watch) {
  const gm__watched what = watch->what;
  if (!watch->out) watch_unlink(watch->list, watch);
  gm__object_end(what.ctx, &watch->head);
  watch_let_go(&what);
  return GM_OK;
}

/* Takes the watch out of the list, and waits for a call on another thread. REQUIRES: list lock. */
static void watch_take_out(watch_list *list, gm_pressure_watch *watch, bool own) {
  watch->out = true;
  watch->orphan = own;
  watch_unlink(list, watch);
  while (!own && list->looked == watch) gm__cond_wait(&list->done, &list->lock);
}

gm_status gm_pressure_watch_end(gm_pressure_watch *watch, gm_error *err) {
  GM__UNCANCELLED();
  if (!watch) return GM_OK;
  if (!gm__object_is(&watch->head, GM__KIND_WATCH)) return watch_has_ended(err);
  const gm__watched what = watch->what;
  if (gm__context_forked(what.ctx)) return watch_abandon(watch);
  watch_list *list = watch->list;
  gm__mutex_lock(&list->lock);
  const bool own = list->looked == watch && list->looker == watch_self(), late = watch->out, orphan = watch->orphan;
  if (!late) watch_take_out(list, watch, own);
  gm__mutex_unlock(&list->lock);
  if (late) return own && !orphan ? GM_OK : watch_has_ended(err); /* another thread ends it, and waits for this one */
  if (!own) gm__object_end(what.ctx, &watch->head);
  watch_let_go(&what);
  return GM_OK;
}

/* The subject may go when the looker has laid the watch down, unless its own callback ends the subject. */
void gm__watches_forget(gm_context *ctx, const void *subject) {
  watch_list *list = watch_list_of(ctx);
  if (!list) return;
  gm__mutex_lock(&list->lock);
  for (gm_pressure_watch *watch = list->first; watch; watch = watch->behind) {
    if (watch->what.subject != subject) continue;
    watch->blind = true;
    if (watch->what.device) atomic_fetch_sub(&watch->what.device->watches, 1);
    watch->what.device = NULL;
  }
  while (list->looked && list->looked->blind && list->looker != watch_self()) {
    gm__cond_wait(&list->done, &list->lock);
  }
  gm__mutex_unlock(&list->lock);
}

/* ---- looking ---- */

static gm_status watch_look(gm_pressure_watch *watch, gm_error *err) {
  const gm__watched *what = &watch->what;
  gm_pressure now = {.struct_size = sizeof now};
  const gm_pressure_level from = (gm_pressure_level)atomic_load_explicit(&watch->level, memory_order_relaxed);
  const gm_status status = what->read(what->subject, &watch->level, &now, err);
  if (status || now.level == from) return status;
  const gm_pressure_event event = {
      .struct_size = sizeof event, .scope = what->scope, .from = from, .to = now.level, .now = &now, .watch = watch};
  gm__rank_check_submit();
  what->callback(what->user, &event);
  return GM_OK;
}

/* Lays down the watch that the looker had in its hands. REQUIRES: list lock, which it may leave for a moment. */
static void watch_lay_down(watch_list *list, gm_pressure_watch *watch) {
  list->looked = NULL;
  gm__cond_broadcast(&list->done);
  if (!watch->orphan) return;
  gm__mutex_unlock(&list->lock);
  gm__object_end(list->ctx, &watch->head);
  gm__mutex_lock(&list->lock);
}

/* Looks at each watch once. FORKED, and without the lock: a callback forked, and this is the child. REQUIRES: list
 * lock; the caller is the looker. */
static gm_status watch_look_round(watch_list *list, const gm_device *device, gm_error *err) {
  gm_status first = GM_OK;
  list->next = list->first;
  for (gm_pressure_watch *watch; (watch = list->next);) {
    list->next = watch->behind;
    if (watch->blind || (device && watch->what.device != device)) continue;
    list->looked = watch;
    gm__mutex_unlock(&list->lock);
    const gm_status status = watch_look(watch, first ? NULL : err);
    if (gm__context_forked(list->ctx)) return GM_ERR_FORKED;
    if (!first) first = status;
    gm__mutex_lock(&list->lock);
    watch_lay_down(list, watch);
  }
  return first;
}

gm_status gm__watches_look(gm_context *ctx, const gm_device *device, gm_error *err) {
  GM__UNCANCELLED();
  watch_list *list = watch_list_of(ctx);
  gm_status status = GM_OK;
  if (!list) return GM_OK;
  gm__mutex_lock(&list->lock);
  list->again = true;
  if (list->looker) {
    gm__mutex_unlock(&list->lock);
    return GM_OK;
  }
  list->looker = watch_self();
  for (int round = 0; round < WATCH_ROUNDS && list->again; round++) {
    list->again = false;
    status = watch_look_round(list, round ? NULL : device, err);
    if (status == GM_ERR_FORKED) return gm__context_check(ctx, "gm_context_poll", err);
  }
  list->looker = NULL;
  gm__mutex_unlock(&list->lock);
  return status;
}

/* ---- the API ---- */

gm_status gm_pressure_watch_device(gm_device *device, gm_pressure_callback callback, void *user,
                                   gm_pressure_watch **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pressure_watch_device";
  const gm_status status = gm__device_check(device, op, err);
  if (status) return status;
  const gm__watched what = {.scope = GM_PRESSURE_OF_DEVICE,
                            .ctx = device->ctx,
                            .device = device,
                            .subject = device,
                            .guests = &device->children,
                            .read = gm__pressure_read_device,
                            .callback = callback,
                            .user = user};
  return gm__watch_begin(&what, op, out, err);
}

gm_status gm_pressure_watch_host(gm_context *ctx, gm_pressure_callback callback, void *user, gm_pressure_watch **out,
                                 gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pressure_watch_host";
  const gm_status status = gm__context_check(ctx, op, err);
  if (status) return status;
  const gm__watched what = {.scope = GM_PRESSURE_OF_HOST,
                            .ctx = ctx,
                            .subject = ctx,
                            .guests = &ctx->children,
                            .read = gm__pressure_read_host,
                            .callback = callback,
                            .user = user};
  return gm__watch_begin(&what, op, out, err);
}

gm_status gm_context_poll(gm_context *ctx, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__context_check(ctx, "gm_context_poll", err);
  if (status) return status;
  status = gm__watches_look(ctx, NULL, err);
  void (*on_poll)(gm_context *) = atomic_load(&ctx->on_poll);
  if (on_poll && status != GM_ERR_FORKED) on_poll(ctx);
  void (*on_wait)(gm_context *) = atomic_load(&ctx->on_wait);
  if (on_wait && !gm__context_forked(ctx)) on_wait(ctx);
  return status;
}
