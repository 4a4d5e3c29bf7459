/* The helper opens a card of which nobody tells what is free. It tells, dies, hangs or lies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/discovery/isolate.h"
#include "support/pool_bench.h"
#include "support/temp_folder.h"

static const uint64_t GiB = UINT64_C(1) << 30;

uint64_t __real_gm__deadline_after(uint64_t timeout_ns);
uint64_t __wrap_gm__deadline_after(uint64_t timeout_ns);

static bool impatient; /* a look that does not come at once is late */

uint64_t __wrap_gm__deadline_after(uint64_t timeout_ns) {
  const bool look = timeout_ns == (uint64_t)GM__ISOLATE_LOOK_MS * 1000000u;
  return __real_gm__deadline_after(look && impatient ? 0 : timeout_ns);
}

typedef struct look_scene {
  temp_folder folder;
  char answer[512], looks[512], helper[512];
  gm_context *ctx;
} look_scene;

static gm_device_entry look_entry(uint32_t index) {
  gm_device_entry entry = {.struct_size = sizeof entry};
  entry.info = (gm_device_info){.struct_size = sizeof entry.info, .index = index, .api = GM_API_CUDA};
  entry.info.type = GM_DEVICE_TYPE_DISCRETE;
  entry.info.alignment = 256;
  entry.info.uuid[0] = (uint8_t)(index + 1);
  snprintf(entry.info.pci, sizeof entry.info.pci, "0000:%02x:00.0", index + 1);
  entry.memory = (gm_memory_info){.struct_size = sizeof entry.memory,
                                  .free_state = GM_FIGURE_ESTIMATED,
                                  .free_source = GM_SOURCE_OWN_ACCOUNTING,
                                  .total_source = GM_SOURCE_DRIVER,
                                  .total_bytes = 24 * GiB,
                                  .free_bytes = 23 * GiB};
  return entry;
}

static gm__isolate_look look_at(uint32_t index, uint64_t free_bytes) {
  gm__isolate_look look = {.index = index, .memory = look_entry(index).memory};
  look.memory.free_state = GM_FIGURE_KNOWN;
  look.memory.free_source = GM_SOURCE_DRIVER;
  look.memory.free_bytes = free_bytes;
  return look;
}

static FILE *look_file(const char *path) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  return file;
}

/* A helper that answers with two cards, writes the looks, and then does as `after` says. */
static void look_begin(look_scene *scene, const gm__isolate_look *looks, size_t count, const char *after) {
  gm__isolate_head head = {.magic = GM__ISOLATE_MAGIC,
                           .info_size = sizeof head.info,
                           .entry_size = sizeof(gm_device_entry),
                           .entry_count = 2,
                           .info = {.struct_size = sizeof head.info, .api = GM_API_CUDA, .name = "cuda"}};
  temp_folder_make(&scene->folder);
  snprintf(scene->answer, sizeof scene->answer, "%s/answer", scene->folder.path);
  snprintf(scene->looks, sizeof scene->looks, "%s/looks", scene->folder.path);
  snprintf(scene->helper, sizeof scene->helper, "%s/helper", scene->folder.path);
  FILE *file = look_file(scene->answer);
  const gm_device_entry entries[] = {look_entry(0), look_entry(1)};
  assert_int_equal(fwrite(&head, sizeof head, 1, file) + fwrite(entries, sizeof *entries, 2, file), 3);
  fclose(file);
  file = look_file(scene->looks);
  assert_int_equal(count ? fwrite(looks, sizeof *looks, count, file) : 0, count);
  fclose(file);
  file = look_file(scene->helper);
  fprintf(file, "#!/bin/sh\ncat %s %s\n%s\n", scene->answer, scene->looks, after);
  fclose(file);
  assert_int_equal(chmod(scene->helper, 0755), 0);
  const gm_context_params params = {
      .struct_size = sizeof params, .backends = "cpu,cuda", .probe_helper = scene->helper, .ignore_environment = true};
  size_t found = 0;
  pool_bench_ok(gm_context_create(&params, &scene->ctx, err));
  pool_bench_ok(gm_discover_backends(scene->ctx, GM_PROBE_ISOLATED, NULL, 0, &found, err));
}

