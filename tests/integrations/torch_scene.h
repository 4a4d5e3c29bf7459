/* For tests that call the functions for cards as torch does: streams of the engine's, words in its memory. */
#ifndef GM_TESTS_INTEGRATIONS_TORCH_SCENE_H
#define GM_TESTS_INTEGRATIONS_TORCH_SCENE_H

#include "integrations/shared/cards.h"
#include "integrations/torch/gm_torch.h"
#include "tests/simulated/sim_cuda_fixture.h"

enum { TORCH_STREAMS = 2 };

static CUstream torch_streams[TORCH_STREAMS];

static inline int torch_scene_begin(void **state) {
  if (fixture_begin(state)) return 1;
  for (int i = 0; i < TORCH_STREAMS; i++) torch_streams[i] = fixture_stream(1 /* CU_STREAM_NON_BLOCKING */);
  gm_torch_init(1);
  return 0;
}

static inline int torch_scene_end(void **state) {
  fixture_do("release");
  if (gm_cards_close()) return 1;
  for (int i = 0; i < TORCH_STREAMS; i++) cu.cuStreamDestroy_v2(torch_streams[i]);
  return fixture_end(state);
}

static inline CUdeviceptr torch_alloc(size_t bytes, int stream) {
  void *pointer = gm_torch_alloc((ptrdiff_t)bytes, 0, torch_streams[stream]);
  assert_non_null(pointer);
  return (CUdeviceptr)(uintptr_t)pointer;
}

/* NOLINTNEXTLINE(performance-no-int-to-ptr): torch has pointers */
static inline void *torch_pointer(CUdeviceptr address) { return (void *)(uintptr_t)address; }

static inline void torch_free(CUdeviceptr address, size_t bytes, int stream) {
  gm_torch_free(torch_pointer(address), (ptrdiff_t)bytes, 0, torch_streams[stream]);
}

/* Work of the engine: every whole word of the memory becomes `word`. */
static inline void torch_fill(CUdeviceptr address, size_t bytes, unsigned word, int stream) {
  if (bytes >= sizeof word) assert_cu(cu.cuMemsetD32Async(address, word, bytes / sizeof word, torch_streams[stream]));
}

/* Later work of `later` follows what `earlier` has so far. */
static inline void torch_follow(int later, int earlier) {
  CUevent event = fixture_event(2 /* CU_EVENT_DISABLE_TIMING */);
  assert_cu(cu.cuEventRecord(event, torch_streams[earlier]));
  assert_cu(cu.cuStreamWaitEvent(torch_streams[later], event, 0));
  assert_cu(cu.cuEventDestroy_v2(event));
}

static inline void torch_sync(void) {
  for (int i = 0; i < TORCH_STREAMS; i++) assert_cu(cu.cuStreamSynchronize(torch_streams[i]));
}

#endif
