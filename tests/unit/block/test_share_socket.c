/* A gm_shared over a Unix socket, and what a hostile sender may put on one: nothing of it is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gm/share.h"

enum { LETTER = 8 + (int)sizeof(gm_shared), MANY = 20 };

typedef struct letter {
  char mark[8];
  gm_shared shared;
} letter;

static int ends[2];
static int open_before;

static int descriptors(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/fd");
  assert_non_null(folder);
  while (readdir(folder)) count++;
  closedir(folder);
  return count;
}

static int begin(int type) {
  open_before = descriptors();
  return socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends);
}

static int begin_stream(void **state) {
  (void)state;
  return begin(SOCK_STREAM);
}

static int begin_packets(void **state) {
  (void)state;
  return begin(SOCK_SEQPACKET);
}

/* No descriptor is left, whatever came. */
static int end(void **state) {
  (void)state;
  close(ends[0]);
  close(ends[1]);
  return descriptors() == open_before ? 0 : -1;
}

static letter good(gm_share_kind kind) {
  letter made = {.mark = "gmshare"};
  made.shared =
      (gm_shared){.struct_size = sizeof made.shared, .kind = kind, .bytes = 100, .whole_bytes = 4096, .fd = -1};
  return made;
}

/* `bytes` of the letter, with `count` descriptors of a file. */
static void put(const letter *what, size_t bytes, int count) {
  union {
    struct cmsghdr head;
    unsigned char bytes[CMSG_SPACE(sizeof(int) * MANY)];
  } room;
  struct iovec part = {.iov_base = (void *)(uintptr_t)what, .iov_len = bytes};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  const int file = memfd_create("letter", MFD_CLOEXEC);
  memset(&room, 0, sizeof room);
  if (count) {
    message.msg_control = room.bytes;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
    for (int i = 0; i < count; i++) memcpy(CMSG_DATA(head) + sizeof(int) * (size_t)i, &file, sizeof file);
  }
  assert_int_equal(sendmsg(ends[0], &message, MSG_NOSIGNAL), bytes);
  close(file);
}

static void refused(const letter *what, size_t bytes, int count) {
  gm_shared got = {.struct_size = sizeof got}, untouched = {.struct_size = sizeof untouched};
  gm_error err;
  memset(&got, 0x5a, sizeof got);
  got.struct_size = sizeof got;
  untouched = got;
  put(what, bytes, count);
  assert_int_equal(gm_shared_receive(ends[1], &got, &err), GM_ERR_FORMAT);
  assert_true(err.message[0] != 0);
  assert_memory_equal(&got, &untouched, sizeof got);
}

static void test_arrives_as_it_left(void **state) {
  (void)state;
  gm_error err;
  gm_shared sent = good(GM_SHARE_IPC).shared, got = {.struct_size = sizeof got};
  sent.offset = 3000;
  memcpy(sent.ipc, "handle", 6);
  assert_int_equal(gm_shared_send(ends[0], &sent, &err), GM_OK);
  assert_int_equal(gm_shared_receive(ends[1], &got, &err), GM_OK);
  assert_memory_equal(&got, &sent, sizeof got);
  gm_shared_close(&got);
}

static void test_descriptor_is_the_receivers(void **state) {
  (void)state;
  gm_error err;
  gm_shared sent = good(GM_SHARE_FD).shared, got = {.struct_size = sizeof got};
  struct stat left, right;
  sent.fd = memfd_create("shared", MFD_CLOEXEC);
  assert_int_equal(gm_shared_send(ends[0], &sent, &err), GM_OK);
  assert_int_equal(gm_shared_receive(ends[1], &got, &err), GM_OK);
  assert_int_not_equal(got.fd, sent.fd);
  assert_true(fcntl(got.fd, F_GETFD) & FD_CLOEXEC);
  assert_int_equal(fstat(sent.fd, &left) | fstat(got.fd, &right), 0);
  assert_int_equal(left.st_ino, right.st_ino);
  const int there = got.fd;
  gm_shared_close(&got);
  assert_int_equal(fcntl(there, F_GETFD), -1);
  assert_int_equal(got.kind, GM_SHARE_NONE);
  gm_shared_close(&got); /* zero: descriptor 0 is not its own */
  assert_true(fcntl(0, F_GETFD) >= 0);
  gm_shared_close(&sent);
  gm_shared_close(NULL);
}

static void test_one_after_the_other(void **state) {
  (void)state;
  gm_shared got = {.struct_size = sizeof got}, sent = good(GM_SHARE_IPC).shared;
  for (uint64_t i = 1; i <= 5; i++) {
    sent.bytes = i;
    assert_int_equal(gm_shared_send(ends[0], &sent, NULL), GM_OK);
  }
  for (uint64_t i = 1; i <= 5; i++) {
    assert_int_equal(gm_shared_receive(ends[1], &got, NULL), GM_OK);
    assert_int_equal(got.bytes, i);
  }
}

