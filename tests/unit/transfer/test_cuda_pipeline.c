/* Pipelines on the simulated CUDA driver and its link model. Its virtual clock and its journal show what ran beside
 * what; a pipeline's length is compared with the closed form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

#include "core/staging/ring.h"
#include "gm/config.h"
#include "gm/copy.h"
#include "gm/pipeline.h"
#include "support/cuda_engine.h"
#include "support/cuda_fixture.h"
#include "support/link_model.h"
#include "test_data.h"
#include "tests/simulated/cuda/sim_control.h"

enum { ITEM = 10000, WORDS = ITEM / 4, PIECES = 100, CHAIN_BYTES = 250000, NANOS_A_PIECE = 1000000, NOBODY = -1 };

static gm_context *ctx;
static gm_device *device;
static gm_pool *pool;
static gm_stream *stream;
static uintptr_t native;
static gm_pipeline *pipeline;
static gm_pipeline_params params;
static link_journal journal;
static link_journal_copy *journal_copy;
static sim_register_kernel_function *register_kernel;
static void *module, *kernel;

static struct {
  CUresult (*load)(void **out, const void *image);
  CUresult (*find)(void **out, void *module, const char *name);
  CUresult (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **,
                     void **);
  CUresult (*unload)(void *);
} cuda;

static struct {
  int pieces, read, written, lose_at;
  bool waits;  /* the step waits for its own work */
  bool linked; /* the link model is on */
} scene;

/* out[i] = in[i] + 1 */
static int plus_one(const sim_launch *launch) {
  uint64_t in, out, words;
  memcpy(&in, launch->arguments[0], sizeof in);
  memcpy(&out, launch->arguments[1], sizeof out);
  memcpy(&words, launch->arguments[2], sizeof words);
  const uint32_t *from = launch->view(launch->view_user, in, words * 4);
  uint32_t *to = launch->view(launch->view_user, out, words * 4);
  if (!from || !to) return 700;
  for (uint64_t i = 0; i < words; i++) to[i] = from[i] + 1;
  return 0;
}

static void use(const void *host, uint64_t bytes, const char *how) {
  char command[96], reply[32] = "";
  if (!scene.linked) return;
  snprintf(command, sizeof command, "use %llu %llu %s", (unsigned long long)(uintptr_t)host, (unsigned long long)bytes,
           how);
  assert_int_equal(cuda_script(command, reply, sizeof reply), 0);
  assert_string_equal(reply, "1");
}

static gm_status read_piece(void *user, void *host, uint64_t most, uint64_t *out_bytes) {
  (void)user;
  if (scene.read == scene.pieces) return GM_OK;
  use(host, most, "write");
  for (uint64_t i = 0; i < WORDS; i++) ((uint32_t *)host)[i] = (uint32_t)(scene.read * 7) + (uint32_t)i;
  scene.read++;
  *out_bytes = most;
  return GM_OK;
}

static gm_status step_piece(void *user, gm_pipeline_item *item, gm_error *err) {
  (void)user;
  uint64_t in = item->in.address, out = item->out_bytes ? item->out.address : in, words = WORDS;
  void *arguments[] = {&in, &out, &words};
  if ((int)item->index == scene.lose_at) cuda_say("lose 700");
  if (cuda.launch(kernel, 1, 1, 1, 1, 1, 1, 0, (CUstream)native, arguments, NULL)) return GM_ERR_DEVICE_LOST;
  return scene.waits ? gm_stream_sync(item->stream, err) : GM_OK;
}

static gm_status write_piece(void *user, const void *host, uint64_t bytes, uint64_t index) {
  (void)user;
  assert_int_equal(bytes, ITEM);
  assert_int_equal(index, scene.written);
  use(host, bytes, "read");
  for (uint64_t i = 0; i < WORDS; i++) {
    const uint32_t wanted = (uint32_t)(scene.written * 7) + (uint32_t)i + 1;
    if (((const uint32_t *)host)[i] != wanted) fail_msg("piece %d, word %d", scene.written, (int)i);
  }
  scene.written++;
  return GM_OK;
}

