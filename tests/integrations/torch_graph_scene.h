/* For tests of torch's private pools: filters that count, captures, what a graph holds. */
#ifndef GM_TESTS_INTEGRATIONS_TORCH_GRAPH_SCENE_H
#define GM_TESTS_INTEGRATIONS_TORCH_GRAPH_SCENE_H

#include "tests/integrations/torch_scene.h"

enum { BYTES = 256 << 10, PARTS = 6, MIB = 1 << 20 };

static const gm_torch_pool_id one = {1, 0};

/* A filter that wants one stream, and counts. */
typedef struct meant {
  void *stream;
  int asked, dropped;
} meant;

static inline bool meant_wants(void *user, void *stream) {
  meant *self = user;
  assert_int_equal(self->dropped, 0);
  self->asked++;
  return stream == self->stream;
}

static inline void meant_drop(void *user) { ((meant *)user)->dropped++; }

static inline void begin(gm_torch_pool_id id, meant *filter, int stream) {
  *filter = (meant){.stream = torch_streams[stream]};
  const gm_torch_filter given = {meant_wants, meant_drop, filter};
  gm_torch_pool_begin(0, id, &given);
}

static inline void end(gm_torch_pool_id id, const meant *filter) {
  assert_int_equal(filter->dropped, 0);
  gm_torch_end_allocate_to_pool(0, id);
  assert_int_equal(filter->dropped, 1);
}

static inline void capture_begin(int stream) {
  assert_cu(cu.cuStreamBeginCapture_v2(torch_streams[stream], CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static inline CUgraphExec capture_end(int stream) {
  CUgraph graph = NULL;
  CUgraphExec run = NULL;
  assert_cu(cu.cuStreamEndCapture(torch_streams[stream], &graph));
  assert_cu(cu.cuGraphInstantiateWithFlags(&run, graph, 0));
  assert_cu(cu.cuGraphDestroy(graph));
  return run;
}

static inline bool is_captured(int stream) {
  CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
  assert_cu(cu.cuStreamIsCapturing(torch_streams[stream], &state));
  return state == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* The bytes of the card that the process holds. */
static inline long long held(void) { return fixture_number("used 0"); }

/* Fills blocks one after the other, each second one freed before the next comes, as temporaries are. */
static inline CUgraphExec capture(gm_torch_pool_id id, CUdeviceptr out[PARTS]) {
  meant filter;
  begin(id, &filter, 0);
  capture_begin(0);
  for (unsigned i = 0; i < PARTS; i++) {
    out[i] = torch_alloc(BYTES, 0);
    torch_fill(out[i], BYTES, 100 + i, 0);
    if (i % 2) torch_free(out[i], BYTES, 0);
  }
  CUgraphExec run = capture_end(0);
  end(id, &filter);
  return run;
}

static inline void free_outputs(const CUdeviceptr out[PARTS]) {
  for (unsigned i = 0; i < PARTS; i += 2) torch_free(out[i], BYTES, 0);
}

static inline void replay(CUgraphExec run, const CUdeviceptr out[PARTS]) {
  for (unsigned i = 0; i < PARTS; i += 2) torch_fill(out[i], BYTES, 1, 1);
  assert_cu(cu.cuGraphLaunch(run, torch_streams[1]));
  torch_sync();
  for (unsigned i = 0; i < PARTS; i += 2) assert_int_equal(fixture_word(out[i] + BYTES - 4), 100 + i);
}

#endif
