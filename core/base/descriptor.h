/* File descriptors that memory is handed about with. Thread-safe, no state. */
#ifndef GM_CORE_BASE_DESCRIPTOR_H
#define GM_CORE_BASE_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/status.h"

/* Another descriptor of the same file, closed on exec; negative: the process has no more. */
int gm__descriptor_copy(int fd);

/* Negative: nothing. */
void gm__descriptor_close(int fd);

/* What two descriptors of the same memory have in common: good while one of them is open. False: files of this kind
 * cannot be told apart (a driver's own device node, an anonymous inode). */
bool gm__descriptor_identity(int fd, uint64_t out[2]);

/* One message over a connected Unix socket, with a descriptor or without (-1). TIMEOUT, IO. */
gm_status gm__descriptor_send(int socket, const void *message, size_t bytes, int fd, gm_error *err);

/* The same, of exactly `bytes`; *out_fd is the caller's, -1: none came. TIMEOUT, IO; FORMAT: another length, or several
 * descriptors; then all that came is closed. */
gm_status gm__descriptor_receive(int socket, void *message, size_t bytes, int *out_fd, gm_error *err);

#endif
