/* Answers of a backend that are nonsense: refused with the backend's name, or mended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/device/device.h"
#include "core/discovery/answer.h"
#include "support/fake_backend.h"

static gm_context *fake_context(void) {
  gm_context_params params = {.struct_size = sizeof params, .backends = "fake", .ignore_environment = true};
  gm_context *ctx = NULL;
  assert_int_equal(gm_context_create(&params, &ctx, NULL), GM_OK);
  assert_int_equal(gm_backend_register(ctx, &fake_ops, NULL), GM_OK);
  return ctx;
}

static gm_device *fake_device(gm_context *ctx) {
  gm_device *device = NULL;
  gm_error err = {.status = GM_OK};
  if (gm_device_open_index(ctx, "fake", 0, &device, &err) != GM_OK) fail_msg("%s", err.message);
  return device;
}

/* Pools round to it: what is no power of two, or absurd, they would round to for ever. */
static void test_hostile_atoms_do_not_open(void **state) {
  (void)state;
  static const uint64_t atoms[] = {3, 4097, (1u << 30) + 1, UINT64_C(1) << 31, UINT64_C(1) << 63, UINT64_MAX};
  gm_device *device = NULL;
  gm_error err = {.status = GM_OK};
  for (size_t i = 0; i < sizeof atoms / sizeof *atoms; i++) {
    fake_backend_reset();
    fake.type_count = 2;
    fake.types[1] = (gm_memory_type){.flags = GM_MEMORY_HOST_VISIBLE, .atom_bytes = atoms[i]};
    gm_context *ctx = fake_context();
    assert_int_equal(gm_device_open_index(ctx, "fake", 0, &device, &err), GM_ERR_DRIVER);
    assert_non_null(strstr(err.message, "gives memory type 1 an atom of"));
    assert_int_equal(fake.opens, fake.closes);
    assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  }
}

/* Flags that contradict each other. */
static void test_hostile_flags_do_not_open(void **state) {
  (void)state;
  static const uint32_t flags[] = {GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_CACHED | GM_MEMORY_WRITE_COMBINED,
                                   GM_MEMORY_DEVICE_LOCAL | GM_MEMORY_WRITE_COMBINED,
                                   GM_MEMORY_DEVICE_LOCAL | GM_MEMORY_PERSISTENT_MAP,
                                   GM_MEMORY_HOST_VISIBLE | GM_MEMORY_SYSTEM | GM_MEMORY_MANAGED};
  gm_device *device = NULL;
  gm_error err = {.status = GM_OK};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    fake_backend_reset();
    fake.types[0].flags = flags[i];
    gm_context *ctx = fake_context();
    assert_int_equal(gm_device_open_index(ctx, "fake", 0, &device, &err), GM_ERR_DRIVER);
    assert_non_null(strstr(err.message, "gives memory type 0 flags 0x"));
    assert_int_equal(fake.opens, fake.closes);
    assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  }
}

