/* The tier of a server where the C library has no memory: hiredis takes its own there. Calls end in a status, and the
 * process lives on. The linker puts hiredis itself into this program, with its calls for memory wrapped. gm gets it
 * in place of the library that it would open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/tier/remote/hiredis.h"
#include "support/remote_bench.h"

static struct {
  bool armed;
  size_t calls, fail_at;
} memory;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

const gm__hiredis *__wrap_gm__hiredis_open(gm_error *err);

const gm__hiredis *__wrap_gm__hiredis_open(gm_error *err) {
  static const gm__hiredis own = {.reader_new = redisReaderCreateWithFunctions,
                                  .reader_free = redisReaderFree,
                                  .reader_feed = redisReaderFeed,
                                  .reader_next = redisReaderGetReply};
  (void)err;
  return &own;
}

static bool memory_fails(void) { return memory.armed && ++memory.calls == memory.fail_at; }

void *__wrap_malloc(size_t bytes) { return memory_fails() ? NULL : __real_malloc(bytes); }
void *__wrap_calloc(size_t count, size_t bytes) { return memory_fails() ? NULL : __real_calloc(count, bytes); }
void *__wrap_realloc(void *old, size_t bytes) { return memory_fails() ? NULL : __real_realloc(old, bytes); }

/* gm's memory comes from here and is there always: the calls that are left are those of hiredis. */
static void *host_alloc(void *user, size_t bytes, size_t align) {
  (void)user;
  return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void host_release(void *user, void *ptr, size_t bytes) {
  (void)user, (void)bytes;
  free(ptr);
}

static unsigned char room[3 << 20];

static gm_status use(gm_context *ctx, const char *where) {
  gm_tier *tier = NULL;
  gm_tier_value *value = NULL;
  const gm_tier_params params = {.struct_size = sizeof params, .password = "word"};
  const gm_tier_part part = {room, sizeof room};
  tier_listing listing = {.most = 9};
  gm_status status = gm_tier_open(ctx, "remote", where, &params, &tier, NULL);
  if (!status) status = gm_tier_put(tier, "a", 1, &part, 1, NULL);
  if (!status) status = gm_tier_value_open(tier, "a", 1, &value, NULL, NULL);
  if (!status) status = gm_tier_value_read(value, 0, room, sizeof room, NULL);
  gm_tier_value_close(value);
  if (!status) status = gm_tier_list(tier, NULL, 0, tier_listing_visit, &listing, NULL);
  if (!status) status = gm_tier_remove(tier, "a", 1, NULL);
  gm_tier_close(tier, NULL);
  return status;
}

static void test_memory_that_is_missing_in_hiredis(void **state) {
  (void)state;
  const gm_services services = {.alloc = host_alloc, .release = host_release};
  redis_server server;
  size_t failed = 0;
  redis_server_start(&server, "--requirepass", "word", NULL);
  gm_context *ctx = remote_context(&services);
  memory.fail_at = 0;
  do {
    memory.fail_at++;
    memory.calls = 0;
    memory.armed = true;
    const gm_status status = use(ctx, server.where);
    memory.armed = false;
    if (status) assert_int_equal(status, GM_ERR_OUT_OF_HOST_MEMORY);
    failed += status != GM_OK;
  } while (memory.calls >= memory.fail_at);
  assert_true(failed > 4);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  redis_server_end(&server);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_that_is_missing_in_hiredis)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
