/* A context's life. Invariants: `children` counts the objects that keep it from being destroyed. Destructors run last
 * registered first, so a floor may use those below it until its own destructor has run. */
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/context/config.h"
#include "core/context/object.h"
#include "core/context/process.h"

/* The services that the program lends; the C library's allocator where it lends none. */
static gm_services context_complete_services(const gm_services *services) {
  gm_services complete = *gm__default_services();
  if (!services) return complete;
  if (services->alloc) return *services;
  complete.log = services->log;
  complete.user = services->user;
  return complete;
}

/* A copy of `text` (NULL: "") that gm__release gives back with strlen + 1 bytes. */
static bool context_copy_text(gm_context *ctx, const char *text, char **out) {
  size_t bytes = text ? strlen(text) + 1 : 1;
  *out = gm__alloc(&ctx->services, bytes);
  if (*out && text) memcpy(*out, text, bytes);
  return *out != NULL;
}

static void context_release_text(gm_context *ctx, char *text) {
  if (text) gm__release(&ctx->services, text, strlen(text) + 1);
}

static bool context_copy_params(gm_context *ctx, const gm_context_params *params) {
  ctx->symbol_hook = params->symbol_hook;
  ctx->symbol_hook_user = params->symbol_hook_user;
  ctx->left_open = params->left_open;
  ctx->left_open_user = params->left_open_user;
  ctx->ignore_environment = params->ignore_environment;
  return context_copy_text(ctx, params->backends, &ctx->backends) &&
         context_copy_text(ctx, params->probe_helper, &ctx->probe_helper) &&
         context_copy_text(ctx, params->libraries, &ctx->libraries) &&
         context_copy_text(ctx, params->backend_options, &ctx->backend_options) &&
         context_copy_text(ctx, params->host_root, &ctx->host_root);
}

/* Host memory of the context itself; takes no lock, so that it is right in a forked child too. */
static void context_release(gm_context *ctx) {
  gm_services services = ctx->services;
  if (ctx->config) gm__config_destroy(ctx->config, &services);
  context_release_text(ctx, ctx->backends);
  context_release_text(ctx, ctx->probe_helper);
  context_release_text(ctx, ctx->libraries);
  context_release_text(ctx, ctx->backend_options);
  context_release_text(ctx, ctx->host_root);
  gm__release(&services, ctx->tags, GM__TAGS_MAX * sizeof *ctx->tags);
  gm__release(&services, ctx->tag_places, GM__TAG_PLACES * sizeof *ctx->tag_places);
  gm__release(&services, ctx, sizeof *ctx);
}

static gm_status context_fill(gm_context *ctx, const gm_context_params *params, gm_error *err) {
  gm_status status = gm__process_generation(&ctx->generation, err);
  if (status != GM_OK) return status;
  if (!context_copy_params(ctx, params)) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_context_create", "no host memory for the parameters");
  }
  return gm__config_create(&ctx->services, params->preset, params->ignore_environment, &ctx->config, err);
}

gm_status gm_context_create(const gm_context_params *params, gm_context **out, gm_error *err) {
  GM__UNCANCELLED();
  gm_context_params mine = {.struct_size = sizeof mine};
  gm_status status = GM_OK;
  if (!out) return gm__bad_argument(err, "gm_context_create", "`out` is NULL");
  if (params) status = gm__sized_in(&mine, sizeof mine, params, "gm_context_create", "params", err);
  if (status == GM_OK) status = gm__services_check(mine.services, err);
  if (status != GM_OK) return status;
  gm_services services = context_complete_services(mine.services);
  gm_context *ctx = gm__alloc(&services, sizeof *ctx);
  if (!ctx) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_context_create", "no host memory for a context");
  ctx->services = services;
  gm__mutex_init(&ctx->lock, GM__RANK_CONTEXT);
  status = context_fill(ctx, &mine, err);
  if (status != GM_OK) {
    gm__mutex_destroy(&ctx->lock);
    context_release(ctx);
    return status;
  }
  *out = ctx;
  return GM_OK;
}

gm_status gm_context_destroy(gm_context *ctx, gm_error *err) {
  GM__UNCANCELLED();
  if (!ctx) return GM_OK;
  bool forked = gm__context_forked(ctx);
  uint32_t children = atomic_load(&ctx->children);
  if (children > 0) {
    return gm__fail(err, GM_ERR_BUSY, "gm_context_destroy", "%u devices, trackers, watches or scopes are still open",
                    children);
  }
  while (ctx->destructor_count > 0) {
    gm__destructor_entry *entry = &ctx->destructors[--ctx->destructor_count];
    entry->run(entry->object, forked);
  }
  gm__objects_release(ctx);
  if (!forked) gm__mutex_destroy(&ctx->lock);
  context_release(ctx);
  return GM_OK;
}
