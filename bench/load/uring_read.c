#include "uring_read.h"

#include <linux/io_uring.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };

typedef struct uring {
  int fd;
  unsigned char *rings; /* both, in one mapping */
  struct io_uring_sqe *entries;
  struct io_uring_params params;
  uint64_t ring_bytes, entry_bytes;
} uring;

static _Atomic(uint32_t) *ring_word(const uring *ring, uint32_t offset) {
  return (_Atomic(uint32_t) *)(void *)(ring->rings + offset);
}

static void uring_end(uring *ring) {
  if (ring->rings) munmap(ring->rings, ring->ring_bytes);
  if (ring->entries) munmap(ring->entries, ring->entry_bytes);
  if (ring->fd >= 0) close(ring->fd);
}

static void *ring_map(const uring *ring, uint64_t bytes, uint64_t at) {
  void *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, (off_t)at);
  return mapping == MAP_FAILED ? NULL : mapping;
}

/* The kernel's answer to the setup says where things lie. */
static bool uring_share(uring *ring) {
  const struct io_uring_params *params = &ring->params;
  const uint64_t submit = params->sq_off.array + params->sq_entries * sizeof(uint32_t);
  const uint64_t complete = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);
  if (!(params->features & IORING_FEAT_SINGLE_MMAP)) return false;
  ring->ring_bytes = submit > complete ? submit : complete;
  ring->entry_bytes = params->sq_entries * sizeof *ring->entries;
  ring->rings = ring_map(ring, ring->ring_bytes, IORING_OFF_SQ_RING);
  ring->entries = ring_map(ring, ring->entry_bytes, IORING_OFF_SQES);
  return ring->rings && ring->entries;
}

/* The next read into the ring, not submitted yet. */
static void uring_put(const uring *ring, int fd, unsigned char *to, uint64_t at, uint32_t bytes) {
  _Atomic(uint32_t) *tail = ring_word(ring, ring->params.sq_off.tail);
  const uint32_t now = atomic_load(tail), slot = now & (ring->params.sq_entries - 1);
  ring->entries[slot] = (struct io_uring_sqe){
      .opcode = IORING_OP_READ, .fd = fd, .addr = (uintptr_t)to, .len = bytes, .off = at, .user_data = bytes};
  atomic_store(ring_word(ring, ring->params.sq_off.array) + slot, slot);
  atomic_store(tail, now + 1);
}

/* How many reads have ended. One that brought less than a block too little ended the file. */
static uint32_t uring_take(const uring *ring, bool *good) {
  _Atomic(uint32_t) *head = ring_word(ring, ring->params.cq_off.head);
  const struct io_uring_cqe *all = (const void *)(ring->rings + ring->params.cq_off.cqes);
  const uint32_t tail = atomic_load(ring_word(ring, ring->params.cq_off.tail));
  uint32_t at = atomic_load(head), count = 0;
  for (; at != tail; at++, count++) {
    const struct io_uring_cqe *one = &all[at & (ring->params.cq_entries - 1)];
    if (one->res < 0 || (uint64_t)one->res + PAGE <= one->user_data) *good = false;
  }
  atomic_store(head, at);
  return count;
}

static bool uring_run(const uring *ring, int fd, unsigned char *memory, uint64_t bytes, uint32_t piece,
                      uint32_t depth) {
  uint32_t flying = 0;
  bool good = true;
  for (uint64_t at = 0; (at < bytes || flying) && good;) {
    uint32_t fresh = 0;
    for (; at < bytes && flying < depth; flying++, fresh++, at += piece) {
      const uint64_t left = (bytes - at + PAGE - 1) / PAGE * PAGE;
      uring_put(ring, fd, memory + at, at, left < piece ? (uint32_t)left : piece);
    }
    const long taken = syscall(SYS_io_uring_enter, ring->fd, fresh, 1, IORING_ENTER_GETEVENTS, NULL, 0);
    good = taken == (long)fresh;
    flying -= uring_take(ring, &good);
  }
  return good;
}

bool uring_read(int fd, unsigned char *memory, uint64_t bytes, uint32_t piece, uint32_t depth) {
  uring ring = {.fd = -1};
  ring.fd = (int)syscall(SYS_io_uring_setup, depth, &ring.params);
  if (ring.fd < 0) return false;
  const bool good = uring_share(&ring) && uring_run(&ring, fd, memory, bytes, piece, depth);
  uring_end(&ring);
  return good;
}
