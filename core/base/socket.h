/* Connections to a server: streams of bytes with deadlines. No call raises a signal, and no descriptor outlives an
 * exec. Thread-safe on different descriptors. `deadline` is a moment of core/base/clock.h.
 *
 * TIMEOUT: the deadline has passed. IO: the system's word is in the message. After a failure the stream is of no use.
 */
#ifndef GM_CORE_BASE_SOCKET_H
#define GM_CORE_BASE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/inner.h"
#include "gm/status.h"

enum { GM__SOCKET_PIECES = 16 };

typedef struct gm__socket_piece {
  const void *data; /* NULL only where bytes is 0 */
  size_t bytes;
} gm__socket_piece;

/* Connects to a port of a host, which is a name or an address; or, with port 0, to the Unix socket of that path. The
 * system looks a name up by itself and obeys no deadline meanwhile. The caller closes *out_fd by gm__descriptor_close.
 * UNAVAILABLE: there is no such host. */
GM__INNER gm_status gm__socket_connect(const char *host, uint16_t port, uint64_t deadline, int *out_fd, gm_error *err);

/* Sends all pieces, at most GM__SOCKET_PIECES. */
GM__INNER gm_status gm__socket_send(int fd, const gm__socket_piece *pieces, size_t count, uint64_t deadline,
                                    gm_error *err);

/* Receives at least one byte and at most `most`. IO also where the other side has closed the connection. */
GM__INNER gm_status gm__socket_receive(int fd, void *room, size_t most, uint64_t deadline, size_t *out_bytes,
                                       gm_error *err);

/* Is the connection open, as far as one can see, and has no byte to receive? */
GM__INNER bool gm__socket_is_quiet(int fd);

#endif
