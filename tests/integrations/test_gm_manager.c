/* The default manager: one gm for a process, begun by whoever comes first. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gm_manager.h"

static gm_error failure, *err = &failure;

static gm_status begin_with(const char *backend) {
  const gm_manager_params params = {.struct_size = sizeof params, .backend = backend};
  return gm_manager_begin(&params, err);
}

static void test_a_device_has_one_pool(void **state) {
  (void)state;
  assert_int_equal(begin_with("cpu"), GM_OK);
  gm_pool *pool = gm_manager_pool(0, err);
  assert_non_null(pool);
  assert_ptr_equal(gm_manager_pool(0, err), pool);
  assert_string_equal(gm_device_get_info(gm_pool_device(pool))->backend, "cpu");
  unsigned char *pointer = gm_manager_alloc(0, 1000, NULL, err);
  assert_non_null(pointer);
  memset(pointer, 7, 1000);
  assert_int_equal(gm_manager_free(0, pointer, 1000, NULL), GM_OK);
  assert_int_equal(gm_manager_free(0, NULL, 0, NULL), GM_OK);
  assert_int_equal(gm_manager_end(err), GM_OK);
}

static void test_the_first_use_begins_it(void **state) {
  (void)state;
  assert_non_null(gm_manager_pool(0, err));
  assert_int_equal(begin_with("cpu"), GM_ERR_BUSY);
  assert_int_equal(gm_manager_end(err), GM_OK);
  assert_int_equal(gm_manager_end(err), GM_OK);
}

static void test_bad_input_is_refused_with_the_reason(void **state) {
  (void)state;
  gm_manager_params params = {.struct_size = 3};
  assert_int_equal(gm_manager_begin(&params, err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(begin_with("a name that is far too long"), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(begin_with(""), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(begin_with("none"), GM_OK); /* its devices are refused */
  assert_null(gm_manager_pool(0, err));
  assert_int_equal(failure.status, GM_ERR_NOT_FOUND);
  assert_int_equal(gm_manager_end(err), GM_OK);
  assert_int_equal(begin_with("cpu"), GM_OK);
  assert_null(gm_manager_pool(GM_MANAGER_DEVICES, err));
  assert_int_equal(failure.status, GM_ERR_INVALID_ARGUMENT);
  assert_null(gm_manager_pool(GM_MANAGER_DEVICES - 1, err));
  assert_int_equal(failure.status, GM_ERR_NOT_FOUND);
  assert_int_equal(gm_manager_free(5, &params, 0, NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_manager_end(err), GM_OK);
}

static void test_a_refused_request_says_why(void **state) {
  (void)state;
  assert_int_equal(begin_with("cpu"), GM_OK);
  assert_null(gm_manager_alloc(0, 0, NULL, err));
  assert_int_equal(failure.status, GM_ERR_INVALID_ARGUMENT);
  assert_true(failure.message[0] != '\0');
  assert_null(gm_manager_alloc(0, UINT64_MAX / 2, NULL, err));
  assert_int_not_equal(failure.status, GM_OK);
  assert_true(failure.message[0] != '\0');
  assert_null(gm_manager_alloc(0, UINT64_MAX / 2, NULL, NULL));
  assert_int_equal(gm_manager_end(err), GM_OK);
}

static void test_an_end_with_blocks_out_can_be_repeated(void **state) {
  (void)state;
  assert_int_equal(begin_with("cpu"), GM_OK);
  void *pointer = gm_manager_alloc(0, 64, NULL, err);
  assert_int_equal(gm_manager_end(err), GM_ERR_BUSY);
  assert_int_equal(gm_manager_free(0, pointer, 64, NULL), GM_OK);
  assert_int_equal(gm_manager_end(err), GM_OK);
}

static void *take_and_give(void *user) {
  gm_pool **out = user;
  *out = gm_manager_pool(0, NULL);
  for (int i = 0; i < 1000; i++) {
    void *pointer = gm_manager_alloc(0, 256, NULL, NULL);
    if (!pointer || gm_manager_free(0, pointer, 256, NULL) != GM_OK) *out = NULL;
  }
  return NULL;
}

static void test_threads_meet_at_the_first_use(void **state) {
  (void)state;
  pthread_t threads[8];
  gm_pool *pools[8];
  for (int i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &pools[i]), 0);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  assert_non_null(pools[0]);
  for (int i = 1; i < 8; i++) assert_ptr_equal(pools[i], pools[0]);
  assert_int_equal(gm_manager_end(err), GM_OK);
}

static void test_a_forked_child_begins_its_own(void **state) {
  (void)state;
  assert_int_equal(begin_with("cpu"), GM_OK);
  assert_non_null(gm_manager_pool(0, err));
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = !gm_manager_alloc(0, 64, NULL, err);
    const bool ended = gm_manager_end(err) == GM_OK;
    void *pointer = begin_with("cpu") == GM_OK ? gm_manager_alloc(0, 64, NULL, err) : NULL;
    const bool freed = pointer && gm_manager_free(0, pointer, 64, NULL) == GM_OK;
    _exit(refused && ended && freed && gm_manager_end(err) == GM_OK ? 0 : 1);
  }
  int code = -1;
  assert_int_equal(waitpid(child, &code, 0), child);
  assert_int_equal(code, 0);
  assert_int_equal(gm_manager_end(err), GM_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_device_has_one_pool),
      cmocka_unit_test(test_the_first_use_begins_it),
      cmocka_unit_test(test_bad_input_is_refused_with_the_reason),
      cmocka_unit_test(test_a_refused_request_says_why),
      cmocka_unit_test(test_an_end_with_blocks_out_can_be_repeated),
      cmocka_unit_test(test_threads_meet_at_the_first_use),
      cmocka_unit_test(test_a_forked_child_begins_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
