/* The simulated CUDA driver by itself: mapped memory, peers, copies of rectangles, and memory between two processes. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/simulated/sim_cuda_fixture.h"

enum { PAGE = 2 << 20 };

static CUmemAllocationProp device_memory(int device, CUmemAllocationHandleType types) {
  return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .requestedHandleTypes = types,
                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
}

static void allow(CUdeviceptr at, size_t bytes, int device) {
  CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                            .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  assert_cu(cu.cuMemSetAccess(at, bytes, &access, 1));
}

/* One page of memory seen at two addresses, one after the other, keeps its bytes. */
static void mapped_memory_moves(void **state) {
  (void)state;
  CUmemAllocationProp prop = device_memory(0, CU_MEM_HANDLE_TYPE_NONE);
  CUmemGenericAllocationHandle first = 0, second = 0, same = 0;
  CUdeviceptr base = 0;
  size_t granularity = 0;
  assert_cu(cu.cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  assert_int_equal(granularity, PAGE);
  assert_int_equal(cu.cuMemCreate(&first, 4096, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  assert_cu(cu.cuMemAddressReserve(&base, 4 * PAGE, 0, 0, 0));
  assert_cu(cu.cuMemCreate(&first, PAGE, &prop, 0));
  assert_cu(cu.cuMemCreate(&second, PAGE, &prop, 0));
  assert_cu(cu.cuMemMap(base, PAGE, 0, first, 0));
  assert_int_equal(cu.cuMemMap(base, PAGE, 0, second, 0), CUDA_ERROR_INVALID_VALUE);
  assert_cu(cu.cuMemMap(base + PAGE, PAGE, 0, second, 0));
  allow(base, 2 * PAGE, 0);
  assert_cu(cu.cuMemsetD32_v2(base, 1, 2 * PAGE / 4)); /* across both */
  assert_int_equal(fixture_word(base + 2 * PAGE - 4), 1);
  assert_int_equal(cu.cuMemUnmap(base, PAGE / 2), CUDA_ERROR_INVALID_VALUE);
  assert_cu(cu.cuMemRetainAllocationHandle(&same, (void *)(uintptr_t)(base + 5)));
  assert_int_equal(same, first);
  assert_cu(cu.cuMemRelease(same));
  assert_cu(cu.cuMemUnmap(base, 2 * PAGE));
  assert_cu(cu.cuMemMap(base + 3 * PAGE, PAGE, 0, first, 0));
  assert_int_equal(cu.cuMemAddressFree(base, 4 * PAGE), CUDA_ERROR_INVALID_VALUE);
  allow(base + 3 * PAGE, PAGE, 0);
  assert_int_equal(fixture_word(base + 3 * PAGE + 8), 1);
  assert_cu(cu.cuMemRelease(first)); /* the mapping keeps it */
  assert_int_equal(fixture_word(base + 3 * PAGE + 8), 1);
  assert_cu(cu.cuMemUnmap(base + 3 * PAGE, PAGE));
  assert_cu(cu.cuMemRelease(second));
  assert_int_equal(cu.cuMemRelease(second), CUDA_ERROR_INVALID_VALUE);
  assert_cu(cu.cuMemAddressFree(base, 4 * PAGE));
  assert_int_equal(fixture_number("used 0"), 4 << 20); /* the context alone */
}

static void mapped_memory_needs_access(void **state) {
  (void)state;
  CUmemAllocationProp prop = device_memory(0, CU_MEM_HANDLE_TYPE_NONE);
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr base = 0;
  assert_cu(cu.cuMemAddressReserve(&base, PAGE, 0, 0, 0));
  assert_cu(cu.cuMemCreate(&handle, PAGE, &prop, 0));
  assert_cu(cu.cuMemMap(base, PAGE, 0, handle, 0));
  assert_cu(cu.cuMemsetD32_v2(base, 1, 1));
  assert_int_equal(cu.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_cu(cu.cuMemUnmap(base, PAGE));
  assert_cu(cu.cuMemRelease(handle));
  assert_cu(cu.cuMemAddressFree(base, PAGE));
}

/* Advertised, yet refused: only trying tells. */
static void wsl_refuses_access_for_rdma(void **state) {
  (void)state;
  CUmemAllocationProp prop = device_memory(0, CU_MEM_HANDLE_TYPE_NONE);
  CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr base = 0;
  int advertised = 0;
  fixture_do("set WSL 1");
  assert_cu(cu.cuDeviceGetAttribute(&advertised, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0));
  assert_int_equal(advertised, 1);
  prop.allocFlags.gpuDirectRDMACapable = 1;
  assert_cu(cu.cuMemAddressReserve(&base, PAGE, 0, 0, 0));
  assert_cu(cu.cuMemCreate(&handle, PAGE, &prop, 0));
  assert_cu(cu.cuMemMap(base, PAGE, 0, handle, 0));
  assert_int_equal(cu.cuMemSetAccess(base, PAGE, &access, 1), CUDA_ERROR_NOT_SUPPORTED);
  assert_cu(cu.cuMemUnmap(base, PAGE));
  assert_cu(cu.cuMemRelease(handle));
  assert_cu(cu.cuMemAddressFree(base, PAGE));
}

static void peers_are_enabled_once(void **state) {
  (void)state;
  CUcontext here = NULL, there = NULL;
  assert_cu(cu.cuCtxGetCurrent(&here));
  assert_cu(cu.cuDevicePrimaryCtxRetain(&there, 1));
  int reaches = 0;
  assert_cu(cu.cuDeviceCanAccessPeer(&reaches, 0, 1));
  assert_int_equal(reaches, 1);
  assert_cu(cu.cuCtxEnablePeerAccess(there, 0));
  assert_int_equal(cu.cuCtxEnablePeerAccess(there, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  assert_cu(cu.cuCtxDisablePeerAccess(there));
  assert_int_equal(cu.cuCtxDisablePeerAccess(there), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  CUdeviceptr mine = fixture_alloc(64), other = 0;
  assert_cu(cu.cuCtxPushCurrent_v2(there));
  assert_cu(cu.cuMemAlloc_v2(&other, 64));
  assert_cu(cu.cuMemsetD32_v2(other, 77, 16));
  assert_cu(cu.cuCtxSynchronize());
  assert_cu(cu.cuCtxPopCurrent_v2(NULL));
  assert_cu(cu.cuMemcpyPeer(mine, here, other, there, 64));
  assert_int_equal(fixture_word(mine + 60), 77);
  fixture_do("set PEER silent");
  assert_cu(cu.cuMemsetD32_v2(mine, 1, 16));
  assert_cu(cu.cuMemcpyPeer(mine, here, other, there, 64));
  assert_int_equal(fixture_word(mine + 60), 1);
  assert_cu(cu.cuMemFree_v2(other));
  assert_cu(cu.cuMemFree_v2(mine));
  assert_cu(cu.cuDevicePrimaryCtxRelease_v2(1));
}

static void rectangles_leave_the_rest_alone(void **state) {
  (void)state;
  unsigned char from[6][8], to[6][8];
  for (int i = 0; i < 48; i++) from[i / 8][i % 8] = (unsigned char)i;
  memset(to, 0xff, sizeof to);
  CUdeviceptr device = fixture_alloc(1024);
  CUDA_MEMCPY2D up = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                      .srcHost = from,
                      .srcPitch = 8,
                      .srcXInBytes = 2,
                      .srcY = 1,
                      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                      .dstDevice = device,
                      .dstPitch = 512,
                      .WidthInBytes = 3,
                      .Height = 2};
  CUDA_MEMCPY2D down = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                        .srcDevice = device,
                        .srcPitch = 512,
                        .dstMemoryType = CU_MEMORYTYPE_HOST,
                        .dstHost = to,
                        .dstPitch = 8,
                        .dstXInBytes = 4,
                        .dstY = 2,
                        .WidthInBytes = 3,
                        .Height = 2};
  assert_cu(cu.cuMemcpy2D_v2(&up));
  assert_cu(cu.cuMemcpy2DAsync_v2(&down, NULL));
  for (int y = 0; y < 6; y++)
    for (int x = 0; x < 8; x++) {
      int inside = (y == 2 || y == 3) && x >= 4 && x < 7;
      assert_int_equal(to[y][x], inside ? from[y - 1][x - 2] : 0xff);
    }
  down.srcPitch = 2;
  assert_int_equal(cu.cuMemcpy2D_v2(&down), CUDA_ERROR_INVALID_VALUE);
  down.srcPitch = 1024;
  assert_int_equal(cu.cuMemcpy2D_v2(&down), CUDA_ERROR_INVALID_VALUE); /* past the end */
  assert_cu(cu.cuMemFree_v2(device));
}

static void batches_have_no_order(void **state) {
  (void)state;
  CUstream stream = fixture_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = fixture_alloc(64);
  unsigned *words = NULL;
  assert_cu(cu.cuMemHostAlloc((void **)&words, 8, 0));
  words[0] = 1;
  words[1] = 2;
  CUdeviceptr to[2] = {block, block}, from[2] = {(uintptr_t)&words[0], (uintptr_t)&words[1]};
  size_t sizes[2] = {4, 4}, first = 0, failed = 0;
  CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
  assert_cu(cu.cuMemcpyBatchAsync_v2(to, from, sizes, 2, &attributes, &first, 1, stream));
  assert_cu(cu.cuStreamSynchronize(stream));
  assert_int_equal(fixture_word(block), 1);
  sizes[1] = 128;
  assert_int_equal(cu.cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, &failed, stream),
                   CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(failed, 1);
  assert_cu(cu.cuMemFreeHost(words));
  assert_cu(cu.cuMemFree_v2(block));
  assert_cu(cu.cuStreamDestroy_v2(stream));
}

typedef struct offer {
  CUipcMemHandle memory;
  CUipcEventHandle event;
} offer;

static void tell(int file, const void *bytes, size_t count) {
  if (write(file, bytes, count) != (ssize_t)count) _exit(70);
}

static void hear(int file, void *bytes, size_t count) {
  if (read(file, bytes, count) != (ssize_t)count) _exit(71);
}

static void send_file(int socket, int file) {
  char byte = 0;
  union {
    char space[CMSG_SPACE(sizeof(int))];
    struct cmsghdr aligned;
  } control = {{0}};
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control};
  message.msg_controllen = sizeof control;
  struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof file);
  memcpy(CMSG_DATA(head), &file, sizeof file);
  if (sendmsg(socket, &message, 0) != 1) _exit(72);
}

static int receive_file(int socket) {
  char byte = 0;
  int file = -1;
  union {
    char space[CMSG_SPACE(sizeof(int))];
    struct cmsghdr aligned;
  } control;
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control};
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, 0) != 1) return -1;
  const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  if (head) memcpy(&file, CMSG_DATA(head), sizeof file);
  return file;
}