/* A backend of an older gm knows fewer words, one of a newer gm more. */
static void test_flags_of_other_versions_are_mended(void **state) {
  (void)state;
  fake_backend_reset();
  fake.types[0].flags = UINT32_C(1) << 30 | GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_POINTER | GM_MEMORY_PINNED;
  gm_context *ctx = fake_context();
  gm_device *device = fake_device(ctx);
  gm_memory_type type = {.struct_size = sizeof type};
  assert_int_equal(gm_device_memory_type(device, 0, &type, NULL), GM_OK);
  assert_int_equal(type.flags, GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_POINTER | GM_MEMORY_PINNED | GM_MEMORY_SYSTEM |
                                   GM_MEMORY_PERSISTENT_MAP);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

/* Figures that nobody reckons with are mended. */
static void test_odd_words_of_a_device_are_mended(void **state) {
  (void)state;
  fake_backend_reset();
  fake.info.type = (gm_device_type)77;
  fake.info.api = (gm_api)-1;
  fake.info.numa_node = INT32_MIN;
  fake.info.map_atom_bytes = UINT64_MAX;
  fake.info.capabilities = UINT64_MAX;
  memset(&fake.info.unified, 0x7f, sizeof fake.info.unified);
  fake.types[0].atom_bytes = 0;
  gm_context *ctx = fake_context();
  gm_device *device = fake_device(ctx);
  const gm_device_info *info = gm_device_get_info(device);
  assert_int_equal(info->type, GM_DEVICE_TYPE_UNKNOWN);
  assert_int_equal(info->api, GM_API_OTHER);
  assert_int_equal(info->numa_node, -1);
  assert_int_equal(info->map_atom_bytes, 1);
  uint64_t known = 0;
#define X(name, bit, word, text) known |= name;
  GM_CAPABILITY_MAP(X)
#undef X
  assert_int_equal(info->capabilities, known);
  assert_true(info->unified == true);
  gm_memory_type type = {.struct_size = sizeof type};
  assert_int_equal(gm_device_memory_type(device, 0, &type, NULL), GM_OK);
  assert_int_equal(type.atom_bytes, 1);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

/* Success without an object: nothing is called with NULL. */
static void test_success_without_an_object(void **state) {
  (void)state;
  gm_device *device = NULL;
  gm_stream *stream = NULL;
  gm_error err = {.status = GM_OK};
  fake_backend_reset();
  fake.no_driver = true;
  gm_context *ctx = fake_context();
  assert_int_equal(gm_device_open_index(ctx, "fake", 0, &device, &err), GM_ERR_DRIVER);
  assert_string_equal(err.message, "backend fake answered success without an object");
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  fake_backend_reset();
  fake.no_device = true;
  ctx = fake_context();
  assert_int_equal(gm_device_open_index(ctx, "fake", 0, &device, &err), GM_ERR_DRIVER);
  assert_string_equal(err.op, "device_open");
  assert_int_equal(fake.closes, 0);
  fake.no_device = false;
  device = fake_device(ctx);
  fake.no_stream = true;
  assert_int_equal(gm_stream_create(device, &stream, &err), GM_ERR_DRIVER);
  assert_string_equal(err.op, "stream_create");
  fake.no_stream = false;
  fake.streams = 0;
  fake.kind = (gm_stream_kind)3;
  assert_int_equal(gm_stream_create(device, &stream, &err), GM_ERR_DRIVER);
  assert_string_equal(err.message, "backend fake gives a stream of kind 3");
  assert_int_equal(fake.streams, 0);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void make_odd(bool *flag) { memset(flag, 2, sizeof *flag); }

static bool is_one(const bool *flag) {
  unsigned char byte;
  memcpy(&byte, flag, sizeof byte);
  return byte == 1;
}

/* A byte that is neither 0 nor 1 says yes: what a compiler makes of such a flag is not defined. */
static void test_odd_flags_say_yes(void **state) {
  (void)state;
  gm_peer_info peer = {.struct_size = sizeof peer};
  gm_driver_info found = {.struct_size = sizeof found};
  gm_device_info info = {.struct_size = sizeof info};
  bool *const flags[] = {&peer.direct,   &peer.atomics, &found.simulated, &info.uuid_derived,
                         &info.has_luid, &info.unified, &info.simulated};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) make_odd(flags[i]);
  gm__answer_mend_peer(&peer);
  gm__answer_mend_found(&found);
  gm__answer_mend_info(&info);
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) assert_true(is_one(flags[i]));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_hostile_atoms_do_not_open),
      cmocka_unit_test(test_hostile_flags_do_not_open),
      cmocka_unit_test(test_flags_of_other_versions_are_mended),
      cmocka_unit_test(test_odd_words_of_a_device_are_mended),
      cmocka_unit_test(test_odd_flags_say_yes),
      cmocka_unit_test(test_success_without_an_object),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
