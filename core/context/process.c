/* Invariants: everything here is lock-free, so that a child forked in the middle of a call finds nothing locked. The
 * generation lies in a page that the kernel zeroes in a forked child (MADV_WIPEONFORK). A generation that is not the
 * page's belongs to the parent. Kernels before 4.14 cannot do that. There the process id stands in for the page, at the
 * price of a system call for each check. */
#include "core/context/process.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/error.h"

static gm__process_page process_shared;          /* the generation; 0: no context was made in this process image yet */
static _Atomic uint64_t process_last_generation; /* survives a fork, so that no number comes twice */
static _Atomic bool process_by_pid;

static void *process_map(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  if (madvise(memory, bytes, MADV_WIPEONFORK) != 0) atomic_store(&process_by_pid, true);
  return memory;
}

void *gm__process_page_get(gm__process_page *page, size_t bytes) {
  void *memory = atomic_load_explicit(&page->memory, memory_order_acquire);
  if (memory) return memory;
  void *fresh = process_map(bytes);
  if (!fresh) return NULL;
  if (atomic_compare_exchange_strong(&page->memory, &memory, fresh)) return fresh;
  munmap(fresh, bytes); /* another thread was first, and `memory` is now its page */
  return memory;
}

static _Atomic uint64_t *process_generation(void) {
  return gm__process_page_get(&process_shared, sizeof(_Atomic uint64_t));
}

gm_status gm__process_generation(uint64_t *out, gm_error *err) {
  _Atomic uint64_t *shared = process_generation();
  if (!shared)
    return gm__fail_native(err, GM_ERR_SYSTEM, errno, "mmap", "no memory page for gm's process state: %s",
                           strerror(errno));
  if (atomic_load(&process_by_pid)) {
    *out = (uint64_t)getpid();
    return GM_OK;
  }
  uint64_t generation = atomic_load(shared);
  if (generation == 0) {
    uint64_t fresh = atomic_fetch_add(&process_last_generation, 1) + 1;
    if (atomic_compare_exchange_strong(shared, &generation, fresh)) generation = fresh;
  }
  *out = generation;
  return GM_OK;
}

bool gm__process_is_current(uint64_t generation) {
  if (atomic_load_explicit(&process_by_pid, memory_order_relaxed)) return (uint64_t)getpid() == generation;
  const _Atomic uint64_t *shared = atomic_load_explicit(&process_shared.memory, memory_order_acquire);
  return shared && atomic_load_explicit(shared, memory_order_relaxed) == generation;
}

const _Atomic uint64_t *gm__process_generation_at(void) {
  static _Atomic uint64_t none;
  const _Atomic uint64_t *shared = process_generation();
  return shared && !atomic_load(&process_by_pid) ? shared : &none;
}

uint64_t gm__process_salt(void) {
  return atomic_load_explicit(&process_by_pid, memory_order_relaxed) ? (uint64_t)getpid() << 32 : 0;
}
