/* The thread sanitizer's allocator, safe to fork beside. The C library takes its own locks at a fork; gcc 12's
 * sanitizer does not take those of its allocator. So a child that is born while another thread is inside malloc waits
 * for ever at its own next one. That would be a finding about the sanitizer, not about gm. So these functions stand
 * before the sanitizer's, for gm and the drivers too. Nobody is inside while the process forks.
 *
 * For builds with that sanitizer alone, and not instrumented itself. */
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

void *__interceptor_malloc(size_t bytes);
void *__interceptor_calloc(size_t count, size_t bytes);
void *__interceptor_realloc(void *ptr, size_t bytes);
void *__interceptor_aligned_alloc(size_t align, size_t bytes);
void *__interceptor_memalign(size_t align, size_t bytes);
int __interceptor_posix_memalign(void **out, size_t align, size_t bytes);
void __interceptor_free(void *ptr);

static atomic_int inside; /* threads in the allocator */
static atomic_bool forking;
static __thread int depth; /* of this thread: the one that forks counts as inside for as long */

static void enter(void) {
  if (depth++) return;
  for (;;) {
    atomic_fetch_add(&inside, 1);
    if (!atomic_load(&forking)) return;
    atomic_fetch_sub(&inside, 1);
    while (atomic_load(&forking)) sched_yield();
  }
}

static void leave(void) {
  if (--depth == 0) atomic_fetch_sub(&inside, 1);
}

static void fork_begins(void) {
  while (atomic_exchange(&forking, true)) sched_yield(); /* another thread forks */
  depth++;
  while (atomic_load(&inside) > 0) sched_yield();
}

static void fork_ends(void) {
  depth--;
  atomic_store(&forking, false);
}

__attribute__((constructor)) static void register_handlers(void) { pthread_atfork(fork_begins, fork_ends, fork_ends); }

void *malloc(size_t bytes) {
  enter();
  void *ptr = __interceptor_malloc(bytes);
  leave();
  return ptr;
}

void *calloc(size_t count, size_t bytes) {
  enter();
  void *ptr = __interceptor_calloc(count, bytes);
  leave();
  return ptr;
}

void *realloc(void *old, size_t bytes) {
  enter();
  void *ptr = __interceptor_realloc(old, bytes);
  leave();
  return ptr;
}

void *aligned_alloc(size_t align, size_t bytes) {
  enter();
  void *ptr = __interceptor_aligned_alloc(align, bytes);
  leave();
  return ptr;
}

void *memalign(size_t align, size_t bytes) {
  enter();
  void *ptr = __interceptor_memalign(align, bytes);
  leave();
  return ptr;
}

int posix_memalign(void **out, size_t align, size_t bytes) {
  enter();
  const int code = __interceptor_posix_memalign(out, align, bytes);
  leave();
  return code;
}

void free(void *ptr) {
  enter();
  __interceptor_free(ptr);
  leave();
}
