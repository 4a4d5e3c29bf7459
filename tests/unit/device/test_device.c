/* Devices, streams and points over a scripted backend: life and children, hostile answers, memory types, closing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/device/device_alloc.h"
#include "core/device/stream.h"
#include "support/counted_services.h"
#include "support/fake_backend.h"

static gm_context *fake_context(const gm_services *services) {
  gm_context_params params = {
      .struct_size = sizeof params, .services = services, .backends = "fake", .ignore_environment = true};
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

static void test_open_use_close(void **state) {
  (void)state;
  fake_backend_reset();
  gm_context *ctx = fake_context(NULL);
  gm_device *device = fake_device(ctx);
  assert_ptr_equal(gm_device_context(device), ctx);
  assert_string_equal(gm_device_get_info(device)->backend, "fake");
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_ERR_BUSY);
  gm_memory_info info = {.struct_size = sizeof info};
  assert_int_equal(gm_device_memory_info(device, &info, NULL), GM_OK);
  assert_int_equal(info.free_bytes, fake.free_bytes[0]);
  assert_int_equal(info.margin_bytes, fake.total[0] / 20);
  gm_memory_type type = {.struct_size = sizeof type};
  uint32_t count = 0;
  assert_int_equal(gm_device_memory_type_count(device, &count, NULL), GM_OK);
  assert_int_equal(count, 1);
  assert_int_equal(gm_device_memory_type(device, 0, &type, NULL), GM_OK);
  assert_int_equal(gm_device_memory_type(device, 1, &type, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_state(device, NULL), GM_OK);
  gm_native_device native = {sizeof native, GM_API_OTHER};
  assert_int_equal(gm_device_native(device, &native, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(fake.opens, 1);
  assert_int_equal(fake.closes, 1);
  assert_int_equal(gm_device_close(NULL, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_by_id(void **state) {
  (void)state;
  fake_backend_reset();
  fake.device_count = 3;
  gm_context *ctx = fake_context(NULL);
  gm_device_entry entries[3] = {{.struct_size = sizeof *entries}};
  size_t count = 0;
  assert_int_equal(gm_discover_devices(ctx, entries, 3, &count, NULL), GM_OK);
  gm_device *device = NULL;
  assert_int_equal(gm_device_open(ctx, &entries[2].id, &device, NULL), GM_OK);
  assert_int_equal(gm_device_get_info(device)->index, 2);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  gm_device_id id = entries[2].id;
  id.uuid[5] ^= 1;
  assert_int_equal(gm_device_open(ctx, &id, &device, NULL), GM_ERR_NOT_FOUND);
  memset(id.backend, 'x', sizeof id.backend);
  assert_int_equal(gm_device_open(ctx, &id, &device, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_hostile_devices_do_not_open(void **state) {
  (void)state;
  static const uint64_t alignments[] = {0, 3, UINT64_C(1) << 40};
  gm_device *device = NULL;
  for (size_t i = 0; i < 3; i++) {
    fake_backend_reset();
    fake.info.alignment = alignments[i];
    gm_context *ctx = fake_context(NULL);
    assert_int_equal(gm_device_open_index(ctx, "fake", 0, &device, NULL), GM_ERR_DRIVER);
    assert_int_equal(fake.closes, 1);
    assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  }
  static const uint32_t types[] = {0, 33, UINT32_MAX};
  for (size_t i = 0; i < 3; i++) {
    fake_backend_reset();
    fake.type_count = types[i];
    gm_context *ctx = fake_context(NULL);
    assert_int_equal(gm_device_open_index(ctx, "fake", 0, &device, NULL), GM_ERR_DRIVER);
    assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  }
  fake_backend_reset();
  fake.open_status = GM_ERR_OUT_OF_DEVICE_MEMORY;
  gm_context *ctx = fake_context(NULL);
  gm_error err = {.status = GM_OK};
  assert_int_equal(gm_device_open_index(ctx, "fake", 0, &device, &err), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_string_equal(err.op, "fake_open");
  gm_native_device native = {sizeof native, GM_API_METAL};
  assert_int_equal(gm_device_adopt(ctx, &native, &device, &err), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_device_adopt(ctx, NULL, &device, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_texts_of_devices_end(void **state) {
  (void)state;
  fake_backend_reset();
  memset(fake.info.vendor, 'v', sizeof fake.info.vendor);
  memset(fake.info.version, 'w', sizeof fake.info.version);
  memset(fake.info.pci, 'p', sizeof fake.info.pci);
  gm_context *ctx = fake_context(NULL);
  gm_device *device = fake_device(ctx);
  const gm_device_info *info = gm_device_get_info(device);
  assert_int_equal(strnlen(info->vendor, sizeof info->vendor), sizeof info->vendor - 1);
  assert_int_equal(strnlen(info->version, sizeof info->version), sizeof info->version - 1);
  assert_int_equal(strnlen(info->pci, sizeof info->pci), sizeof info->pci - 1);
  gm_device_entry entry = {.struct_size = sizeof entry};
  size_t count = 0;
  assert_int_equal(gm_discover_devices(ctx, &entry, 1, &count, NULL), GM_OK);
  assert_int_equal(entry.info.capabilities, info->capabilities); /* discovered and open: the same */
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_memory_types_fall_through(void **state) {
  (void)state;
  fake_backend_reset();
  fake.type_count = 3;
  fake.types[0] = (gm_memory_type){.flags = GM_MEMORY_DEVICE_LOCAL, .max_alloc_bytes = 100};
  fake.types[1] = (gm_memory_type){.flags = GM_MEMORY_DEVICE_LOCAL | GM_MEMORY_HOST_VISIBLE};
  fake.types[2] = (gm_memory_type){.flags = GM_MEMORY_HOST_VISIBLE};
  gm_context *ctx = fake_context(NULL);
  gm_device *device = fake_device(ctx);
  gm_memory memory = {.handle = 0};
  gm_error err = {.status = GM_OK};
  gm__device_request request = {.bytes = 100, .must_be = GM_DEVICE_LOCAL};
  assert_int_equal(gm__device_alloc(device, &request, &memory, NULL), GM_OK);
  assert_int_equal(memory.type, 0);
  assert_int_equal(atomic_load(&device->own_bytes), 100);
  assert_int_equal(gm__card_used(device->room.card), 100);
  gm__device_note_pooled(device, 60);
  assert_int_equal(gm__card_pooled(device->room.card), 60);
  gm__device_note_pooled(device, -60);
  assert_int_equal(gm__device_free(device, &memory, NULL), GM_OK);
  assert_int_equal(gm__card_used(device->room.card), 0);

  request.bytes = 101; /* more than the first type allows */
  assert_int_equal(gm__device_alloc(device, &request, &memory, NULL), GM_OK);
  assert_int_equal(memory.type, 1);
  gm__device_free(device, &memory, NULL);
  request = (gm__device_request){.bytes = 8, .flags = GM_HOST_VISIBLE, .must_be = GM_DEVICE_ACCESSIBLE};
  fake.type_status[1] = GM_ERR_OUT_OF_DEVICE_MEMORY;
  assert_int_equal(gm__device_alloc(device, &request, &memory, NULL), GM_OK);
  assert_int_equal(memory.type, 2);
  gm__device_free(device, &memory, NULL);

  request = (gm__device_request){.bytes = 101, .must_be = GM_DEVICE_LOCAL};
  assert_int_equal(gm__device_alloc(device, &request, &memory, &err), GM_ERR_OUT_OF_DEVICE_MEMORY);
  fake.type_status[0] = GM_ERR_DRIVER; /* no reason to try the next */
  request.bytes = 1;
  int before = fake.allocs;
  assert_int_equal(gm__device_alloc(device, &request, &memory, &err), GM_ERR_DRIVER);
  assert_int_equal(fake.allocs, before + 1);
  fake.type_status[0] = GM_ERR_DEVICE_LOST;
  assert_int_equal(gm__device_alloc(device, &request, &memory, &err), GM_ERR_DEVICE_LOST);
  assert_true(atomic_load(&device->lost));
  fake.type_status[0] = GM_OK;
  fake.broken_alloc = true;
  assert_int_equal(gm__device_alloc(device, &request, &memory, &err), GM_ERR_DRIVER);
  fake.broken_alloc = false;
  int frees = fake.frees; /* what is not as asked goes back */
  fake.short_by = 1;
  assert_int_equal(gm__device_alloc(device, &request, &memory, &err), GM_ERR_DRIVER);
  assert_int_equal(fake.frees, frees + 1);
  fake.short_by = 0, fake.crooked = 64, request.align = 128;
  assert_int_equal(gm__device_alloc(device, &request, &memory, &err), GM_ERR_DRIVER);
  assert_non_null(strstr(err.message, "not aligned as asked"));
  assert_int_equal(fake.frees, frees + 2);
  assert_int_equal(gm__card_used(device->room.card), 0);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

/* A point of another device: no driver is asked with it, and it is no passed one. */
static void test_points_of_another_device(void **state) {
  (void)state;
  fake_backend_reset();
  fake.device_count = 2;
  gm_context *ctx = fake_context(NULL);
  gm_device *device = fake_device(ctx), *other = NULL;
  assert_int_equal(gm_device_open_index(ctx, "fake", 1, &other, NULL), GM_OK);
  gm_stream *stream = NULL, *foreign = NULL;
  assert_int_equal(gm_stream_create(device, &stream, NULL), GM_OK);
  assert_int_equal(gm_stream_create(other, &foreign, NULL), GM_OK);
  gm_point point = {0, 0, 0};
  gm_error err = {.status = GM_OK};
  bool done = false;
  assert_int_equal(gm_stream_record(foreign, &point, NULL), GM_OK);
  assert_int_equal(gm_stream_wait(stream, &point, &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "`point` belongs to another device");
  assert_int_equal(gm_point_done(device, &point, &done, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_point_wait(device, &point, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  gm_native_point native = {sizeof native, GM_API_OTHER};
  assert_int_equal(gm_point_native(device, &point, &native, &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "`point` belongs to another device");
  gm_point_release(device, &point);
  assert_int_equal(point.stream, gm_stream_id(foreign));
  assert_int_equal(gm_stream_close(foreign, NULL), GM_OK);
  assert_int_equal(gm_stream_wait(stream, &point, NULL), GM_ERR_INVALID_ARGUMENT); /* its stream is closed: the same */
  gm_point_release(other, &point);
  assert_int_equal(point.stream, 0);
  assert_int_equal(gm_stream_close(stream, NULL), GM_OK);
  assert_int_equal(gm_device_close(other, NULL), GM_OK);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static int closings;
static bool note_closing(void *user, gm_stream *stream) {
  assert_int_equal(gm_stream_id(stream), *(uint64_t *)user);
  closings++;
  return true;
}

static void test_streams_and_points(void **state) {
  (void)state;
  fake_backend_reset();
  gm_context *ctx = fake_context(NULL);
  gm_device *device = fake_device(ctx);
  gm_stream *a = NULL, *b = NULL;
  assert_int_equal(gm_stream_create(device, &a, NULL), GM_OK);
  fake.kind = GM_STREAM_UNORDERED;
  assert_int_equal(gm_stream_create(device, &b, NULL), GM_OK);
  assert_int_equal(gm_stream_get_kind(b), GM_STREAM_UNORDERED);
  assert_true(gm_stream_id(a) != 0 && gm_stream_id(a) != gm_stream_id(b));
  assert_ptr_equal(gm_stream_device(a), device);
  assert_int_equal(gm_device_close(device, NULL), GM_ERR_BUSY);
  gm_point point = {0, 0, 0}, none = {0, 0, 0};
  bool done = true;
  assert_int_equal(gm_stream_record(a, &point, NULL), GM_OK);
  assert_int_equal(gm_point_done(device, &point, &done, NULL), GM_OK);
  assert_false(done);
  assert_int_equal(gm_point_wait(device, &point, 1, NULL), GM_ERR_TIMEOUT);
  assert_int_equal(gm_stream_wait(b, &point, NULL), GM_OK);
  assert_int_equal(gm_point_done(device, &none, &done, NULL), GM_OK);
  assert_true(done);
  assert_int_equal(gm_stream_barrier(a, NULL), GM_OK);
  assert_int_equal(gm_stream_barrier(b, NULL), GM_OK);
  uint64_t id = gm_stream_id(a);
  gm__stream_listener listener = {.closing = note_closing, .user = &id};
  gm__device_add_listener(device, &listener);
  closings = 0;
  fake.sync_status = GM_ERR_DRIVER; /* work is still running: the stream stays */
  assert_int_equal(gm_stream_close(a, NULL), GM_ERR_DRIVER);
  fake.sync_status = GM_OK;
  assert_int_equal(gm_stream_close(a, NULL), GM_OK);
  assert_int_equal(closings, 1);
  gm__device_remove_listener(device, &listener);
  assert_null(gm__device_find_stream(device, id));
  assert_int_equal(gm_point_done(device, &point, &done, NULL), GM_OK); /* its stream is closed */
  assert_true(done);
  gm_point_release(device, &point);
  assert_int_equal(point.stream, 0);
  gm_point_release(device, &point);
  assert_int_equal(gm_stream_close(b, NULL), GM_OK);
  assert_int_equal(gm_stream_close(NULL, NULL), GM_OK);
  gm_stream *own = NULL, *again = NULL;
  assert_int_equal(gm__device_default_stream(device, "test", &own, NULL), GM_OK);
  assert_int_equal(gm__device_default_stream(device, "test", &again, NULL), GM_OK);
  assert_ptr_equal(own, again);
  assert_int_equal(gm_device_close(device, NULL), GM_OK); /* takes its own stream along */
  assert_int_equal(fake.streams, 0);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

typedef struct first_thread {
  gm_device *device;
  gm_stream *stream;
} first_thread;

static void be_first(void *user) {
  first_thread *first = user;
  assert_int_equal(gm__device_default_stream(first->device, "test", &first->stream, NULL), GM_OK);
}

static bool note_any_closing(void *user, gm_stream *stream) {
  (void)user, (void)stream;
  closings++;
  return true;
}

/* The stream that one of them made for nothing was nobody's: pools, which may be going, hear nothing of it. */
static void test_two_threads_make_the_default_stream(void **state) {
  (void)state;
  fake_backend_reset();
  gm_context *ctx = fake_context(NULL);
  first_thread first = {.device = fake_device(ctx)};
  gm_stream *second = NULL;
  gm__stream_listener listener = {.closing = note_any_closing};
  gm__device_add_listener(first.device, &listener);
  closings = 0;
  fake.meanwhile = be_first;
  fake.meanwhile_user = &first;
  assert_int_equal(gm__device_default_stream(first.device, "test", &second, NULL), GM_OK);
  assert_ptr_equal(second, first.stream);
  assert_int_equal(fake.streams, 1);
  assert_int_equal(closings, 0);
  gm__device_remove_listener(first.device, &listener);
  assert_int_equal(gm_device_close(first.device, NULL), GM_OK);
  assert_int_equal(fake.streams, 0);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

#ifndef NDEBUG
static void test_use_after_close_is_answered(void **state) {
  (void)state;
  fake_backend_reset();
  counted_services host;
  counted_services_init(&host);
  gm_context *ctx = fake_context(&host.services);
  gm_device *device = fake_device(ctx);
  gm_stream *stream = NULL;
  gm_error err = {.status = GM_OK};
  assert_int_equal(gm_stream_create(device, &stream, NULL), GM_OK);
  assert_int_equal(gm_stream_close(stream, NULL), GM_OK);
  assert_int_equal(gm_stream_close(stream, &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "`stream` is closed");
  assert_int_equal(gm_stream_sync(stream, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_stream_sync((gm_stream *)(void *)device, NULL), GM_ERR_INVALID_ARGUMENT); /* of another kind */
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_device_close(device, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_stream_create(device, &stream, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  counted_services_check(&host);
}
#endif

static void test_null_arguments(void **state) {
  (void)state;
  fake_backend_reset();
  gm_context *ctx = fake_context(NULL);
  gm_device *device = fake_device(ctx);
  gm_stream *stream = NULL;
  gm_point point = {0, 0, 0};
  bool done = false;
  gm_native_stream native_stream = {sizeof native_stream, GM_API_OTHER};
  gm_native_point native_point = {sizeof native_point, GM_API_OTHER};
  assert_int_equal(gm_stream_create(device, &stream, NULL), GM_OK);
  assert_int_equal(gm_stream_create(NULL, &stream, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_stream_create(device, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_stream_adopt(device, NULL, &stream, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_stream_adopt(device, &native_stream, &stream, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_stream_record(stream, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_stream_record(NULL, &point, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_stream_import_point(stream, NULL, &point, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_stream_import_point(stream, &native_point, &point, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_stream_wait(stream, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_point_done(device, NULL, &done, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_point_wait(device, NULL, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_point_native(device, NULL, &native_point, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_point_native(device, &point, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_point_native(device, &point, &native_point, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_stream_flush(NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_stream_sync(NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_stream_flush(stream, NULL), GM_OK);
  assert_int_equal(gm_stream_sync(stream, NULL), GM_OK);
  gm_memory_info info = {.struct_size = 1};
  assert_int_equal(gm_device_memory_info(device, &info, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_memory_type_count(device, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_memory_type(device, 0, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_native(device, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_null(gm_device_get_info(NULL));
  assert_null(gm_device_context(NULL));
  assert_null(gm_stream_device(NULL));
  assert_int_equal(gm_stream_id(NULL), 0);
  assert_int_equal(gm_stream_close(stream, NULL), GM_OK);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_host_memory_runs_out(void **state) {
  (void)state;
  for (size_t n = 1;; n++) {
    counted_services host;
    counted_services_init(&host);
    fake_backend_reset();
    gm_context *ctx = fake_context(&host.services);
    host.fail_at = atomic_load(&host.calls) + n;
    host.fail_count = 1;
    gm_device *device = NULL;
    gm_stream *stream = NULL;
    gm_status status = gm_device_open_index(ctx, "fake", 0, &device, NULL);
    if (status == GM_OK) status = gm_stream_create(device, &stream, NULL);
    assert_int_equal(gm_stream_close(stream, NULL), GM_OK);
    assert_int_equal(gm_device_close(device, NULL), GM_OK);
    assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
    counted_services_check(&host);
    assert_int_equal(fake.opens, fake.closes);
    assert_int_equal(fake.inits, 0);
    assert_int_equal(fake.streams, 0);
    if (status == GM_OK) break;
    assert_int_equal(status, GM_ERR_OUT_OF_HOST_MEMORY);
  }
}

static void test_a_forked_child_gives_back_host_memory_only(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  fake_backend_reset();
  gm_context *ctx = fake_context(&host.services);
  gm_device *device = fake_device(ctx);
  gm_stream *stream = NULL, *own = NULL;
  assert_int_equal(gm_stream_create(device, &stream, NULL), GM_OK);
  assert_int_equal(gm__device_default_stream(device, "test", &own, NULL), GM_OK);
  gm__mutex_lock(&device->lock); /* another thread could have been here when the process forked */
  gm__mutex_lock(&ctx->lock);
  pid_t pid = fork();
  if (pid == 0) {
    fake.abandons = 0;
    bool bad = gm_stream_sync(stream, NULL) != GM_ERR_FORKED || gm_stream_close(stream, NULL) != GM_OK ||
               gm_device_close(device, NULL) != GM_OK || gm_context_destroy(ctx, NULL) != GM_OK;
    bad = bad || fake.abandons != 4 || atomic_load(&host.live_blocks) != 0;
    _exit(bad);
  }
  gm__mutex_unlock(&ctx->lock);
  gm__mutex_unlock(&device->lock);
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  assert_int_equal(gm_stream_close(stream, NULL), GM_OK);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  counted_services_check(&host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_open_use_close),
      cmocka_unit_test(test_by_id),
      cmocka_unit_test(test_hostile_devices_do_not_open),
      cmocka_unit_test(test_texts_of_devices_end),
      cmocka_unit_test(test_memory_types_fall_through),
      cmocka_unit_test(test_points_of_another_device),
      cmocka_unit_test(test_streams_and_points),
      cmocka_unit_test(test_two_threads_make_the_default_stream),
#ifndef NDEBUG
      cmocka_unit_test(test_use_after_close_is_answered),
#endif
      cmocka_unit_test(test_null_arguments),
      cmocka_unit_test(test_host_memory_runs_out),
      cmocka_unit_test(test_a_forked_child_gives_back_host_memory_only),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