static gm_status write_nothing(void *user, const void *host, uint64_t bytes, uint64_t index) {
  (void)user, (void)host, (void)bytes, (void)index;
  return GM_OK;
}

static void load_kernel(void) {
  static const char ptx[] = ".version 7.0\n.target sm_75\n.visible .entry plus_one() {}\n";
  static const size_t sizes[] = {8, 8, 8};
  cuda_entry("cuModuleLoadData", &cuda.load);
  cuda_entry("cuModuleGetFunction", &cuda.find);
  cuda_entry("cuLaunchKernel", &cuda.launch);
  cuda_entry("cuModuleUnload", &cuda.unload);
  cuda_entry("simCudaRegisterKernel", &register_kernel);
  cuda_entry("simCudaJournal", &journal_copy);
  static bool registered;
  if (!registered) assert_int_equal(register_kernel("plus_one", plus_one, sizes, 3), 0);
  registered = true;
  assert_int_equal(cuda.load(&module, ptx), CUDA_SUCCESS);
  assert_int_equal(cuda.find(&kernel, module, "plus_one"), CUDA_SUCCESS);
}

static int begin(void **state) {
  gm_error err;
  const gm_pool_params pool_params = {.struct_size = sizeof pool_params};
  cuda_engine_open(state);
  cuda_say("set LATENCY_US 0");
  load_kernel();
  ctx = adopt_scene_context("cuda", getenv("GM_CUDA_LIBRARY"));
  adopt_scene_ok(gm_device_open_index(ctx, "cuda", 0, &device, &err), &err);
  adopt_scene_ok(gm_pool_create(device, &pool_params, &pool, &err), &err);
  native = cuda_engine_stream_create();
  const gm_cuda_stream queue = cuda_engine_native(native);
  stream = adopt_scene_adopt(device, &queue.head);
  memset(&scene, 0, sizeof scene);
  scene.pieces = PIECES;
  scene.lose_at = NOBODY;
  params = (gm_pipeline_params){.struct_size = sizeof params,
                                .item_bytes = ITEM,
                                .out_bytes = ITEM,
                                .in_pool = pool,
                                .stream = stream,
                                .source = read_piece,
                                .step = step_piece,
                                .sink = write_piece};
  pipeline = NULL;
  return 0;
}

static int end_of(bool lost, void **state) {
  gm_error err;
  adopt_scene_ok(gm_pipeline_destroy(pipeline, &err), &err);
  adopt_scene_close(stream);
  if (!lost) cuda_engine_stream_destroy(native);
  adopt_scene_ok(gm_pool_destroy(pool, &err), &err);
  adopt_scene_end(ctx, device);
  if (lost) return 0;
  assert_int_equal(cuda.unload(module), CUDA_SUCCESS);
  return cuda_engine_close(state);
}

static int end(void **state) { return end_of(false, state); }
static int end_lost(void **state) { return end_of(true, state); }

static void make(uint32_t depth, const char *links) {
  gm_error err;
  char command[256];
  params.depth = depth;
  scene.read = scene.written = 0;
  adopt_scene_ok(gm_pipeline_create(device, &params, &pipeline, &err), &err);
  snprintf(command, sizeof command, "set LINK %s,poll:0", links);
  cuda_say(command);
  scene.linked = true;
}

static gm_pipeline_stats run_whole(void) {
  gm_error err;
  gm_pipeline_stats stats = {.struct_size = sizeof stats};
  adopt_scene_ok(gm_pipeline_run(pipeline, &stats, &err), &err);
  assert_int_equal(stats.items, scene.pieces);
  assert_true(cuda_count("early") == 0 && cuda_count("events") < PIECES); /* points that have passed serve again */
  link_journal_take(&journal, journal_copy);
  assert_int_equal(link_bytes(&journal, GM__LINK_H2D), stats.up_bytes);
  assert_int_equal(link_bytes(&journal, GM__LINK_D2H), stats.down_bytes);
  return stats;
}

