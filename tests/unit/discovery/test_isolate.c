/* Discovery in a helper process: the real helper, and stand-ins that die, hang up, lie or are not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/discovery/isolate.h"
#include "gm/probe.h"
#include "support/random.h"
#include "support/temp_folder.h"

/* A driver record of a built-in backend with `helper` as the probe helper. */
static gm__driver *driver_with(const char *helper, const char *backend, gm_context **ctx) {
  gm_context_params params = {.struct_size = sizeof params, .probe_helper = helper, .ignore_environment = true};
  gm__registry *registry = NULL;
  assert_int_equal(gm_context_create(&params, ctx, NULL), GM_OK);
  assert_int_equal(gm__registry_get(*ctx, &registry, NULL), GM_OK);
  gm__driver *driver = gm__registry_find(registry, backend);
  assert_non_null(driver);
  return driver;
}

static void assert_isolated(const char *helper, gm_status status, const char *word) {
  gm_context *ctx = NULL;
  gm_error err = {.status = GM_OK};
  gm__driver *driver = driver_with(helper, "cpu", &ctx);
  assert_int_equal(gm__isolate(driver, &err), status);
  if (word) assert_non_null(strstr(err.message, word));
  if (status == GM_OK) {
    assert_int_equal(driver->entry_count, 1);
    assert_true(driver->entries[0].memory.total_bytes > 0);
    assert_string_equal(driver->entries[0].info.backend, "cpu");
  }
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void script(const char *folder, const char *text, char *path, size_t capacity) {
  snprintf(path, capacity, "%s/helper", folder);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "#!/bin/sh\n%s\n", text);
  fclose(file);
  assert_int_equal(chmod(path, 0755), 0);
}

static void test_the_real_helper(void **state) {
  (void)state;
  const char *helper = getenv("GM_PROBE_HELPER");
  assert_non_null(helper); /* set by the build */
  assert_isolated(helper, GM_OK, NULL);
}

static void test_helpers_that_fail(void **state) {
  (void)state;
  static const struct {
    const char *text, *word;
    gm_status status;
  } cases[] = {{"exit 0", "without an answer", GM_ERR_UNAVAILABLE},
               {"kill -ABRT $$", "signal 6", GM_ERR_UNAVAILABLE},
               {"kill -SEGV $$", "signal 11", GM_ERR_UNAVAILABLE},
               {"echo short", "without an answer", GM_ERR_UNAVAILABLE},
               {"head -c 100000 /dev/zero", "not of this version", GM_ERR_FORMAT}};
  temp_folder folder;
  temp_folder_make(&folder);
  char path[512];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    script(folder.path, cases[i].text, path, sizeof path);
    assert_isolated(path, cases[i].status, cases[i].word);
  }
  unlink(path);
  temp_folder_remove(&folder);
}

