/* Opening and closing, what is left behind, failing host memory, a forked child. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cts/cts.h"

/* Open files of this process. */
static int lifecycle_files(void) {
  DIR *folder = opendir("/proc/self/fd");
  int count = 0;
  while (folder && readdir(folder)) count++;
  if (folder) closedir(folder);
  return count;
}

static void lifecycle_open_again(cts *t) {
  int files = 0;
  const long long before = atomic_load(&t->heap.live_bytes);
  for (int i = 0; i < 5; i++) {
    void *device = NULL;
    gm_memory memory;
    const gm_memory_params params = {.struct_size = sizeof params, .bytes = 4096};
    CTS_OK(t, t->ops->device_open(t->driver, t->info.index, &device, &t->err));
    CTS_CHECK(t, device != NULL && device != t->device);
    CTS_OK(t, t->ops->memory_alloc(device, &params, &memory, &t->err));
    CTS_OK(t, t->ops->memory_free(device, &memory, GM_CLOSE_NORMAL, &t->err));
    t->ops->device_close(device, GM_CLOSE_NORMAL);
    if (i == 0) files = lifecycle_files(); /* what stays open is there now */
  }
  CTS_CHECK(t, atomic_load(&t->heap.live_bytes) <= before + 65536);
  CTS_CHECK(t, lifecycle_files() < files + 4);
}

static void lifecycle_two_drivers(cts *t) {
  void *driver = NULL, *device = NULL;
  gm_device_info info = {.struct_size = sizeof info};
  const long long before = atomic_load(&t->heap.live_bytes);
  CTS_OK(t, t->ops->init(&t->host, &driver, &t->err));
  CTS_OK(t, t->ops->device_open(driver, t->info.index, &device, &t->err));
  CTS_OK(t, t->ops->device_info(driver, t->info.index, device, &info, &t->err));
  CTS_CHECK(t, memcmp(info.uuid, t->info.uuid, sizeof info.uuid) == 0);
  t->ops->device_close(device, GM_CLOSE_NORMAL);
  t->ops->fini(driver, GM_CLOSE_NORMAL);
  CTS_CHECK(t, atomic_load(&t->heap.live_bytes) == before);
}

/* `status` is the answer of an entry with an output that was painted before. */
static gm_status lifecycle_kept(cts *t, gm_status status, const void *out, size_t bytes) {
  if (status && !t->failed)
    cts_check(t, cts_painted(out, bytes), "an entry without host memory writes no output", __FILE__, __LINE__);
  return status;
}

#define LIFECYCLE_TRY(t, call, out) (cts_paint(&(out), sizeof(out)), lifecycle_kept(t, call, &(out), sizeof(out)))

/* One fill, its point, a copy of that, and a point after it. */
static gm_status lifecycle_points(cts *t, void *device, void *stream, const gm_memory *memory) {
  const gm_backend_ops *ops = t->ops;
  const uint32_t pattern = 5;
  gm_backend_point points[3];
  uint32_t count = 0;
  gm_status status =
      LIFECYCLE_TRY(t, ops->fill(device, stream, memory, 1, 4001, &pattern, 4, &points[0], &t->err), points[0]);
  count += !status;
  if (!status) status = LIFECYCLE_TRY(t, ops->point_record(device, stream, &points[count], &t->err), points[count]);
  count += !status;
  if (!status && t->mode->ops->point_copy) {
    status = LIFECYCLE_TRY(t, ops->point_copy(device, &points[0], &points[count], &t->err), points[count]);
    count += !status;
  }
  for (uint32_t i = 0; i < count; i++) {
    const gm_status waited = ops->point_wait(device, &points[i], UINT64_MAX, &t->err);
    if (!status) status = waited;
    ops->point_release(device, &points[i], GM_CLOSE_NORMAL);
  }
  return status;
}

static gm_status lifecycle_work(cts *t, void *device, const gm_memory *memory) {
  const gm_backend_ops *ops = t->ops;
  void *stream = NULL;
  gm_stream_kind kind;
  const uint32_t pattern = 5;
  cts_paint(&kind, sizeof kind);
  if (t->has & CTS_STREAMS) {
    const gm_status status = LIFECYCLE_TRY(t, ops->stream_create(device, &stream, &kind, &t->err), stream);
    if (status) return lifecycle_kept(t, status, &kind, sizeof kind);
  }
  gm_status status = stream ? lifecycle_points(t, device, stream, memory) : GM_OK;
  if (status == GM_OK) status = ops->copy_to_device(device, stream, memory, 3, &pattern, 4, NULL, &t->err);
  if (stream) ops->stream_close(device, stream, GM_CLOSE_NORMAL);
  return status;
}

