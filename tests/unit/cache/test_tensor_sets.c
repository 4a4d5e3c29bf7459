/* gm_tensor_sets: one make for all who want a set, sets of changed files, bounds, failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gm/config.h"
#include "gm/tensor_sets.h"
#include "support/fail_each.h"
#include "support/temp_folder.h"

/* A maker counts. Its sets are numbers from malloc. */
typedef struct maker {
  atomic_uint makes, releases, wrong;
  gm_status answer;
  bool by_content;
  gm_tensor_sets *sets; /* `make` waits until so many wait for it */
  uint64_t wait_for;
} maker;

static gm_tensor_sets_stats stats_of(gm_tensor_sets *sets) {
  gm_tensor_sets_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_tensor_sets_get_stats(sets, &stats, NULL), GM_OK);
  return stats;
}

static gm_status make_set(void *user, const char *path, void **out_set, uint64_t *out_bytes, gm_error *err) {
  maker *m = user;
  (void)path, (void)err;
  while (m->wait_for && stats_of(m->sets).waits < m->wait_for) usleep(100);
  if (gm_tensor_sets_destroy(m->sets, NULL) != GM_ERR_BUSY) atomic_fetch_add(&m->wrong, 1); /* one is being made */
  const unsigned number = atomic_fetch_add(&m->makes, 1) + 1;
  if (m->answer) return m->answer;
  unsigned *set = malloc(sizeof *set);
  if (!set) return GM_ERR_OUT_OF_HOST_MEMORY;
  *set = number;
  *out_set = set;
  *out_bytes = 10;
  return GM_OK;
}

static void release_set(void *user, void *set, uint64_t bytes) {
  maker *m = user;
  atomic_fetch_add(&m->releases, bytes == 10 ? 1 : 1000);
  free(set);
}

static gm_status create_sets(gm_context *ctx, maker *m, uint64_t most, uint64_t bytes, gm_tensor_sets **out) {
  const gm_tensor_sets_params params = {.struct_size = sizeof params,
                                        .max_sets = most,
                                        .max_bytes = bytes,
                                        .make = make_set,
                                        .release = release_set,
                                        .user = m,
                                        .by_content = m->by_content};
  const gm_status status = gm_tensor_sets_create(ctx, &params, out, NULL);
  if (!status) m->sets = *out;
  return status;
}

typedef struct scene {
  temp_folder folder;
  gm_context *ctx;
  gm_tensor_sets *sets;
  maker maker;
  char a[256], b[256];
} scene;

static void scene_open(scene *s, const gm_services *services, uint64_t most, uint64_t bytes) {
  const gm_context_params params = {.struct_size = sizeof params, .services = services, .ignore_environment = true};
  memset(s, 0, sizeof *s);
  temp_folder_make(&s->folder);
  snprintf(s->a, sizeof s->a, "%s", temp_folder_write(&s->folder, "a.c", "int a;", 6));
  snprintf(s->b, sizeof s->b, "%s", temp_folder_write(&s->folder, "b.c", "int b;", 6));
  assert_int_equal(gm_context_create(&params, &s->ctx, NULL), GM_OK);
  assert_int_equal(create_sets(s->ctx, &s->maker, most, bytes, &s->sets), GM_OK);
}

