/* One block in two processes: this program starts itself once more and hands it a block over a Unix socket. Both see
 * the same bytes; nothing is copied.
 *
 *   share [BACKEND]      cpu (the default), vulkan, cuda, hip; 77: the device cannot share memory */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gm/tools.h"

enum { BYTES = 16 << 20, OTHER_END = 3 };

extern char **environ;

static gm_error err;

static void check(gm_status status, const char *what) {
  if (status == GM_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, err.op, err.message);
  exit(status == GM_ERR_NOT_SUPPORTED ? 77 : 1);
}

typedef struct side {
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
} side;

/* The exporter says in which way its memory leaves; who imports needs no such pool. */
static side side_open(const char *backend, gm_share_kind kind) {
  const gm_context_params params = {.struct_size = sizeof params, .backends = backend};
  const gm_pool_params pool = {.struct_size = sizeof pool, .name = "shared", .share = kind};
  side s;
  check(gm_context_create(&params, &s.ctx, &err), "context");
  check(gm_device_open_index(s.ctx, backend, 0, &s.device, &err), "device");
  check(gm_pool_create(s.device, &pool, &s.pool, &err), "pool");
  return s;
}

static void side_close(const side *s) {
  check(gm_pool_destroy(s->pool, &err), "pool's end");
  check(gm_device_close(s->device, &err), "device's end");
  check(gm_context_destroy(s->ctx, &err), "context's end");
}

static char side_read(const side *s, const gm_block *block) {
  char last = 0;
  check(gm_block_read(s->pool, block, BYTES - 1, &last, 1, NULL, NULL, &err), "read");
  return last;
}

/* The other process: takes the block, reads the first one's bytes, writes its own, and says so. */
static int other_process(const char *backend) {
  const side s = side_open(backend, GM_SHARE_NONE);
  gm_shared shared = {.struct_size = sizeof shared};
  gm_block block;
  check(gm_shared_receive(OTHER_END, &shared, &err), "receive");
  check(gm_block_import(s.pool, &shared, &block, &err), "import");
  gm_shared_close(&shared);
  printf("the other process reads '%c'\n", side_read(&s, &block));
  fflush(stdout);
  check(gm_block_fill(s.pool, &block, 0, BYTES, "b", 1, NULL, NULL, &err), "fill"); /* without a stream: it is done */
  check(gm_free(s.pool, &block, NULL), "free");
  side_close(&s);
  return write(OTHER_END, "y", 1) == 1 ? 0 : 1;
}

/* A fork would carry this process's driver along, which works in no child: so it is a new program. */
static pid_t start_other(char *backend, int end) {
  char self[] = "/proc/self/exe", other[] = "other";
  char *const argv[] = {self, backend, other, NULL};
  posix_spawn_file_actions_t actions;
  pid_t pid = -1;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, end, OTHER_END);
  if (posix_spawn(&pid, self, &actions, NULL, argv, environ) != 0) pid = -1;
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

static void give(const side *s, int socket, gm_block *block) {
  const gm_request request = {.bytes = BYTES, .flags = GM_SHAREABLE | GM_INSERT_WAIT};
  gm_shared shared = {.struct_size = sizeof shared};
  if (!gm_acquired(gm_alloc(s->pool, &request, block))) exit(1);
  check(gm_block_fill(s->pool, block, 0, BYTES, "a", 1, NULL, NULL, &err), "fill");
  check(gm_block_export(s->pool, block, &shared, &err), "export");
  check(gm_shared_send(socket, &shared, &err), "send");
  gm_shared_close(&shared); /* our descriptor: the other process has its own */
}

int main(int argc, char **argv) {
  char cpu[] = "cpu", *backend = argc > 1 ? argv[1] : cpu, answer = 'n';
  if (argc == 3 && strcmp(argv[2], "other") == 0) return other_process(backend);
  int ends[2], status = 1;
  gm_block block;
  const side s = side_open(backend, GM_SHARE_FD);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 1;
  const int far = fcntl(ends[1], F_DUPFD_CLOEXEC, OTHER_END + 1); /* a dup2 onto itself would keep close-on-exec */
  const pid_t pid = start_other(backend, far);
  close(far);
  close(ends[1]);
  if (pid < 0) return 1;
  give(&s, ends[0], &block);
  if (read(ends[0], &answer, 1) != 1 || answer != 'y') return 1;
  const char now = side_read(&s, &block);
  printf("this one wrote 'a', and now reads '%c'\n", now);
  check(gm_free(s.pool, &block, NULL), "free"); /* not before the other process has let go */
  side_close(&s);
  close(ends[0]);
  waitpid(pid, &status, 0);
  return status != 0 || now != 'b';
}
