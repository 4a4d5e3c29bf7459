/* Exit with everything open: blocks out, streams with work that has just been submitted. Nothing of gm runs at exit, so
 * nothing can crash there. Each round is a child process; it must leave with the code it chose. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gm/copy.h"

enum { BLOCKS = 8, BYTES = 1 << 20, CODE = 42 };

static void leave_with_all_open(const char *backend) {
  static unsigned char data[BYTES];
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  gm_stream *stream = NULL;
  gm_context_params params = {.struct_size = sizeof params, .backends = backend};
  if (gm_context_create(&params, &ctx, NULL) != GM_OK) exit(1);
  if (gm_device_open_index(ctx, backend, 0, &device, NULL) != GM_OK) exit(2);
  if (gm_pool_create(device, NULL, &pool, NULL) != GM_OK) exit(3);
  if (gm_stream_create(device, &stream, NULL) != GM_OK) exit(4);
  for (int i = 0; i < BLOCKS; i++) {
    gm_request request = {.bytes = BYTES, .stream = stream};
    gm_block block;
    gm_point point;
    if (gm_alloc(pool, &request, &block) > GM_ACQUIRE_FRESH) exit(5);
    if (strcmp(backend, "null") == 0) continue; /* no memory to copy to */
    if (gm_block_write(pool, &block, 0, data, BYTES, stream, &point, NULL) != GM_OK) exit(6);
  }
  exit(CODE);
}

int main(int argc, char **argv) {
  int rounds = argc == 3 ? atoi(argv[2]) : 0;
  if (rounds < 1) return 2;
  for (int i = 0; i < rounds; i++) {
    pid_t pid = fork(); /* gm is not in use yet: the child is a fresh process to it */
    if (pid == 0) leave_with_all_open(argv[1]);
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return 1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == CODE) continue;
    fprintf(stderr, "%s round %d: %s %d\n", argv[1], i, WIFSIGNALED(status) ? "signal" : "exit",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return 1;
  }
  printf("%s: %d exits with everything open\n", argv[1], rounds);
  return 0;
}