/* A process of its own: forks before the driver is loaded, so that both use it. It serves memory, then ends. */
static void serve_ipc(int socket) {
  CUcontext context = NULL;
  CUdeviceptr block = 0;
  CUevent event = NULL;
  CUstream stream = NULL;
  offer mine;
  char byte = 0;
  if (fixture_load(NULL) || cu.cuDevicePrimaryCtxRetain(&context, 0) || cu.cuCtxSetCurrent(context)) _exit(10);
  if (cu.cuMemAlloc_v2(&block, 4096) || cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) _exit(11);
  if (cu.cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING)) _exit(12);
  if (cu.cuIpcGetMemHandle(&mine.memory, block) || cu.cuIpcGetEventHandle(&mine.event, event)) _exit(13);
  if (cu.cuIpcOpenMemHandle_v2(&block, mine.memory, 1) != CUDA_ERROR_INVALID_CONTEXT) _exit(14);
  char command[64];
  unsigned long long id = 0;
  cu.cuStreamGetId(stream, &id);
  snprintf(command, sizeof command, "hold %llu", id);
  cu.control(command, NULL, 0);
  if (cu.cuMemsetD32Async(block, 1234, 1024, stream) || cu.cuEventRecord(event, stream)) _exit(15);
  tell(socket, &mine, sizeof mine);
  hear(socket, &byte, 1); /* the other process waits for the event by now */
  cu.control("release", NULL, 0);
  hear(socket, &byte, 1); /* it is done */
  unsigned word = 0;
  if (cu.cuMemcpyDtoH_v2(&word, block + 4, 4) || word != 4321) _exit(16);
  _exit(0);
}

