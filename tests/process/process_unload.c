/* Load the library, use it, unload it, many times: no crash, and no memory, thread or descriptor left behind. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gm/copy.h"

static int count_folder(const char *path) {
  DIR *folder = opendir(path);
  int count = 0;
  while (folder && readdir(folder)) count++;
  if (folder) closedir(folder);
  return count;
}

/* The address of a function of the library, into a pointer of its type. */
static int find(void *library, const char *name, void *pointer_at) {
  void *symbol = dlsym(library, name);
  if (!symbol) fprintf(stderr, "no %s: %s\n", name, dlerror());
  memcpy(pointer_at, &symbol, sizeof symbol);
  return symbol != NULL;
}

static int use(void *library, const char *backend) {
  gm_status (*context_create)(const gm_context_params *, gm_context **, gm_error *);
  gm_status (*context_destroy)(gm_context *, gm_error *);
  gm_status (*device_open)(gm_context *, const char *, uint32_t, gm_device **, gm_error *);
  gm_status (*device_close)(gm_device *, gm_error *);
  gm_status (*pool_create)(gm_device *, const gm_pool_params *, gm_pool **, gm_error *);
  gm_status (*pool_destroy)(gm_pool *, gm_error *);
  gm_acquire (*alloc)(gm_pool *, const gm_request *, gm_block *);
  gm_status (*release)(gm_pool *, const gm_block *, gm_stream *);
  if (!find(library, "gm_context_create", &context_create) || !find(library, "gm_context_destroy", &context_destroy) ||
      !find(library, "gm_device_open_index", &device_open) || !find(library, "gm_device_close", &device_close) ||
      !find(library, "gm_pool_create", &pool_create) || !find(library, "gm_pool_destroy", &pool_destroy) ||
      !find(library, "gm_alloc", &alloc) || !find(library, "gm_free", &release)) {
    return 1;
  }
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  gm_block block;
  gm_context_params params = {.struct_size = sizeof params, .backends = backend};
  gm_request request = {.bytes = 100000};
  if (context_create(&params, &ctx, NULL) != GM_OK) return 2;
  if (device_open(ctx, backend, 0, &device, NULL) != GM_OK) return 3;
  if (pool_create(device, NULL, &pool, NULL) != GM_OK) return 4;
  if (alloc(pool, &request, &block) > GM_ACQUIRE_FRESH) return 5;
  if (release(pool, &block, NULL) != GM_OK || pool_destroy(pool, NULL) != GM_OK) return 6;
  return device_close(device, NULL) == GM_OK && context_destroy(ctx, NULL) == GM_OK ? 0 : 7;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  int loops = atoi(argv[2]), threads = 0, files = 0;
  for (int i = 0; i < loops; i++) {
    void *library = dlopen(GM_LIBRARY_PATH, RTLD_NOW | RTLD_LOCAL);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
    int failed = use(library, argv[1]);
    if (failed) return fprintf(stderr, "loop %d: step %d\n", i, failed), 1;
    dlclose(library);
    if (i == 4) threads = count_folder("/proc/self/task"), files = count_folder("/proc/self/fd");
  }
  int more_threads = count_folder("/proc/self/task") - threads, more_files = count_folder("/proc/self/fd") - files;
  printf("%s: %d loops, %d more threads, %d more open files\n", argv[1], loops, more_threads, more_files);
  return more_threads > 0 || more_files > 0;
}
