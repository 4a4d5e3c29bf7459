#include "model/hands.h"

static void *hands_work(void *argument) {
  hands *h = argument;
  pthread_mutex_lock(&h->lock);
  while (!h->end) {
    if (h->step) {
      h->step(h->argument);
      h->step = NULL;
      pthread_cond_broadcast(&h->turn);
    } else {
      pthread_cond_wait(&h->turn, &h->lock);
    }
  }
  pthread_mutex_unlock(&h->lock);
  return NULL;
}

void hands_begin(hands *h) {
  *h = (hands){.step = NULL};
  pthread_mutex_init(&h->lock, NULL);
  pthread_cond_init(&h->turn, NULL);
  h->running = !pthread_create(&h->thread, NULL, hands_work, h);
}

void hands_do(hands *h, void (*step)(void *argument), void *argument) {
  pthread_mutex_lock(&h->lock);
  h->step = step;
  h->argument = argument;
  pthread_cond_broadcast(&h->turn);
  while (h->step) pthread_cond_wait(&h->turn, &h->lock);
  pthread_mutex_unlock(&h->lock);
}

void hands_end(hands *h) {
  pthread_mutex_lock(&h->lock);
  h->end = true;
  pthread_cond_broadcast(&h->turn);
  pthread_mutex_unlock(&h->lock);
  if (h->running) pthread_join(h->thread, NULL);
  pthread_cond_destroy(&h->turn);
  pthread_mutex_destroy(&h->lock);
}
