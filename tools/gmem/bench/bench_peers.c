#include "tools/gmem/bench/bench_peers.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static gm_status bench_peers_fail(gm_error *err, gm_status status, const char *format, ...) GM_PRINTF(3, 4);

static gm_status bench_peers_fail(gm_error *err, gm_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  err->status = status;
  vsnprintf(err->message, sizeof err->message, format, arguments);
  va_end(arguments);
  return status;
}

static bool bench_peers_copy(char *out, size_t capacity, const char *text, size_t length) {
  if (length >= capacity) return false;
  memcpy(out, text, length);
  out[length] = '\0';
  return true;
}

/* NULL: there are as many as there can be. */
static harness_allocator *bench_peers_next(bench_peers *peers, gm_error *err) {
  if (peers->count < BENCH_PEERS) return &peers->list[peers->count];
  bench_peers_fail(err, GM_ERR_INVALID_ARGUMENT, "more than %d peers", BENCH_PEERS);
  return NULL;
}

gm_status bench_peers_add(bench_peers *peers, const char *text, gm_error *err) {
  harness_allocator *peer = bench_peers_next(peers, err);
  if (!peer) return err->status;
  const char *file = strchr(text, '='), *config = file ? strrchr(file, ':') : NULL;
  size_t length = config ? (size_t)(config - file - 1) : file ? strlen(file + 1) : 0;
  bool good = length > 0 && file > text &&
              bench_peers_copy(peer->label, sizeof peer->label, text, (size_t)(file - text)) &&
              bench_peers_copy(peer->path, sizeof peer->path, file + 1, length);
  if (config) good = good && bench_peers_copy(peer->config, sizeof peer->config, config + 1, strlen(config + 1));
  if (!good) return bench_peers_fail(err, GM_ERR_INVALID_ARGUMENT, "\"%.200s\" is not LABEL=FILE[:CONFIG]", text);
  peers->count++;
  return GM_OK;
}

/* The next field of a line, ended by a tab or the line's end; NULL: there is none. */
static char *bench_peers_field(char **line) {
  char *field = strsep(line, "\t\n");
  return field && field[0] ? field : NULL;
}

static bool bench_peers_parse(harness_allocator *peer, const char *folder, char *line) {
  const char *label = bench_peers_field(&line), *file = bench_peers_field(&line), *config = bench_peers_field(&line);
  if (!label || !file || !config) return false;
  int length = snprintf(peer->path, sizeof peer->path, "%s/%s", folder, file);
  bool good = length > 0 && (size_t)length < sizeof peer->path &&
              bench_peers_copy(peer->label, sizeof peer->label, label, strlen(label)) &&
              bench_peers_copy(peer->config, sizeof peer->config, strcmp(config, "-") == 0 ? "" : config,
                               strcmp(config, "-") == 0 ? 0 : strlen(config));
  for (size_t i = 0; good && i < HARNESS_ENVIRONMENT; i++) {
    const char *variable = bench_peers_field(&line);
    if (variable && strcmp(variable, "loops") == 0) {
      peer->loops_only = true;
      variable = bench_peers_field(&line);
    }
    if (!variable) return true;
    good = strchr(variable, '=') &&
           bench_peers_copy(peer->environment[i], sizeof peer->environment[i], variable, strlen(variable));
  }
  return good;
}

gm_status bench_peers_read(bench_peers *peers, const char *folder, gm_error *err) {
  char path[HARNESS_PATH + 16], line[4096];
  snprintf(path, sizeof path, "%s/peers.list", folder);
  FILE *file = fopen(path, "r");
  gm_status status = GM_OK;
  if (!file) return bench_peers_fail(err, GM_ERR_NOT_FOUND, "%.300s cannot be read (bench/peers/build makes it)", path);
  while (status == GM_OK && fgets(line, sizeof line, file)) {
    harness_allocator *peer = bench_peers_next(peers, err);
    status = peer ? GM_OK : err->status;
    if (peer && !bench_peers_parse(peer, folder, line)) {
      status = bench_peers_fail(err, GM_ERR_FORMAT, "%.300s: line %zu is not as bench/peers/build writes it", path,
                                peers->count + 1);
    }
    peers->count += status == GM_OK;
  }
  fclose(file);
  return status;
}
