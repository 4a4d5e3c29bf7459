/* Managed memory that a pipeline prefetches for its steps, on the simulated CUDA driver. The journal of its link model
 * shows what ran beside what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "gm/managed.h"
#include "gm/pipeline.h"
#include "support/cuda_engine.h"
#include "support/cuda_fixture.h"
#include "support/link_model.h"
#include "tests/simulated/cuda/sim_control.h"

/* At 1000 MB/s a part of the weights takes 0.4 ms and a piece 0.1 ms; a step takes 1 ms. */
enum { ITEM = 100000, PART = 400000, PIECES = 60, NEVER = -1 };

static const char links[] = "set LINK h2d:1000,d2h:1000,engines:2,kernel:weigh:1000,poll:0";

static gm_context *ctx;
static gm_device *device;
static gm_pool *pool;
static gm_stream *stream;
static uintptr_t native;
static gm_managed *weights;
static void *module, *kernel;
static link_journal journal;

static struct {
  CUresult (*load)(void **out, const void *image);
  CUresult (*find)(void **out, void *module, const char *name);
  CUresult (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **,
                     void **);
  CUresult (*unload)(void *);
} cuda;

static struct {
  int read, weighed, fail_at, empty_at;
  bool in_step; /* the step prefetches, and waits for it */
} scene;

/* Reads a part of the weights, and the piece. */
static int weigh(const sim_launch *launch) {
  uint64_t part, piece;
  memcpy(&part, launch->arguments[0], sizeof part);
  memcpy(&piece, launch->arguments[1], sizeof piece);
  const unsigned char *of_part = launch->view(launch->view_user, part, PART);
  const unsigned char *of_piece = launch->view(launch->view_user, piece, ITEM);
  if (!of_part || !of_piece) return 700;
  scene.weighed += of_part[0] == of_piece[0] && of_part[PART - 1] == of_piece[0];
  return 0;
}

static gm_status read_piece(void *user, void *host, uint64_t most, uint64_t *out_bytes) {
  (void)user;
  if (scene.read == PIECES) return GM_OK;
  memset(host, scene.read++, most);
  *out_bytes = most;
  return GM_OK;
}

static gm_managed_range part_of(uint64_t index) { return (gm_managed_range){weights, index * PART, PART}; }

static gm_status need(void *user, uint64_t index, gm_managed_range *range) {
  (void)user;
  assert_true(!range->managed && !range->offset && !range->bytes);
  if ((int)index == scene.fail_at) return GM_ERR_NOT_FOUND;
  if ((int)index != scene.empty_at) *range = part_of(index);
  return GM_OK;
}

static gm_status step(void *user, gm_pipeline_item *item, gm_error *err) {
  (void)user;
  const gm_block *block = gm_managed_block(weights);
  uint64_t part = block->address + item->index * PART, in = item->in.address;
  void *arguments[] = {&part, &in};
  const gm_managed_range range = part_of(item->index);
  if (scene.in_step) {
    const gm_status status =
        gm_managed_prefetch(weights, GM_MANAGED_ON_DEVICE, range.offset, range.bytes, item->stream, NULL, err);
    if (status != GM_OK) return status;
  }
  return cuda.launch(kernel, 1, 1, 1, 1, 1, 1, 0, (CUstream)native, arguments, NULL) ? GM_ERR_DRIVER : GM_OK;
}

static void load_kernel(void) {
  static const char ptx[] = ".version 7.0\n.target sm_75\n.visible .entry weigh() {}\n";
  static const size_t sizes[] = {8, 8};
  static bool registered;
  sim_register_kernel_function *register_kernel;
  cuda_entry("cuModuleLoadData", &cuda.load);
  cuda_entry("cuModuleGetFunction", &cuda.find);
  cuda_entry("cuLaunchKernel", &cuda.launch);
  cuda_entry("cuModuleUnload", &cuda.unload);
  cuda_entry("simCudaRegisterKernel", &register_kernel);
  if (!registered) assert_int_equal(register_kernel("weigh", weigh, sizes, 2), 0);
  registered = true;
  assert_int_equal(cuda.load(&module, ptx), CUDA_SUCCESS);
  assert_int_equal(cuda.find(&kernel, module, "weigh"), CUDA_SUCCESS);
}

static int begin_with(const char *managed_memory, void **state) {
  gm_error err;
  const gm_managed_params managed = {.struct_size = sizeof managed, .bytes = (uint64_t)PIECES * PART};
  const gm_pool_params pool_params = {.struct_size = sizeof pool_params, .no_vmm = true}; /* kernels see it whole */
  cuda_engine_open(state);
  cuda_say("set LATENCY_US 0");
  cuda_say(managed_memory);
  load_kernel();
  ctx = adopt_scene_context("cuda", getenv("GM_CUDA_LIBRARY"));
  adopt_scene_ok(gm_device_open_index(ctx, "cuda", 0, &device, &err), &err);
  adopt_scene_ok(gm_pool_create(device, &pool_params, &pool, &err), &err);
  adopt_scene_ok(gm_managed_create(pool, &managed, &weights, &err), &err);
  for (int i = 0; i < PIECES; i++) memset((char *)gm_managed_host(weights) + (size_t)i * PART, i, PART);
  native = cuda_engine_stream_create();
  const gm_cuda_stream queue = cuda_engine_native(native);
  stream = adopt_scene_adopt(device, &queue.head);
  memset(&scene, 0, sizeof scene);
  scene.fail_at = scene.empty_at = NEVER;
  return 0;
}

