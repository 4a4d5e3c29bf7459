#include "ort_open.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../shared/engines.h"

static const ort_api_base *base_of(const struct OrtApiBase *base) { return (const ort_api_base *)(const void *)base; }

static void note(const char *message, const char *version) {
  gm_error err = {.status = GM_ERR_NOT_SUPPORTED, .op = "gm_ort_open"};
  (void)snprintf(err.message, sizeof err.message, "%s: %.40s", message, version);
  gm_engines_note(&err);
}

/* The N of "1.N.x". 0: it has another form. */
static uint32_t version_of(const char *text) {
  char *end = NULL;
  if (strncmp(text, "1.", 2) != 0 || text[2] < '0' || text[2] > '9') return 0;
  const unsigned long minor = strtoul(text + 2, &end, 10);
  return *end == '.' && minor < UINT32_MAX ? (uint32_t)minor : 0;
}

/* A status keeps the value that it was made of, and the memory of the host is called Cpu. This shows positions 0, 1,
 * 2, 69, 71, 93 and 94. */
static bool answers_as_expected(const ort_api *api) {
  static const char text[] = "gm looks whether this is ONNX Runtime";
  const char *name = NULL;
  struct OrtMemoryInfo *info = NULL;
  struct OrtStatus *status = api->create_status(ORT_FAIL, text);
  const bool kept = status && api->get_error_code(status) == ORT_FAIL && !strcmp(api->get_error_message(status), text);
  if (status) api->release_status(status);
  if (!kept || api->create_cpu_memory_info(ORT_DEVICE_ALLOCATOR, ORT_MEMORY_DEFAULT, &info)) return false;
  const bool named = !api->memory_info_get_name(info, &name) && name && !strcmp(name, "Cpu");
  api->release_memory_info(info);
  return named;
}

const ort_api *gm_ort_open(const struct OrtApiBase *base, uint32_t *out_version) {
  const char *text = base_of(base)->get_version();
  const uint32_t version = version_of(text);
  if (version < GM_ORT_OLDEST) return note("this version is too old", text), NULL;
  *out_version = version < GM_ORT_NEWEST ? version : GM_ORT_NEWEST;
  const ort_api *api = base_of(base)->get_api(*out_version);
  if (api && answers_as_expected(api)) return api;
  return note("its functions are not where gm looks for them", text), NULL;
}

struct OrtStatus *gm_ort_failure(const struct OrtApiBase *base) {
  const ort_api *api = base_of(base)->get_api(1);
  return api ? api->create_status(ORT_FAIL, gm_engines_why()) : NULL;
}

/* libstdc++ exports a function that throws, for its own headers. So C needs no compiler of C++ for it. */
void gm_ort_raise(void) {
  void (*raise)(const char *) = NULL;
  void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_NOLOAD);
  void *symbol = library ? dlsym(library, "_ZSt21__throw_runtime_errorPKc") : NULL;
  memcpy(&raise, &symbol, sizeof raise);
  if (raise) raise(gm_engines_why());
}
