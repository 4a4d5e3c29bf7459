/* Invariants: everything here is lock-free, so that a child forked in the middle of a call finds nothing locked. The
 * generation and the counters lie in pages that the kernel zeroes in a forked child (MADV_WIPEONFORK). A generation
 * that is not the page's belongs to the parent. Kernels before 4.14 cannot do that. There the process id stands in for
 * the page, at the price of a system call for each check. */
#include "core/context/process.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/error.h"

enum { PROCESS_DEVICES_MAX = 256 };

struct gm__used_bytes {
  _Atomic uint64_t key; /* 0: free entry */
  _Atomic uint64_t total;
  _Atomic uint64_t pooled;
  _Atomic uint64_t departures, arrivals; /* bytes, ever: those between are on their way back to the driver */
};

typedef struct process_card {
  gm__used_bytes used;
  gm__promises promises;
} process_card;

typedef struct process_page {
  _Atomic uint64_t generation; /* 0: no context was made in this process image yet */
  process_card cards[PROCESS_DEVICES_MAX];
} process_page;

static _Atomic(process_page *) process_shared;
static _Atomic uint64_t process_last_generation; /* survives a fork, so that no number comes twice */
static _Atomic bool process_by_pid;

static process_page *process_page_create(void) {
  process_page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return NULL;
  if (madvise(page, sizeof *page, MADV_WIPEONFORK) != 0) atomic_store(&process_by_pid, true);
  return page;
}

static process_page *process_page_get(void) {
  process_page *page = atomic_load_explicit(&process_shared, memory_order_acquire);
  if (page) return page;
  process_page *fresh = process_page_create();
  if (!fresh) return NULL;
  if (atomic_compare_exchange_strong(&process_shared, &page, fresh)) return fresh;
  munmap(fresh, sizeof *fresh); /* another thread was first, and `page` is now its page */
  return page;
}

gm_status gm__process_generation(uint64_t *out, gm_error *err) {
  process_page *page = process_page_get();
  if (!page)
    return gm__fail(err, GM_ERR_SYSTEM, errno, "mmap", "no memory page for gm's process state: %s", strerror(errno));
  if (atomic_load(&process_by_pid)) {
    *out = (uint64_t)getpid();
    return GM_OK;
  }
  uint64_t generation = atomic_load(&page->generation);
  if (generation == 0) {
    uint64_t fresh = atomic_fetch_add(&process_last_generation, 1) + 1;
    if (atomic_compare_exchange_strong(&page->generation, &generation, fresh)) generation = fresh;
  }
  *out = generation;
  return GM_OK;
}

bool gm__process_is_current(uint64_t generation) {
  if (atomic_load_explicit(&process_by_pid, memory_order_relaxed)) return (uint64_t)getpid() == generation;
  process_page *page = atomic_load_explicit(&process_shared, memory_order_acquire);
  return page && atomic_load_explicit(&page->generation, memory_order_relaxed) == generation;
}

const _Atomic uint64_t *gm__process_generation_at(void) {
  static _Atomic uint64_t none;
  process_page *page = process_page_get();
  return page && !atomic_load(&process_by_pid) ? &page->generation : &none;
}

/* The card with this key. Where a child sees its parent's page, it has cards of its own all the same. */
static process_card *process_card_of(uint64_t key) {
  static process_card homeless; /* without a page there is no context either; never NULL all the same */
  process_page *page = process_page_get();
  if (!page) return &homeless;
  if (atomic_load_explicit(&process_by_pid, memory_order_relaxed)) key ^= (uint64_t)getpid() << 32;
  if (key == 0) key = 1;
  for (size_t i = 0; i < PROCESS_DEVICES_MAX - 1; i++) {
    uint64_t seen = 0;
    if (atomic_compare_exchange_strong(&page->cards[i].used.key, &seen, key) || seen == key) return &page->cards[i];
  }
  return &page->cards[PROCESS_DEVICES_MAX - 1];
}

gm__used_bytes *gm__process_used(uint64_t key) { return &process_card_of(key)->used; }

gm__promises *gm__process_promises(uint64_t key) {
  gm__promises *promises = &process_card_of(key)->promises;
  gm__promises_prepare(promises);
  return promises;
}

void gm__used_add(gm__used_bytes *used, uint64_t bytes, bool pooled) {
  atomic_fetch_add_explicit(pooled ? &used->pooled : &used->total, bytes, memory_order_relaxed);
}

void gm__used_sub(gm__used_bytes *used, uint64_t bytes, bool pooled) {
  atomic_fetch_sub_explicit(pooled ? &used->pooled : &used->total, bytes, memory_order_relaxed);
}

/* Whoever no longer sees the bytes in `total` sees them depart. */
void gm__used_leave(gm__used_bytes *used, uint64_t bytes) {
  atomic_fetch_add_explicit(&used->departures, bytes, memory_order_relaxed);
  atomic_fetch_sub_explicit(&used->total, bytes, memory_order_release);
}

void gm__used_left(gm__used_bytes *used, uint64_t bytes) {
  atomic_fetch_add_explicit(&used->arrivals, bytes, memory_order_release);
}

uint64_t gm__used_departures(const gm__used_bytes *used) {
  return atomic_load_explicit(&used->departures, memory_order_acquire);
}

/* In this order, so that it is never too little. */
uint64_t gm__used_most(const gm__used_bytes *used) {
  const uint64_t total = atomic_load_explicit(&used->total, memory_order_acquire);
  const uint64_t arrivals = atomic_load_explicit(&used->arrivals, memory_order_acquire);
  return total + gm__used_departures(used) - arrivals;
}

uint64_t gm__used_total(const gm__used_bytes *used) { return atomic_load_explicit(&used->total, memory_order_relaxed); }

uint64_t gm__used_pooled(const gm__used_bytes *used) {
  return atomic_load_explicit(&used->pooled, memory_order_relaxed);
}