static void drop(void) {
  gm_error err;
  adopt_scene_ok(gm_pipeline_destroy(pipeline, &err), &err);
  pipeline = NULL;
}

/* Nanoseconds of a whole run. */
static uint64_t length(uint32_t depth, const char *links) {
  make(depth, links);
  run_whole();
  drop();
  return link_makespan(&journal);
}

/* Within 1 %: neither longer, nor shorter than can be. */
static void lasts(uint64_t nanos, uint64_t expected) {
  if (nanos < expected - expected / 100 || nanos > expected + expected / 100) {
    fail_msg("%llu ns, not %llu", (unsigned long long)nanos, (unsigned long long)expected);
  }
}

static void three_stages_run_beside_each_other(void **state) {
  (void)state;
  static const struct {
    const char *links;
    uint64_t up, step, down; /* microseconds of a piece */
  } cases[] = {{"h2d:10,d2h:10,kernel:*:1000", 1000, 1000, 1000},
               {"h2d:5,d2h:10,kernel:*:1000", 2000, 1000, 1000},
               {"h2d:10,d2h:4,kernel:*:300", 1000, 300, 2500},
               {"h2d:20,d2h:20,kernel:*:3000", 500, 3000, 500}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const uint64_t sum = cases[i].up + cases[i].step + cases[i].down;
    uint64_t most = cases[i].up > cases[i].step ? cases[i].up : cases[i].step;
    if (cases[i].down > most) most = cases[i].down;
    for (uint32_t depth = 3; depth < 6; depth++) {
      lasts(length(depth, cases[i].links), UINT64_C(1000) * (PIECES * most + sum - most));
    }
    lasts(length(0, cases[i].links), UINT64_C(1000) * (PIECES * most + sum - most));
  }
}

static void overlap_is_what_it_can_be(void **state) {
  (void)state;
  static const gm__link_kind kinds[] = {GM__LINK_H2D, GM__LINK_COMPUTE, GM__LINK_D2H};
  length(3, "h2d:10,d2h:7,kernel:*:800");
  assert_true(link_overlap_share(&journal, kinds, 3) >= 0.97);
}

static void two_stages_need_two_lanes(void **state) {
  (void)state;
  params.out_bytes = 0;
  params.sink = NULL;
  lasts(length(2, "h2d:10,kernel:*:700"), UINT64_C(1000) * (PIECES * 1000 + 700));
  lasts(length(2, "h2d:20,kernel:*:700"), UINT64_C(1000) * (PIECES * 700 + 500));
}

static void one_lane_cannot_overlap_up_and_step(void **state) {
  (void)state;
  length(1, "h2d:10,d2h:10,kernel:*:1000");
  assert_int_equal(link_overlap(&journal, GM__LINK_H2D, GM__LINK_COMPUTE), 0);
  assert_true(link_makespan(&journal) >= (uint64_t)PIECES * UINT64_C(2000000));
}

/* One engine for both directions: the two copies count as one stage. */
static void half_duplex_is_one_stage(void **state) {
  (void)state;
  const uint64_t nanos = length(4, "engines:1,h2d:10,d2h:10,kernel:*:500");
  assert_int_equal(link_overlap(&journal, GM__LINK_H2D, GM__LINK_D2H), 0);
  lasts(nanos, UINT64_C(1000) * (PIECES * 2000 + 500));
}

/* The control: a step that waits has nothing run beside it. */
static void a_step_that_waits_overlaps_nothing(void **state) {
  (void)state;
  scene.waits = true;
  length(4, "h2d:10,d2h:10,kernel:*:1000");
  assert_int_equal(link_overlap(&journal, GM__LINK_H2D, GM__LINK_COMPUTE), 0);
}

static uint64_t longest_stage(void) {
  const uint64_t up = link_busy(&journal, GM__LINK_H2D), down = link_busy(&journal, GM__LINK_D2H);
  const uint64_t step = link_busy(&journal, GM__LINK_COMPUTE), most = up > down ? up : down;
  return most > step ? most : step;
}

