/* A block in two processes. This program starts itself once more, and hands it blocks over a Unix socket in every way
 * that the device declares. Both see each other's bytes. Public API alone.
 *
 *   process_share BACKEND [some|none]
 *
 * "none": the device declares no way to share, and refuses to. "some": it must declare one. It is 77 where it does
 * not.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gm/tools.h"

enum { BLOCKS = 3, BYTES = 150001, OTHER_END = 3, MINE = 0x11, THEIRS = 0x60 };

extern char **environ;

typedef struct side {
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  gm_stream *stream;
  gm_error err;
} side;

static unsigned char share_bytes[BYTES];

static int fail(const side *s, const char *what) {
  fprintf(stderr, "process %d: %s: %s: %s\n", (int)getpid(), what, s->err.op, s->err.message);
  return 1;
}

static int side_open(side *s, const char *backend) {
  const gm_context_params params = {.struct_size = sizeof params, .backends = backend};
  if (gm_context_create(&params, &s->ctx, &s->err) != GM_OK) return fail(s, "context");
  if (gm_device_open_index(s->ctx, backend, 0, &s->device, &s->err) != GM_OK) return fail(s, "device");
  return gm_stream_create(s->device, &s->stream, &s->err) == GM_OK ? 0 : fail(s, "stream");
}

static int side_pool(side *s, gm_share_kind kind, gm_strategy strategy) {
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy, .share = kind, .checked = true};
  return gm_pool_create(s->device, &params, &s->pool, &s->err) == GM_OK ? 0 : fail(s, "pool");
}

static int side_pool_end(side *s) {
  gm_stats stats = {.struct_size = sizeof stats};
  gm_pool_stats(s->pool, &stats);
  if (stats.in_use_bytes != 0) return fail(s, "blocks are left");
  return gm_pool_destroy(s->pool, &s->err) == GM_OK ? 0 : fail(s, "pool's end");
}

static int side_close(side *s) {
  if (gm_stream_close(s->stream, &s->err) != GM_OK) return fail(s, "stream's end");
  if (gm_device_close(s->device, &s->err) != GM_OK) return fail(s, "device's end");
  return gm_context_destroy(s->ctx, &s->err) == GM_OK ? 0 : fail(s, "context's end");
}

static int side_fill(side *s, const gm_block *block, int value) {
  const unsigned char byte = (unsigned char)value;
  gm_status status = gm_block_fill(s->pool, block, 0, BYTES, &byte, 1, s->stream, NULL, &s->err);
  if (status == GM_OK) status = gm_stream_sync(s->stream, &s->err);
  return status == GM_OK ? 0 : fail(s, "fill");
}

static int side_expect(side *s, const gm_block *block, int value) {
  if (gm_block_read(s->pool, block, 0, share_bytes, BYTES, NULL, NULL, &s->err) != GM_OK) return fail(s, "read");
  for (int i = 0; i < BYTES; i++) {
    if (share_bytes[i] == (unsigned char)value) continue;
    fprintf(stderr, "process %d: byte %d is 0x%x, not 0x%x\n", (int)getpid(), i, share_bytes[i], (unsigned)value);
    return 1;
  }
  return 0;
}

/* ---- the other process ---- */

static int other_take(side *s, gm_block *blocks, gm_block *again) {
  for (int i = 0; i < BLOCKS; i++) {
    gm_shared shared = {.struct_size = sizeof shared};
    if (gm_shared_receive(OTHER_END, &shared, &s->err) != GM_OK) return fail(s, "receive");
    if (gm_block_import(s->pool, &shared, &blocks[i], &s->err) != GM_OK) return fail(s, "import");
    if (i == 0 && gm_block_import(s->pool, &shared, again, &s->err) != GM_OK) return fail(s, "second import");
    gm_shared_close(&shared);
  }
  return 0;
}

/* Each block has its own bytes, and each gets others. The first, imported twice, outlives its first import. */
static int other_use(side *s, gm_block *blocks, const gm_block *again) {
  for (int i = 0; i < BLOCKS; i++) {
    if (side_expect(s, &blocks[i], MINE + i)) return 1;
  }
  if (gm_free(s->pool, &blocks[0], s->stream) != GM_OK) return fail(s, "free");
  blocks[0] = *again;
  for (int i = 0; i < BLOCKS; i++) {
    if (side_expect(s, &blocks[i], MINE + i) || side_fill(s, &blocks[i], THEIRS + i)) return 1;
  }
  for (int i = 0; i < BLOCKS; i++) {
    if (gm_free(s->pool, &blocks[i], s->stream) != GM_OK) return fail(s, "free");
  }
  return 0;
}

static int other_round(side *s) {
  gm_block blocks[BLOCKS], again;
  if (side_pool(s, GM_SHARE_NONE, GM_STRATEGY_AUTO)) return 1;
  if (other_take(s, blocks, &again) || other_use(s, blocks, &again)) return 1;
  if (side_pool_end(s)) return 1;
  return write(OTHER_END, "y", 1) == 1 ? 0 : fail(s, "answer");
}

static int other_process(const char *backend, int rounds) {
  static side s;
  if (side_open(&s, backend)) return 1;
  for (int i = 0; i < rounds; i++) {
    if (other_round(&s)) return 1;
  }
  return side_close(&s);
}

/* ---- this one ---- */

static int share_give(side *s, int socket, gm_block *blocks) {
  for (int i = 0; i < BLOCKS; i++) {
    const gm_request request = {.bytes = BYTES, .flags = GM_SHAREABLE};
    gm_shared shared = {.struct_size = sizeof shared};
    if (gm_alloc(s->pool, &request, &blocks[i]) > GM_ACQUIRE_FRESH) return fail(s, "alloc");
    if (side_fill(s, &blocks[i], MINE + i)) return 1;
    if (gm_block_export(s->pool, &blocks[i], &shared, &s->err) != GM_OK) return fail(s, "export");
    const gm_status sent = gm_shared_send(socket, &shared, &s->err);
    gm_shared_close(&shared);
    if (sent != GM_OK) return fail(s, "send");
  }
  return 0;
}

