/* The requests that scripts/measure-house traces, on the CPU. The library is compiled with -finstrument-functions.
 * Each request writes the functions that it entered as lines of FOLDER/<request>.trace, and how often it opened the
 * file of promises to FOLDER/<request>.opens. usage: walks FOLDER */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gm/gm.h>
#include <gm/store_all.h>

#define PLAIN __attribute__((no_instrument_function))
#define MOST_CALLS 4000000

static void *calls[MOST_CALLS];
static long call_count, opens;
static bool tracing;
static const char *folder;

PLAIN void __cyg_profile_func_enter(void *function, void *caller) {
  (void)caller;
  if (tracing && call_count < MOST_CALLS) calls[call_count++] = function;
}

PLAIN void __cyg_profile_func_exit(void *function, void *caller) { (void)function, (void)caller; }

PLAIN static void count_open(const char *path) {
  if (tracing && strstr(path, "gm-promises")) opens++;
}

/* The linker sends gm's calls here (--wrap). */
#define WRAPPED(name)                                         \
  int __real_##name(const char *path, int flags, ...);        \
  PLAIN int __wrap_##name(const char *path, int flags, ...) { \
    va_list arguments;                                        \
    va_start(arguments, flags);                               \
    const mode_t mode = va_arg(arguments, mode_t);            \
    va_end(arguments);                                        \
    count_open(path);                                         \
    return __real_##name(path, flags, mode);                  \
  }
WRAPPED(open)
WRAPPED(open64)

int __real_openat(int at, const char *path, int flags, ...);
PLAIN int __wrap_openat(int at, const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  count_open(path);
  return __real_openat(at, path, flags, mode);
}

PLAIN static void begin(void) {
  call_count = opens = 0;
  tracing = true;
}

PLAIN static FILE *result(const char *request, const char *kind) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.%s", folder, request, kind);
  FILE *file = fopen(path, "w");
  if (!file) perror(path), exit(1);
  return file;
}

PLAIN static void end(const char *request) {
  tracing = false;
  if (call_count == MOST_CALLS) fprintf(stderr, "%s: more than %d calls\n", request, MOST_CALLS), exit(1);
  FILE *file = result(request, "trace");
  for (long i = 0; i < call_count; i++) fprintf(file, "%p\n", calls[i]);
  fclose(file);
  file = result(request, "opens");
  fprintf(file, "%ld\n", opens);
  fclose(file);
}

PLAIN static void need(bool good, const char *what, const gm_error *err) {
  if (good) return;
  fprintf(stderr, "%s: %s\n", what, err ? err->message : "failed");
  exit(1);
}

PLAIN static void pools(gm_device *device, gm_stream *stream) {
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 64 << 20};
  const gm_request small = {.bytes = 65536, .stream = stream}, large = {.bytes = 40 << 20, .stream = stream};
  gm_error err = {0};
  gm_pool *pool;
  gm_block block, grown;
  begin();
  const gm_status made = gm_pool_create(device, &params, &pool, &err);
  end("pool_create");
  need(made == GM_OK, "gm_pool_create", &err);
  begin();
  gm_acquire answer = gm_alloc(pool, &small, &block);
  end("alloc_first");
  need(gm_acquired(answer), "first gm_alloc", NULL);
  gm_free(pool, &block, stream);
  begin();
  answer = gm_alloc(pool, &small, &block);
  end("alloc_hit");
  need(gm_acquired(answer), "gm_alloc", NULL);
  begin();
  gm_free(pool, &block, stream);
  end("free_hit");
  begin();
  answer = gm_alloc(pool, &large, &grown);
  end("alloc_grow");
  need(gm_acquired(answer), "gm_alloc that grows", NULL);
  begin();
  gm_free(pool, &grown, stream);
  end("free_large");
  need(gm_stream_sync(stream, &err) == GM_OK, "gm_stream_sync", &err);
  need(gm_pool_destroy(pool, &err) == GM_OK, "gm_pool_destroy", &err);
}

