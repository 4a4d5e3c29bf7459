/* The simulated CUDA driver with its link model: three streams, three blocks, pinned memory and a kernel. */
#ifndef GM_TESTS_SIMULATED_SIM_LINK_FIXTURE_H
#define GM_TESTS_SIMULATED_SIM_LINK_FIXTURE_H

#include "tests/simulated/sim_cuda_fixture.h"
/* cmocka.h before it */
#include "support/link_model.h"

enum { MB = 1000000, SLOTS = 3, STREAMS = 3 };

static link_journal journal;
static link_journal_copy *journal_copy;
static CUstream streams[STREAMS];
static CUdeviceptr blocks[SLOTS];
static unsigned char *ins[SLOTS], *outs[SLOTS]; /* pinned */
static CUmodule module;
static CUfunction add;

static inline int load(void **state) {
  const int failed = fixture_load(state);
  fixture_symbol("simCudaJournal", &journal_copy);
  return failed;
}

static inline void link_on(const char *spec) {
  char command[256];
  snprintf(command, sizeof command, "set LINK %s", spec);
  fixture_do(command);
}

static inline int begin(void **state) {
  static const char ptx[] = ".version 7.0\n.target sm_75\n.visible .entry sim_add_u32() {}\n";
  if (fixture_begin(state)) return 1;
  for (int i = 0; i < STREAMS; i++) streams[i] = fixture_stream(CU_STREAM_NON_BLOCKING);
  for (int i = 0; i < SLOTS; i++) {
    void *host = NULL;
    blocks[i] = fixture_alloc(MB);
    assert_cu(cu.cuMemHostAlloc(&host, MB, 0));
    ins[i] = host;
    assert_cu(cu.cuMemHostAlloc(&host, MB, 0));
    outs[i] = host;
    memset(ins[i], 1, MB);
    memset(outs[i], 0, MB);
  }
  assert_cu(cu.cuModuleLoadData(&module, ptx));
  assert_cu(cu.cuModuleGetFunction(&add, module, "sim_add_u32"));
  return 0;
}

static inline int end(void **state) {
  for (int i = 0; i < STREAMS; i++) assert_cu(cu.cuStreamDestroy_v2(streams[i]));
  for (int i = 0; i < SLOTS; i++) {
    assert_cu(cu.cuMemFree_v2(blocks[i]));
    assert_cu(cu.cuMemFreeHost(ins[i]));
    assert_cu(cu.cuMemFreeHost(outs[i]));
  }
  assert_cu(cu.cuModuleUnload(module));
  return fixture_end(state);
}

static inline void up(int stream, int slot, size_t bytes) {
  assert_cu(cu.cuMemcpyHtoDAsync_v2(blocks[slot], ins[slot], bytes, streams[stream]));
}

static inline void down(int stream, int slot, size_t bytes) {
  assert_cu(cu.cuMemcpyDtoHAsync_v2(outs[slot], blocks[slot], bytes, streams[stream]));
}

static inline void step(int stream, int slot, uint64_t words) {
  uint32_t value = 1;
  void *arguments[] = {&blocks[slot], &words, &value};
  assert_cu(cu.cuLaunchKernel(add, 1, 1, 1, 16, 1, 1, 0, streams[stream], arguments, NULL));
}

static inline void pass(int from, int to) { /* stream `to` waits for what `from` has now */
  CUevent event = fixture_event(CU_EVENT_DISABLE_TIMING);
  assert_cu(cu.cuEventRecord(event, streams[from]));
  assert_cu(cu.cuStreamWaitEvent(streams[to], event, 0));
  assert_cu(cu.cuEventDestroy_v2(event));
}

static inline void sync(int stream) { assert_cu(cu.cuStreamSynchronize(streams[stream])); }
static inline uint64_t now(void) { return (uint64_t)fixture_number("get now"); }

static inline void take(void) {
  for (int i = 0; i < STREAMS; i++) sync(i);
  link_journal_take(&journal, journal_copy);
}

#define LINK_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

#endif
