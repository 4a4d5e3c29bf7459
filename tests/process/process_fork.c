/* Fork in the middle of traffic: four threads allocate, copy and free while the main thread forks. The child is told
 * that it is one. It gives back its host memory without hanging on a lock that a thread of the parent held, and starts
 * anew on the CPU. The parent's traffic goes on unharmed. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gm/copy.h"

enum { THREADS = 4, BYTES = 70000, BREATH = 16, ROUNDS = 64 };

typedef struct traffic {
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  bool has_memory; /* the null backend has none to copy to */
  atomic_bool stop;
  atomic_bool forking; /* or it will at once; afterwards a thread makes some rounds, and then the child has the cores */
  atomic_ulong rounds, failures;
} traffic;

static traffic parent;

static bool traffic_round(gm_pool *pool, gm_stream *stream, unsigned char value) {
  gm_request request = {.bytes = BYTES, .stream = stream, .flags = GM_INSERT_WAIT};
  gm_block block;
  if (gm_alloc(pool, &request, &block) > GM_ACQUIRE_FRESH) return false;
  bool good = true;
  if (parent.has_memory) {
    unsigned char back[64] = {0};
    good = gm_block_fill(pool, &block, 0, BYTES, &value, 1, stream, NULL, NULL) == GM_OK &&
           gm_block_read(pool, &block, BYTES - 64, back, 64, stream, NULL, NULL) == GM_OK && back[0] == value &&
           back[63] == value;
  }
  return gm_free(pool, &block, stream) == GM_OK && good;
}

static void *traffic_thread(void *arg) {
  unsigned char value = (unsigned char)(uintptr_t)arg;
  gm_stream *stream = NULL;
  if (gm_stream_create(parent.device, &stream, NULL) != GM_OK) atomic_fetch_add(&parent.failures, 1);
  unsigned left = ROUNDS;
  while (!atomic_load(&parent.stop)) {
    if (atomic_load(&parent.forking)) left = ROUNDS;
    if (left == 0) {
      usleep(500);
      continue;
    }
    left--;
    if (!traffic_round(parent.pool, stream, value++)) atomic_fetch_add(&parent.failures, 1);
    if (atomic_fetch_add(&parent.rounds, 1) % BREATH == 0) usleep(50); /* the child wants a core, too */
  }
  if (gm_stream_close(stream, NULL) != GM_OK) atomic_fetch_add(&parent.failures, 1);
  return NULL;
}

/* A fresh gm in the child. */
static int child_start_anew(void) {
  gm_context_params params = {.struct_size = sizeof params, .backends = "cpu"};
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  parent.has_memory = true;
  if (gm_context_create(&params, &ctx, NULL) != GM_OK) return 20;
  if (gm_device_open_index(ctx, "cpu", 0, &device, NULL) != GM_OK) return 21;
  if (gm_pool_create(device, NULL, &pool, NULL) != GM_OK) return 22;
  if (!traffic_round(pool, NULL, 7)) return 23;
  if (gm_pool_destroy(pool, NULL) != GM_OK) return 24;
  if (gm_device_close(device, NULL) != GM_OK) return 25;
  return gm_context_destroy(ctx, NULL) == GM_OK ? 0 : 26;
}

/* Everything of the parent's answers FORKED. Streams that its threads own are left, so its device is busy; what can be
 * closed is closed, and nothing may hang. */
static int child_run(void) {
  gm_error err = {.status = GM_OK};
  gm_block block;
  gm_stats stats = {.struct_size = sizeof stats};
  gm_request request = {.bytes = 1000};
  alarm(20);
  if (gm_alloc(parent.pool, &request, &block) != GM_ACQUIRE_FAILED) return 10;
  gm_stream *stream = NULL;
  if (gm_stream_create(parent.device, &stream, &err) != GM_ERR_FORKED || err.status != GM_ERR_FORKED) return 11;
  gm_pool_stats(parent.pool, &stats);
  gm_status status = gm_pool_destroy(parent.pool, &err);
  if (status != GM_OK && status != GM_ERR_BUSY) return 12; /* busy: a thread held a block when the fork came */
  if (gm_device_close(parent.device, &err) != GM_ERR_BUSY) return 13;
  return child_start_anew();
}

/* When this returns, the traffic is in its middle. */
static void traffic_begin(void) {
  const unsigned long rounds = atomic_load(&parent.rounds);
  atomic_store(&parent.forking, true);
  while (atomic_load(&parent.rounds) < rounds + THREADS) usleep(20);
}

static int fork_once(void) {
  traffic_begin();
  pid_t pid = fork();
  if (pid == 0) _exit(child_run());
  atomic_store(&parent.forking, false);
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return 1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  fprintf(stderr, "child: %s %d\n", WIFSIGNALED(status) ? "signal" : "exit",
          WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  return 1;
}

static int traffic_open(const char *backend) {
  gm_error err = {.status = GM_OK};
  gm_context_params params = {.struct_size = sizeof params, .backends = backend};
  if (gm_context_create(&params, &parent.ctx, &err) == GM_OK &&
      gm_device_open_index(parent.ctx, backend, 0, &parent.device, &err) == GM_OK &&
      gm_pool_create(parent.device, NULL, &parent.pool, &err) == GM_OK) {
    parent.has_memory = strcmp(backend, "null") != 0;
    return 0;
  }
  fprintf(stderr, "%s: %s\n", err.op, err.message);
  return 1;
}

int main(int argc, char **argv) {
  int forks = argc == 3 ? atoi(argv[2]) : 0;
  if (forks < 1 || traffic_open(argv[1])) return 1;
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, traffic_thread, (void *)i);
  while (atomic_load(&parent.rounds) < THREADS) usleep(1000);
  int failed = 0;
  for (int i = 0; i < forks; i++) failed += fork_once();
  atomic_store(&parent.stop, true);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  bool closed = gm_pool_destroy(parent.pool, NULL) == GM_OK && gm_device_close(parent.device, NULL) == GM_OK &&
                gm_context_destroy(parent.ctx, NULL) == GM_OK;
  printf("%s: %d forks during %lu rounds: %d children failed, %lu rounds failed, %s\n", argv[1], forks,
         atomic_load(&parent.rounds), failed, atomic_load(&parent.failures), closed ? "closed" : "not closed");
  return failed || atomic_load(&parent.failures) || !closed;
}
