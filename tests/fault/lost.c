/* gm_lost_test BACKEND: a device is lost while a program holds everything it can hold. The loss is played: from
 * one moment on every call of the driver answers it. Prints "N passed, N failed" last; 77 without a device. */
#include <stdio.h>
#include <string.h>

#include "fault/fault.h"
#include "gm/buffer.h"
#include "gm/debug.h"
#include "gm/native_cuda.h"
#include "gm/native_hip.h"
#include "gm/native_opencl.h"
#include "gm/scope.h"
#include "support/named_libraries.h"

enum { LOST_BYTES = 5000 };

typedef struct lost {
  gm_context *ctx;
  gm_device *device, *other, *adopted; /* adopted: the same once more, as an engine would lend it */
  gm_pool *pool, *other_pool, *adopted_pool;
  gm_stream *stream;
  gm_block blocks[4], adopted_block;
  gm_buffer *buffer, *scoped;
  gm_scope *scope;
  gm_point point;
  void *mapping; /* of blocks[3]; NULL: the device has no such memory */
} lost;

static unsigned lost_passed, lost_failed;
static unsigned char lost_bytes[LOST_BYTES];

static void lost_check(bool good, const char *what, const gm_error *err) {
  lost_passed += good;
  lost_failed += !good;
  if (!good) printf("FAIL %s (%s)\n", what, err ? err->message : "");
}

