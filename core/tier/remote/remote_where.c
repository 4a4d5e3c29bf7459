#include "core/tier/remote/remote_where.h"

#include <string.h>

#include "core/base/decimal.h"
#include "core/base/error.h"

enum { WHERE_PORT = 6379, WHERE_UNIX_PATH = 107 };

static gm_status where_fail(const char *where, const char *why, gm_error *err) {
  return gm__bad_argument(err, "gm_tier_open",
                          "`where` is \"%.200s\": %s; it is redis://host:port/prefix, "
                          "redis+cluster://host:port,host:port/prefix or unix:/path",
                          where, why);
}

static bool where_port(const char *text, size_t length, uint16_t *out) {
  uint64_t number;
  const char *end;
  char digits[8];
  if (!length || length >= sizeof digits) return false;
  memcpy(digits, text, length);
  digits[length] = '\0';
  if (!gm__decimal(digits, &end, &number) || *end || !number || number > UINT16_MAX) return false;
  *out = (uint16_t)number;
  return true;
}

static bool where_is_host(const char *text, size_t length) {
  if (!length || length >= GM__REMOTE_HOST) return false;
  for (size_t i = 0; i < length; i++) {
    if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f || strchr("[]@/,", text[i])) return false;
  }
  return true;
}

bool gm__remote_address_read(const char *text, size_t length, uint16_t port, gm__remote_address *out) {
  const char *host = text, *end = text + length, *colon = NULL;
  size_t host_bytes;
  if (length && *text == '[') {
    const char *close = memchr(text, ']', length);
    if (!close || (close + 1 < end && close[1] != ':')) return false;
    host = text + 1;
    host_bytes = (size_t)(close - host);
    colon = close + 1 < end ? close + 1 : NULL;
  } else {
    for (const char *at = text; at < end; at++) colon = *at == ':' ? at : colon;
    host_bytes = (size_t)((colon ? colon : end) - text);
  }
  *out = (gm__remote_address){.port = port};
  if (!where_is_host(host, host_bytes)) return false;
  if (colon && !where_port(colon + 1, (size_t)(end - colon - 1), &out->port)) return false;
  memcpy(out->host, host, host_bytes);
  return true;
}

static gm_status where_hosts(const char *where, const char *text, size_t length, gm__remote_where *out, gm_error *err) {
  const char *end = text + length;
  for (;;) {
    const char *comma = memchr(text, ',', (size_t)(end - text)), *stop = comma ? comma : end;
    if (out->seeds == GM__REMOTE_SEEDS) return where_fail(where, "more than 16 hosts", err);
    if (memchr(text, '@', (size_t)(stop - text))) {
      return where_fail("...@...", "a password does not belong there, but into params->password", err);
    }
    if (!gm__remote_address_read(text, (size_t)(stop - text), WHERE_PORT, &out->seed[out->seeds++])) {
      return where_fail(where, "a host or its port is wrong", err);
    }
    if (!comma) return GM_OK;
    text = comma + 1;
  }
}

static gm_status where_unix(const char *where, const char *path, gm__remote_where *out, gm_error *err) {
  const size_t length = strnlen(path, WHERE_UNIX_PATH + 1);
  if (*path != '/' || length > WHERE_UNIX_PATH)
    return where_fail(where, "the path is none, or has over 107 bytes", err);
  memcpy(out->seed[0].host, path, length);
  out->seeds = 1;
  return GM_OK;
}

static bool where_begins(const char *where, const char *with, const char **rest) {
  const size_t length = strlen(with);
  if (strncmp(where, with, length) != 0) return false;
  *rest = where + length;
  return true;
}

gm_status gm__remote_where_read(const char *where, gm__remote_where *out, gm_error *err) {
  const char *rest;
  *out = (gm__remote_where){.prefix = "gm"};
  if (where_begins(where, "unix:", &rest)) return where_unix(where, rest, out, err);
  out->cluster = where_begins(where, "redis+cluster://", &rest);
  if (!out->cluster && !where_begins(where, "redis://", &rest)) return where_fail(where, "no such kind of server", err);
  const char *slash = strchr(rest, '/');
  const gm_status status = where_hosts(where, rest, slash ? (size_t)(slash - rest) : strlen(rest), out, err);
  if (status) return status;
  if (out->seeds > 1 && !out->cluster) return where_fail(where, "several hosts are for redis+cluster://", err);
  if (!slash || !slash[1]) return GM_OK;
  const size_t length = strnlen(slash + 1, GM__REMOTE_PREFIX);
  if (length == GM__REMOTE_PREFIX) return where_fail(where, "the prefix has over 127 bytes", err);
  memcpy(out->prefix, slash + 1, length + 1);
  return GM_OK;
}
