/* The address of a remote tier, as a person writes it. Pure. */
#ifndef GM_CORE_TIER_REMOTE_WHERE_H
#define GM_CORE_TIER_REMOTE_WHERE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/status.h"

enum { GM__REMOTE_HOST = 256, GM__REMOTE_SEEDS = 16, GM__REMOTE_PREFIX = 128 };

typedef struct gm__remote_address {
  char host[GM__REMOTE_HOST]; /* a name, an address, or the path of a Unix socket */
  uint16_t port;              /* 0: a Unix socket */
} gm__remote_address;

typedef struct gm__remote_where {
  bool cluster;
  size_t seeds; /* 1 to GM__REMOTE_SEEDS */
  gm__remote_address seed[GM__REMOTE_SEEDS];
  char prefix[GM__REMOTE_PREFIX]; /* of the tier's keys on the server */
} gm__remote_where;

/* Reads "redis://host:port/prefix", "redis+cluster://host:port,host:port/prefix" or "unix:/path". The port may be left
 * out, it is 6379 then; so may the prefix, it is "gm". An IPv6 address stands in brackets. INVALID_ARGUMENT. */
gm_status gm__remote_where_read(const char *where, gm__remote_where *out, gm_error *err);

/* Reads "host:port", whose last colon stands before the port. False: it is none. */
bool gm__remote_address_read(const char *text, size_t length, uint16_t port, gm__remote_address *out);

#endif
