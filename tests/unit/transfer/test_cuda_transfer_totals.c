/* The totals of a device against the journal of the link model, in its virtual time: whoever moved the bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "core/base/clock.h"
#include "gm/load.h"
#include "gm/pipeline.h"
#include "gm/save.h"
#include "support/link_model.h"
#include "support/temp_folder.h"
#include "support/transfer_scene.h"

static link_journal journal;
static bool plays; /* gm's clock is the model's */
static gm_transfer_totals before;

uint64_t __real_gm__now_ns(void);
uint64_t __wrap_gm__now_ns(void);
uint64_t __wrap_gm__now_ns(void) { return plays ? (uint64_t)cuda_count("now") : __real_gm__now_ns(); }

static gm_transfer_totals totals_of(gm_device *of) {
  gm_error err;
  gm_transfer_totals totals = {.struct_size = sizeof totals};
  ok(gm_device_transfer_totals(of, &totals, &err), &err);
  return totals;
}

static const char links[] = "set LINK h2d:1000,d2h:800,d2d:40000,poll:0";

/* The links are measured as they are, and then the journal begins. */
static void play(void) {
  gm_error err;
  gm_transfer_links rates = {.struct_size = sizeof rates};
  plays = true;
  cuda_say(links);
  ok(gm_transfer_measure(device, &rates, &err), &err);
  cuda_say("set LINK off");
  cuda_say(links); /* an empty journal */
  before = totals_of(device);
}

static void near(double said, double true_value) {
  const double apart = said > true_value ? said - true_value : true_value - said;
  if (apart > true_value / 100) fail_msg("%g, not %g", said, true_value);
}

static double busy(gm__link_kind kind) { return (double)link_busy(&journal, kind) * 1e-9; }

/* The totals' gain since `play` is what the journal says. */
static gm_transfer_totals end_play(void) {
  static const gm__link_kind ways[] = {GM__LINK_H2D, GM__LINK_D2H};
  link_journal_copy *copy;
  gm_transfer_totals now = totals_of(device);
  cuda_entry("simCudaJournal", &copy);
  link_journal_take(&journal, copy);
  plays = false;
  cuda_say("set LINK off");
  assert_int_equal(now.up_bytes - before.up_bytes, link_bytes(&journal, GM__LINK_H2D));
  assert_int_equal(now.down_bytes - before.down_bytes, link_bytes(&journal, GM__LINK_D2H));
  assert_int_equal(now.up_copies - before.up_copies, link_count(&journal, GM__LINK_H2D));
  assert_int_equal(now.down_copies - before.down_copies, link_count(&journal, GM__LINK_D2H));
  near(now.up - before.up, busy(GM__LINK_H2D));
  near(now.down - before.down, busy(GM__LINK_D2H));
  if (before.users) return now; /* the shares are of all that was since the device was opened */
  const double seconds = (double)link_makespan(&journal) * 1e-9;
  near(now.seconds, seconds);
  near(now.up_utilisation, busy(GM__LINK_H2D) / seconds);
  near(now.down_utilisation, busy(GM__LINK_D2H) / seconds);
  near(now.overlap, link_overlap_share(&journal, ways, 2));
  return now;
}