static void scene_close(scene *s) {
  assert_int_equal(gm_tensor_sets_destroy(s->sets, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(s->ctx, NULL), GM_OK);
  assert_int_equal(s->maker.wrong, 0);
  if (!s->maker.answer) assert_int_equal(s->maker.releases, s->maker.makes);
  temp_folder_remove(&s->folder);
}

/* The number of the set that the file has. */
static unsigned number_of(gm_tensor_sets *sets, const char *path) {
  gm_tensor_set *set = NULL;
  assert_int_equal(gm_tensor_sets_get(sets, path, &set, NULL), GM_OK);
  const unsigned number = *(unsigned *)gm_tensor_set_object(set);
  gm_tensor_set_return(set);
  return number;
}

static void test_a_set_is_made_once(void **state) {
  (void)state;
  scene s;
  counted_services host;
  counted_services_init(&host);
  scene_open(&s, &host.services, 0, 0);
  assert_int_equal(number_of(s.sets, s.a), 1);
  assert_int_equal(number_of(s.sets, s.b), 2);
  assert_int_equal(number_of(s.sets, s.a), 1);
  const gm_tensor_sets_stats stats = stats_of(s.sets);
  assert_int_equal(stats.kept, 2);
  assert_int_equal(stats.kept_bytes, 20);
  assert_int_equal(stats.hits, 1);
  assert_int_equal(stats.makes, 2);
  assert_int_equal(gm_tensor_sets_clear(s.sets, s.a, NULL), GM_OK);
  assert_int_equal(gm_tensor_sets_clear(s.sets, s.a, NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(number_of(s.sets, s.a), 3);
  assert_int_equal(gm_tensor_sets_clear(s.sets, NULL, NULL), GM_OK);
  assert_int_equal(stats_of(s.sets).kept, 0);
  assert_int_equal(gm_context_destroy(s.ctx, NULL), GM_ERR_BUSY);
  scene_close(&s);
  counted_services_check(&host);
}

static void test_a_look_makes_nothing(void **state) {
  (void)state;
  scene s;
  gm_tensor_set *set = NULL;
  scene_open(&s, NULL, 0, 0);
  assert_int_equal(gm_tensor_sets_find(s.sets, s.a, &set, NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(stats_of(s.sets).makes, 0);
  assert_int_equal(number_of(s.sets, s.a), 1);
  assert_int_equal(gm_tensor_sets_find(s.sets, s.a, &set, NULL), GM_OK);
  assert_int_equal(*(unsigned *)gm_tensor_set_object(set), 1);
  assert_int_equal(gm_tensor_sets_destroy(s.sets, NULL), GM_ERR_BUSY); /* it is a use */
  gm_tensor_set_return(set);
  temp_folder_write(&s.folder, "a.c", "int changed;", 12);
  assert_int_equal(gm_tensor_sets_find(s.sets, s.a, &set, NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_tensor_sets_find(s.sets, "/nobody/here", &set, NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_tensor_sets_find(s.sets, "", &set, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tensor_sets_find(s.sets, s.a, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tensor_sets_find(NULL, s.a, &set, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(stats_of(s.sets).makes, 1);
  scene_close(&s);
}

static void scene_by_content(scene *s, const gm_services *services) {
  scene_open(s, services, 0, 0);
  assert_int_equal(gm_tensor_sets_destroy(s->sets, NULL), GM_OK);
  s->maker.by_content = true;
  assert_int_equal(create_sets(s->ctx, &s->maker, 0, 0, &s->sets), GM_OK);
}

/* The file's bytes change, and nothing else that the system tells of it. */
static void rewrite_unseen(scene *s, const char *bytes) {
  struct stat was;
  assert_int_equal(stat(s->a, &was), 0);
  temp_folder_write(&s->folder, "a.c", bytes, strlen(bytes));
  const struct timespec times[2] = {was.st_atim, was.st_mtim};
  assert_int_equal(utimensat(AT_FDCWD, s->a, times, 0), 0);
}

static void test_content_alone_tells(void **state) {
  (void)state;
  scene s;
  counted_services host;
  counted_services_init(&host);
  scene_by_content(&s, &host.services);
  assert_int_equal(number_of(s.sets, s.a), 1);
  assert_int_equal(number_of(s.sets, s.a), 1);
  rewrite_unseen(&s, "int x;");
  assert_int_equal(number_of(s.sets, s.a), 2);
  assert_int_equal(stats_of(s.sets).stale, 1);
  const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
  assert_int_equal(utimensat(AT_FDCWD, s.a, long_ago, 0), 0); /* another time, the same bytes */
  assert_int_equal(number_of(s.sets, s.a), 2);
  temp_folder_write(&s.folder, "a.c", "", 0);
  assert_int_equal(number_of(s.sets, s.a), 3);
  assert_int_equal(number_of(s.sets, s.a), 3);
  scene_close(&s);
  counted_services_check(&host);
}

static void test_content_of_large_files_counts_to_its_end(void **state) {
  (void)state;
  enum { LARGE = 200001 };
  scene s;
  char *text = malloc(LARGE + 1);
  assert_non_null(text);
  memset(text, ' ', LARGE);
  text[LARGE] = 0;
  scene_by_content(&s, NULL);
  rewrite_unseen(&s, text);
  assert_int_equal(number_of(s.sets, s.a), 1);
  text[LARGE - 1] = ';';
  rewrite_unseen(&s, text);
  assert_int_equal(number_of(s.sets, s.a), 2);
  text[0] = ';';
  rewrite_unseen(&s, text);
  assert_int_equal(number_of(s.sets, s.a), 3);
  assert_int_equal(number_of(s.sets, s.a), 3);
  scene_close(&s);
  free(text);
}

static void test_a_changed_file_gets_a_new_set(void **state) {
  (void)state;
  scene s;
  gm_tensor_set *old = NULL, *none = NULL;
  scene_open(&s, NULL, 0, 0);
  assert_int_equal(gm_tensor_sets_get(s.sets, s.a, &old, NULL), GM_OK);
  temp_folder_write(&s.folder, "a.c", "int longer;", 11);
  assert_int_equal(number_of(s.sets, s.a), 2);
  assert_int_equal(*(unsigned *)gm_tensor_set_object(old), 1); /* who uses the old one keeps it */
  assert_int_equal(s.maker.releases, 0);
  assert_int_equal(gm_tensor_sets_destroy(s.sets, NULL), GM_ERR_BUSY);
  gm_tensor_set_return(old);
  assert_int_equal(s.maker.releases, 1);
  temp_folder_write(&s.folder, "c.c", "int longer;", 11); /* another inode */
  assert_int_equal(rename(temp_folder_join(&s.folder, "c.c"), s.a), 0);
  assert_int_equal(number_of(s.sets, s.a), 3);
  assert_int_equal(stats_of(s.sets).stale, 2);
  assert_int_equal(unlink(s.a), 0);
  assert_int_equal(gm_tensor_sets_get(s.sets, s.a, &none, NULL), GM_ERR_NOT_FOUND);
  assert_null(none);
  assert_int_equal(stats_of(s.sets).kept, 0);
  assert_int_equal(gm_tensor_sets_get(s.sets, s.folder.path, &none, NULL), GM_ERR_IO); /* a folder */
  scene_close(&s);
}

static void test_sets_are_bounded(void **state) {
  (void)state;
  scene s;
  gm_tensor_set *a = NULL, *b = NULL;
  scene_open(&s, NULL, 1, 0);
  assert_int_equal(gm_tensor_sets_get(s.sets, s.a, &a, NULL), GM_OK);
  assert_int_equal(gm_tensor_sets_get(s.sets, s.b, &b, NULL), GM_OK); /* no room: for this caller alone */
  assert_int_equal(gm_tensor_sets_destroy(s.sets, NULL), GM_ERR_BUSY);
  assert_int_equal(number_of(s.sets, s.b), 3);
  gm_tensor_set_return(a);
  assert_int_equal(gm_tensor_sets_destroy(s.sets, NULL), GM_ERR_BUSY);
  gm_tensor_set_return(b);
  gm_tensor_set_return(NULL);
  assert_int_equal(number_of(s.sets, s.b), 4);
  assert_int_equal(number_of(s.sets, s.b), 4);
  assert_int_equal(stats_of(s.sets).evictions, 1);
  scene_close(&s);
}

static void test_the_configuration_says_how_many(void **state) {
  (void)state;
  scene s;
  scene_open(&s, NULL, 0, 0);
  for (int i = 0; i < 60; i++) {
    char name[16];
    snprintf(name, sizeof name, "%d.c", i);
    number_of(s.sets, temp_folder_write(&s.folder, name, "x", 1));
  }
  assert_int_equal(stats_of(s.sets).kept, 50);
  assert_int_equal(gm_tensor_sets_destroy(s.sets, NULL), GM_OK);
  assert_int_equal(gm_config_set(s.ctx, "gpu.ast.max_cache_size", "1", NULL), GM_OK);
  assert_int_equal(create_sets(s.ctx, &s.maker, 0, 0, &s.sets), GM_OK);
  assert_int_equal(number_of(s.sets, s.a), 61);
  assert_int_equal(number_of(s.sets, s.b), 62);
  assert_int_equal(stats_of(s.sets).kept, 1);
  assert_int_equal(gm_tensor_sets_destroy(s.sets, NULL), GM_OK);
  assert_int_equal(gm_config_set(s.ctx, "gpu.ast.cache_enabled", "false", NULL), GM_OK);
  assert_int_equal(create_sets(s.ctx, &s.maker, 7, 0, &s.sets), GM_OK);
  assert_int_equal(number_of(s.sets, s.a), 63);
  assert_int_equal(number_of(s.sets, s.a), 64);
  assert_int_equal(gm_tensor_sets_clear(s.sets, s.a, NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_tensor_sets_clear(s.sets, NULL, NULL), GM_OK);
  assert_int_equal(stats_of(s.sets).kept, 0);
  scene_close(&s);
}

/* ---- several threads ---- */

enum { THREADS = 4 };

typedef struct getter {
  scene *s;
  gm_status status;
  unsigned number;
  gm_error err;
} getter;

static void *get_it(void *arg) {
  getter *g = arg;
  gm_tensor_set *set = NULL;
  g->status = gm_tensor_sets_get(g->s->sets, g->s->a, &set, &g->err);
  if (set) g->number = *(unsigned *)gm_tensor_set_object(set);
  gm_tensor_set_return(set);
  return NULL;
}

static void get_together(scene *s, getter *getters) {
  pthread_t threads[THREADS];
  s->maker.wait_for = stats_of(s->sets).waits + THREADS - 1; /* `make` ends when all others wait for it */
  for (int i = 0; i < THREADS; i++) {
    getters[i] = (getter){.s = s};
    assert_int_equal(pthread_create(&threads[i], NULL, get_it, &getters[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  s->maker.wait_for = 0;
}

static void test_one_thread_makes_and_others_wait(void **state) {
  (void)state;
  scene s;
  getter getters[THREADS];
  scene_open(&s, NULL, 0, 0);
  get_together(&s, getters);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(getters[i].status, GM_OK);
    assert_int_equal(getters[i].number, 1);
  }
  assert_int_equal(s.maker.makes, 1);
  scene_close(&s);
}

static void test_a_failure_is_everybodys(void **state) {
  (void)state;
  scene s;
  getter getters[THREADS];
  scene_open(&s, NULL, 0, 0);
  s.maker.answer = GM_ERR_DAMAGED;
  get_together(&s, getters);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(getters[i].status, GM_ERR_DAMAGED);
    assert_int_equal(getters[i].err.status, GM_ERR_DAMAGED);
    assert_non_null(strstr(getters[i].err.message, "gives no reason"));
  }
  assert_int_equal(stats_of(s.sets).failures, 1);
  s.maker.answer = GM_OK;
  assert_int_equal(number_of(s.sets, s.a), 2); /* a failure is not kept */
  s.maker.makes = 1;
  scene_close(&s);
}

static void *get_often(void *arg) {
  getter *g = arg;
  for (int i = 0; i < 300 && !g->status; i++) {
    gm_tensor_set *set = NULL;
    g->status = gm_tensor_sets_get(g->s->sets, i % 3 ? g->s->a : g->s->b, &set, NULL);
    if (set && !*(unsigned *)gm_tensor_set_object(set)) g->status = GM_ERR_DAMAGED;
    if (i % 17 == 0) gm_tensor_sets_clear(g->s->sets, g->s->a, NULL);
    gm_tensor_set_return(set);
  }
  return NULL;
}

static void test_threads_get_and_clear(void **state) {
  (void)state;
  scene s;
  getter getters[THREADS];
  pthread_t threads[THREADS];
  scene_open(&s, NULL, 1, 0); /* too few for two files: some sets are not kept */
  for (int i = 0; i < THREADS; i++) {
    getters[i] = (getter){.s = &s};
    assert_int_equal(pthread_create(&threads[i], NULL, get_often, &getters[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(getters[i].status, GM_OK);
  scene_close(&s);
}

/* ---- arguments, host memory, forks ---- */

static void test_wrong_arguments_are_told(void **state) {
  (void)state;
  scene s;
  scene_open(&s, NULL, 0, 0);
  gm_tensor_sets *sets = NULL;
  gm_tensor_set *set = NULL;
  static char path[5000];
  memset(path, 'x', sizeof path - 1);
  const gm_tensor_sets_params params = {.struct_size = sizeof params};
  assert_int_equal(gm_tensor_sets_create(NULL, &params, &sets, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tensor_sets_create(s.ctx, NULL, &sets, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tensor_sets_create(s.ctx, &params, &sets, NULL), GM_ERR_INVALID_ARGUMENT); /* no `make` */
  assert_int_equal(create_sets(s.ctx, &s.maker, 0, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tensor_sets_get(NULL, s.a, &set, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tensor_sets_get(s.sets, NULL, &set, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tensor_sets_get(s.sets, "", &set, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tensor_sets_get(s.sets, path, &set, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tensor_sets_get(s.sets, s.a, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tensor_sets_clear(s.sets, "", NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tensor_sets_get_stats(s.sets, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tensor_sets_destroy(NULL, NULL), GM_OK);
  assert_null(gm_tensor_set_object(NULL));
  scene_close(&s);
}

static char fail_path[256];
static bool fail_by_content;

static gm_status open_and_get(const gm_services *services) {
  const gm_context_params params = {.struct_size = sizeof params, .services = services, .ignore_environment = true};
  maker m = {.by_content = fail_by_content};
  gm_context *ctx = NULL;
  gm_tensor_sets *sets = NULL;
  gm_tensor_set *set = NULL;
  gm_status status = gm_context_create(&params, &ctx, NULL);
  if (status) return status;
  status = create_sets(ctx, &m, 0, 0, &sets);
  if (!status) status = gm_tensor_sets_get(sets, fail_path, &set, NULL);
  gm_tensor_set_return(set);
  assert_int_equal(gm_tensor_sets_destroy(sets, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  assert_int_equal(m.releases, m.makes);
  return status;
}

static void test_host_memory_that_is_missing_loses_nothing(void **state) {
  (void)state;
  scene s;
  scene_open(&s, NULL, 0, 0);
  memcpy(fail_path, s.a, sizeof fail_path);
  fail_by_content = false;
  fail_each_allocation(open_and_get, 7);
  fail_by_content = true;
  fail_each_allocation(open_and_get, 9); /* and the file is read twice */
  scene_close(&s);
}

static int in_child(const counted_services *host, scene *s, gm_tensor_set *leased, gm_tensor_set *alone) {
  gm_tensor_set *set = NULL;
  if (gm_tensor_sets_get(s->sets, s->a, &set, NULL) != GM_ERR_FORKED) return 1;
  if (gm_tensor_sets_clear(s->sets, NULL, NULL) != GM_ERR_FORKED) return 2;
  free(gm_tensor_set_object(leased)); /* gm releases the parent's sets in no child: who forked does, if it must */
  free(gm_tensor_set_object(alone));
  gm_tensor_set_return(leased);
  if (gm_tensor_sets_destroy(s->sets, NULL) != GM_OK) return 3;
  if (gm_context_destroy(s->ctx, NULL) != GM_OK) return 4;
  if (s->maker.releases) return 5;
  return atomic_load(&host->live_blocks) ? 6 : 0;
}

static void test_a_forked_child_only_closes(void **state) {
  (void)state;
  scene s;
  counted_services host;
  counted_services_init(&host);
  scene_open(&s, &host.services, 1, 0);
  gm_tensor_set *kept = NULL, *alone = NULL;
  int status = -1;
  assert_int_equal(gm_tensor_sets_get(s.sets, s.a, &kept, NULL), GM_OK);
  assert_int_equal(gm_tensor_sets_get(s.sets, s.b, &alone, NULL), GM_OK);
  const pid_t child = fork();
  if (child == 0) _exit(in_child(&host, &s, kept, alone));
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  gm_tensor_set_return(kept);
  gm_tensor_set_return(alone);
  scene_close(&s);
  counted_services_check(&host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_set_is_made_once),
      cmocka_unit_test(test_a_changed_file_gets_a_new_set),
      cmocka_unit_test(test_content_alone_tells),
      cmocka_unit_test(test_content_of_large_files_counts_to_its_end),
      cmocka_unit_test(test_sets_are_bounded),
      cmocka_unit_test(test_the_configuration_says_how_many),
      cmocka_unit_test(test_one_thread_makes_and_others_wait),
      cmocka_unit_test(test_a_failure_is_everybodys),
      cmocka_unit_test(test_threads_get_and_clear),
      cmocka_unit_test(test_a_look_makes_nothing),
      cmocka_unit_test(test_wrong_arguments_are_told),
      cmocka_unit_test(test_host_memory_that_is_missing_loses_nothing),
      cmocka_unit_test(test_a_forked_child_only_closes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
