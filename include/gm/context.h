/* A context holds all state of gm. A process may have several contexts. Every call is thread-safe unless its comment
 * says otherwise.
 *
 * In a forked child every call on a context of the parent answers FORKED. Only gm_context_destroy and the other closing
 * calls work there: they give back host memory, and nothing else. */
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

/* Told of an object that a destructor of gm/gm.hpp, or the end of a GM_AUTO variable, could not end. The object stays
 * as it is. `what` is its class, such as "gm::block". `why` says what is in the way. Both are borrowed for the call.
 * The hook must not throw, nor end objects of gm. */
typedef void (*gm_left_open_hook)(void *user, const char *what, const gm_error *why);

/* All members may be 0 or NULL. gm copies the strings. */
typedef struct gm_context_params {
  uint32_t struct_size;
  bool ignore_environment;     /* do not read GM_* variables */
  const gm_services *services; /* allocator and log of the host program; copied; `user` must outlive the context */
  const char *preset;          /* "inference", "training", "constrained"; NULL: none */
  const char *backends;        /* use only these: "cpu,opencl"; NULL: those of GM_BACKENDS, else all */
  const char *probe_helper;    /* absolute path of gm-probe; NULL: that of GM_PROBE_HELPER, else the installed one */
  const char *libraries;       /* driver libraries: "opencl=/opt/x/libOpenCL.so.1,vulkan=..." */
  const char *backend_options; /* switches of backends: "vulkan:no_host_visible,validation;null:capacity=8G" */
  const char *host_root;       /* where gm looks for /proc and /sys, for tests and containers; NULL: "/" */
  gm_symbol_hook symbol_hook;  /* may replace entries of the drivers' symbol tables */
  void *symbol_hook_user;
  gm_left_open_hook left_open; /* must be thread-safe; NULL: the log alone is told */
  void *left_open_user;
} gm_context_params;

/* Creates a context. It reads the configuration: defaults, preset, the file of GM_CONFIG, environment. It touches no
 * driver. `params` may be NULL. The caller destroys *out.
 *
 * Errors: OUT_OF_HOST_MEMORY. INVALID_ARGUMENT: the message names the parameter, key or variable. NOT_FOUND, IO: the
 * file of GM_CONFIG. */
GM_API gm_status gm_context_create(const gm_context_params *params, gm_context **out, gm_error *err);

/* Destroys a context. No other thread may be in a call on `ctx`. NULL is GM_OK. BUSY: devices are open, or trackers or
 * watches are alive, and nothing has changed. */
GM_API gm_status gm_context_destroy(gm_context *ctx, gm_error *err);

/* Tells that an object could not be ended, where no caller can be: in the log (GM_LOG_WARN), and by the hook
 * gm_context_params.left_open. The destructors of gm/gm.hpp and of gm/auto.h call it. `why` may be NULL, or say
 * nothing: then `status` is told. GM_OK, a NULL context, and one of before a fork tell nothing. Thread-safe. */
GM_API void gm_tell_left_open(gm_context *ctx, const char *what, gm_status status, const gm_error *why);

/* Finds the number of a name, such as "kv" or "weights". In one context equal names get equal numbers, which are not 0.
 * Errors: FORKED. INVALID_ARGUMENT: `name` is NULL, empty or longer than 31 bytes. OVER_LIMIT: a context has at most
 * 4095 tags. OUT_OF_HOST_MEMORY. Thread-safe. */
GM_API gm_status gm_tag_find(gm_context *ctx, const char *name, uint32_t *out, gm_error *err);
/* Does as gm_tag_find, and returns the number. 0, which is no tag: it failed. */
GM_API uint32_t gm_tag(gm_context *ctx, const char *name);

/* Returns the name of a tag. The answer is "" for 0 and for a number that gm_tag never returned. The string is borrowed
 * until the context is destroyed. */
GM_API const char *gm_tag_name(gm_context *ctx, uint32_t tag);

GM_END_DECLS

#endif
