/* How much stack the calls of gm take beyond what a thread takes that does nothing: no call more than docs/threads.md
 * says. The stack is painted before the thread starts, and the paint that is left is counted afterwards.
 *
 * usage: process_stack BACKEND MOST_BYTES */
#include <pthread.h>
#include <sys/mman.h>

#include "support/slow_calls.h"

enum { STACK_BYTES = 512 << 10, STACK_PAINT = 0x5a };

static void *stack_run(void *call) {
  if (call) ((const struct slow_call *)call)->run();
  return NULL;
}

static size_t stack_used(const struct slow_call *call) {
  pthread_attr_t attributes;
  pthread_t thread;
  unsigned char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  size_t clean = 0;
  if (stack == MAP_FAILED) exit(3);
  memset(stack, STACK_PAINT, STACK_BYTES);
  pthread_attr_init(&attributes);
  if (pthread_attr_setstack(&attributes, stack, STACK_BYTES) != 0) exit(3);
  if (pthread_create(&thread, &attributes, stack_run, (void *)(uintptr_t)call) != 0) exit(3);
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attributes);
  while (clean < STACK_BYTES && stack[clean] == STACK_PAINT) clean++;
  munmap(stack, STACK_BYTES);
  return STACK_BYTES - clean;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  const size_t most = strtoul(argv[2], NULL, 10);
  int failed = 0;
  slow_open(argv[1]);
  stack_used(NULL); /* what the C library does once */
  const size_t bare = stack_used(NULL);
  for (int i = 0; i < SLOW_CALLS; i++) {
    const size_t used = stack_used(&slow_calls[i]), own = used > bare ? used - bare : 0;
    printf("%-14s %6zu bytes%s\n", slow_calls[i].name, own, own > most ? ", too many" : "");
    if (own > most) failed++;
  }
  slow_close();
  printf("%d calls, %d take more than %zu bytes\n", SLOW_CALLS, failed, most);
  return failed != 0;
}
