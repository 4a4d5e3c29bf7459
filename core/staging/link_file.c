/* Invariants. The file is text: a head, and a line for each device: its key, both rates, and a checksum of the line. A
 * line that is not so counts as missing, and goes when the file is next written. One process at a time reads or writes
 * it; who does not get the lock soon does without. */
#include "core/staging/link_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/crc32.h"
#include "core/base/decimal.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/base/shared_file.h"
#include "core/context/config.h"
#include "core/host/sysfs.h"

enum { LINK_PATH = 1024, LINK_DEVICES = 64, LINK_PATIENCE_NS = 10000000 };
enum { LINK_LINE = GM__LINK_KEY_SIZE + 64 /* numbers */, LINK_BYTES = LINK_LINE * (LINK_DEVICES + 1) };

static const char link_head[] = "gm-links 1\n";
static const uint64_t link_least = 1000, link_most = UINT64_C(1) << 50; /* bytes per second; others are damage */

typedef struct link_file {
  gm__data_file file;
  char path[LINK_PATH];
  char text[LINK_BYTES]; /* terminated */
} link_file;

/* ---- the key ---- */

/* One word behind the others; "-" for an empty text. Returns where it ends. */
static size_t key_add(char *out, size_t at, const char *text) {
  if (at) out[at++] = ' ';
  if (!*text) text = "-";
  for (; *text && at < GM__LINK_KEY_SIZE - 2; text++) out[at++] = *text > ' ' && *text <= '~' ? *text : '_';
  out[at] = '\0';
  return at;
}

size_t gm__link_key(const gm_device *device, char out[GM__LINK_KEY_SIZE]) {
  const gm_device_info *info = &device->info;
  char uuid[2 * GM_UUID_BYTES + 1], slot[GM__SYSFS_LINK_SIZE];
  for (size_t i = 0; i < GM_UUID_BYTES; i++) snprintf(uuid + 2 * i, 3, "%02x", info->uuid[i]);
  gm__sysfs_link(device->ctx->host_root, gm__pci_parse(info->pci), slot);
  size_t at = key_add(out, 0, info->backend);
  at = key_add(out, at, uuid);
  const size_t identity = key_add(out, at, info->pci);
  at = key_add(out, identity, info->driver);
  at = key_add(out, at, info->version);
  key_add(out, at, slot);
  return identity + 1; /* with the space */
}

/* ---- lines ---- */

/* "KEY UP DOWN CHECKSUM\n"; the length. */
static size_t line_make(char *out, const char *key, uint64_t up, uint64_t down) {
  const int length = snprintf(out, LINK_LINE, "%s %" PRIu64 " %" PRIu64, key, up, down);
  const uint32_t sum = gm__crc32(0, out, (size_t)length);
  return (size_t)length + (size_t)snprintf(out + length, LINK_LINE - (size_t)length, " %" PRIu32 "\n", sum);
}

typedef struct link_line {
  const char *text;
  size_t length, key; /* of the whole line, and of its key */
  uint64_t up, down;
} link_line;

/* False: a line of `length` characters, which a newline follows, is none of these. */
static bool line_read(const char *text, size_t length, link_line *out) {
  const char *words[3], *end = text + length;
  uint64_t sum;
  for (int i = 2; i >= 0; i--) {
    while (end > text && end[-1] != ' ') end--;
    words[i] = end;
    if (end-- == text) return false;
  }
  *out = (link_line){.text = text, .length = length, .key = (size_t)(end - text)};
  return gm__decimal(words[0], &end, &out->up) && end + 1 == words[1] && gm__decimal(words[1], &end, &out->down) &&
         end + 1 == words[2] && gm__decimal(words[2], &end, &sum) && end == text + length &&
         sum == gm__crc32(0, text, (size_t)(words[2] - 1 - text)) && out->key < GM__LINK_KEY_SIZE &&
         out->up >= link_least && out->up <= link_most && out->down >= link_least && out->down <= link_most;
}

/* The next line that is whole, from *at on. */
static bool line_next(const char **at, link_line *out) {
  for (const char *end; (end = strchr(*at, '\n'));) {
    const char *text = *at;
    *at = end + 1;
    if (line_read(text, (size_t)(end - text), out)) return true;
  }
  return false;
}

/* ---- the file ---- */

/* False: nothing is to be kept. */
static bool link_folder(const gm_device *device, char *out, size_t capacity) {
  char folder[LINK_PATH] = "";
  gm__config_text(device->ctx, "links.folder", folder, sizeof folder);
  const bool named = folder[0];
  if (!named && device->info.simulated) return false;
  const char *cache = gm__env("XDG_CACHE_HOME"), *home = gm__env("HOME");
  if (named) {
    snprintf(out, capacity, "%s", folder);
  } else if (cache && cache[0] == '/') {
    snprintf(out, capacity, "%s", cache);
  } else {
    snprintf(out, capacity, "%s/.cache", home ? home : "");
  }
  return out[0] == '/' && (named || home || cache);
}