static void serve_handle(int socket) {
  CUmemAllocationProp prop = device_memory(0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUcontext context = NULL;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr base = 0;
  int file = -1;
  char byte = 0;
  if (fixture_load(NULL) || cu.cuDevicePrimaryCtxRetain(&context, 0) || cu.cuCtxSetCurrent(context)) _exit(20);
  if (cu.cuMemCreate(&handle, PAGE, &prop, 0) || cu.cuMemAddressReserve(&base, PAGE, 0, 0, 0)) _exit(21);
  if (cu.cuMemMap(base, PAGE, 0, handle, 0)) _exit(22);
  CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  if (cu.cuMemSetAccess(base, PAGE, &access, 1) || cu.cuMemsetD32_v2(base, 5678, PAGE / 4)) _exit(23);
  if (cu.cuCtxSynchronize()) _exit(24);
  if (cu.cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)) _exit(25);
  send_file(socket, file);
  hear(socket, &byte, 1);
  _exit(0);
}

typedef struct server {
  pid_t pid;
  int socket;
} server;

/* Started before this process initialises CUDA. */
static server servers[2];

static int start_servers(void **state) {
  void (*const serve[2])(int) = {serve_ipc, serve_handle};
  for (int i = 0; i < 2; i++) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) return 1;
    servers[i] = (server){.pid = fork(), .socket = pair[0]};
    if (servers[i].pid == 0) {
      close(pair[0]);
      serve[i](pair[1]);
    }
    close(pair[1]);
  }
  return fixture_load(state);
}