#define LOST_IS(call, want)                   \
  do {                                        \
    gm_error lost_err = {.status = GM_OK};    \
    gm_error *err = &lost_err;                \
    lost_check((call) == (want), #call, err); \
  } while (0)
#define LOST_OK(call) LOST_IS(call, GM_OK)
#define LOST_GONE(call) LOST_IS(call, GM_ERR_DEVICE_LOST)

static gm_status lost_open_device(lost *l, const char *backend, gm_error *err) {
  const gm_context_params params = {.struct_size = sizeof params,
                                    .services = &fault_services,
                                    .libraries = named_libraries(),
                                    .symbol_hook = fault_hook,
                                    .ignore_environment = true};
  gm_status status = gm_context_create(&params, &l->ctx, err);
  if (!status) status = gm_device_open_index(l->ctx, backend, 0, &l->device, err);
  return status;
}

static void lost_map(lost *l) {
  const gm_request request = {.bytes = LOST_BYTES,
                              .flags = GM_HOST_VISIBLE | GM_INSERT_WAIT,
                              .must_be = GM_DEVICE_ACCESSIBLE,
                              .stream = l->stream};
  if (gm_alloc(l->pool, &request, &l->blocks[3]) > GM_ACQUIRE_FRESH) return;
  LOST_OK(gm_block_map(l->pool, &l->blocks[3], 0, LOST_BYTES, GM_MAP_WRITE, l->stream, &l->mapping, err));
}

/* Not Vulkan: there an engine lends its queues, too, and here is none. */
static void lost_adopt(lost *l) {
  gm_cuda_device cuda = {.head = {sizeof cuda, GM_API_CUDA}};
  gm_hip_device hip = {.head = {sizeof hip, GM_API_HIP}};
  gm_opencl_device opencl = {.head = {sizeof opencl, GM_API_OPENCL}};
  gm_native_device *const natives[] = {&cuda.head, &hip.head, &opencl.head};
  const gm_request request = {.bytes = LOST_BYTES};
  for (size_t i = 0; i < sizeof natives / sizeof natives[0]; i++) {
    if (strcmp(gm_api_name(natives[i]->api), gm_device_get_info(l->device)->backend) != 0) continue;
    LOST_OK(gm_device_native(l->device, natives[i], err));
    LOST_OK(gm_device_adopt(l->ctx, natives[i], &l->adopted, err));
  }
  if (!l->adopted) return;
  LOST_OK(gm_pool_create(l->adopted, NULL, &l->adopted_pool, err));
  LOST_OK((gm_status)(gm_alloc(l->adopted_pool, &request, &l->adopted_block) > GM_ACQUIRE_FRESH));
}

static void lost_hold_buffers(lost *l) {
  const gm_buffer_params params = {.struct_size = sizeof params,
                                   .request = {.bytes = LOST_BYTES, .stream = l->stream},
                                   .fallback = GM_FALLBACK_REFUSE};
  LOST_OK(gm_buffer_create(l->pool, &params, &l->buffer, err));
  LOST_OK(gm_scope_create(l->pool, &l->scope, err));
  LOST_OK(gm_scope_buffer(l->scope, &params, &l->scoped, err));
  gm_buffer_retain(l->scoped);
  LOST_OK(gm_buffer_write(l->buffer, 0, lost_bytes, LOST_BYTES, l->stream, err));
}

/* Blocks out, one freed in the stream's order, a point nobody has waited for, a mapping open, a second device. */
static void lost_hold(lost *l, uint64_t zone) {
  const gm_pool_params params = {.struct_size = sizeof params, .checked = true, .track = true, .red_zone_bytes = zone};
  const gm_request request = {.bytes = LOST_BYTES};
  LOST_OK(gm_pool_create(l->device, &params, &l->pool, err));
  LOST_OK(gm_stream_create(l->device, &l->stream, err));
  LOST_OK(gm_device_open_index(l->ctx, "cpu", 0, &l->other, err));
  LOST_OK(gm_pool_create(l->other, NULL, &l->other_pool, err));
  for (int i = 0; i < 3; i++) LOST_OK((gm_status)(gm_alloc(l->pool, &request, &l->blocks[i]) > GM_ACQUIRE_FRESH));
  lost_hold_buffers(l);
  LOST_OK(gm_block_fill(l->pool, &l->blocks[0], 0, LOST_BYTES, "x", 1, l->stream, NULL, err));
  LOST_OK(gm_free(l->pool, &l->blocks[0], l->stream));
  LOST_OK(gm_stream_record(l->stream, &l->point, err));
  lost_adopt(l);
  lost_map(l);
}

static void lost_calls(lost *l, const char *backend) {
  gm_pool *pool = l->pool;
  gm_block block;
  gm_stream *stream = NULL;
  gm_device *again = NULL;
  gm_point point = {0};
  gm_error why = {.status = GM_OK};
  const gm_request request = {.bytes = UINT64_C(1) << 29}; /* more than a segment */
  /* The first to reach the driver finds the loss; what is written by the host alone may not. */
  LOST_GONE(gm_stream_create(l->device, &stream, err));
  LOST_GONE(gm_block_fill(pool, &l->blocks[1], 0, LOST_BYTES, "y", 1, l->stream, NULL, err));
  LOST_GONE(gm_block_write(pool, &l->blocks[1], 0, lost_bytes, LOST_BYTES, NULL, NULL, err));
  LOST_GONE(gm_block_read(pool, &l->blocks[1], 0, lost_bytes, LOST_BYTES, l->stream, NULL, err));
  LOST_GONE(gm_block_copy(pool, &l->blocks[1], 0, pool, &l->blocks[2], 0, LOST_BYTES, l->stream, NULL, err));
  LOST_GONE(gm_stream_record(l->stream, &point, err));
  LOST_GONE(gm_stream_sync(l->stream, err));
  LOST_GONE(gm_device_state(l->device, &why));
  lost_check(why.message[0] != 0, "gm_device_state says why", NULL);
  gm_status waited = gm_point_wait(l->device, &l->point, UINT64_MAX, &why); /* returns, whatever it says */
  lost_check(waited == GM_OK || waited == GM_ERR_DEVICE_LOST, "gm_point_wait", &why);
  lost_check(gm_alloc(pool, &request, &block) == GM_ACQUIRE_FAILED, "gm_alloc of more than is pooled", NULL);
  lost_check(gm_device_open_index(l->ctx, backend, 0, &again, &why) != GM_OK, "opening it while it is lost", &why);
}

/* Memory that was made in other ways is lost as well, and says so. */
static void lost_held(lost *l) {
  gm_buffer *buffer = NULL;
  gm_error why = {.status = GM_OK};
  const gm_buffer_params params = {
      .struct_size = sizeof params, .request = {.bytes = UINT64_C(1) << 29}, .fallback = GM_FALLBACK_REFUSE};
  LOST_GONE(gm_buffer_read(l->buffer, 0, lost_bytes, LOST_BYTES, l->stream, err));
  LOST_GONE(gm_buffer_write(l->scoped, 0, lost_bytes, LOST_BYTES, l->stream, err));
  lost_check(gm_scope_buffer(l->scope, &params, &buffer, &why) != GM_OK, "a buffer of a lost device", &why);
  lost_check(why.message[0] != 0, "gm_scope_buffer says why", NULL);
  if (!l->adopted) return;
  LOST_GONE(gm_block_read(l->adopted_pool, &l->adopted_block, 0, lost_bytes, LOST_BYTES, NULL, NULL, err));
  LOST_GONE(gm_device_state(l->adopted, err));
}

/* Calls that do not need the device go on. */
static void lost_rest(lost *l) {
  const gm_request request = {.bytes = LOST_BYTES};
  gm_block block;
  gm_stats stats = {.struct_size = sizeof stats};
  gm_pool_stats(l->pool, &stats);
  const uint64_t least = l->mapping ? 5 : 4; /* blocks and buffers; the one that was freed may still count */
  lost_check(stats.active == least || stats.active == least + 1, "gm_pool_stats", NULL);
  lost_check(stats.in_use_bytes >= 2 * LOST_BYTES, "in_use_bytes", NULL);
  LOST_OK((gm_status)(gm_alloc(l->other_pool, &request, &block) > GM_ACQUIRE_FRESH));
  LOST_OK(gm_block_write(l->other_pool, &block, 0, lost_bytes, LOST_BYTES, NULL, NULL, err));
  LOST_OK(gm_device_state(l->other, err));
  LOST_OK(gm_free(l->other_pool, &block, NULL));
}

static void lost_close_held(lost *l) {
  gm_scope_end(l->scope, l->stream);
  gm_buffer_release(l->scoped, NULL);
  gm_buffer_release(l->buffer, l->stream);
  if (!l->adopted) return;
  LOST_OK(gm_free(l->adopted_pool, &l->adopted_block, NULL));
  LOST_OK(gm_pool_destroy(l->adopted_pool, err));
  LOST_OK(gm_device_close(l->adopted, err));
}

static void lost_close(lost *l) {
  lost_close_held(l);
  if (l->mapping) {
    gm_status status = gm_block_unmap(l->pool, &l->blocks[3], l->mapping, l->stream, NULL);
    lost_check(status == GM_OK || status == GM_ERR_DEVICE_LOST, "gm_block_unmap", NULL);
    LOST_OK(gm_free(l->pool, &l->blocks[3], l->stream));
  }
  gm_point_release(l->device, &l->point);
  LOST_OK(gm_free(l->pool, &l->blocks[1], l->stream));
  LOST_OK(gm_free(l->pool, &l->blocks[2], NULL));
  LOST_OK(gm_stream_close(l->stream, err));
  gm_pool_trim(l->pool, 0);
  LOST_OK(gm_pool_destroy(l->pool, err));
  LOST_OK(gm_pool_destroy(l->other_pool, err));
  LOST_OK(gm_device_close(l->device, err));
  LOST_OK(gm_device_close(l->other, err));
}

/* The loss has ended: the same context opens the device again. */
static void lost_reopen(lost *l, const char *backend) {
  const gm_request request = {.bytes = LOST_BYTES};
  LOST_OK(gm_device_open_index(l->ctx, backend, 0, &l->device, err));
  LOST_OK(gm_pool_create(l->device, NULL, &l->pool, err));
  LOST_OK((gm_status)(gm_alloc(l->pool, &request, &l->blocks[0]) > GM_ACQUIRE_FRESH));
  LOST_OK(gm_block_write(l->pool, &l->blocks[0], 0, lost_bytes, LOST_BYTES, NULL, NULL, err));
  LOST_OK(gm_free(l->pool, &l->blocks[0], NULL));
  LOST_OK(gm_pool_destroy(l->pool, err));
  LOST_OK(gm_device_close(l->device, err));
}

static void lost_run(const char *backend, uint64_t zone) {
  lost l = {0};
  gm_error why = {.status = GM_OK};
  fault_reset();
  fault_driver *driver = fault_driver_of(backend);
  fault_now = (fault_plan){.driver = driver, .code = driver->lost, .lost_call = UINT32_MAX};
  lost_check(lost_open_device(&l, backend, &why) == GM_OK, "opening", &why);
  lost_hold(&l, zone);
  fault_now.lost_call = 1;
  lost_calls(&l, backend);
  lost_held(&l);
  lost_rest(&l);
  lost_close(&l);
  fault_now = (fault_plan){0};
  lost_reopen(&l, backend);
  LOST_OK(gm_context_destroy(l.ctx, err));
  lost_check(atomic_load(&fault_host_live) == 0, "host memory is left", NULL);
}

int main(int argc, char **argv) {
  lost probe = {0};
  gm_error why = {.status = GM_OK};
  if (argc != 2 || !fault_driver_of(argv[1])) return 2;
  const gm_status status = lost_open_device(&probe, argv[1], &why);
  gm_device_close(probe.device, NULL);
  gm_context_destroy(probe.ctx, NULL);
  if (status) {
    printf("no device of %s: %s\n", argv[1], why.message);
    return 77;
  }
  lost_run(argv[1], 0);
  lost_run(argv[1], 64);
  printf("%u passed, %u failed\n", lost_passed, lost_failed);
  return lost_failed != 0;
}
