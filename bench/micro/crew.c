#include "bench/micro/crew.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "bench/measure/ticks.h"

typedef struct crew {
  crew_work *work;
  void *user;
  atomic_uint ready;
  atomic_int start; /* 1: go; -1: there is nothing to do */
} crew;

typedef struct crew_member {
  crew *crew;
  unsigned number;
  pthread_t thread;
  uint64_t end_ns;
} crew_member;

static void *crew_member_run(void *user) {
  crew_member *self = user;
  int start;
  atomic_fetch_add(&self->crew->ready, 1);
  while ((start = atomic_load(&self->crew->start)) == 0) sched_yield();
  if (start > 0) self->crew->work(self->crew->user, self->number);
  self->end_ns = ticks_ns();
  return NULL;
}

static uint64_t crew_run_alone(crew_work *work, void *user) {
  uint64_t begin = ticks_ns();
  work(user, 0);
  return ticks_ns() - begin;
}

uint64_t crew_run(unsigned threads, crew_work *work, void *user) {
  crew_member members[CREW_MOST];
  crew self = {.work = work, .user = user};
  unsigned started = 0;
  uint64_t end = 0;
  if (threads <= 1) return crew_run_alone(work, user);
  for (; started < threads && started < CREW_MOST; started++) {
    members[started] = (crew_member){.crew = &self, .number = started};
    if (pthread_create(&members[started].thread, NULL, crew_member_run, &members[started]) != 0) break;
  }
  while (atomic_load(&self.ready) < started) sched_yield();
  uint64_t begin = ticks_ns();
  atomic_store(&self.start, started == threads ? 1 : -1);
  for (unsigned i = 0; i < started; i++) {
    pthread_join(members[i].thread, NULL);
    if (members[i].end_ns > end) end = members[i].end_ns;
  }
  return started == threads ? end - begin : 0;
}
