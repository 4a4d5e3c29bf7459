/* In each test that the thread sanitizer's build leaves out, because it has one thread: another one ends it. Unit tests
 * link it (tests/unit/CMakeLists.txt tells which these are). Others load it before them (cmake/GmTest.cmake). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg) {
  (void)thread, (void)attr, (void)run, (void)arg;
  fprintf(stderr,
          "this test starts a thread, so the thread sanitizer must see it: take it from the list "
          "one_thread in tests/unit/CMakeLists.txt, or its label serial from it\n");
  abort();
}
