/* The CUDA backend on the simulated driver that GM_CUDA_LIBRARY names, the driver's script, and an engine's side of the
 * same driver. Needs cmocka.h included before. Without a simulated driver a test is skipped (77): a real one follows no
 * script. */
#ifndef GM_TESTS_SUPPORT_CUDA_FIXTURE_H
#define GM_TESTS_SUPPORT_CUDA_FIXTURE_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/cuda_syms.h"
#include "core/base/alloc.h"
#include "gm/native_cuda.h"

typedef struct cuda_fixture {
  gm_backend_host host;
  const gm_backend_ops *ops;
  void *driver, *device, *stream;
  gm_error err;
} cuda_fixture;

static int (*cuda_script)(const char *command, char *reply, size_t capacity);

/* An entry of the library itself, past gm. */
static inline void cuda_entry(const char *name, void *out) {
  static void *library;
  const char *path = getenv("GM_CUDA_LIBRARY");
  if (!library) library = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void *symbol = library ? dlsym(library, name) : NULL;
  if (!symbol) {
    printf("skipped: no simulated CUDA driver (GM_CUDA_LIBRARY)\n");
    exit(77);
  }
  memcpy(out, &symbol, sizeof symbol);
}

/* One command of the script (tests/simulated/README.md). */
static inline void cuda_say(const char *command) {
  if (!cuda_script) cuda_entry("simCudaControl", &cuda_script);
  assert_int_equal(cuda_script(command, NULL, 0), 0);
}

/* One of the driver's counters: "events", "contexts", … */
static inline long cuda_count(const char *what) {
  char command[64], reply[64] = "";
  snprintf(command, sizeof command, "get %s", what);
  assert_int_equal(cuda_script(command, reply, sizeof reply), 0);
  return strtol(reply, NULL, 10);
}

/* How often an entry was called since "zero". */
static inline long cuda_calls(const char *symbol) {
  char command[96], reply[64] = "";
  snprintf(command, sizeof command, "calls %s", symbol);
  assert_int_equal(cuda_script(command, reply, sizeof reply), 0);
  return strtol(reply, NULL, 10);
}

/* It is scripted by the environment, without latency; not yet initialised. */
static inline void cuda_begin(cuda_fixture *f) {
  *f = (cuda_fixture){.ops = &gm__cuda_backend};
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  f->host = (gm_backend_host){.struct_size = sizeof f->host, .services = gm__default_services(), .options = ""};
  f->host.library = getenv("GM_CUDA_LIBRARY");
}

static inline void cuda_init(cuda_fixture *f) {
  const gm_status status = f->ops->init(&f->host, &f->driver, &f->err);
  if (status != GM_OK) fail_msg("%s: %s", gm_status_name(status), f->err.message);
}

static inline void cuda_open(cuda_fixture *f) {
  gm_stream_kind kind;
  cuda_init(f);
  assert_int_equal(f->ops->device_open(f->driver, 0, &f->device, &f->err), GM_OK);
  assert_int_equal(f->ops->stream_create(f->device, &f->stream, &kind, &f->err), GM_OK);
}

/* Closes what is open; nothing may be left at the driver. */
static inline void cuda_end(cuda_fixture *f) {
  char left[1024];
  if (f->stream) f->ops->stream_close(f->device, f->stream, GM_CLOSE_NORMAL);
  if (f->device) f->ops->device_close(f->device, GM_CLOSE_NORMAL);
  if (f->driver) f->ops->fini(f->driver, GM_CLOSE_NORMAL);
  if (cuda_script("leaks", left, sizeof left)) fail_msg("left at the driver:\n%s", left);
}

static inline gm_memory cuda_memory(cuda_fixture *f, uint32_t type, uint64_t bytes) {
  const gm_memory_params params = {.struct_size = sizeof params, .type = type, .bytes = bytes};
  gm_memory memory = {0};
  const gm_status status = f->ops->memory_alloc(f->device, &params, &memory, &f->err);
  if (status != GM_OK) fail_msg("%s: %s", gm_status_name(status), f->err.message);
  return memory;
}

static inline void cuda_free(cuda_fixture *f, const gm_memory *memory) {
  assert_int_equal(f->ops->memory_free(f->device, memory, GM_CLOSE_NORMAL, &f->err), GM_OK);
}

#endif
