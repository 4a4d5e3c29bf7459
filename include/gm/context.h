/* A context holds all state of gm; several live side by side in one process. Every call is thread-safe unless it says
 * otherwise. In a forked child every call on a context of the parent answers GM_ERR_FORKED, except gm_context_destroy
 * and the other closing calls, which then give back host memory only. */
#ifndef GM_CONTEXT_H
#define GM_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/export.h"
#include "gm/services.h"
#include "gm/status.h"

GM_BEGIN_DECLS

typedef struct gm_context gm_context;

/* All members may be 0 or NULL. Strings are copied. */
typedef struct gm_context_params {
  uint32_t struct_size;
  bool ignore_environment;     /* GM_* variables are not read */
  const gm_services *services; /* allocator and log of the host program; copied; what `user` points to outlives gm */
  const char *preset;          /* "inference", "training", "constrained"; NULL: none */
  const char *backends;        /* only these: "cpu,opencl"; NULL: GM_BACKENDS, else all */
  const char *probe_helper;    /* absolute path of gm-probe; NULL: GM_PROBE_HELPER, else the installed one */
  const char *libraries;       /* driver libraries: "opencl=/opt/x/libOpenCL.so.1,vulkan=..." */
  const char *backend_options; /* backends' own switches: "vulkan:no_host_visible,validation;null:capacity=8G" */
  const char *host_root;       /* read /proc and /sys below this directory; NULL: "/" (for tests and containers) */
  gm_symbol_hook symbol_hook;  /* may replace entries of drivers' symbol tables */
  void *symbol_hook_user;
} gm_context_params;

/* Reads configuration (defaults, preset, the file GM_CONFIG, environment), touches no driver.
 * `params` may be NULL. Errors: INVALID_ARGUMENT (a parameter, a configuration key or an environment value, by name),
 * OUT_OF_HOST_MEMORY, NOT_FOUND or IO (the file of GM_CONFIG). The caller destroys *out. */
GM_API gm_status gm_context_create(const gm_context_params *params, gm_context **out, gm_error *err);

/* GM_ERR_BUSY while devices are open or trackers alive: then nothing has changed. NULL is GM_OK. Not while another
 * thread is in a call on `ctx`. */
GM_API gm_status gm_context_destroy(gm_context *ctx, gm_error *err);

/* A number for a name of bytes ("kv", "weights"): equal names, equal numbers, in one context. 0 if `name` is NULL,
 * empty, longer than 31 bytes or there is no host memory. At most 4095 tags. */
GM_API uint32_t gm_tag(gm_context *ctx, const char *name);

/* The name of a tag, "" for 0 or a number that was never given. Borrowed until the context is destroyed. */
GM_API const char *gm_tag_name(gm_context *ctx, uint32_t tag);

GM_END_DECLS

#endif
