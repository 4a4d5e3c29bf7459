/* A plug-in of a program on musl loads libgm.so at run time, and uses it: a pool of the CPU, a thread of its own. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "gm/gm.h"

static void *library;

/* A function of the library, or the end of the test. */
#define LOADED(name)                                          \
  __typeof__(&name) loaded_##name;                            \
  do {                                                        \
    void *symbol = dlsym(library, #name);                     \
    if (!symbol) return fprintf(stderr, "no %s\n", #name), 1; \
    memcpy(&loaded_##name, &symbol, sizeof symbol);           \
  } while (0)

static gm_pool *pool;

static int use_pool(void) {
  LOADED(gm_malloc);
  LOADED(gm_free_ptr);
  for (int i = 0; i < 100; i++) {
    void *pointer = loaded_gm_malloc(pool, 4096, NULL);
    if (!pointer) return fprintf(stderr, "gm_malloc\n"), 1;
    memset(pointer, i, 4096);
    if (loaded_gm_free_ptr(pool, pointer, 4096, NULL)) return fprintf(stderr, "gm_free_ptr\n"), 1;
  }
  return 0;
}

static void *on_a_thread(void *failed) {
  *(int *)failed = use_pool();
  return NULL;
}

static int use(void) {
  LOADED(gm_context_create);
  LOADED(gm_device_open_index);
  LOADED(gm_pool_create);
  LOADED(gm_pool_destroy);
  LOADED(gm_device_close);
  LOADED(gm_context_destroy);
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_error err;
  pthread_t thread;
  int failed = 1;
  if (loaded_gm_context_create(NULL, &ctx, &err) || loaded_gm_device_open_index(ctx, "cpu", 0, &device, &err) ||
      loaded_gm_pool_create(device, NULL, &pool, &err))
    return fprintf(stderr, "%s: %s\n", err.op, err.message), 1;
  if (use_pool() || pthread_create(&thread, NULL, on_a_thread, &failed) || pthread_join(thread, NULL) || failed)
    return 1;
  if (loaded_gm_pool_destroy(pool, &err) || loaded_gm_device_close(device, &err) ||
      loaded_gm_context_destroy(ctx, &err))
    return fprintf(stderr, "%s: %s\n", err.op, err.message), 1;
  return 0;
}

int main(int argc, char **argv) {
  library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library) return fprintf(stderr, "dlopen: %s\n", argc == 2 ? dlerror() : "which library?"), 1;
#ifdef __GLIBC__
  return fprintf(stderr, "this is glibc\n"), 1;
#endif
  return use();
}
