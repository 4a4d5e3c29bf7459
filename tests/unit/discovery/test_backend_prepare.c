/* Backend tables: what is refused, what is filled, and that the list of entries is the struct. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/discovery/backend_entries.h"
#include "core/discovery/backend_prepare.h"
#include "gm/device.h"
#include "support/fake_backend.h"

static void assert_refused(const gm_backend_ops *ops, gm_status status, const char *word) {
  gm_backend_ops out;
  gm_error err = {.status = GM_OK};
  assert_int_equal(gm__backend_prepare(ops, &out, &err), status);
  assert_non_null(strstr(err.message, word));
}

/* Every slot of the struct after the head is in the list once: offsets rise by one pointer from `probe` to `reserved`.
 */
static void test_the_list_is_the_struct(void **state) {
  (void)state;
  enum { SLOTS = (offsetof(gm_backend_ops, reserved) - offsetof(gm_backend_ops, probe)) / sizeof(void (*)(void)) };
  static const size_t offsets[] = {
#define X(group, name, params) offsetof(gm_backend_ops, name),
      GM__BACKEND_ENTRIES(X) GM__BACKEND_VOID_ENTRIES(X)
#undef X
  };
  assert_int_equal(sizeof offsets / sizeof *offsets, SLOTS);
  for (size_t slot = 0; slot < SLOTS; slot++) {
    size_t offset = offsetof(gm_backend_ops, probe) + slot * sizeof(void (*)(void)), found = 0;
    for (size_t i = 0; i < SLOTS; i++) found += offsets[i] == offset;
    assert_int_equal(found, 1);
  }
}

static void test_heads_are_checked(void **state) {
  (void)state;
  gm_backend_ops ops = fake_ops;
  ops.abi = 7;
  assert_refused(&ops, GM_ERR_ABI_MISMATCH, "ABI 7");
  ops = fake_ops;
  ops.struct_size--; /* half an entry */
  assert_refused(&ops, GM_ERR_ABI_MISMATCH, "rebuild");
  static const char *const names[] = {"", "Upper", "with space", "sixteen_letters_", "a:b"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    ops = fake_ops;
    ops.name = names[i];
    assert_refused(&ops, GM_ERR_INVALID_ARGUMENT, "name");
  }
  ops.name = NULL;
  assert_refused(&ops, GM_ERR_INVALID_ARGUMENT, "name");
  gm_backend_ops out;
  assert_int_equal(gm__backend_prepare(NULL, &out, NULL), GM_ERR_INVALID_ARGUMENT);
}

/* The struct_size of a table that is too short to be called one. */
static void set_size(void *table, size_t size) {
  memcpy((unsigned char *)table + offsetof(gm_backend_ops, struct_size), &(uint32_t){(uint32_t)size}, sizeof(uint32_t));
}

/* A backend of an older header: its table ends early, and what lies behind it is not gm's to read. */
static void test_a_shorter_table_of_an_older_backend(void **state) {
  (void)state;
  const size_t size = offsetof(gm_backend_ops, rect_to_device); /* the last required entry is before it */
  gm_backend_ops *older = malloc(size), out;
  assert_non_null(older);
  memcpy(older, &fake_ops, size);
  set_size(older, size);
  assert_int_equal(gm__backend_prepare(older, &out, NULL), GM_OK);
  assert_int_equal(out.struct_size, sizeof out);
  assert_ptr_equal(out.fill, fake_ops.fill);
  assert_int_equal(out.host_register(NULL, NULL, 0, NULL), GM_ERR_NOT_SUPPORTED);
  set_size(older, offsetof(gm_backend_ops, fill)); /* so old that it lacks what gm needs */
  assert_refused(older, GM_ERR_INVALID_ARGUMENT, "fill");
  set_size(older, offsetof(gm_backend_ops, name));
  assert_refused(older, GM_ERR_ABI_MISMATCH, "rebuild");
  free(older);
}

static void test_a_longer_table_of_a_newer_backend(void **state) {
  (void)state;
  struct {
    gm_backend_ops known;
    void (*later[2])(void);
  } newer = {.known = fake_ops, .later = {(void (*)(void))fake_fini, NULL}};
  gm_backend_ops out;
  newer.known.struct_size = sizeof newer;
  assert_int_equal(gm__backend_prepare(&newer.known, &out, NULL), GM_OK);
  assert_int_equal(out.struct_size, sizeof out);
  newer.known.struct_size = 1u << 20;
  assert_refused(&newer.known, GM_ERR_ABI_MISMATCH, "rebuild");
}

static void test_holes_are_named(void **state) {
  (void)state;
  gm_backend_ops ops = fake_ops;
  ops.memory_alloc = NULL;
  assert_refused(&ops, GM_ERR_INVALID_ARGUMENT, "memory_alloc");
  ops = fake_ops;
  ops.fini = NULL;
  assert_refused(&ops, GM_ERR_INVALID_ARGUMENT, "fini");
  ops = fake_ops;
  ops.point_wait = NULL; /* half a group */
  assert_refused(&ops, GM_ERR_INVALID_ARGUMENT, "point_wait");
  ops = fake_ops;
  ops.stream_close = NULL;
  assert_refused(&ops, GM_ERR_INVALID_ARGUMENT, "stream_close");
  for (size_t i = 0; i < sizeof ops.reserved / sizeof *ops.reserved; i++) {
    char entry[32];
    snprintf(entry, sizeof entry, "reserved entry %zu", i);
    ops = fake_ops;
    ops.reserved[i] = (void (*)(void))fake_fini;
    assert_refused(&ops, GM_ERR_INVALID_ARGUMENT, entry);
  }
}

