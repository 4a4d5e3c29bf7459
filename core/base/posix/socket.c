/* Invariants: every descriptor is non-blocking, and waits happen in poll with the time that is left. A side that
 * closes a connection with bytes on the way gives them up. */
#include "core/base/socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "core/base/clock.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/saturate.h"

static gm_status socket_fail(const char *op, int code, gm_error *err) {
  return gm__fail_native(err, GM_ERR_IO, code, op, "%s", strerror(code));
}

/* Waits until the descriptor is ready for `events`, or has an error. */
static gm_status socket_wait(int fd, short events, const char *op, uint64_t deadline, gm_error *err) {
  for (;;) {
    const uint64_t left_ms = gm__min(gm__add_sat(gm__deadline_left(deadline), 999999) / 1000000, 60000);
    struct pollfd wait = {.fd = fd, .events = events};
    const int ready = poll(&wait, 1, (int)left_ms);
    if (ready > 0) return GM_OK;
    if (ready < 0 && errno != EINTR && errno != EAGAIN) return socket_fail("poll", errno, err);
    if (gm__deadline_passed(deadline)) return gm__fail(err, GM_ERR_TIMEOUT, op, "no answer in time");
  }
}

static gm_status socket_finish(int fd, uint64_t deadline, gm_error *err) {
  int code = 0;
  socklen_t size = sizeof code;
  const gm_status status = socket_wait(fd, POLLOUT, "connect", deadline, err);
  if (status) return status;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) != 0) code = errno;
  return code ? socket_fail("connect", code, err) : GM_OK;
}

static gm_status socket_open(int family, const struct sockaddr *to, socklen_t bytes, uint64_t deadline, int *out_fd,
                             gm_error *err) {
  const int on = 1, fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return socket_fail("socket", errno, err);
  gm_status status = GM_OK;
  if (connect(fd, to, bytes) != 0) {
    status =
        errno == EINPROGRESS || errno == EINTR ? socket_finish(fd, deadline, err) : socket_fail("connect", errno, err);
  }
  if (status) {
    gm__descriptor_close(fd);
    return status;
  }
  /* Both only help. */
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  *out_fd = fd;
  return GM_OK;
}

static gm_status socket_connect_unix(const char *path, uint64_t deadline, int *out_fd, gm_error *err) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  const size_t length = strlen(path);
  if (length >= sizeof to.sun_path) return socket_fail("connect", ENAMETOOLONG, err);
  memcpy(to.sun_path, path, length + 1);
  return socket_open(AF_UNIX, (const struct sockaddr *)&to, (socklen_t)sizeof to, deadline, out_fd, err);
}

gm_status gm__socket_connect(const char *host, uint16_t port, uint64_t deadline, int *out_fd, gm_error *err) {
  if (!port) return socket_connect_unix(host, deadline, out_fd, err);
  const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
  struct addrinfo *found = NULL;
  char service[8];
  snprintf(service, sizeof service, "%u", (unsigned)port);
  const int code = getaddrinfo(host, service, &hints, &found);
  if (code) return gm__fail(err, GM_ERR_UNAVAILABLE, "getaddrinfo", "%.256s: %s", host, gai_strerror(code));
  gm_status status = gm__fail(err, GM_ERR_UNAVAILABLE, "getaddrinfo", "%.256s: no address", host);
  for (const struct addrinfo *at = found; at && status; at = at->ai_next) {
    status = socket_open(at->ai_family, at->ai_addr, at->ai_addrlen, deadline, out_fd, err);
  }
  freeaddrinfo(found);
  return status;
}

gm_status gm__socket_send(int fd, const gm__socket_piece *pieces, size_t count, uint64_t deadline, gm_error *err) {
  struct iovec parts[GM__SOCKET_PIECES];
  size_t next = 0;
  if (count > GM__SOCKET_PIECES) return gm__bad_argument(err, "sendmsg", "more than %d pieces", GM__SOCKET_PIECES);
  for (size_t i = 0; i < count; i++) parts[i] = (struct iovec){(void *)(uintptr_t)pieces[i].data, pieces[i].bytes};
  while (next < count) {
    const struct msghdr message = {.msg_iov = parts + next, .msg_iovlen = count - next};
    const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return socket_fail("sendmsg", errno, err);
    if (sent < 0) {
      const gm_status status = socket_wait(fd, POLLOUT, "sendmsg", deadline, err);
      if (status) return status;
      continue;
    }
    size_t done = (size_t)sent;
    while (next < count && done >= parts[next].iov_len) done -= parts[next++].iov_len;
    if (next == count) break;
    parts[next] = (struct iovec){(char *)parts[next].iov_base + done, parts[next].iov_len - done};
    if (gm__deadline_passed(deadline)) return gm__fail(err, GM_ERR_TIMEOUT, "sendmsg", "no answer in time");
  }
  return GM_OK;
}

gm_status gm__socket_receive(int fd, void *room, size_t most, uint64_t deadline, size_t *out_bytes, gm_error *err) {
  for (;;) {
    const ssize_t got = recv(fd, room, most, 0);
    if (got == 0) return gm__fail(err, GM_ERR_IO, "recv", "the other side closed the connection");
    if (got > 0) {
      *out_bytes = (size_t)got;
      return GM_OK;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return socket_fail("recv", errno, err);
    const gm_status status = socket_wait(fd, POLLIN, "recv", deadline, err);
    if (status) return status;
  }
}

bool gm__socket_is_quiet(int fd) {
  char byte;
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}