PLAIN static void buffers(gm_device *device, gm_stream *stream) {
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 8 << 20};
  const gm_buffer_params wish = {.struct_size = sizeof wish,
                                 .request = {.bytes = 3 << 20, .flags = GM_EVICTABLE, .stream = stream},
                                 .fallback = GM_FALLBACK_HOST};
  const gm_request request = {.bytes = 4 << 20, .flags = GM_INSERT_WAIT, .stream = stream};
  gm_error err = {0};
  gm_pool *pool;
  gm_buffer *two[2];
  gm_block block;
  need(gm_pool_create(device, &params, &pool, &err) == GM_OK, "gm_pool_create", &err);
  for (int i = 0; i < 2; i++) need(gm_buffer_create(pool, &wish, &two[i], &err) == GM_OK, "gm_buffer_create", &err);
  begin();
  const gm_acquire answer = gm_alloc(pool, &request, &block);
  end("alloc_demotes");
  need(gm_acquired(answer), "gm_alloc that demotes", NULL);
  need(gm_buffer_location(two[0]) + gm_buffer_location(two[1]) != 2 * GM_LOCATION_DEVICE,
       "a buffer that left the device", NULL);
}

PLAIN static void stores(gm_context *ctx, gm_device *device) {
  const gm_pool_params bounds = {.struct_size = sizeof bounds, .max_bytes = 4 << 20};
  const gm_tensor_desc tensor = {.struct_size = sizeof tensor, .dtype = GM_DTYPE_I8, .rank = 2, .shape = {1024, 1024}};
  static char bytes[1 << 20], path[4096];
  gm_error err = {0};
  gm_pool *pool;
  gm_tier *disk;
  gm_store *store;
  gm_value *value;
  snprintf(path, sizeof path, "%s/walk.gmtier", folder);
  need(gm_pool_create(device, &bounds, &pool, &err) == GM_OK, "gm_pool_create", &err);
  need(gm_tier_open(ctx, "disk", path, NULL, &disk, &err) == GM_OK, "gm_tier_open", &err);
  const gm_store_params params = {.struct_size = sizeof params,
                                  .pool = pool,
                                  .tiers = &disk,
                                  .tier_count = 1,
                                  .max_host_bytes = 1 << 20,
                                  .fallback = GM_FALLBACK_REFUSE};
  need(gm_store_create(&params, &store, &err) == GM_OK, "gm_store_create", &err);
  for (int i = 0; i < 12; i++) {
    char key[32];
    snprintf(key, sizeof key, "m/%d", i);
    need(gm_store_put_tensor(store, key, &tensor, bytes, &err) == GM_OK, "gm_store_put_tensor", &err);
  }
  begin();
  gm_status got = gm_store_get(store, "m/11", &value, &err);
  end("store_get_hit");
  need(got == GM_OK, "gm_store_get", &err);
  gm_value_release(value, NULL);
  begin();
  got = gm_store_get(store, "m/0", &value, &err);
  end("store_get_disk");
  need(got == GM_OK, "gm_store_get from disk", &err);
  gm_value_release(value, NULL);
  gm_store_stats stats = {.struct_size = sizeof stats};
  need(gm_store_get_stats(store, &stats, &err) == GM_OK && stats.came_back > 0, "a value from the disk", &err);
}

PLAIN int main(int count, char **arguments) {
  gm_error err = {0};
  gm_context *ctx;
  gm_device *device;
  gm_stream *stream;
  if (count != 2) return fprintf(stderr, "usage: walks FOLDER\n"), 2;
  folder = arguments[1];
  const gm_context_params params = {.struct_size = sizeof params, .preset = "inference", .ignore_environment = true};
  need(gm_context_create(&params, &ctx, &err) == GM_OK, "gm_context_create", &err);
  need(gm_device_open_index(ctx, "cpu", 0, &device, &err) == GM_OK, "gm_device_open_index", &err);
  need(gm_stream_create(device, &stream, &err) == GM_OK, "gm_stream_create", &err);
  pools(device, stream);
  buffers(device, stream);
  stores(ctx, device);
  return 0;
}
