/* In a forked child nothing of the parent's may ask for a lock. The thread that has it is not there, and the child
 * would wait for ever. Whether a lock is held is a matter of luck. So here every request for one is an error: the
 * program is linked with --wrap=gm__mutex_lock. With all kinds of things made and used, the child ends every one of
 * them.
 *
 *   fork_locks BACKEND */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/thread.h"
#include "gm/tools.h"

enum { STREAMS = 2, POOLS = 3, BYTES = 300000, BLOCKS = 4 };

void __real_gm__mutex_lock(gm__mutex *mutex);
void __wrap_gm__mutex_lock(gm__mutex *mutex);

static bool forbidden;

void __wrap_gm__mutex_lock(gm__mutex *mutex) {
  if (forbidden) {
    fprintf(stderr, "a lock in a forked child, wanted at %p\n", __builtin_return_address(0));
    abort();
  }
  __real_gm__mutex_lock(mutex);
}

typedef struct things {
  gm_context *ctx;
  gm_device *device;
  gm_stream *streams[STREAMS];
  gm_pool *pools[POOLS];
  gm_evictor *evictor;
  gm_managed *managed; /* NULL where there is no such memory */
  gm_error err;
} things;

static int fail(const things *t, const char *what) {
  fprintf(stderr, "%s: %s: %s\n", what, t->err.op, t->err.message);
  return 1;
}

static uint64_t evict_nothing(void *user, uint64_t bytes) {
  (void)user, (void)bytes;
  return 0;
}

/* Memory of its own and parts of a segment, mapped pages and none. */
static int things_open(things *t, const char *backend) {
  const gm_context_params params = {.struct_size = sizeof params, .backends = backend};
  const gm_pool_params pools[POOLS] = {
      {.strategy = GM_STRATEGY_BUCKET, .checked = true, .track = true},
      {.strategy = GM_STRATEGY_BEST_FIT},
      {.strategy = GM_STRATEGY_BEST_FIT, .no_vmm = true},
  };
  const gm_evictor_params evictor = {.struct_size = sizeof evictor, .evict = evict_nothing};
  if (gm_context_create(&params, &t->ctx, &t->err) != GM_OK) return fail(t, "context");
  if (gm_device_open_index(t->ctx, backend, 0, &t->device, &t->err) != GM_OK) return fail(t, "device");
  for (int i = 0; i < STREAMS; i++) {
    if (gm_stream_create(t->device, &t->streams[i], &t->err) != GM_OK) return fail(t, "stream");
  }
  for (int i = 0; i < POOLS; i++) {
    gm_pool_params pool = pools[i];
    pool.struct_size = sizeof pool;
    if (gm_pool_create(t->device, &pool, &t->pools[i], &t->err) != GM_OK) return fail(t, "pool");
  }
  return gm_evictor_register(t->device, &evictor, &t->evictor, &t->err) == GM_OK ? 0 : fail(t, "evictor");
}

/* Blocks that were used on two streams and given back on one: the pool keeps their memory, and points of both. */
static int things_use(things *t, gm_pool *pool, bool contents) {
  gm_block blocks[BLOCKS];
  for (int i = 0; i < BLOCKS; i++) {
    const gm_request request = {.bytes = (uint64_t)BYTES << i, .stream = t->streams[0], .flags = GM_INSERT_WAIT};
    if (gm_alloc(pool, &request, &blocks[i]) > GM_ACQUIRE_FRESH) return fail(t, "alloc");
    if (contents && gm_block_fill(pool, &blocks[i], 0, BYTES, "x", 1, t->streams[0], NULL, &t->err) != GM_OK)
      return fail(t, "fill");
    if (gm_use_on(pool, &blocks[i], t->streams[1]) != GM_OK) return fail(t, "use");
  }
  for (int i = 0; i < BLOCKS; i++) {
    if (gm_free(pool, &blocks[i], t->streams[0]) != GM_OK) return fail(t, "free");
  }
  return 0;
}

static int things_make(things *t, const char *backend) {
  const bool contents = strcmp(backend, "null") != 0;
  const gm_managed_params managed = {.struct_size = sizeof managed, .bytes = BYTES};
  if (things_open(t, backend)) return 1;
  for (int i = 0; i < POOLS; i++) {
    if (things_use(t, t->pools[i], contents)) return 1;
  }
  if (contents && gm_managed_create(t->pools[0], &managed, &t->managed, &t->err) != GM_OK) return fail(t, "managed");
  return 0;
}

static int things_end(things *t) {
  if (gm_evictor_unregister(t->evictor, &t->err) != GM_OK) return fail(t, "evictor's end");
  if (gm_managed_destroy(t->managed, NULL, &t->err) != GM_OK) return fail(t, "managed memory's end");
  for (int i = 0; i < POOLS; i++) {
    if (gm_pool_destroy(t->pools[i], &t->err) != GM_OK) return fail(t, "pool's end");
  }
  for (int i = 0; i < STREAMS; i++) {
    if (gm_stream_close(t->streams[i], &t->err) != GM_OK) return fail(t, "stream's end");
  }
  if (gm_device_close(t->device, &t->err) != GM_OK) return fail(t, "device's end");
  return gm_context_destroy(t->ctx, &t->err) == GM_OK ? 0 : fail(t, "context's end");
}

/* First what is refused, then the end of it all. */
static int child_run(things *t) {
  const gm_request request = {.bytes = BYTES};
  gm_block block;
  gm_stream *stream = NULL;
  gm_stats stats = {.struct_size = sizeof stats};
  forbidden = true;
  if (gm_alloc(t->pools[0], &request, &block) != GM_ACQUIRE_FAILED) return fail(t, "a block");
  if (gm_stream_create(t->device, &stream, &t->err) != GM_ERR_FORKED) return fail(t, "a stream");
  gm_pool_stats(t->pools[0], &stats);
  return things_end(t);
}

int main(int argc, char **argv) {
  static things t;
  int status = 0;
  if (argc != 2) return 2;
  if (things_make(&t, argv[1])) return 1;
  const pid_t pid = fork();
  if (pid == 0) _exit(child_run(&t));
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return 1;
  if (status) fprintf(stderr, "%s: the child ended with status 0x%x\n", argv[1], (unsigned)status);
  return things_end(&t) || status != 0;
}
