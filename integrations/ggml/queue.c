/* Queues and events. Copies run in the order of a gm stream; kernels run on ggml's CPU backend, after that stream. */
#include <ggml-impl.h>
#include <stdlib.h>
#include <string.h>

#include "ggml_gm.h"

typedef struct gm_ggml_queue {
  gm_stream *stream;
  ggml_backend_t cpu;
} gm_ggml_queue;

static gm_ggml_queue *of(ggml_backend_t backend) { return backend->context; }

ggml_backend_dev_t gm_ggml_cpu(void) { return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU); }

static const char *get_name(ggml_backend_t backend) {
  (void)backend;
  return "GM0";
}

static void free_queue(ggml_backend_t backend) {
  gm_ggml_queue *queue = of(backend);
  ggml_backend_free(queue->cpu);
  gm_error err;
  gm_ggml_check(gm_stream_close(queue->stream, &err), &err);
  free(queue);
  free(backend);
}

static void synchronize(ggml_backend_t backend) {
  gm_error err;
  gm_ggml_check(gm_stream_sync(of(backend)->stream, &err), &err);
}

static void set_tensor_async(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data, size_t offset,
                             size_t size) {
  gm_ggml_buffer *buffer = gm_ggml_buffer_of(tensor);
  gm_ggml_buffer_write(buffer, gm_ggml_offset(buffer, tensor) + offset, data, size, of(backend)->stream);
}

static void get_tensor_async(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data, size_t offset,
                             size_t size) {
  gm_ggml_buffer *buffer = gm_ggml_buffer_of(tensor);
  gm_ggml_buffer_read(buffer, gm_ggml_offset(buffer, tensor) + offset, data, size, of(backend)->stream);
}

static void set_tensor_2d_async(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data, size_t offset,
                                size_t size, size_t copies, size_t stride_tensor, size_t stride_data) {
  gm_ggml_buffer *buffer = gm_ggml_buffer_of(tensor);
  const gm_rect rect = {.row_bytes = size,
                        .rows = copies,
                        .slices = 1,
                        .src_row_pitch = stride_data,
                        .dst_offset = gm_ggml_offset(buffer, tensor) + offset,
                        .dst_row_pitch = stride_tensor};
  gm_ggml_buffer_write_2d(buffer, &rect, data, of(backend)->stream);
}

static void get_tensor_2d_async(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data, size_t offset,
                                size_t size, size_t copies, size_t stride_tensor, size_t stride_data) {
  gm_ggml_buffer *buffer = gm_ggml_buffer_of(tensor);
  const gm_rect rect = {.row_bytes = size,
                        .rows = copies,
                        .slices = 1,
                        .src_offset = gm_ggml_offset(buffer, tensor) + offset,
                        .src_row_pitch = stride_tensor,
                        .dst_row_pitch = stride_data};
  gm_ggml_buffer_read_2d(buffer, &rect, data, of(backend)->stream);
}

static enum ggml_status graph_compute(ggml_backend_t backend, struct ggml_cgraph *graph) {
  gm_ggml_queue *queue = of(backend);
  gm_ggml_check_graph();
  gm_ggml_graph_pull(graph, queue->stream);
  synchronize(backend);
  const enum ggml_status status = ggml_backend_graph_compute(queue->cpu, graph);
  gm_ggml_graph_push(graph, queue->stream);
  synchronize(backend);
  return status;
}

static gm_point *point_of(ggml_backend_event_t event) { return event->context; }

static void event_record(ggml_backend_t backend, ggml_backend_event_t event) {
  gm_error err;
  gm_point_release(gm_ggml_self.device, point_of(event));
  gm_ggml_check(gm_stream_record(of(backend)->stream, point_of(event), &err), &err);
}

static void event_wait(ggml_backend_t backend, ggml_backend_event_t event) {
  gm_error err;
  gm_ggml_check(gm_stream_wait(of(backend)->stream, point_of(event), &err), &err);
}

void gm_ggml_event_wait_host(ggml_backend_dev_t dev, ggml_backend_event_t event) {
  (void)dev;
  gm_error err;
  gm_ggml_check(gm_point_wait(gm_ggml_self.device, point_of(event), UINT64_MAX, &err), &err);
}

ggml_backend_event_t gm_ggml_event_create(ggml_backend_dev_t dev) {
  struct ggml_backend_event *event = calloc(1, sizeof *event);
  gm_point *point = calloc(1, sizeof *point);
  if (!event || !point) {
    free(event);
    free(point);
    return NULL;
  }
  *event = (struct ggml_backend_event){.device = dev, .context = point};
  return event;
}

void gm_ggml_event_destroy(ggml_backend_dev_t dev, ggml_backend_event_t event) {
  (void)dev;
  gm_point_release(gm_ggml_self.device, point_of(event));
  free(event->context);
  free(event);
}

void gm_ggml_queue_set_threads(ggml_backend_t queue, int threads) {
  ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(gm_ggml_cpu());
  void *found = ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads");
  ggml_backend_set_n_threads_t set;
  memcpy(&set, &found, sizeof set); /* C has no cast from an object's pointer to a function's */
  if (set) set(of(queue)->cpu, threads);
}

static ggml_guid_t guid(void) {
  static ggml_guid id = {0x67, 0x6d, 0x2d, 0x67, 0x67, 0x6d, 0x6c, 0x2d,
                         0x62, 0x61, 0x63, 0x6b, 0x65, 0x6e, 0x64, 0x31};
  return &id;
}

static const struct ggml_backend_i face = {
    .get_name = get_name,
    .free = free_queue,
    .set_tensor_async = set_tensor_async,
    .get_tensor_async = get_tensor_async,
    .set_tensor_2d_async = set_tensor_2d_async,
    .get_tensor_2d_async = get_tensor_2d_async,
    .synchronize = synchronize,
    .graph_compute = graph_compute,
    .event_record = event_record,
    .event_wait = event_wait,
};

ggml_backend_t gm_ggml_queue_create(ggml_backend_dev_t dev) {
  gm_ggml_queue *queue = calloc(1, sizeof *queue);
  struct ggml_backend *backend = calloc(1, sizeof *backend);
  gm_error err = {.status = GM_OK};
  if (queue && backend && gm_ggml_cpu()) queue->cpu = ggml_backend_dev_init(gm_ggml_cpu(), NULL);
  if (!queue || !backend || !queue->cpu || gm_stream_create(gm_ggml_self.device, &queue->stream, &err) != GM_OK) {
    GGML_LOG_ERROR("ggml-gm: no queue: %s\n", err.status == GM_OK ? "ggml's CPU backend is missing" : err.message);
    if (queue && queue->cpu) ggml_backend_free(queue->cpu);
    free(queue);
    free(backend);
    return NULL;
  }
  *backend = (struct ggml_backend){.guid = guid(), .iface = face, .device = dev, .context = queue};
  return backend;
}
