/* Contexts: life, children, tags, parameters, forked children, host memory that runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/context/context.h"
#include "core/room/card.h"
#include "gm/device.h"
#include "support/counted_services.h"

static gm_context_params params_with(counted_services *host) {
  counted_services_init(host);
  return (gm_context_params){
      .struct_size = sizeof(gm_context_params), .services = &host->services, .ignore_environment = true};
}

static void test_two_contexts_live_side_by_side(void **state) {
  (void)state;
  gm_context *a = NULL, *b = NULL;
  assert_int_equal(gm_context_create(NULL, &a, NULL), GM_OK);
  assert_int_equal(gm_context_create(NULL, &b, NULL), GM_OK);
  assert_ptr_not_equal(a, b);
  assert_int_equal(gm_tag(a, "kv"), 1);
  assert_string_equal(gm_tag_name(b, 1), "");
  assert_int_equal(gm_context_destroy(a, NULL), GM_OK);
  assert_int_equal(gm_tag(b, "weights"), 1);
  assert_int_equal(gm_context_destroy(b, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(NULL, NULL), GM_OK);
}

static void test_arguments_are_named(void **state) {
  (void)state;
  gm_error err = {.status = GM_OK};
  gm_context *ctx = NULL;
  assert_int_equal(gm_context_create(NULL, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "`out`"));
  gm_context_params params = {.struct_size = 3};
  assert_int_equal(gm_context_create(&params, &ctx, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "struct_size"));
  assert_null(ctx);
  gm_services half = {.alloc = counted_alloc};
  params = (gm_context_params){.struct_size = sizeof params, .services = &half};
  assert_int_equal(gm_context_create(&params, &ctx, &err), GM_ERR_INVALID_ARGUMENT);
  params = (gm_context_params){.struct_size = sizeof params, .preset = "fastest"};
  assert_int_equal(gm_context_create(&params, &ctx, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "fastest"));
  assert_int_equal(gm_tag(NULL, "x"), 0);
}

static void test_tags(void **state) {
  (void)state;
  gm_context *ctx = NULL;
  assert_int_equal(gm_context_create(NULL, &ctx, NULL), GM_OK);
  assert_int_equal(gm_tag(ctx, NULL), 0);
  assert_int_equal(gm_tag(ctx, ""), 0);
  assert_int_equal(gm_tag(ctx, "0123456789012345678901234567890X"), 0); /* 32 bytes */
  uint32_t kv = gm_tag(ctx, "kv"), weights = gm_tag(ctx, "weights");
  assert_int_not_equal(kv, weights);
  assert_int_equal(gm_tag(ctx, "kv"), kv);
  const char *name = gm_tag_name(ctx, kv);
  for (int i = 0; i < 5000; i++) {
    char text[16];
    snprintf(text, sizeof text, "tag %d", i);
    uint32_t tag = gm_tag(ctx, text);
    assert_true(i < 4093 ? tag == weights + 1 + (uint32_t)i : tag == 0);
    assert_int_equal(gm_tag(ctx, text), tag);
  }
  assert_string_equal(name, "kv"); /* borrowed names do not move */
  assert_string_equal(gm_tag_name(ctx, 999999), "");
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

