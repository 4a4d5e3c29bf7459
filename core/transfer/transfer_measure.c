/* Whether the device is faster with small copies that are packed. Copies of one size go one by one, with one wait at
 * the end. Then their bytes are gathered, and go as one strided copy, or are scattered by the device. */
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/device/device_alloc.h"
#include "core/staging/staging.h"
#include "core/transfer/transfer.h"

/* So many copies that the wait for the end is a small part. */
enum {
  MEASURE_COPIES = 2 * GM__TRANSFER_SCATTERS,
  MEASURE_TURNS = 5,
  MEASURE_ALL = 3 * MEASURE_TURNS,
  MEASURE_LEAST = 256,
  MEASURE_MOST = 16384
};

typedef struct measure {
  gm_device *device;
  gm_stream *stream;
  gm_memory memory;
  unsigned char *from, *slot;
  uint64_t bytes;   /* of each copy; the steps are twice as large */
  gm_memory beside; /* the device scatters from there */
} measure;

static gm_status measure_wait(const measure *m, gm_point *point) {
  const gm_status status = gm_point_wait(m->device, point, GM__NEVER, NULL);
  gm_point_release(m->device, point);
  return status;
}

static gm_status measure_apart(const measure *m) {
  gm_point point = {0};
  gm_status status = GM_OK;
  for (uint64_t i = 0; i < MEASURE_COPIES && !status; i++) {
    const gm__access access = {m->device, m->memory, 2 * i * m->bytes, m->bytes};
    gm_point_release(m->device, &point);
    status = gm__access_write(&access, m->from + i * m->bytes, m->stream, &point, "gm_transfer", NULL);
  }
  const gm_status waited = measure_wait(m, &point);
  return status ? status : waited;
}

static gm_status measure_packed(const measure *m) {
  const gm_rect rect = {.row_bytes = m->bytes,
                        .rows = MEASURE_COPIES,
                        .slices = 1,
                        .src_row_pitch = m->bytes,
                        .src_slice_pitch = m->bytes * MEASURE_COPIES,
                        .dst_row_pitch = 2 * m->bytes,
                        .dst_slice_pitch = 2 * m->bytes * MEASURE_COPIES};
  gm_backend_point inner = {0, 0};
  for (uint64_t i = 0; i < MEASURE_COPIES; i++) memcpy(m->slot + i * m->bytes, m->from + i * m->bytes, m->bytes);
  const gm_status status = gm__submitting(m->device)->rect_to_device(m->device->handle, m->stream->handle, &m->memory,
                                                                     m->slot, &rect, &inner, NULL);
  gm_point point = {m->stream->id, inner.handle, inner.value};
  return status ? status : measure_wait(m, &point);
}

/* One turn; UINT64_MAX: it cannot. */
static uint64_t measure_time(const measure *m, gm_status (*run)(const measure *)) {
  const uint64_t begun = gm__now_ns();
  return run(m) ? UINT64_MAX : gm__now_ns() - begun;
}

static int measure_order(const void *one, const void *other) {
  const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
  return (a > b) - (a < b);
}

/* Some turns of one way, one after the other. The first of them ends what the other way has left behind. */
static void measure_turns(const measure *m, gm_status (*run)(const measure *), uint64_t *times) {
  measure_time(m, run);
  for (int i = 0; i < MEASURE_TURNS; i++) times[i] = measure_time(m, run);
}

/* Is the packed way faster? The fastest turn of a way needs luck, and other programs make turns slow. So the lower
 * quartiles count, and the ways alternate. To sort and to plan costs what the packed way has to be better by. */
static bool measure_is_faster(const measure *m, gm_status (*packed_way)(const measure *)) {
  uint64_t apart[MEASURE_ALL], packed[MEASURE_ALL];
  for (int i = 0; i < MEASURE_ALL; i += MEASURE_TURNS) {
    measure_turns(m, measure_apart, apart + i);
    measure_turns(m, packed_way, packed + i);
  }
  qsort(apart, MEASURE_ALL, sizeof *apart, measure_order);
  qsort(packed, MEASURE_ALL, sizeof *packed, measure_order);
  return packed[MEASURE_ALL / 4] < apart[MEASURE_ALL / 4] / 4 * 3;
}