/* From nothing to a copy and back to nothing. Returns the first failure; gives everything back in any case. */
static gm_status lifecycle_session(cts *t, void *device) {
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = 5000};
  gm_memory memory;
  gm_status status = LIFECYCLE_TRY(t, t->ops->memory_alloc(device, &params, &memory, &t->err), memory);
  if (status) return status;
  status = lifecycle_work(t, device, &memory);
  const gm_status freed = t->ops->memory_free(device, &memory, GM_CLOSE_NORMAL, NULL);
  return status ? status : freed;
}

static gm_status lifecycle_round(cts *t) {
  void *driver, *device;
  gm_status status = LIFECYCLE_TRY(t, t->ops->init(&t->host, &driver, &t->err), driver);
  if (status) return status;
  status = LIFECYCLE_TRY(t, t->ops->device_open(driver, t->info.index, &device, &t->err), device);
  if (status == GM_OK) {
    status = lifecycle_session(t, device);
    t->ops->device_close(device, GM_CLOSE_NORMAL);
  }
  t->ops->fini(driver, GM_CLOSE_NORMAL);
  return status;
}

/* The N-th host allocation fails, for all N: the answer says so, nothing is left, and the next try works. */
static void lifecycle_host_memory_fails(cts *t) {
  enum { MOST = 2000 };
  const long long bytes = atomic_load(&t->heap.live_bytes), blocks = atomic_load(&t->heap.live_blocks);
  long long n = 1;
  for (; n < MOST && !t->failed; n++) {
    const long long start = atomic_load(&t->heap.calls);
    atomic_store(&t->heap.fail_at, start + n);
    const gm_status status = lifecycle_round(t);
    atomic_store(&t->heap.fail_at, 0);
    if (t->failed) return;
    const bool reached = atomic_load(&t->heap.calls) - start >= n;
    CTS_CHECK(t, atomic_load(&t->heap.live_bytes) == bytes && atomic_load(&t->heap.live_blocks) == blocks);
    if (!reached) CTS_OK(t, status);
    if (!reached) break;
    if (status) CTS_IS(t, status, GM_ERR_OUT_OF_HOST_MEMORY);
  }
  CTS_CHECK(t, n > 1 && n < MOST);
  CTS_OK(t, lifecycle_round(t));
}

/* In the child: what gm does there, with everything abandoned. 0 when all host memory came back. */
static int lifecycle_child(cts *t) {
  cts_close(t, GM_CLOSE_ABANDON);
  cts_stop(t, GM_CLOSE_ABANDON);
  return atomic_load(&t->heap.live_bytes) == 0 ? 0 : 1;
}

static void lifecycle_forked_child(cts *t) {
  void *stream;
  gm_memory memory;
  gm_backend_point point = {0};
  const uint32_t pattern = 9;
  if (!cts_stream(t, &stream) || !cts_memory(t, 0, 1 << 20, &memory)) return;
  for (int i = 0; i < 3; i++) {
    gm_backend_point *out = (t->has & CTS_POINTS) && stream ? &point : NULL;
    CTS_OK(t, t->ops->fill(t->device, stream, &memory, 0, 1 << 20, &pattern, 4, out, &t->err));
    CTS_OK(t, cts_order(t, stream));
    CTS_OK(t, cts_reach(t, &point));
  }
  const pid_t child = fork();
  CTS_CHECK(t, child >= 0);
  if (child == 0) _exit(lifecycle_child(t));
  int result = -1;
  CTS_CHECK(t, waitpid(child, &result, 0) == child);
  CTS_CHECK(t, result == 0);
  CTS_OK(t, t->ops->fill(t->device, stream, &memory, 0, 1 << 20, &pattern, 4, NULL, &t->err));
}

static void lifecycle_close_tolerates_nothing_left(cts *t) {
  void *driver = NULL;
  CTS_OK(t, t->ops->init(&t->host, &driver, &t->err));
  t->ops->fini(driver, GM_CLOSE_NORMAL);
  CTS_OK(t, t->ops->init(&t->host, &driver, &t->err));
  t->ops->fini(driver, GM_CLOSE_ABANDON);
}

static const cts_case lifecycle_cases[] = {
    {"lifecycle.open_again", lifecycle_open_again, CTS_OPENS},
    {"lifecycle.two_drivers", lifecycle_two_drivers, CTS_OPENS},
    {"lifecycle.close_tolerates_nothing_left", lifecycle_close_tolerates_nothing_left, CTS_OPENS},
    {"lifecycle.host_memory_fails", lifecycle_host_memory_fails, CTS_OPENS},
    {"lifecycle.forked_child", lifecycle_forked_child, 0},
};
const cts_suite cts_lifecycle_suite = {lifecycle_cases, sizeof lifecycle_cases / sizeof lifecycle_cases[0]};