/* Each way to get no tag is told apart. */
static void test_why_there_is_no_tag(void **state) {
  (void)state;
  counted_services host;
  gm_context *ctx = NULL;
  uint32_t tag = 77, again = 0;
  gm_error err = {.status = GM_OK};
  counted_services_init(&host);
  const gm_context_params params = {.struct_size = sizeof params, .services = &host.services};
  assert_int_equal(gm_context_create(&params, &ctx, NULL), GM_OK);
  assert_int_equal(gm_tag_find(NULL, "kv", &tag, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tag_find(ctx, NULL, &tag, &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "`name` is NULL");
  assert_int_equal(gm_tag_find(ctx, "", &tag, &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "`name` is empty");
  assert_int_equal(gm_tag_find(ctx, "0123456789012345678901234567890X", &tag, &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "`name` has 32 bytes, and a tag has at most 31");
  assert_int_equal(gm_tag_find(ctx, "kv", NULL, &err), GM_ERR_INVALID_ARGUMENT);
  for (size_t at = 2; at > 0; at--) { /* of the table of places, twice */
    host.fail_at = atomic_load(&host.calls) + at;
    host.fail_count = 1;
    assert_int_equal(gm_tag_find(ctx, "kv", &tag, &err), GM_ERR_OUT_OF_HOST_MEMORY);
    assert_string_equal(err.op, "gm_tag_find");
  }
  host.fail_at = 0;
  assert_int_equal(tag, 77);
  assert_int_equal(gm_tag_find(ctx, "kv", &tag, &err), GM_OK);
  assert_int_equal(tag, 1);
  for (int i = 1; i < 4095; i++) {
    char text[16];
    snprintf(text, sizeof text, "tag %d", i);
    assert_int_equal(gm_tag_find(ctx, text, &tag, &err), GM_OK);
  }
  assert_int_equal(gm_tag_find(ctx, "one more", &again, &err), GM_ERR_OVER_LIMIT);
  assert_non_null(strstr(err.message, "4095"));
  assert_int_equal(gm_tag_find(ctx, "tag 4094", &again, &err), GM_OK); /* a known name needs no room */
  assert_int_equal(again, tag);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  counted_services_check(&host);
}

static int destroyed[3], destroyed_count;
static void note_destroyed(void *object, bool forked) {
  assert_false(forked);
  destroyed[destroyed_count++] = *(int *)object;
}

static void test_destructors_run_last_first(void **state) {
  (void)state;
  int one = 1, two = 2, three = 3;
  gm_context *ctx = NULL;
  destroyed_count = 0;
  assert_int_equal(gm_context_create(NULL, &ctx, NULL), GM_OK);
  gm__context_on_destroy(ctx, note_destroyed, &one);
  gm__context_on_destroy(ctx, note_destroyed, &two);
  gm__context_on_destroy(ctx, note_destroyed, &three);
  gm_error err = {.status = GM_OK};
  atomic_fetch_add(&ctx->children, 2);
  assert_int_equal(gm_context_destroy(ctx, &err), GM_ERR_BUSY);
  assert_int_equal(destroyed_count, 0);
  atomic_fetch_sub(&ctx->children, 2);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  assert_int_equal(destroyed_count, 3);
  assert_int_equal(destroyed[0], 3);
  assert_int_equal(destroyed[2], 1);
}

/* Create, discover, name a tag, destroy, with the n-th host allocation failing, for every n. */
static void test_every_host_allocation_fails_once(void **state) {
  (void)state;
  for (size_t n = 1;; n++) {
    counted_services host;
    gm_context_params params = params_with(&host);
    params.preset = "constrained";
    params.backends = "cpu,null";
    params.libraries = "opencl=libOpenCL.so.1";
    host.fail_at = n;
    host.fail_count = 1;
    gm_context *ctx = NULL;
    gm_error err = {.status = GM_OK};
    gm_status status = gm_context_create(&params, &ctx, &err);
    size_t count = 0;
    if (status == GM_OK) {
      gm_tag(ctx, "kv");
      status = gm_discover_devices(ctx, NULL, 0, &count, &err);
      assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
    } else {
      assert_null(ctx);
    }
    assert_true(status == GM_OK || status == GM_ERR_OUT_OF_HOST_MEMORY);
    assert_true(status == GM_OK || err.status == status);
    size_t calls = atomic_load(&host.calls);
    counted_services_check(&host);
    if (calls < n) break; /* it was never reached */
  }
}

static void child_exit(gm_context *ctx) {
  gm_error err = {.status = GM_OK};
  size_t count = 0;
  int bad = gm_discover_devices(ctx, NULL, 0, &count, &err) != GM_ERR_FORKED;
  bad |= err.status != GM_ERR_FORKED;
  bad |= gm_tag(ctx, "kv") != 0;
  bad |= gm_context_destroy(ctx, NULL) != GM_OK;
  gm_context *own = NULL;
  gm_context_params params = {.struct_size = sizeof params, .backends = "cpu,null"};
  bad |= gm_context_create(&params, &own, NULL) != GM_OK;
  bad |= gm_discover_devices(own, NULL, 0, &count, NULL) != GM_OK || count == 0;
  bad |= gm_context_destroy(own, NULL) != GM_OK;
  _exit(bad);
}

static void test_a_forked_child_is_told_and_can_start_anew(void **state) {
  (void)state;
  gm_context *ctx = NULL;
  assert_int_equal(gm_context_create(NULL, &ctx, NULL), GM_OK);
  size_t count = 0;
  gm_context_params only = {.struct_size = sizeof only, .backends = "cpu,null"};
  gm_context *small = NULL;
  assert_int_equal(gm_context_create(&only, &small, NULL), GM_OK);
  assert_int_equal(gm_discover_devices(small, NULL, 0, &count, NULL), GM_OK);
  gm__card *card = gm__card_of(42);
  gm__card_add(card, 100, false);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    if (gm__card_used(gm__card_of(42)) != 0) _exit(9); /* the parent's bytes are not the child's */
    child_exit(small);
  }
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_int_equal(gm__card_used(card), 100);
  gm__card_sub(card, 100, false);
  assert_int_equal(gm_discover_devices(small, NULL, 0, &count, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(small, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_two_contexts_live_side_by_side),
      cmocka_unit_test(test_arguments_are_named),
      cmocka_unit_test(test_tags),
      cmocka_unit_test(test_why_there_is_no_tag),
      cmocka_unit_test(test_destructors_run_last_first),
      cmocka_unit_test(test_every_host_allocation_fails_once),
      cmocka_unit_test(test_a_forked_child_is_told_and_can_start_anew),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