static void depth_makes_up_for_jitter(void **state) {
  (void)state;
  static const char links[] = "h2d:10,kernel:*:1000,jitter:50,seed:9";
  params.out_bytes = 0;
  params.sink = NULL;
  const uint64_t two = length(2, links), bound = longest_stage() + UINT64_C(2) * NANOS_A_PIECE;
  const uint64_t four = length(4, links);
  assert_true(four < two);
  if (four > bound + bound / 20) fail_msg("%llu ns of %llu", (unsigned long long)four, (unsigned long long)bound);
}

/* A line for each stage, a column for each half millisecond, and in it the piece that the stage works on. */
static void draw_stage(char *out, size_t capacity, const char *name, gm__link_kind kind) {
  char line[160], piece = '0';
  memset(line, ' ', sizeof line);
  size_t last = 0;
  for (size_t i = 0; i < journal.count; i++) {
    const gm__link_entry *entry = &journal.lines[i];
    if (entry->kind != kind) continue;
    for (uint64_t at = entry->start; at < entry->end && last < sizeof line - 1; at += NANOS_A_PIECE / 2) {
      last = (size_t)(at / (NANOS_A_PIECE / 2)) + 1;
      line[last - 1] = piece;
    }
    piece++;
  }
  snprintf(out + strlen(out), capacity - strlen(out), "%-6s%.*s\n", name, (int)last, line);
}

/* The picture of docs/transfers.md. */
static void the_page_shows_what_ran(void **state) {
  (void)state;
  static char picture[1024], page[65536];
  scene.pieces = 8;
  params.depth = 3;
  length(3, "h2d:10,d2h:20,kernel:*:1500");
  draw_stage(picture, sizeof picture, "up", GM__LINK_H2D);
  draw_stage(picture, sizeof picture, "step", GM__LINK_COMPUTE);
  draw_stage(picture, sizeof picture, "down", GM__LINK_D2H);
  FILE *file = fopen(GM_TEST_DATA "/../../docs/transfers.md", "r");
  assert_non_null(file);
  const size_t bytes = fread(page, 1, sizeof page - 1, file);
  fclose(file);
  assert_in_range(bytes, 1000, sizeof page - 2);
  if (!strstr(page, picture)) fail_msg("docs/transfers.md has another picture than\n%s", picture);
}

/* Nanoseconds of a chain of steps over one state, which stays on the device or goes over the host after each step. */
static uint64_t chain_length(const gm_block *state, uint32_t steps, bool carry, unsigned char *host) {
  gm_error err;
  uint64_t at = state->address, words = 1;
  void *arguments[] = {&at, &at, &words};
  cuda_say("set LINK h2d:2500:8,d2h:2500:8,kernel:*:10,poll:0");
  adopt_scene_ok(gm_block_write(pool, state, 0, host, CHAIN_BYTES, stream, NULL, &err), &err);
  for (uint32_t i = 0; i < steps; i++) {
    assert_int_equal(cuda.launch(kernel, 1, 1, 1, 1, 1, 1, 0, (CUstream)native, arguments, NULL), CUDA_SUCCESS);
    if (!carry || i + 1 == steps) continue;
    adopt_scene_ok(gm_block_read(pool, state, 0, host, CHAIN_BYTES, stream, NULL, &err), &err);
    adopt_scene_ok(gm_block_write(pool, state, 0, host, CHAIN_BYTES, stream, NULL, &err), &err);
  }
  adopt_scene_ok(gm_block_read(pool, state, 0, host, CHAIN_BYTES, stream, NULL, &err), &err);
  link_journal_take(&journal, journal_copy);
  return link_makespan(&journal);
}

