/* Prints what memory the requests of docs/manual.md get on the first device of a backend: a line "name|words" for each.
 *
 *   print_patterns BACKEND [cpu]
 *
 * With `cpu` a device of another type answers 77: the page's column is about drivers that run on the host's processor.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gm/context.h"
#include "gm/device.h"
#include "gm/pool.h"

static const struct {
  const char *name;
  gm_request request;
} patterns[] = {{"weights, KV cache, scratch", {.bytes = 4096}},
                {"weights that the host writes", {.bytes = 4096, .prefer = GM_MEMORY_HOST_VISIBLE}},
                {"staging up",
                 {.bytes = 4096,
                  .must_be = GM_DEVICE_ACCESSIBLE,
                  .flags = GM_HOST_VISIBLE,
                  .require = GM_MEMORY_SYSTEM,
                  .prefer = GM_MEMORY_WRITE_COMBINED}},
                {"read-back",
                 {.bytes = 4096,
                  .must_be = GM_DEVICE_ACCESSIBLE,
                  .flags = GM_HOST_VISIBLE,
                  .require = GM_MEMORY_SYSTEM,
                  .prefer = GM_MEMORY_HOST_CACHED}},
                {"host memory, mapped for life",
                 {.bytes = 4096, .must_be = GM_DEVICE_ACCESSIBLE, .flags = GM_MAPPED, .require = GM_MEMORY_SYSTEM}},
                {"device memory, mapped for life", {.bytes = 4096, .flags = GM_MAPPED}},
                {"a native object of its own", {.bytes = 4096, .flags = GM_DEDICATED}}};

static void print_flags(uint32_t flags) {
  static const struct {
    uint32_t flag;
    const char *word;
  } words[] = {{GM_MEMORY_DEVICE_LOCAL, "local"},   {GM_MEMORY_SYSTEM, "system"},
               {GM_MEMORY_HOST_VISIBLE, "visible"}, {GM_MEMORY_HOST_COHERENT, "coherent"},
               {GM_MEMORY_HOST_CACHED, "cached"},   {GM_MEMORY_WRITE_COMBINED, "combined"},
               {GM_MEMORY_PINNED, "pinned"}};
  const char *between = "";
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (!(flags & words[i].flag)) continue;
    printf("%s%s", between, words[i].word);
    between = " ";
  }
}

static int print_pattern(gm_pool *pool, size_t number) {
  gm_block block;
  gm_memory memory;
  uint64_t offset;
  gm_memory_type type = {.struct_size = sizeof type};
  const gm_acquire answer = gm_alloc(pool, &patterns[number].request, &block);
  printf("%s|", patterns[number].name);
  if (answer == GM_ACQUIRE_INVALID) {
    printf("INVALID\n");
    return 0;
  }
  if (!gm_acquired(answer) || gm_block_memory(pool, &block, &memory, &offset)) return 1;
  if (gm_device_memory_type(gm_pool_device(pool), memory.type, &type, NULL)) return 1;
  print_flags(type.flags);
  printf("\n");
  return gm_free(pool, &block, NULL) ? 1 : 0;
}

static int print_all(gm_device *device, gm_error *err) {
  gm_pool *pool;
  int failed = 0;
  if (gm_pool_create(device, NULL, &pool, err)) return 1;
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) failed |= print_pattern(pool, i);
  return gm_pool_destroy(pool, err) || failed;
}

int main(int argc, char **argv) {
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_error err = {.status = GM_OK};
  if (argc < 2 || gm_context_create(NULL, &ctx, &err)) return 2;
  const gm_status status = gm_device_open_index(ctx, argv[1], 0, &device, &err);
  int result = 77;
  if (status) {
    fprintf(stderr, "skipped: no %s device: %s\n", argv[1], err.message);
  } else if (argc > 2 && gm_device_get_info(device)->type != GM_DEVICE_TYPE_CPU) {
    fprintf(stderr, "skipped: %s does not run on the host's processor\n", gm_device_get_info(device)->name);
  } else {
    result = print_all(device, &err);
    if (result) fprintf(stderr, "%s: %s\n", err.op, err.message);
  }
  gm_device_close(device, NULL);
  gm_context_destroy(ctx, NULL);
  return result;
}
