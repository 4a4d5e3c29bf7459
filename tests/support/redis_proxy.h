/* A proxy before a Redis server, in a thread of the test: it loses the answer to a message, or holds a message back.
 * Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_REDIS_PROXY_H
#define GM_TESTS_SUPPORT_REDIS_PROXY_H

#include <pthread.h>
#include <stdatomic.h>

#include "support/redis_server.h"

enum { REDIS_PROXY_PAIRS = 64, REDIS_PROXY_HELD = 1 << 16 };

typedef struct redis_proxy_pair {
  int client, server; /* -1: closed */
  bool held;
} redis_proxy_pair;

typedef struct redis_proxy {
  uint16_t port;
  char where[64];
  /* Pieces that clients send, in the order in which they come: */
  atomic_int lose;    /* the answer to this one of those that follow is lost, and the connection with it; 0: none */
  const char *word;   /* if not NULL: of those alone that have this word */
  atomic_bool hold;   /* the next one that has the word is held back */
  atomic_bool holds;  /* it is */
  atomic_bool let_go; /* it goes on */
  atomic_int lost;    /* how many answers were lost */
  void (*then)(void *user); /* after an answer was lost, before the connection ends */
  void *user;

  uint16_t server_port;
  int listener;
  pthread_t thread;
  atomic_bool ends;
  redis_proxy_pair pairs[REDIS_PROXY_PAIRS];
  int count, held_for;
  size_t held_bytes;
  char held[REDIS_PROXY_HELD];
} redis_proxy;

static inline void redis_proxy_close(redis_proxy_pair *pair) {
  if (pair->client >= 0) close(pair->client);
  if (pair->server >= 0) close(pair->server);
  pair->client = pair->server = -1;
}

static inline bool redis_proxy_send(int fd, const char *bytes, size_t count) {
  while (count) {
    const ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    count -= (size_t)sent;
  }
  return true;
}

static inline bool redis_proxy_counts(redis_proxy *self, const char *bytes, size_t count) {
  return !self->word || memmem(bytes, count, self->word, strlen(self->word));
}

/* The server has done what the message says, if it is whole, and its answer is read by nobody. */
static inline void redis_proxy_lose(redis_proxy *self, redis_proxy_pair *pair) {
  char answer[4096];
  struct pollfd wait = {.fd = pair->server, .events = POLLIN};
  if (poll(&wait, 1, 50) > 0) (void)!recv(pair->server, answer, sizeof answer, 0);
  if (self->then) self->then(self->user);
  redis_proxy_close(pair);
  atomic_fetch_add(&self->lost, 1);
}

static inline void redis_proxy_up(redis_proxy *self, redis_proxy_pair *pair) {
  static char bytes[1 << 16];
  const ssize_t got = recv(pair->client, bytes, sizeof bytes, 0);
  if (got <= 0) {
    redis_proxy_close(pair);
    return;
  }
  const bool counts = redis_proxy_counts(self, bytes, (size_t)got);
  if (counts && atomic_exchange(&self->hold, false)) {
    assert_true((size_t)got <= sizeof self->held);
    memcpy(self->held, bytes, (size_t)got);
    self->held_bytes = (size_t)got;
    self->held_for = pair->server;
    pair->held = true;
    atomic_store(&self->holds, true);
    return;
  }
  if (!redis_proxy_send(pair->server, bytes, (size_t)got)) redis_proxy_close(pair);
  if (counts && pair->server >= 0 && atomic_load(&self->lose) > 0 && atomic_fetch_sub(&self->lose, 1) == 1) {
    redis_proxy_lose(self, pair);
  }
}

static inline void redis_proxy_down(redis_proxy_pair *pair) {
  static char bytes[1 << 16];
  const ssize_t got = recv(pair->server, bytes, sizeof bytes, 0);
  if (got <= 0 || !redis_proxy_send(pair->client, bytes, (size_t)got)) redis_proxy_close(pair);
}

static inline void redis_proxy_accept(redis_proxy *self) {
  const int client = accept(self->listener, NULL, NULL);
  const int server = client < 0 ? -1 : redis_dial(self->server_port);
  if (server < 0 || self->count == REDIS_PROXY_PAIRS) {
    if (client >= 0) close(client);
    if (server >= 0) close(server);
    return;
  }
  self->pairs[self->count++] = (redis_proxy_pair){.client = client, .server = server};
}

/* A held message goes on, though its client has gone. */
static inline void redis_proxy_release(redis_proxy *self) {
  if (!atomic_exchange(&self->let_go, false)) return;
  (void)redis_proxy_send(self->held_for, self->held, self->held_bytes);
  atomic_store(&self->holds, false);
}

static inline void *redis_proxy_run(void *arg) {
  redis_proxy *self = arg;
  while (!atomic_load(&self->ends)) {
    struct pollfd fds[2 * REDIS_PROXY_PAIRS + 1] = {{.fd = self->listener, .events = POLLIN}};
    const int count = self->count;
    for (int i = 0; i < count; i++) {
      fds[2 * i + 1] = (struct pollfd){.fd = self->pairs[i].held ? -1 : self->pairs[i].client, .events = POLLIN};
      fds[2 * i + 2] = (struct pollfd){.fd = self->pairs[i].held ? -1 : self->pairs[i].server, .events = POLLIN};
    }
    redis_proxy_release(self);
    if (poll(fds, (nfds_t)(2 * count + 1), 2) <= 0) continue;
    for (int i = 0; i < count; i++) {
      if (self->pairs[i].client >= 0 && fds[2 * i + 1].revents) redis_proxy_up(self, &self->pairs[i]);
      if (self->pairs[i].server >= 0 && fds[2 * i + 2].revents) redis_proxy_down(&self->pairs[i]);
    }
    if (fds[0].revents) redis_proxy_accept(self);
  }
  return NULL;
}

/* The members that say what it does are set before, or atomic. */
static inline void redis_proxy_start(redis_proxy *self, const redis_server *server) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  self->server_port = server->port;
  self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(self->listener, (const struct sockaddr *)&at, sizeof at), 0);
  assert_int_equal(listen(self->listener, 16), 0);
  assert_int_equal(getsockname(self->listener, (struct sockaddr *)&at, &size), 0);
  self->port = ntohs(at.sin_port);
  snprintf(self->where, sizeof self->where, "redis://127.0.0.1:%u/test", self->port);
  assert_int_equal(pthread_create(&self->thread, NULL, redis_proxy_run, self), 0);
}

static inline void redis_proxy_end(redis_proxy *self) {
  atomic_store(&self->ends, true);
  pthread_join(self->thread, NULL);
  for (int i = 0; i < self->count; i++) redis_proxy_close(&self->pairs[i]);
  close(self->listener);
}

#endif