static void a_state_that_stays_saves_the_way(void **state) {
  (void)state;
  enum { STEPS = 1000, COPY = 108000, STEP = 10000 }; /* nanoseconds */
  static unsigned char host[CHAIN_BYTES];
  const gm_request request = {.bytes = CHAIN_BYTES};
  gm_block block;
  assert_true(gm_acquired(gm_alloc(pool, &request, &block)));
  lasts(chain_length(&block, STEPS, false, host), UINT64_C(2) * COPY + (uint64_t)STEPS * STEP);
  assert_int_equal(host[0] + 256 * host[1], STEPS); /* each step adds 1 */
  memset(host, 0, sizeof host);
  lasts(chain_length(&block, STEPS, true, host), (uint64_t)STEPS * (2 * COPY + STEP));
  assert_int_equal(host[0] + 256 * host[1], STEPS);
  assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
}

/* The system locks no memory, or only so many slots. */
static void small_and_pageable_rings_serve(void **state) {
  (void)state;
  static const char *const pinned[] = {"set PINNED 1", "set PINNED 11000", "set PINNED 22000", "set PINNED 35000"};
  for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++) {
    cuda_say(pinned[i]);
    make(3, "h2d:10,d2h:10,pageable:5,kernel:*:1000");
    const gm_pipeline_stats stats = run_whole();
    assert_true(stats.why[0] != 0);
    assert_true(!i || stats.host_bytes <= (uint64_t)i * ITEM);
    drop();
  }
  cuda_say("set PINNED 0");
}

/* Each piece needs a slot on its way up and one on its way down. */
static void one_slot_of_staging_is_enough(void **state) {
  (void)state;
  gm_error err;
  adopt_scene_ok(gm_config_set(ctx, "staging.max_bytes", "0", &err), &err);
  make(3, "h2d:10,d2h:10,pageable:5,kernel:*:1000");
  const gm_pipeline_stats stats = run_whole();
  assert_int_equal(stats.host_bytes, ITEM);
  assert_non_null(strstr(stats.why, "staging.max_bytes"));
  drop();
}

/* Another user takes the slots of a pipeline that rests, and has them while it goes on. */
static void a_pipeline_goes_on_when_others_took_its_slots(void **state) {
  (void)state;
  static unsigned char piece[ITEM];
  enum { SLOTS = 5, PAGES = 3 };
  gm_error err;
  gm__ring *ring = NULL;
  gm__ring_slot *slots[SLOTS];
  int got = 0;
  params.source = NULL;
  params.sink = write_nothing;
  adopt_scene_ok(gm_config_set(ctx, "staging.max_bytes", "61440", &err), &err); /* PAGES pages five times */
  make(3, "h2d:10,d2h:10,kernel:*:1000");
  for (int i = 0; i < PIECES; i++) adopt_scene_ok(gm_pipeline_push(pipeline, piece, ITEM, UINT64_MAX, &err), &err);
  adopt_scene_ok(gm_pipeline_flush(pipeline, NULL, &err), &err);
  adopt_scene_ok(gm__ring_create(device, SLOTS, PAGES * 4096, &ring, &err), &err);
  while (got < SLOTS && gm__ring_take(ring, 0, &slots[got], NULL) == GM_OK) got++;
  assert_int_equal(got, SLOTS);
  for (int i = 0; i < PIECES; i++) adopt_scene_ok(gm_pipeline_push(pipeline, piece, ITEM, UINT64_MAX, &err), &err);
  adopt_scene_ok(gm_pipeline_flush(pipeline, NULL, &err), &err);
  while (got) gm__ring_give(ring, slots[--got], NULL);
  adopt_scene_ok(gm__ring_destroy(ring, &err), &err);
  assert_int_equal(cuda_count("early"), 0);
}

/* With pieces on the device: the child has what it inherited, and no driver. */
static void a_forked_child_ends_a_pipeline(void **state) {
  (void)state;
  static unsigned char piece[ITEM];
  gm_error err;
  int answer;
  params.source = NULL, params.sink = write_nothing;
  make(3, "h2d:10,d2h:10,kernel:*:1000");
  for (int i = 0; i < 3; i++) adopt_scene_ok(gm_pipeline_push(pipeline, piece, ITEM, UINT64_MAX, &err), &err);
  const pid_t child = fork();
  if (!child) {
    alarm(20);
    bool fine = gm_pipeline_push(pipeline, piece, ITEM, UINT64_MAX, NULL) == GM_ERR_FORKED;
    fine = fine && gm_pipeline_destroy(pipeline, NULL) == GM_OK;
    gm_stream_close(stream, NULL);
    gm_pool_destroy(pool, NULL);
    _exit(fine && gm_device_close(device, NULL) == GM_OK ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &answer, 0), child);
  assert_true(WIFEXITED(answer) && WEXITSTATUS(answer) == 0);
  adopt_scene_ok(gm_pipeline_flush(pipeline, NULL, &err), &err);
}