static void before_anything_all_is_zero(void **state) {
  (void)state;
  gm_transfer_totals totals = totals_of(device);
  assert_true(!totals.users && !totals.up_bytes && !totals.down_bytes && totals.seconds == 0);
  const gm_copy one = copy_up(0, SLOT);
  run(&one, 1, NULL);
  totals = totals_of(device);
  assert_int_equal(totals.users, 1);
  assert_int_equal(totals.up_bytes, SLOT);
  assert_true(totals.seconds > 0 && totals.up == 0 && totals.up_utilisation == 0); /* nobody has measured */
  assert_int_equal(gm_device_transfer_totals(device, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_transfer_totals(NULL, &totals, NULL), GM_ERR_INVALID_ARGUMENT);
}

static void one_transfer_after_the_other(void **state) {
  (void)state;
  const gm_copy copies[] = {copy_up(0, BYTES), copy_down(0, BYTES)};
  play();
  run(&copies[0], 1, NULL);
  cuda_say("advance 5000000"); /* between them nobody is under way */
  plays = true;
  run(&copies[1], 1, NULL);
  const gm_transfer_totals now = totals_of(device);
  assert_int_equal(now.users, 2);
  assert_int_equal(now.useful_bytes, 2 * BYTES);
  assert_true(now.overlap < 0.01 && now.overhead < 0.01);
  near(now.seconds, now.up + now.down);
  cuda_say("set LINK off");
  plays = false;
}

/* Two transfers in streams of their own: both ways are busy at a time. */
static void two_transfers_beside_each_other(void **state) {
  (void)state;
  gm_error err;
  gm_stream *streams[2];
  gm_transfer *both[2];
  void *pinned[2];
  for (int i = 0; i < 2; i++) {
    ok(gm_stream_create(device, &streams[i], &err), &err);
    pinned[i] = i ? down : up;
    ok(gm_host_register(device, pinned[i], BYTES, &err), &err); /* past the ring, so all is submitted at once */
  }
  const gm_copy copies[] = {copy_up(0, BYTES), copy_down(0, BYTES)};
  play();
  for (int i = 0; i < 2; i++) {
    const gm_transfer_params params = {.struct_size = sizeof params, .stream = streams[i]};
    both[i] = start(&copies[i], 1, &params);
  }
  for (int i = 0; i < 2; i++) wait_for(both[i], GM_OK);
  const gm_transfer_totals now = end_play();
  assert_true(now.overlap > 0.99);
  for (int i = 0; i < 2; i++) {
    release(both[i]);
    ok(gm_host_unregister(device, pinned[i], &err), &err);
    ok(gm_stream_close(streams[i], &err), &err);
  }
}

/* --- pipelines --- */

static int pieces;

static gm_status source(void *user, void *host, uint64_t most, uint64_t *out_bytes) {
  (void)user;
  memset(host, pieces, most);
  *out_bytes = pieces-- > 0 ? most : 0;
  return GM_OK;
}

static gm_status step(void *user, gm_pipeline_item *item, gm_error *err) {
  (void)user;
  return gm_block_copy(pool, &item->out, 0, pool, &item->in, 0, item->bytes, item->stream, NULL, err);
}

static gm_status sink(void *user, const void *host, uint64_t bytes, uint64_t index) {
  (void)user, (void)host, (void)bytes, (void)index;
  return GM_OK;
}

static void a_pipeline(void **state) {
  (void)state;
  gm_error err;
  gm_pipeline *pipeline;
  const gm_pipeline_params params = {.struct_size = sizeof params,
                                     .item_bytes = SLOT,
                                     .out_bytes = SLOT,
                                     .in_pool = pool,
                                     .source = source,
                                     .step = step,
                                     .sink = sink};
  pieces = 200;
  ok(gm_pipeline_create(device, &params, &pipeline, &err), &err);
  play();
  gm_pipeline_stats stats = {.struct_size = sizeof stats};
  ok(gm_pipeline_run(pipeline, &stats, &err), &err);
  const gm_transfer_totals now = end_play();
  near(stats.up_utilisation, now.up_utilisation); /* which the journal has confirmed */
  near(stats.down_utilisation, now.down_utilisation);
  near(stats.overlap, now.overlap);
  ok(gm_pipeline_destroy(pipeline, &err), &err);
  assert_int_equal(now.users, 1);
  assert_int_equal(now.useful_bytes, 400 * SLOT);
  assert_true(now.overlap > 0.9);
  assert_true(totals_of(device).seconds == now.seconds);
}

/* A pushed item is under way until it is flushed, whatever the program does between its calls. */
static void pushed_pieces_are_under_way(void **state) {
  (void)state;
  gm_error err;
  gm_pipeline *pipeline;
  gm_pipeline_params params = {
      .struct_size = sizeof params, .item_bytes = SLOT, .out_bytes = SLOT, .in_pool = pool, .step = step, .sink = sink};
  ok(gm_pipeline_create(device, &params, &pipeline, &err), &err);
  play();
  ok(gm_pipeline_push(pipeline, up, SLOT, UINT64_MAX, &err), &err);
  cuda_say("advance 10000000");
  near(totals_of(device).seconds, 10e-3);
  gm_pipeline_stats stats = {.struct_size = sizeof stats};
  ok(gm_pipeline_flush(pipeline, &stats, &err), &err);
  near(stats.up_utilisation, SLOT / 1e9 / 10e-3);
  cuda_say("advance 10000000");
  near(totals_of(device).seconds, 10e-3);
  cuda_say("set LINK off");
  plays = false;
  ok(gm_pipeline_destroy(pipeline, &err), &err);
}

/* --- models --- */

static void a_load_and_a_save(void **state) {
  (void)state;
  gm_error err;
  temp_folder folder;
  gm_model *model;
  gm_loaded_model *loaded;
  temp_folder_make(&folder);
  char header[256];
  const int length = snprintf(header, sizeof header,
                              "{\"w\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%d]}}", BYTES, BYTES);
  unsigned char *bytes = calloc(1, 8 + (size_t)length + BYTES);
  assert_non_null(bytes);
  bytes[0] = (unsigned char)length;
  memcpy(bytes + 8, header, (size_t)length);
  memcpy(bytes + 8 + length, up, BYTES);
  const char *path = temp_folder_write(&folder, "m.safetensors", bytes, 8 + (uint64_t)length + BYTES);
  ok(gm_model_open(NULL, path, &model, &err), &err);
  play();
  ok(gm_model_load(model, pool, NULL, &loaded, NULL, &err), &err);
  plays = true;
  gm_transfer_totals now = end_play();
  assert_int_equal(now.useful_bytes, BYTES);
  assert_true(now.seconds > 0.99 * now.up);
  play();
  ok(gm_model_save(model, loaded, temp_folder_join(&folder, "n.safetensors"), NULL, NULL, &err), &err);
  now = end_play();
  assert_int_equal(now.down_bytes, BYTES);
  ok(gm_loaded_model_release(loaded, NULL), &err);
  gm_model_close(model);
  free(bytes);
  temp_folder_remove(&folder);
}

int main(void) {
#define TOTALS_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      TOTALS_TEST(before_anything_all_is_zero),     TOTALS_TEST(one_transfer_after_the_other),
      TOTALS_TEST(two_transfers_beside_each_other), TOTALS_TEST(a_pipeline),
      TOTALS_TEST(pushed_pieces_are_under_way),     TOTALS_TEST(a_load_and_a_save),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