static void test_words_that_cannot_be(void **state) {
  (void)state;
  letter wrong = good(GM_SHARE_IPC);
  wrong.mark[0] = 'G';
  refused(&wrong, LETTER, 0);
  wrong = good(GM_SHARE_IPC);
  wrong.shared.struct_size--;
  refused(&wrong, LETTER, 0);
  wrong = good(GM_SHARE_NONE);
  refused(&wrong, LETTER, 0);
  wrong = good((gm_share_kind)4);
  refused(&wrong, LETTER, 1);
  wrong = good(GM_SHARE_IPC);
  wrong.shared.bytes = 0;
  refused(&wrong, LETTER, 0);
  wrong = good(GM_SHARE_IPC);
  wrong.shared.offset = 4000; /* and 100 bytes of 4096 */
  refused(&wrong, LETTER, 0);
  wrong.shared.offset = UINT64_MAX - 50; /* so that the sum wraps */
  refused(&wrong, LETTER, 0);
  wrong = good(GM_SHARE_IPC);
  wrong.shared.fd = 2; /* a number that means something to the receiver */
  refused(&wrong, LETTER, 0);
  wrong = good(GM_SHARE_IPC);
  memset(wrong.shared.backend, 'x', sizeof wrong.shared.backend);
  refused(&wrong, LETTER, 0);
}

static void test_descriptors_too_many_or_too_few(void **state) {
  (void)state;
  const letter by_bytes = good(GM_SHARE_IPC), by_descriptor = good(GM_SHARE_FD), dma_buf = good(GM_SHARE_DMABUF);
  refused(&by_descriptor, LETTER, 0);
  refused(&dma_buf, LETTER, 0);
  refused(&by_bytes, LETTER, 1);
  refused(&by_descriptor, LETTER, 2);
  refused(&dma_buf, LETTER, MANY);
}

static void test_other_side_goes(void **state) {
  (void)state;
  const letter whole = good(GM_SHARE_FD);
  gm_shared got = {.struct_size = sizeof got};
  gm_error err;
  put(&whole, LETTER / 2, 1);
  shutdown(ends[0], SHUT_WR);
  assert_int_equal(gm_shared_receive(ends[1], &got, &err), GM_ERR_IO);
  shutdown(ends[1], SHUT_RD);
  assert_int_equal(
      gm_shared_send(
          ends[0],
          &(gm_shared){.struct_size = sizeof got, .kind = GM_SHARE_IPC, .bytes = 1, .whole_bytes = 1, .fd = -1}, &err),
      GM_ERR_IO); /* and no signal */
  assert_true(err.native_code != 0);
}

static void test_pieces_of_a_stream(void **state) {
  (void)state;
  letter whole = good(GM_SHARE_FD);
  gm_shared got = {.struct_size = sizeof got};
  put(&whole, 9, 1);
  assert_int_equal(send(ends[0], (char *)&whole + 9, LETTER - 9, 0), LETTER - 9);
  assert_int_equal(gm_shared_receive(ends[1], &got, NULL), GM_OK);
  gm_shared_close(&got);
  put(&whole, 9, 1); /* two descriptors, one with each piece */
  letter rest;
  memcpy(&rest, (char *)&whole + 9, LETTER - 9);
  put(&rest, LETTER - 9, 1);
  assert_int_equal(gm_shared_receive(ends[1], &got, NULL), GM_ERR_FORMAT);
}

static void test_packets_of_another_length(void **state) {
  (void)state;
  static char long_one[LETTER + 8];
  const letter whole = good(GM_SHARE_FD);
  refused(&whole, LETTER - 1, 1);
  memcpy(long_one, &whole, LETTER);
  refused((const letter *)(const void *)long_one, sizeof long_one, 1);
}

static void test_nothing_there(void **state) {
  (void)state;
  gm_shared got = {.struct_size = sizeof got};
  gm_error err;
  assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  assert_int_equal(gm_shared_receive(ends[1], &got, &err), GM_ERR_TIMEOUT);
  const int file = open("/dev/null", O_RDWR | O_CLOEXEC);
  assert_int_equal(gm_shared_receive(file, &got, &err), GM_ERR_IO);
  close(file);
}

static void test_arguments(void **state) {
  (void)state;
  gm_shared shared = good(GM_SHARE_FD).shared;
  gm_error err;
  assert_int_equal(gm_shared_send(ends[0], NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_shared_send(ends[0], &shared, &err), GM_ERR_INVALID_ARGUMENT); /* no descriptor */
  shared = good(GM_SHARE_IPC).shared;
  assert_int_equal(gm_shared_send(-1, &shared, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_shared_receive(-1, &shared, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_shared_receive(ends[1], NULL, &err), GM_ERR_INVALID_ARGUMENT);
}

int main(void) {
#define STREAM(test) cmocka_unit_test_setup_teardown(test, begin_stream, end)
#define PACKETS(test) cmocka_unit_test_setup_teardown(test, begin_packets, end)
  const struct CMUnitTest tests[] = {
      STREAM(test_arrives_as_it_left),
      PACKETS(test_arrives_as_it_left),
      STREAM(test_descriptor_is_the_receivers),
      PACKETS(test_descriptor_is_the_receivers),
      STREAM(test_one_after_the_other),
      PACKETS(test_one_after_the_other),
      STREAM(test_words_that_cannot_be),
      PACKETS(test_words_that_cannot_be),
      PACKETS(test_descriptors_too_many_or_too_few),
      STREAM(test_other_side_goes),
      STREAM(test_pieces_of_a_stream),
      PACKETS(test_packets_of_another_length),
      STREAM(test_nothing_there),
      STREAM(test_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