/* An answer of the right form whose counts and texts are not to be trusted. */
static void write_answer(const char *path, uint32_t entries, size_t entry_bytes, const char *name) {
  gm__isolate_head head = {.magic = GM__ISOLATE_MAGIC,
                           .info_size = sizeof head.info,
                           .entry_size = sizeof(gm_device_entry),
                           .entry_count = entries};
  memset(&head.info, 'A', sizeof head.info);
  head.info.status = GM_OK;
  memset(head.info.name, 0, sizeof head.info.name);
  snprintf(head.info.name, sizeof head.info.name, "%s", name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fwrite(&head, sizeof head, 1, file);
  for (size_t i = 0; i < entry_bytes; i++) fputc('B', file);
  fclose(file);
}

static void test_answers_are_checked(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  char answer[512], path[512], text[600];
  snprintf(answer, sizeof answer, "%s/answer", folder.path);
  snprintf(text, sizeof text, "cat %s", answer);
  script(folder.path, text, path, sizeof path);
  write_answer(answer, 1000000, 0, "cpu");
  assert_isolated(path, GM_ERR_FORMAT, "damaged");
  write_answer(answer, 1, sizeof(gm_device_entry), "cuda"); /* another backend's */
  assert_isolated(path, GM_ERR_FORMAT, "damaged");
  write_answer(answer, 0, 0, "cpu"); /* fine, and no device */
  assert_isolated(path, GM_ERR_FORMAT, "damaged");
  write_answer(answer, 2, sizeof(gm_device_entry), "cpu"); /* one is missing */
  assert_isolated(path, GM_ERR_UNAVAILABLE, "without an answer");
  write_answer(answer, 1, sizeof(gm_device_entry), "cpu");
  gm_context *ctx = NULL;
  gm__driver *driver = driver_with(path, "cpu", &ctx);
  assert_int_equal(gm__isolate(driver, NULL), GM_OK);
  assert_int_equal(strlen(driver->entries[0].info.name), sizeof driver->entries[0].info.name - 1);
  assert_int_equal(strlen(driver->info.library), sizeof driver->info.library - 1);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  unlink(answer);
  unlink(path);
  temp_folder_remove(&folder);
}

/* A real answer, as gm-probe writes it. */
typedef struct real_answer {
  gm__isolate_head head;
  gm_device_entry entry;
} real_answer;

static void read_real_answer(real_answer *out) {
  FILE *file = tmpfile();
  assert_non_null(file);
  assert_int_equal(gm_probe_serve("cpu", NULL, NULL, fileno(file), NULL), GM_OK);
  rewind(file);
  assert_int_equal(fread(&out->head, sizeof out->head, 1, file), 1);
  assert_int_equal(fread(&out->entry, sizeof out->entry, 1, file), 1);
  fclose(file);
}

static bool is_bool(const void *value) { return *(const unsigned char *)value <= 1; }

/* Bytes that are no bool, numbers that are of no enum, texts without an end: nothing of the kind is in the entry. */
static void check_entry(const gm_device_entry *entry) {
  const gm_device_info *info = &entry->info;
  const gm_memory_info *memory = &entry->memory;
  assert_true(is_bool(&info->uuid_derived) && is_bool(&info->has_luid) && is_bool(&info->unified));
  assert_true(is_bool(&info->simulated) && is_bool(&memory->unified));
  assert_true(is_bool(&entry->host_pool) && is_bool(&entry->counted));
  assert_true((unsigned)info->type <= GM_DEVICE_TYPE_CPU && (unsigned)info->api <= GM_API_OTHER);
  assert_true((unsigned)memory->free_state <= GM_FIGURE_KNOWN && (unsigned)memory->free_source <= GM_SOURCE_PEER_API);
  assert_true((unsigned)memory->total_source <= GM_SOURCE_PEER_API);
  assert_true(memory->free_state == GM_FIGURE_UNKNOWN || memory->free_bytes <= memory->total_bytes);
  assert_non_null(memchr(info->name, 0, sizeof info->name));
  assert_non_null(memchr(entry->id.partition, 0, sizeof entry->id.partition));
  assert_string_equal(info->backend, "cpu");
  assert_string_equal(entry->id.backend, "cpu");
  assert_int_equal(info->index, 0);
  assert_int_equal(info->struct_size, sizeof *info);
  assert_memory_equal(entry->id.uuid, info->uuid, sizeof info->uuid);
}

static void check_answer(const char *helper, const char *file_path, const real_answer *answer) {
  gm_context *ctx = NULL;
  FILE *file = fopen(file_path, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(answer, 1, sizeof answer->head, file), sizeof answer->head);
  assert_int_equal(fwrite(&answer->entry, 1, sizeof answer->entry, file), sizeof answer->entry);
  fclose(file);
  gm__driver *driver = driver_with(helper, "cpu", &ctx);
  if (gm__isolate(driver, NULL) == GM_OK) {
    assert_true(is_bool(&driver->info.simulated));
    assert_int_equal(driver->info.api, GM_API_CPU);
    check_entry(&driver->entries[0]);
  }
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

/* Every byte of it may be another one. */
static void test_changed_answers(void **state) {
  (void)state;
  enum { ROUNDS = 60, CHANGES = 40 };
  real_answer real;
  temp_folder folder;
  uint64_t random = 7;
  char answer[512], path[512], text[600];
  read_real_answer(&real);
  temp_folder_make(&folder);
  snprintf(answer, sizeof answer, "%s/answer", folder.path);
  snprintf(text, sizeof text, "exec cat %s", answer);
  script(folder.path, text, path, sizeof path);
  check_answer(path, answer, &real);
  for (int round = 0; round < ROUNDS; round++) {
    real_answer changed = real;
    if (round == 0) memset(&changed.entry, 0x7f, sizeof changed.entry);
    if (round == 1) memset(&changed.entry, 0xff, sizeof changed.entry);
    if (round == 2) memset(&changed.head.info.simulated, 0x7f, sizeof changed.head.info.simulated);
    if (round == 3) changed.head.info.status = (gm_status)9999;
    for (int i = 0; round > 3 && i < CHANGES; i++) {
      unsigned char *bytes = (unsigned char *)&changed.entry;
      bytes[test_random(&random) % sizeof changed.entry] = (unsigned char)test_random(&random);
    }
    for (int i = 0; round > ROUNDS / 2 && i < 2; i++) {
      unsigned char *bytes = (unsigned char *)&changed.head.info;
      bytes[test_random(&random) % sizeof changed.head.info] = (unsigned char)test_random(&random);
    }
    check_answer(path, answer, &changed);
  }
  unlink(answer);
  unlink(path);
  temp_folder_remove(&folder);
}

/* A helper that hangs when it has said its word, or closed its output, is ended. */
static void test_helpers_that_stay(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  char answer[512], path[512], text[600];
  snprintf(answer, sizeof answer, "%s/answer", folder.path);
  write_answer(answer, 1, sizeof(gm_device_entry), "cpu");
  snprintf(text, sizeof text, "cat %s; exec sleep 1000", answer);
  script(folder.path, text, path, sizeof path);
  gm_context *ctx = NULL;
  gm__driver *driver = driver_with(path, "cpu", &ctx);
  assert_int_equal(gm__isolate(driver, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  script(folder.path, "exec sleep 1000 >/dev/null", path, sizeof path);
  assert_isolated(path, GM_ERR_UNAVAILABLE, "without an answer");
  unlink(answer);
  unlink(path);
  temp_folder_remove(&folder);
}

static void test_helpers_that_are_not_there(void **state) {
  (void)state;
  assert_isolated("/nonexistent/gm-probe", GM_ERR_NOT_FOUND, "absolute path");
  assert_isolated("gm-probe", GM_ERR_NOT_FOUND, "absolute path");
}

static void test_serving(void **state) {
  (void)state;
  gm_error err = {.status = GM_OK};
  FILE *file = tmpfile();
  assert_non_null(file);
  int fd = fileno(file);
  assert_int_equal(gm_probe_serve("cpu", NULL, NULL, fd, &err), GM_OK);
  gm__isolate_head head;
  rewind(file);
  assert_int_equal(fread(&head, sizeof head, 1, file), 1);
  assert_true(head.magic == GM__ISOLATE_MAGIC && head.entry_count == 1);
  assert_int_equal(gm_probe_serve("cuda", NULL, "x=1", fd, &err), GM_OK); /* unavailable is a finding */
  assert_int_equal(gm_probe_serve("nope", NULL, NULL, fd, &err), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_probe_serve(NULL, NULL, NULL, fd, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_probe_serve("cpu", NULL, NULL, -1, &err), GM_ERR_INVALID_ARGUMENT);
  fclose(file);
  assert_int_equal(gm_probe_serve("cpu", NULL, NULL, 1000, &err), GM_ERR_IO);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_real_helper),
      cmocka_unit_test(test_helpers_that_fail),
      cmocka_unit_test(test_answers_are_checked),
      cmocka_unit_test(test_changed_answers),
      cmocka_unit_test(test_helpers_that_stay),
      cmocka_unit_test(test_helpers_that_are_not_there),
      cmocka_unit_test(test_serving),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
