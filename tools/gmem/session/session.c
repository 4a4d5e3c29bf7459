#include "tools/gmem/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/gmem/options/guess.h"
#include "tools/gmem/output/progress.h"

enum { SESSION_BACKENDS = 32 };

static void session_log(void *user, int level, const char *line) {
  (void)user;
  if (level > GM_LOG_WARN) return;
  progress_clear();
  fprintf(stderr, "gmem: %s: %s\n", level == GM_LOG_ERROR ? "error" : "warning", line);
}

/* gm-probe beside the program, as in a build folder; NULL: the library knows where it was installed. */
static const char *session_helper(char *path, size_t capacity) {
  const char *own = getenv("GM_PROBE_HELPER");
  if (own && *own) return NULL;
  ssize_t length = readlink("/proc/self/exe", path, capacity - 1);
  if (length <= 0) return NULL;
  path[length] = '\0';
  char *slash = strrchr(path, '/');
  if (!slash || (size_t)(slash - path) + sizeof "/gm-probe" > capacity) return NULL;
  memcpy(slash, "/gm-probe", sizeof "/gm-probe");
  return access(path, X_OK) == 0 ? path : NULL;
}

static gm_status session_create(session *out, gm_context_params params, gm_error *err) {
  char helper[4096];
  params.struct_size = sizeof params;
  params.probe_helper = session_helper(helper, sizeof helper);
  *out = (session){.ctx = NULL};
  return gm_context_create(&params, &out->ctx, err);
}

static const gm_services session_services = {.log = session_log};

gm_status session_begin(session *out, const char *backend_options, gm_error *err) {
  const gm_context_params params = {.services = &session_services, .backend_options = backend_options};
  return session_create(out, params, err);
}

gm_status session_begin_quietly(session *out, const char *backend_options, gm_error *err) {
  return session_create(out, (gm_context_params){.backend_options = backend_options}, err);
}

/* A name that no backend has is a mistake of who typed it, unlike a backend that is not available here. */
static gm_status session_check_name(session *self, const char *name, gm_error *err) {
  gm_backend_info infos[SESSION_BACKENDS] = {{.struct_size = sizeof *infos}};
  size_t count = 0;
  gm_status status = gm_discover_backends(self->ctx, GM_PROBE_PASSIVE, infos, SESSION_BACKENDS, &count, err);
  if (status != GM_OK || strcmp(name, "rocm") == 0) return status; /* another name of hip */
  const char *names[SESSION_BACKENDS + 1] = {NULL};
  for (size_t i = 0; i < count && i < SESSION_BACKENDS; i++) {
    if (strcmp(infos[i].name, name) == 0) return GM_OK;
    names[i] = infos[i].name;
  }
  const char *guess = guess_word(name, names);
  snprintf(err->message, sizeof err->message, "there is no backend \"%.100s\"%s%s%s", name,
           guess ? "; did you mean \"" : "", guess ? guess : "", guess ? "\"?" : "");
  return err->status = GM_ERR_INVALID_ARGUMENT;
}

gm_status session_begin_only(session *out, const char *backend, gm_error *err) {
  if (strcmp(backend, "rocm") == 0) backend = "hip";
  const gm_context_params params = {.services = &session_services, .backends = backend};
  gm_status status = session_create(out, params, err);
  return status == GM_OK ? session_check_name(out, backend, err) : status;
}

/* Drivers are looked at in the helper process; only the one that was chosen is loaded into this one. */
static gm_status session_open_best(session *self, uint64_t bytes, gm_error *err) {
  size_t count = 0;
  const gm_status status = gm_discover_backends(self->ctx, GM_PROBE_ISOLATED, NULL, 0, &count, err);
  return status == GM_OK ? gm_open_for_bytes(self->ctx, NULL, bytes, &self->device, err) : status;
}

gm_status session_open(session *self, const session_choice *choice, uint64_t bytes, gm_error *err) {
  if (!choice->backend) return session_open_best(self, bytes, err);
  gm_status status = session_check_name(self, choice->backend, err);
  if (status != GM_OK) return status;
  return gm_device_open_index(self->ctx, choice->backend, choice->device, &self->device, err);
}

gm_status session_end(session *self, gm_error *err) {
  gm_status status = gm_pool_destroy(self->pool, err);
  if (status == GM_OK) status = gm_device_close(self->device, err);
  if (status == GM_OK) status = gm_context_destroy(self->ctx, err);
  *self = (session){.ctx = NULL};
  return status;
}
