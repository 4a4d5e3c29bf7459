/* A copy from one device to another, whatever they are: two cards, or a card and the CPU. Where there is no path of
 * their own the bytes go through host memory. gm says so in three places: the result, the statistics and the log.
 *
 *   peer_copy [FROM TO]      backends, each with an index if you like: "cuda:0 cuda:1". Default: "cpu cpu" */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gm/tools.h"

enum { BYTES = 16 << 20, NAME = 16 };

static gm_error err;

static void check(gm_status status, const char *what) {
  if (status == GM_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, err.op, err.message);
  exit(1);
}

static void print_warning(void *user, int level, const char *line) {
  (void)user;
  if (level == GM_LOG_WARN) printf("gm warns: %s\n", line);
}

typedef struct end {
  gm_device *device;
  gm_stream *stream;
  gm_pool *pool;
  gm_block block;
} end;

/* "cuda:1": the second device of CUDA. */
static end end_open(gm_context *ctx, const char *what) {
  char name[NAME] = "";
  unsigned index = 0;
  end e;
  if (sscanf(what, "%15[^:]:%u", name, &index) < 1) exit(2);
  check(gm_device_open_index(ctx, name, index, &e.device, &err), what);
  check(gm_stream_create(e.device, &e.stream, &err), "stream");
  check(gm_pool_create(e.device, NULL, &e.pool, &err), "pool");
  const gm_request request = {.bytes = BYTES, .stream = e.stream, .flags = GM_INSERT_WAIT};
  if (!gm_acquired(gm_alloc(e.pool, &request, &e.block))) exit(1);
  printf("%s: %s\n", what, gm_device_get_info(e.device)->name);
  return e;
}

static void end_close(const end *e) {
  check(gm_free(e->pool, &e->block, e->stream), "free");
  check(gm_pool_destroy(e->pool, &err), "pool's end");
  check(gm_stream_close(e->stream, &err), "stream's end");
  check(gm_device_close(e->device, &err), "device's end");
}

/* The copy is in `to`'s stream. The stream waits there, by a point, for what `from` still writes. */
static gm_peer_result hand_over(const end *from, const end *to) {
  gm_peer_result result = {.struct_size = sizeof result};
  gm_point ready;
  check(gm_block_fill(from->pool, &from->block, 0, BYTES, "peer", 4, from->stream, &ready, &err), "fill");
  check(gm_peer_wait(to->stream, from->device, &ready, &err), "wait");
  check(
      gm_block_copy_peer(to->pool, &to->block, 0, from->pool, &from->block, 0, BYTES, to->stream, NULL, &result, &err),
      "copy");
  gm_point_release(from->device, &ready);
  return result;
}

static void report(const end *to, const gm_peer_result *result) {
  static const char *const routes[] = {"directly", "through host memory, by the driver", "through host memory, by gm"};
  gm_stats stats = {.struct_size = sizeof stats};
  gm_pool_stats(to->pool, &stats);
  printf("went %s%s%s\n", routes[result->route], *result->why ? ": " : "", result->why);
  printf("%" PRIu64 " copies, of which staged %" PRIu64 " with %" PRIu64 " bytes\n", stats.peer_copies,
         stats.peer_staged_copies, stats.peer_staged_bytes);
}

int main(int argc, char **argv) {
  const gm_services services = {.log = print_warning};
  const gm_context_params params = {.struct_size = sizeof params, .services = &services};
  gm_context *ctx = NULL;
  char last[4] = "";
  if (argc != 1 && argc != 3) return 2;
  check(gm_context_create(&params, &ctx, &err), "context");
  const end from = end_open(ctx, argc == 3 ? argv[1] : "cpu"), to = end_open(ctx, argc == 3 ? argv[2] : "cpu");
  const gm_peer_result result = hand_over(&from, &to);
  check(gm_block_read(to.pool, &to.block, BYTES - 4, last, 4, to.stream, NULL, &err), "read");
  report(&to, &result);
  end_close(&from);
  end_close(&to);
  check(gm_context_destroy(ctx, &err), "context's end");
  if (memcmp(last, "peer", 4) != 0) return 1;
  printf("the bytes are there\n");
  return 0;
}
