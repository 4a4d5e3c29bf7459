/* Real redis-server processes on loopback, which end with the test however it ends, and a plain connection to ask
 * them. Needs cmocka.h included before. A step that cannot be done ends the test.
 *
 *   redis_server server;
 *   redis_server_start(&server, "--requirepass", "secret", NULL);
 *   ... server.where ...
 *   redis_server_end(&server); */
#ifndef GM_TESTS_SUPPORT_REDIS_SERVER_H
#define GM_TESTS_SUPPORT_REDIS_SERVER_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/temp_folder.h"

enum { REDIS_ARGS = 48, REDIS_PATIENCE_MS = 20000 };

typedef struct redis_server {
  temp_folder folder;
  uint16_t port;
  char where[64];   /* redis://127.0.0.1:PORT/test */
  char socket[260]; /* its Unix socket, as unix:PATH */
  pid_t pid;
  char option[REDIS_ARGS][300]; /* after the program's own */
  int options;
} redis_server;

static inline void redis_nap(void) { nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); }

/* ---- a connection ---- */

static inline int redis_dial(uint16_t port) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return fd;
  close(fd);
  return -1;
}

/* Says one line, and returns the beginning of the answer; "" where the server is not there. */
static inline const char *redis_say(uint16_t port, const char *line) {
  static char answer[1 << 16];
  const int fd = redis_dial(port);
  size_t got = 0;
  *answer = '\0';
  if (fd < 0) return answer;
  if (send(fd, line, strlen(line), MSG_NOSIGNAL) < 0 || send(fd, "\r\n", 2, MSG_NOSIGNAL) < 0) return answer;
  struct pollfd wait = {.fd = fd, .events = POLLIN};
  for (int patience = 5000; got < sizeof answer - 1 && poll(&wait, 1, patience) > 0; patience = 2) {
    const ssize_t piece = recv(fd, answer + got, sizeof answer - 1 - got, 0);
    if (piece <= 0) break;
    got += (size_t)piece;
    answer[got] = '\0';
  }
  close(fd);
  return answer;
}

/* Says a line until the answer begins with `want`. */
static inline void redis_await(uint16_t port, const char *line, const char *want) {
  for (int ms = 0; strncmp(redis_say(port, line), want, strlen(want)) != 0; ms += 2) {
    if (ms > REDIS_PATIENCE_MS) fail_msg("port %u: %s: %s, not %s", port, line, redis_say(port, line), want);
    redis_nap();
  }
}

/* ---- processes ---- */

/* A program that is killed when the test ends. */
static inline pid_t redis_spawn(char *const args[], const char *log) {
  const pid_t parent = getpid(), pid = fork();
  assert_true(pid >= 0);
  if (pid) return pid;
  const int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (fd < 0 || getppid() != parent) _exit(126);
  dup2(fd, 1);
  dup2(fd, 2);
  execvp(args[0], args);
  _exit(127);
}

static inline bool redis_port_is_free(uint16_t port) {
  const struct sockaddr_in at = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool is_free = bind(fd, (const struct sockaddr *)&at, sizeof at) == 0;
  close(fd);
  return is_free;
}

/* Below the ports that the system gives by itself; 10000 above it the servers of a cluster talk. */
static inline uint16_t redis_port(void) {
  static unsigned next;
  if (!next) next = (unsigned)getpid() * 37;
  for (;;) {
    const uint16_t port = (uint16_t)(10000 + next++ % 12000);
    if (redis_port_is_free(port) && redis_port_is_free((uint16_t)(port + 10000))) return port;
  }
}

static inline bool redis_server_is_there(redis_server *server) {
  const char *answer = redis_say(server->port, "PING");
  return strncmp(answer, "+PONG", 5) == 0 || strncmp(answer, "-NOAUTH", 7) == 0;
}

/* Starts the process again, with the port, the folder and the options that it had. False: the port was taken. */
static inline bool redis_server_run(redis_server *server) {
  char port[8], folder[300];
  char *args[REDIS_ARGS + 24] = {"redis-server",
                                 "--port",
                                 port,
                                 "--bind",
                                 "127.0.0.1",
                                 "--dir",
                                 folder,
                                 "--unixsocket",
                                 server->socket + strlen("unix:"),
                                 "--daemonize",
                                 "no",
                                 "--databases",
                                 "1"};
  int count = 0;
  while (args[count]) count++;
  snprintf(port, sizeof port, "%u", server->port);
  snprintf(folder, sizeof folder, "%s", server->folder.path);
  for (int i = 0; i < server->options; i++) args[count++] = server->option[i];
  server->pid = redis_spawn(args, temp_folder_join(&server->folder, "log"));
  for (int ms = 0; ms < REDIS_PATIENCE_MS; ms += 2) {
    int status;
    if (waitpid(server->pid, &status, WNOHANG) == server->pid) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == 127) fail_msg("there is no redis-server: scripts/install test");
      return false;
    }
    if (redis_server_is_there(server)) return true;
    redis_nap();
  }
  fail_msg("redis-server on port %u does not answer", server->port);
  return false;
}

static inline void redis_server_end(redis_server *server) {
  kill(server->pid, SIGKILL);
  waitpid(server->pid, NULL, 0);
  temp_folder_remove(&server->folder);
}

static inline void redis_server_kill(redis_server *server) {
  kill(server->pid, SIGKILL);
  assert_int_equal(waitpid(server->pid, NULL, 0), server->pid);
}

/* Options end with NULL. Without one, nothing is kept over the end of the process. */
static inline void redis_server_start(redis_server *server, ...) {
  va_list more;
  memset(server, 0, sizeof *server);
  temp_folder_make(&server->folder);
  snprintf(server->socket, sizeof server->socket, "unix:%s/sock", server->folder.path);
  va_start(more, server);
  for (const char *option; (option = va_arg(more, const char *)) != NULL;) {
    assert_true(server->options < REDIS_ARGS);
    snprintf(server->option[server->options++], sizeof server->option[0], "%s", option);
  }
  va_end(more);
  int tries = 0;
  do {
    assert_true(tries++ < 20);
    server->port = redis_port();
  } while (!redis_server_run(server));
  snprintf(server->where, sizeof server->where, "redis://127.0.0.1:%u/test", server->port);
}

#endif
