#include "core/base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/base/error.h"

/* DMA_BUF_MAGIC of <linux/magic.h>: there each buffer has its own inode. gm takes more than one descriptor in, so that
 * it can close them. Beyond this number the kernel drops them and says so. */
enum { DESCRIPTOR_DMA_BUF = 0x444d4142, DESCRIPTOR_MOST = 8 };

int gm__descriptor_copy(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 3); }

void gm__descriptor_close(int fd) {
  if (fd >= 0) close(fd);
}

bool gm__descriptor_identity(int fd, uint64_t out[2]) {
  struct stat file;
  struct statfs system;
  if (fstat(fd, &file) != 0) return false;
  const bool is_own = S_ISREG(file.st_mode) || (fstatfs(fd, &system) == 0 && system.f_type == DESCRIPTOR_DMA_BUF);
  out[0] = (uint64_t)file.st_dev;
  out[1] = (uint64_t)file.st_ino;
  return is_own;
}

static gm_status descriptor_fail(int error, const char *op, gm_error *err) {
  if (error == EAGAIN || error == EWOULDBLOCK) {
    return gm__fail_native(err, GM_ERR_TIMEOUT, error, op, "the socket was not ready");
  }
  return gm__fail_native(err, GM_ERR_IO, error, op, "%s", strerror(error));
}

/* Space for the descriptors, aligned for the kernel. */
typedef union descriptor_room {
  struct cmsghdr head;
  unsigned char bytes[CMSG_SPACE(sizeof(int) * DESCRIPTOR_MOST)];
} descriptor_room;

static ssize_t descriptor_send_some(int socket, const char *at, size_t bytes, int fd) {
  descriptor_room room;
  struct iovec part = {.iov_base = (void *)(uintptr_t)at, .iov_len = bytes};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (fd >= 0) {
    memset(&room, 0, sizeof room);
    message.msg_control = room.bytes;
    message.msg_controllen = CMSG_SPACE(sizeof fd);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL);
}

/* The kernel sends the descriptor with the first byte. */
gm_status gm__descriptor_send(int socket, const void *message, size_t bytes, int fd, gm_error *err) {
  const char *at = message;
  for (size_t done = 0; done < bytes;) {
    const ssize_t sent = descriptor_send_some(socket, at + done, bytes - done, done ? -1 : fd);
    if (sent < 0 && errno != EINTR) return descriptor_fail(errno, "sendmsg", err);
    if (sent > 0) done += (size_t)sent;
  }
  return GM_OK;
}

/* The received parts so far. */
typedef struct descriptor_mail {
  size_t done;
  int fd;         /* the first descriptor */
  unsigned count; /* the number of descriptors */
  bool cut;       /* the kernel had more bytes or descriptors */
} descriptor_mail;

static void descriptor_take(descriptor_mail *mail, const struct cmsghdr *head) {
  const size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (size_t i = 0; i < count; i++) {
    int fd;
    memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
    if (mail->count++) {
      close(fd);
    } else {
      mail->fd = fd;
    }
  }
}

static gm_status descriptor_receive_some(int socket, char *to, size_t bytes, descriptor_mail *mail, gm_error *err) {
  descriptor_room room;
  struct iovec part = {.iov_base = to + mail->done, .iov_len = bytes - mail->done};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = room.bytes, .msg_controllen = sizeof room.bytes};
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (got < 0) return errno == EINTR ? GM_OK : descriptor_fail(errno, "recvmsg", err);
  for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) descriptor_take(mail, head);
  }
  if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) mail->cut = true;
  mail->done += (size_t)got;
  return got ? GM_OK : gm__fail(err, GM_ERR_IO, "recvmsg", "the other side has closed the socket");
}

/* A packet comes whole, else it has another length. A stream comes in pieces. */
static bool descriptor_is_stream(int socket) {
  int type = 0;
  socklen_t length = sizeof type;
  return getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

gm_status gm__descriptor_receive(int socket, void *message, size_t bytes, int *out_fd, gm_error *err) {
  descriptor_mail mail = {.fd = -1};
  const bool stream = descriptor_is_stream(socket);
  gm_status status = GM_OK;
  while (status == GM_OK && mail.done < bytes && !mail.cut && (stream || mail.done == 0)) {
    status = descriptor_receive_some(socket, message, bytes, &mail, err);
  }
  if (status == GM_OK && (mail.cut || mail.count > 1 || mail.done < bytes)) {
    status = gm__fail(err, GM_ERR_FORMAT, "recvmsg", "the message has %zu bytes of %zu and %u descriptors%s", mail.done,
                      bytes, mail.count, mail.cut ? ", and more than fits" : "");
  }
  if (status == GM_OK) {
    *out_fd = mail.fd;
  } else {
    gm__descriptor_close(mail.fd);
  }
  return status;
}