static int share_round(side *s, int socket, gm_share_kind kind, gm_strategy strategy) {
  gm_block blocks[BLOCKS];
  char answer = 'n';
  if (side_pool(s, kind, strategy) || share_give(s, socket, blocks)) return 1;
  if (read(socket, &answer, 1) != 1 || answer != 'y') return fail(s, "the other process gave up");
  for (int i = 0; i < BLOCKS; i++) {
    if (side_expect(s, &blocks[i], THEIRS + i)) return 1;
    if (gm_free(s->pool, &blocks[i], NULL) != GM_OK) return fail(s, "free");
  }
  return side_pool_end(s);
}

static uint32_t share_kinds(const side *s) {
  uint32_t count = 0, kinds = 0;
  gm_memory_type type = {.struct_size = sizeof type};
  if (gm_device_memory_type_count(s->device, &count, NULL) != GM_OK) return 0;
  for (uint32_t i = 0; i < count; i++) {
    if (gm_device_memory_type(s->device, i, &type, NULL) == GM_OK) kinds |= type.share_kinds;
  }
  return kinds;
}

static int share_count(uint32_t kinds) {
  int rounds = 0;
  for (; kinds; kinds &= kinds - 1) rounds += 2;
  return rounds;
}

/* A process that declares nothing gives nothing, in either direction. */
static int share_none(side *s, uint32_t kinds) {
  gm_shared shared = {.struct_size = sizeof shared, .bytes = 1, .whole_bytes = 1, .fd = -1};
  gm_block block;
  if (kinds) return fail(s, "it declares ways to share");
  for (int kind = GM_SHARE_IPC; kind <= GM_SHARE_DMABUF; kind++) {
    const gm_pool_params params = {.struct_size = sizeof params, .share = (gm_share_kind)kind};
    if (gm_pool_create(s->device, &params, &s->pool, &s->err) != GM_ERR_NOT_SUPPORTED)
      return fail(s, "a pool to share");
  }
  if (side_pool(s, GM_SHARE_NONE, GM_STRATEGY_AUTO)) return 1;
  const gm_request request = {.bytes = BYTES}, shareable = {.bytes = BYTES, .flags = GM_SHAREABLE};
  if (gm_alloc(s->pool, &shareable, &block) != GM_ACQUIRE_INVALID) return fail(s, "a block to share");
  if (gm_alloc(s->pool, &request, &block) > GM_ACQUIRE_FRESH) return fail(s, "alloc");
  gm_shared out = {.struct_size = sizeof out};
  if (gm_block_export(s->pool, &block, &out, &s->err) != GM_ERR_INVALID_ARGUMENT) return fail(s, "export");
  if (gm_free(s->pool, &block, NULL) != GM_OK) return fail(s, "free");
  shared.kind = GM_SHARE_IPC;
  if (gm_block_import(s->pool, &shared, &block, &s->err) != GM_ERR_NOT_SUPPORTED) return fail(s, "import");
  return side_pool_end(s) || side_close(s);
}

/* The other end is descriptor OTHER_END there, and nowhere else: so it ends when this process does. */
static pid_t share_start(char *backend, int rounds, int end) {
  char self[] = "/proc/self/exe", other[] = "other", count[16];
  char *const argv[] = {self, backend, other, count, NULL};
  posix_spawn_file_actions_t actions;
  pid_t pid = -1;
  snprintf(count, sizeof count, "%d", rounds);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, end, OTHER_END);
  if (posix_spawn(&pid, self, &actions, NULL, argv, environ) != 0) pid = -1;
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

static int share_all(side *s, int socket, uint32_t kinds) {
  for (int kind = GM_SHARE_IPC; kind <= GM_SHARE_DMABUF; kind++) {
    if (!(kinds >> kind & 1)) continue;
    if (share_round(s, socket, (gm_share_kind)kind, GM_STRATEGY_BUCKET)) return 1;
    if (share_round(s, socket, (gm_share_kind)kind, GM_STRATEGY_BEST_FIT)) return 1;
    printf("kind %d: both processes see each other's bytes\n", kind);
  }
  return 0;
}

int main(int argc, char **argv) {
  static side s;
  int ends[2], status = 0;
  if (argc == 4 && strcmp(argv[2], "other") == 0) return other_process(argv[1], atoi(argv[3]));
  if (argc < 2 || argc > 3) return 2;
  const char *expected = argc == 3 ? argv[2] : "";
  if (side_open(&s, argv[1])) return 1;
  const uint32_t kinds = share_kinds(&s);
  if (strcmp(expected, "none") == 0) return share_none(&s, kinds);
  if (!kinds) {
    printf("%s declares no way to share memory\n", gm_device_get_info(s.device)->name);
    return side_close(&s) || strcmp(expected, "some") == 0 ? 1 : 77;
  }
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail(&s, "socketpair");
  const int far = fcntl(ends[1], F_DUPFD_CLOEXEC, OTHER_END + 1); /* a dup2 onto itself would keep close-on-exec */
  const pid_t pid = share_start(argv[1], share_count(kinds), far);
  close(far);
  close(ends[1]);
  const int wrong = pid < 0 || share_all(&s, ends[0], kinds);
  close(ends[0]);
  if (pid > 0) waitpid(pid, &status, 0);
  if (wrong || status) {
    fprintf(stderr, "%s: the other process ended with status 0x%x\n", argv[1], (unsigned)status);
    return 1;
  }
  return side_close(&s);
}