static void end_server(const server *other) {
  int status = 0;
  assert_int_equal(write(other->socket, "", 1), 1);
  assert_int_equal(waitpid(other->pid, &status, 0), other->pid);
  close(other->socket);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void memory_and_events_cross_processes(void **state) {
  (void)state;
  offer theirs;
  CUdeviceptr block = 0, again = 0;
  CUevent event = NULL;
  CUstream stream = fixture_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr copy = fixture_alloc(4096);
  assert_int_equal(read(servers[0].socket, &theirs, sizeof theirs), (int)sizeof theirs);
  assert_cu(cu.cuIpcOpenMemHandle_v2(&block, theirs.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  assert_cu(cu.cuIpcOpenMemHandle_v2(&again, theirs.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  assert_int_equal(again, block);
  assert_cu(cu.cuIpcOpenEventHandle(&event, theirs.event));
  assert_cu(cu.cuStreamWaitEvent(stream, event, 0));
  assert_cu(cu.cuMemcpyDtoDAsync_v2(copy, block, 4096, stream));
  assert_int_equal(cu.cuEventQuery(event), CUDA_ERROR_NOT_READY);
  assert_int_equal(write(servers[0].socket, "", 1), 1);
  assert_cu(cu.cuStreamSynchronize(stream));
  assert_int_equal(fixture_word(copy + 4092), 1234);
  assert_cu(cu.cuMemsetD32_v2(block + 4, 4321, 1));
  assert_cu(cu.cuCtxSynchronize());
  end_server(&servers[0]);
  assert_int_equal(cu.cuMemFree_v2(block), CUDA_ERROR_INVALID_VALUE);
  assert_cu(cu.cuIpcCloseMemHandle(block));
  assert_cu(cu.cuIpcCloseMemHandle(block));
  assert_int_equal(cu.cuIpcCloseMemHandle(block), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cu.cuIpcOpenMemHandle_v2(&block, theirs.memory, 1), CUDA_ERROR_MAP_FAILED); /* its owner is gone */
  assert_cu(cu.cuEventDestroy_v2(event));
  assert_cu(cu.cuMemFree_v2(copy));
  assert_cu(cu.cuStreamDestroy_v2(stream));
}

static void handles_cross_processes(void **state) {
  (void)state;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr base = 0;
  int file = receive_file(servers[1].socket);
  assert_true(file >= 0);
  assert_int_equal(cu.cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)1, 1), CUDA_ERROR_INVALID_VALUE);
  assert_cu(
      cu.cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(file);
  end_server(&servers[1]);
  assert_cu(cu.cuMemAddressReserve(&base, PAGE, 0, 0, 0));
  assert_cu(cu.cuMemMap(base, PAGE, 0, handle, 0));
  assert_cu(cu.cuMemRelease(handle));
  allow(base, PAGE, 0);
  assert_int_equal(fixture_word(base + PAGE - 4), 5678);
  assert_cu(cu.cuMemUnmap(base, PAGE));
  assert_cu(cu.cuMemAddressFree(base, PAGE));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_begin, fixture_end)
  const struct CMUnitTest tests[] = {
      TEST(memory_and_events_cross_processes), TEST(handles_cross_processes),     TEST(mapped_memory_moves),
      TEST(mapped_memory_needs_access),        TEST(wsl_refuses_access_for_rdma), TEST(peers_are_enabled_once),
      TEST(rectangles_leave_the_rest_alone),   TEST(batches_have_no_order),
  };
  return cmocka_run_group_tests(tests, start_servers, NULL);
}