static void back_pressure_answers_busy(void **state) {
  (void)state;
  static unsigned char piece[ITEM];
  gm_error err;
  int sent = 0;
  params.source = NULL;
  params.sink = NULL;
  params.out_bytes = 0;
  make(2, "h2d:10,kernel:*:1000");
  while (sent < 100 && gm_pipeline_push(pipeline, piece, ITEM, 0, &err) == GM_OK) sent++;
  assert_true(err.status == GM_ERR_BUSY && err.native_code == 0);
  assert_int_equal(sent, 3); /* a slot for each lane, and one */
  adopt_scene_ok(gm_pipeline_push(pipeline, piece, ITEM, UINT64_MAX, &err), &err);
  adopt_scene_ok(gm_pipeline_flush(pipeline, NULL, &err), &err);
  assert_int_equal(cuda_count("early"), 0);
}

static void a_lost_device_ends_it(void **state) {
  (void)state;
  gm_error err;
  gm_pipeline_stats stats = {.struct_size = sizeof stats};
  scene.lose_at = 20;
  make(3, "h2d:10,d2h:10,kernel:*:1000");
  assert_int_equal(gm_pipeline_run(pipeline, &stats, &err), GM_ERR_DEVICE_LOST);
  assert_int_equal(stats.failed, GM_STAGE_STEP);
  assert_int_equal(stats.failed_item, 20);
}

static void a_step_that_never_ends_is_told(void **state) {
  (void)state;
  gm_error err;
  gm_pipeline_stats stats = {.struct_size = sizeof stats};
  params.timeout_ns = 20000000;
  params.depth = 3;
  adopt_scene_ok(gm_pipeline_create(device, &params, &pipeline, &err), &err);
  cuda_say("hold");
  assert_int_equal(gm_pipeline_run(pipeline, &stats, &err), GM_ERR_TIMEOUT);
  assert_int_equal(scene.written, 0);
  assert_int_equal(gm_pipeline_destroy(pipeline, &err), GM_ERR_TIMEOUT);
  cuda_say("release");
  gm_status status;
  do status = gm_pipeline_destroy(pipeline, &err); /* a busy machine may take several of the pipeline's limits */
  while (status == GM_ERR_TIMEOUT);
  adopt_scene_ok(status, &err);
  pipeline = NULL;
}

int main(void) {
#define PIPELINE_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      PIPELINE_TEST(three_stages_run_beside_each_other),
      PIPELINE_TEST(overlap_is_what_it_can_be),
      PIPELINE_TEST(two_stages_need_two_lanes),
      PIPELINE_TEST(one_lane_cannot_overlap_up_and_step),
      PIPELINE_TEST(half_duplex_is_one_stage),
      PIPELINE_TEST(a_step_that_waits_overlaps_nothing),
      PIPELINE_TEST(depth_makes_up_for_jitter),
      PIPELINE_TEST(the_page_shows_what_ran),
      PIPELINE_TEST(a_state_that_stays_saves_the_way),
      PIPELINE_TEST(small_and_pageable_rings_serve),
      PIPELINE_TEST(one_slot_of_staging_is_enough),
      PIPELINE_TEST(a_forked_child_ends_a_pipeline),
      PIPELINE_TEST(a_pipeline_goes_on_when_others_took_its_slots),
      PIPELINE_TEST(back_pressure_answers_busy),
      PIPELINE_TEST(a_step_that_never_ends_is_told),
      cmocka_unit_test_setup_teardown(a_lost_device_ends_it, begin, end_lost),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