static void test_what_is_missing_answers_not_supported(void **state) {
  (void)state;
  gm_backend_ops out;
  assert_int_equal(gm__backend_prepare(&fake_ops, &out, NULL), GM_OK);
  gm_error err = {.status = GM_OK};
  void *pointer = &err;
  assert_int_equal(out.map(NULL, NULL, NULL, 0, 0, 0, &pointer, &err), GM_ERR_NOT_SUPPORTED);
  assert_string_equal(err.op, "map");
  assert_ptr_equal(pointer, &err);
  assert_int_equal(out.vmm_reserve(NULL, 1, 1, NULL, &err), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.copy_many(NULL, NULL, NULL, 0, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.host_register(NULL, NULL, 0, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.host_alloc(NULL, 1, &pointer, NULL), GM_ERR_NOT_SUPPORTED);
  assert_ptr_equal(pointer, &err);
  assert_int_equal(out.device_adopt(NULL, NULL, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  uint64_t has = gm__backend_group_capabilities(&out);
  assert_true(has & GM_CAP_STREAMS);
  assert_true(has & GM_CAP_POINTS);
  assert_false(has & (GM_CAP_VMM | GM_CAP_MAPPING | GM_CAP_ADOPT | GM_CAP_VIEW | GM_CAP_REGISTRATION));
}

static void test_all_stubs_are_callable(void **state) {
  (void)state;
  gm_backend_ops bare = fake_ops; /* the optional and all-or-none groups left out */
  bare.stream_create = NULL, bare.stream_close = NULL, bare.stream_flush = NULL, bare.stream_sync = NULL;
  bare.point_record = NULL, bare.point_done = NULL, bare.point_wait = NULL, bare.point_wait_on = NULL;
  bare.stream_barrier = NULL, bare.point_release = NULL;
  gm_backend_ops out;
  assert_int_equal(gm__backend_prepare(&bare, &out, NULL), GM_OK);
  assert_int_equal(out.stream_create(NULL, NULL, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.stream_flush(NULL, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.stream_sync(NULL, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.stream_barrier(NULL, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.point_record(NULL, NULL, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.point_done(NULL, NULL, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.point_wait(NULL, NULL, 0, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.point_wait_on(NULL, NULL, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  out.stream_close(NULL, NULL, GM_CLOSE_NORMAL);
  out.point_release(NULL, NULL, GM_CLOSE_NORMAL);
  assert_int_equal(out.stream_adopt(NULL, NULL, NULL, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.point_import(NULL, NULL, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.memory_wrap(NULL, NULL, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.point_native(NULL, NULL, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.view_create(NULL, NULL, 0, 0, 0, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.view_destroy(NULL, 0, GM_CLOSE_NORMAL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.unmap(NULL, NULL, NULL, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.flush(NULL, NULL, 0, 0, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.invalidate(NULL, NULL, 0, 0, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.commit(NULL, NULL, NULL, 0, 0, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.rect_to_device(NULL, NULL, NULL, NULL, NULL, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.rect_to_host(NULL, NULL, NULL, NULL, NULL, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.rect_copy(NULL, NULL, NULL, NULL, NULL, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.copy_record(NULL, 0, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.host_unregister(NULL, NULL, GM_CLOSE_NORMAL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.vmm_granularity(NULL, NULL, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.vmm_unreserve(NULL, 0, 0, GM_CLOSE_NORMAL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.vmm_create(NULL, NULL, 0, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.vmm_destroy(NULL, 0, 0, GM_CLOSE_NORMAL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.vmm_map(NULL, 0, 0, 0, 0, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.vmm_unmap(NULL, 0, 0, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(out.vmm_access(NULL, 0, 0, NULL), GM_ERR_NOT_SUPPORTED);
}

static void test_registration(void **state) {
  (void)state;
  fake_backend_reset();
  gm_context *ctx = NULL;
  gm_error err = {.status = GM_OK};
  assert_int_equal(gm_context_create(NULL, &ctx, NULL), GM_OK);
  assert_int_equal(gm_backend_register(ctx, &fake_ops, &err), GM_OK);
  assert_int_equal(gm_backend_register(ctx, &fake_ops, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "already"));
  gm_backend_ops other = fake_ops;
  other.name = "cpu";
  assert_int_equal(gm_backend_register(ctx, &other, &err), GM_ERR_INVALID_ARGUMENT);
  char names[16][16];
  gm_status status = GM_OK;
  for (int i = 0; i < 16 && status == GM_OK; i++) {
    snprintf(names[i], sizeof names[i], "more%d", i);
    other.name = names[i];
    status = gm_backend_register(ctx, &other, &err);
  }
  assert_int_equal(status, GM_ERR_OVER_LIMIT);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_list_is_the_struct),
      cmocka_unit_test(test_heads_are_checked),
      cmocka_unit_test(test_a_shorter_table_of_an_older_backend),
      cmocka_unit_test(test_a_longer_table_of_a_newer_backend),
      cmocka_unit_test(test_holes_are_named),
      cmocka_unit_test(test_what_is_missing_answers_not_supported),
      cmocka_unit_test(test_all_stubs_are_callable),
      cmocka_unit_test(test_registration),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