/* Up to which size. */
static uint64_t measure_sizes(measure *m, gm_status (*packed_way)(const measure *)) {
  uint64_t small = 0;
  m->bytes = MEASURE_LEAST;
  if (packed_way(m)) return 0; /* it cannot */
  for (; m->bytes <= MEASURE_MOST; m->bytes *= 4) {
    if (measure_is_faster(m, packed_way)) small = m->bytes;
  }
  return small;
}

/* Gathered, sent as one copy, and scattered by the device. */
static gm_status measure_scattered(const measure *m) {
  const gm__access all = {m->device, m->beside, 0, MEASURE_COPIES * m->bytes};
  gm_copy_item items[MEASURE_COPIES];
  gm_point point = {0};
  gm_backend_point inner = {0, 0};
  if (all.bytes > m->beside.bytes) return GM_ERR_NOT_SUPPORTED;
  for (uint64_t i = 0; i < MEASURE_COPIES; i++) {
    memcpy(m->slot + i * m->bytes, m->from + i * m->bytes, m->bytes);
    items[i] = (gm_copy_item){&m->beside, i * m->bytes, &m->memory, 2 * i * m->bytes, m->bytes};
  }
  gm_status status = gm__access_write(&all, m->slot, m->stream, &point, "gm_transfer", NULL);
  if (status) return status;
  status =
      gm__submitting(m->device)->copy_many(m->device->handle, m->stream->handle, items, MEASURE_COPIES, &inner, NULL);
  if (status) measure_wait(m, &point);
  if (status) return status;
  gm_point_release(m->device, &point);
  point = (gm_point){m->stream->id, inner.handle, inner.value};
  return measure_wait(m, &point);
}

/* REQUIRES: the device is set. */
static uint64_t measure_device(measure *m, gm_status (*packed_way)(const measure *)) {
  const gm_services *services = gm__context_services(m->device->ctx);
  const size_t host = (size_t)2 * MEASURE_COPIES * MEASURE_MOST;
  const gm__device_request request = {.bytes = host};
  uint64_t small = 0;
  if (!gm__device_makes_streams(m->device) || gm_stream_create(m->device, &m->stream, NULL)) return 0;
  m->from = gm__alloc(services, host);
  if (m->from && gm__device_alloc(m->device, &request, &m->memory, NULL) == GM_OK) {
    m->slot = m->from + host / 2;
    small = measure_sizes(m, packed_way);
    gm__device_free(m->device, &m->memory, NULL);
  }
  gm__release(services, m->from, host);
  gm_stream_close(m->stream, NULL);
  return small;
}

uint64_t gm__transfer_small_bytes(gm_device *device) {
  uint64_t small = 0;
  if (gm__staging_small(device, &small)) return small;
  measure m = {.device = device};
  small = measure_device(&m, measure_packed);
  gm__staging_set_small(device, small);
  return small;
}

uint64_t gm__transfer_scatter_bytes(gm_device *device, gm__ring *ring, gm_memory *out_memory) {
  uint64_t most = 0;
  gm__ring_info info;
  if (gm__staging_beside(device, GM__BESIDE_SCATTER, &most, out_memory)) return most;
  gm__ring_figures(ring, &info);
  measure m = {.device = device};
  const gm__device_request request = {.bytes = (uint64_t)info.most * GM__TRANSFER_ROOM};
  if (gm__device_alloc(device, &request, &m.beside, NULL) == GM_OK) {
    most = measure_device(&m, measure_scattered);
  } else {
    m.beside = (gm_memory){.handle = 0};
  }
  if (!most && m.beside.handle) gm__device_free(device, &m.beside, NULL);
  if (!most) m.beside = (gm_memory){.handle = 0};
  gm__staging_set_beside(device, GM__BESIDE_SCATTER, most, &m.beside);
  gm__staging_beside(device, GM__BESIDE_SCATTER, &most, out_memory);
  return most;
}
