/* Two hands: threads that take turns, so that what one of them took goes to the other, in an order that is repeated. */
#ifndef GM_TESTS_MODEL_HANDS_H
#define GM_TESTS_MODEL_HANDS_H

#include <pthread.h>
#include <stdbool.h>

typedef struct hands {
  pthread_mutex_t lock;
  pthread_cond_t turn;
  pthread_t thread;
  void (*step)(void *argument); /* what the other hand has to do; NULL: nothing */
  void *argument;
  bool end, running;
} hands;

void hands_begin(hands *h);
/* Have the other hand do it, and wait until it is done. */
void hands_do(hands *h, void (*step)(void *argument), void *argument);
void hands_end(hands *h);

#endif
