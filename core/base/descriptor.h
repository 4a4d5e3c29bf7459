/* File descriptors for shared memory. Thread-safe, no state. */
#ifndef GM_CORE_BASE_DESCRIPTOR_H
#define GM_CORE_BASE_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/inner.h"
#include "gm/status.h"

/* Duplicate a descriptor. The new one is closed on exec. Negative: the process has no more descriptors. */
int gm__descriptor_copy(int fd);

/* Close `fd`. A negative one does nothing. */
GM__INNER void gm__descriptor_close(int fd);

/* The identity of the memory behind `fd`: equal for two descriptors of one memory, while one of them is open. False:
 * nobody can tell such files apart (a driver's own device node, an anonymous inode). */
bool gm__descriptor_identity(int fd, uint64_t out[2]);

/* Send one message over a connected Unix socket, with or without (-1) a descriptor. TIMEOUT, IO. */
gm_status gm__descriptor_send(int socket, const void *message, size_t bytes, int fd, gm_error *err);

/* Receive a message of exactly `bytes`. The caller owns *out_fd; -1: no descriptor came. TIMEOUT, IO. FORMAT: another
 * length, or several descriptors, and all of them are closed. */
gm_status gm__descriptor_receive(int socket, void *message, size_t bytes, int *out_fd, gm_error *err);

#endif