static void look_end(look_scene *scene) {
  assert_int_equal(gm_context_destroy(scene->ctx, NULL), GM_OK);
  unlink(scene->answer);
  unlink(scene->looks);
  unlink(scene->helper);
  temp_folder_remove(&scene->folder);
}

static gm_selection look_best(look_scene *scene) {
  gm_selection best = {.struct_size = sizeof best};
  pool_bench_ok(gm_best_backend(scene->ctx, &best, err));
  return best;
}

static const char *look_why(const gm_selection *best, uint32_t device) {
  for (uint32_t i = 0; i < best->rejected_count; i++) {
    const gm_rejection *each = &best->rejected[i];
    if (strcmp(each->id.backend, "cuda") == 0 && each->device == device) return each->why;
  }
  return "";
}

/* The total says nothing of the others that fill the first card; the look does. */
static void test_the_look_corrects_the_estimate(void **state) {
  (void)state;
  look_scene scene;
  const gm__isolate_look looks[] = {look_at(0, GiB), look_at(1, 20 * GiB)};
  look_begin(&scene, looks, 2, "exit 0");
  const gm_selection best = look_best(&scene);
  assert_string_equal(best.id.backend, "cuda");
  assert_int_equal(best.device, 1);
  assert_int_equal(best.free_bytes, 20 * GiB);
  assert_int_equal(best.free_state, GM_FIGURE_ESTIMATED); /* it was so at one moment */
  assert_int_equal(best.free_source, GM_SOURCE_DRIVER);
  look_end(&scene);
}

static void test_no_look_leaves_the_estimate(void **state) {
  (void)state;
  gm__isolate_look looks[] = {look_at(0, GiB), look_at(1, 24 * GiB)};
  look_scene scene;
  looks[0].status = GM_ERR_UNAVAILABLE;           /* it could not be opened now */
  looks[1].memory.free_state = GM_FIGURE_UNKNOWN; /* it did not tell when it was open */
  look_begin(&scene, looks, 2, "exit 0");
  gm_selection best = look_best(&scene);
  assert_int_equal(best.device, 0);
  assert_int_equal(best.free_bytes, 23 * GiB);
  assert_string_equal(look_why(&best, 1), "would do; cuda 0 comes first");
  look_end(&scene);
  look_begin(&scene, NULL, 0, "exit 0");
  best = look_best(&scene);
  assert_string_equal(best.id.backend, "cuda");
  assert_int_equal(best.free_bytes, 23 * GiB);
  look_end(&scene);
}

static void test_a_look_of_another_card_is_damaged(void **state) {
  (void)state;
  look_scene scene;
  const gm__isolate_look looks[] = {look_at(7, GiB), look_at(1, GiB)};
  look_begin(&scene, looks, 2, "exit 0");
  assert_int_equal(look_best(&scene).free_bytes, 23 * GiB);
  look_end(&scene);
}

/* The backend stays: only the card is not taken whose opening would have ended this process. */
static void test_an_open_that_aborts(void **state) {
  (void)state;
  look_scene scene;
  const gm__isolate_look looks[] = {look_at(0, 20 * GiB)};
  look_begin(&scene, looks, 1, "kill -ABRT $$");
  const gm_selection best = look_best(&scene);
  assert_string_equal(best.id.backend, "cuda");
  assert_int_equal(best.device, 0);
  assert_non_null(strstr(look_why(&best, 1), "opening it ended the probe helper with signal 6"));
  look_end(&scene);
}

static void test_an_open_that_hangs(void **state) {
  (void)state;
  look_scene scene;
  impatient = true;
  look_begin(&scene, NULL, 0, "exec sleep 1000");
  impatient = false;
  const gm_selection best = look_best(&scene);
  assert_string_equal(best.id.backend, "cuda");
  assert_int_equal(best.device, 1); /* of which nothing more is known than before */
  assert_int_equal(best.free_bytes, 23 * GiB);
  assert_non_null(strstr(look_why(&best, 0), "did not open in 10 s"));
  look_end(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_look_corrects_the_estimate),
      cmocka_unit_test(test_no_look_leaves_the_estimate),
      cmocka_unit_test(test_a_look_of_another_card_is_damaged),
      cmocka_unit_test(test_an_open_that_aborts),
      cmocka_unit_test(test_an_open_that_hangs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
