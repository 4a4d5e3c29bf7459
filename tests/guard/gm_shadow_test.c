/* gm_shadow_test, built with AddressSanitizer whether gm is or not. The use of freed host-addressable memory of a pool
 * ends a process with the sanitizer's report. The use of what is out, or was handed out again, does not. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gm/pool.h"

static unsigned char *shadow_host(gm_pool *pool, const gm_block *block) {
  gm_memory memory;
  uint64_t offset;
  if (gm_block_memory(pool, block, &memory, &offset) || !memory.host) return NULL;
  return (unsigned char *)memory.host + offset;
}

/* Free, take again, trim: with every byte in use at each step. */
static int shadow_good(gm_pool *pool, const gm_request *request) {
  for (int turn = 0; turn < 4; turn++) {
    gm_block block;
    if (gm_alloc(pool, request, &block) > GM_ACQUIRE_FRESH) return 3;
    unsigned char *host = shadow_host(pool, &block);
    if (!host) return 4;
    memset(host, turn, (size_t)block.bytes);
    if (gm_free(pool, &block, NULL)) return 5;
    if (turn == 1) gm_pool_trim(pool, 0);
  }
  return 0;
}

static int shadow_bad(gm_pool *pool, const gm_request *request) {
  gm_block block;
  if (gm_alloc(pool, request, &block) > GM_ACQUIRE_FRESH) return 3;
  volatile unsigned char *host = shadow_host(pool, &block);
  if (!host || gm_free(pool, &block, NULL)) return 4;
  host[100] = 1; /* the sanitizer ends the process here */
  return 0;
}

static int shadow_run(bool bad, gm_strategy strategy, uint32_t flags) {
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy};
  const gm_request request = {.bytes = 5000, .flags = flags};
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  if (gm_context_create(NULL, &ctx, NULL) || gm_device_open_index(ctx, "cpu", 0, &device, NULL)) return 2;
  if (gm_pool_create(device, &params, &pool, NULL)) return 2;
  const int result = bad ? shadow_bad(pool, &request) : shadow_good(pool, &request);
  if (gm_pool_destroy(pool, NULL) || gm_device_close(device, NULL) || gm_context_destroy(ctx, NULL)) return 6;
  return result;
}

/* The words of the child on its standard error, and whether it came to a good end. */
static bool shadow_child(bool bad, gm_strategy strategy, uint32_t flags, char *text, size_t capacity) {
  int ends[2], status = 0;
  size_t length = 0;
  if (pipe(ends)) return false;
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    _exit(shadow_run(bad, strategy, flags));
  }
  close(ends[1]);
  for (ssize_t got; length < capacity - 1 && (got = read(ends[0], text + length, capacity - 1 - length)) > 0;) {
    length += (size_t)got;
  }
  text[length] = 0;
  close(ends[0]);
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(void) {
  static char text[65536];
  unsigned failed = 0;
  for (int i = 0; i < 4; i++) {
    const gm_strategy strategy = i & 1 ? GM_STRATEGY_BUCKET : GM_STRATEGY_BEST_FIT;
    const uint32_t flags = i & 2 ? GM_ZERO : 0;
    if (!shadow_child(false, strategy, flags, text, sizeof text)) {
      printf("FAIL case %d: the right use of memory is reported\n%s\n", i, text);
      failed++;
    }
    if (shadow_child(true, strategy, flags, text, sizeof text) || !strstr(text, "use-after-poison")) {
      printf("FAIL case %d: the use of freed memory is not reported\n%s\n", i, text);
      failed++;
    }
  }
  printf("%u failed\n", failed);
  return failed != 0;
}