static int begin(void **state) { return begin_with("set NO ", state); }
static int begin_copied(void **state) { return begin_with("set NO managed", state); }

static int end(void **state) {
  gm_error err;
  adopt_scene_ok(gm_managed_destroy(weights, NULL, &err), &err);
  adopt_scene_close(stream);
  cuda_engine_stream_destroy(native);
  adopt_scene_ok(gm_pool_destroy(pool, &err), &err);
  adopt_scene_end(ctx, device);
  assert_int_equal(cuda.unload(module), CUDA_SUCCESS);
  return cuda_engine_close(state);
}

static gm_pipeline_stats run(gm_status expected, bool needs, gm_error *err) {
  gm_pipeline *pipeline;
  gm_pipeline_stats stats = {.struct_size = sizeof stats};
  link_journal_copy *copy;
  const gm_pipeline_params params = {.struct_size = sizeof params,
                                     .item_bytes = ITEM,
                                     .depth = 3,
                                     .in_pool = pool,
                                     .stream = stream,
                                     .source = read_piece,
                                     .step = step,
                                     .needs = needs ? need : NULL};
  adopt_scene_ok(gm_pipeline_create(device, &params, &pipeline, err), err);
  cuda_say(links);
  assert_int_equal(gm_pipeline_run(pipeline, &stats, err), expected);
  assert_int_equal(gm_stream_sync(stream, NULL), GM_OK);
  cuda_entry("simCudaJournal", &copy);
  link_journal_take(&journal, copy);
  assert_int_equal(cuda_count("early"), 0); /* no kernel reads what is still on its way */
  assert_int_equal(gm_pipeline_destroy(pipeline, NULL), GM_OK);
  cuda_say("set LINK off");
  return stats;
}

static void a_prefetch_runs_beside_earlier_steps(void **state) {
  static const gm__link_kind stages[] = {GM__LINK_H2D, GM__LINK_COMPUTE};
  (void)state;
  gm_error err;
  assert_true(gm_managed_is_native(weights));
  const gm_pipeline_stats stats = run(GM_OK, true, &err);
  assert_int_equal(stats.items, PIECES);
  assert_int_equal(scene.weighed, PIECES);
  assert_int_equal(stats.prefetched_bytes, (uint64_t)PIECES * PART);
  assert_int_equal(link_bytes(&journal, GM__LINK_H2D), (uint64_t)PIECES * (PART + ITEM));
  const uint64_t whole = link_makespan(&journal), expected = PIECES * 1000000 + 500000;
  if (whole < expected || whole > expected + expected / 100) fail_msg("%llu ns", (unsigned long long)whole);
  assert_true(link_overlap_share(&journal, stages, 2) > 0.97);
}

/* The control: a step that prefetches for itself has nothing beside it. */
static void a_prefetch_in_the_step_is_beside_nothing(void **state) {
  (void)state;
  gm_error err;
  scene.in_step = true;
  run(GM_OK, false, &err);
  assert_int_equal(scene.weighed, PIECES);
  assert_true(link_makespan(&journal) > PIECES * UINT64_C(1390000));
}

static void a_piece_may_need_nothing(void **state) {
  (void)state;
  gm_error err;
  scene.empty_at = 7;
  const gm_pipeline_stats stats = run(GM_OK, true, &err);
  assert_int_equal(stats.items, PIECES);
  assert_int_equal(link_bytes(&journal, GM__LINK_H2D), (uint64_t)PIECES * ITEM + (uint64_t)(PIECES - 1) * PART);
}

static void a_failure_names_stage_and_piece(void **state) {
  (void)state;
  gm_error err;
  scene.fail_at = 7;
  const gm_pipeline_stats stats = run(GM_ERR_NOT_FOUND, true, &err);
  assert_int_equal(stats.failed, GM_STAGE_PREFETCH);
  assert_int_equal(stats.failed_item, 7);
  assert_int_equal(stats.items, 7);
  assert_non_null(strstr(err.message, "prefetch"));
}

/* Where the driver has no managed memory, gm copies the same part at the same place. */
static void a_prefetch_may_be_a_copy(void **state) {
  (void)state;
  gm_error err;
  assert_false(gm_managed_is_native(weights));
  const gm_pipeline_stats stats = run(GM_OK, true, &err);
  assert_int_equal(stats.items, PIECES);
  assert_int_equal(scene.weighed, PIECES);
}

int main(void) {
#define MANAGED_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      MANAGED_TEST(a_prefetch_runs_beside_earlier_steps),
      MANAGED_TEST(a_prefetch_in_the_step_is_beside_nothing),
      MANAGED_TEST(a_piece_may_need_nothing),
      MANAGED_TEST(a_failure_names_stage_and_piece),
      cmocka_unit_test_setup_teardown(a_prefetch_may_be_a_copy, begin_copied, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