/* Reads what the file has. One that is too large, or begins otherwise, has nothing. */
static void link_read(link_file *f) {
  uint64_t bytes = 0;
  gm_status status = gm__data_file_size(&f->file, f->path, &bytes, NULL);
  if (bytes >= sizeof f->text) bytes = 0;
  if (!status) status = gm__data_file_read(&f->file, f->path, 0, f->text, bytes, NULL);
  f->text[bytes] = '\0';
  if (status || strncmp(f->text, link_head, sizeof link_head - 1) != 0) f->text[0] = '\0';
}

/* Opens, locks and reads the file. NULL: it cannot, and says why only to who asks for information. */
static link_file *link_open(const gm_device *device, bool create) {
  const gm_services *services = gm__context_services(device->ctx);
  char folder[LINK_PATH];
  gm_error why = {.status = GM_OK};
  if (!link_folder(device, folder, sizeof folder)) return NULL;
  link_file *f = gm__alloc(services, sizeof *f);
  if (!f) return NULL;
  f->file.fd = -1;
  gm_status status = gm__shared_file_path(folder, "gm-links", f->path, sizeof f->path, &why);
  if (create && !status) (void)gm__shared_file_make_folder(folder, NULL); /* opening says why not */
  if (!status) status = gm__shared_file_open(f->path, create, &f->file, &why);
  if (!status) status = gm__shared_file_lock(&f->file, f->path, 0, gm__deadline_after(LINK_PATIENCE_NS), &why);
  if (!status) {
    link_read(f);
    return f;
  }
  if (create || status != GM_ERR_NOT_FOUND) gm__log(services, GM_LOG_INFO, "rates of links: %s", why.message);
  gm__data_file_close(&f->file, false);
  gm__release(services, f, sizeof *f);
  return NULL;
}

/* A forked child may have the file open, too, so the lock does not end with the file. */
static void link_close(const gm_device *device, link_file *f) {
  gm__shared_file_unlock(&f->file, 0);
  gm__data_file_close(&f->file, false);
  gm__release(gm__context_services(device->ctx), f, sizeof *f);
}

bool gm__link_file_find(const gm_device *device, double *out_up, double *out_down) {
  char key[GM__LINK_KEY_SIZE];
  link_line line;
  bool found = false;
  link_file *f = link_open(device, false);
  if (!f) return false;
  gm__link_key(device, key);
  for (const char *at = f->text; !found && line_next(&at, &line);) {
    found = line.key == strlen(key) && memcmp(line.text, key, line.key) == 0;
  }
  if (found) {
    *out_up = (double)line.up;
    *out_down = (double)line.down;
  }
  link_close(device, f);
  return found;
}

/* The head, and the newest lines of other devices. */
static size_t link_others(const link_file *f, const char *key, size_t identity, char *out) {
  link_line line;
  size_t bytes = sizeof link_head - 1, count = 0;
  for (const char *at = f->text; line_next(&at, &line);) count++;
  memcpy(out, link_head, bytes);
  for (const char *at = f->text; line_next(&at, &line); count--) {
    if (count >= LINK_DEVICES || memcmp(line.text, key, identity) == 0) continue;
    memcpy(out + bytes, line.text, line.length + 1);
    bytes += line.length + 1;
  }
  return bytes;
}

static void link_write(const gm_device *device, link_file *f, double up, double down, char *room) {
  char key[GM__LINK_KEY_SIZE];
  gm_error why;
  const size_t identity = gm__link_key(device, key);
  size_t bytes = link_others(f, key, identity, room);
  bytes += line_make(room + bytes, key, (uint64_t)up, (uint64_t)down);
  gm_status status = gm__data_file_write(&f->file, f->path, 0, room, bytes, &why);
  if (!status) status = gm__data_file_cut(&f->file, f->path, bytes, &why);
  if (status) gm__log(gm__context_services(device->ctx), GM_LOG_INFO, "rates of links: %s", why.message);
}

void gm__link_file_keep(const gm_device *device, double up, double down) {
  const gm_services *services = gm__context_services(device->ctx);
  link_file *f = link_open(device, true);
  if (!f) return;
  char *room = gm__alloc(services, LINK_BYTES);
  if (room) link_write(device, f, up, down, room);
  gm__release(services, room, LINK_BYTES);
  link_close(device, f);
}
