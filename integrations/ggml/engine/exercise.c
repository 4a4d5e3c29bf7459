/* Calls what llama.cpp and test-backend-ops leave out: strided and asynchronous copies, events, pinned and lent memory.
 *
 * usage: exercise LIBGGML_GM.so
 *
 * Prints "exercise: passed" and returns 0, else names the line that failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml.h>

#define CHECK(truth)                                       \
  do {                                                     \
    if (!(truth)) {                                        \
      printf("exercise: line %d: %s\n", __LINE__, #truth); \
      exit(1);                                             \
    }                                                      \
  } while (0)

enum { ROWS = 64, WIDTH = 1000 };

typedef struct bench {
  ggml_backend_dev_t dev;
  ggml_backend_t queue, second;
  struct ggml_context *ctx;
  struct ggml_tensor *a, *b;
  ggml_backend_buffer_t buffer;
  uint8_t in[ROWS * WIDTH], out[ROWS * WIDTH];
} bench;

static bench *bench_create(const char *library) {
  bench *self = calloc(1, sizeof *self);
  ggml_backend_load_all();
  CHECK(self && ggml_backend_load(library));
  self->dev = ggml_backend_dev_by_name("GM0");
  self->queue = ggml_backend_dev_init(self->dev, NULL);
  self->second = ggml_backend_dev_init(self->dev, NULL);
  self->ctx = ggml_init((struct ggml_init_params){.mem_size = 1 << 16, .no_alloc = true});
  self->a = ggml_new_tensor_2d(self->ctx, GGML_TYPE_I8, WIDTH, ROWS);
  self->b = ggml_new_tensor_2d(self->ctx, GGML_TYPE_I8, WIDTH, ROWS);
  self->buffer = ggml_backend_alloc_ctx_tensors(self->ctx, self->queue);
  CHECK(self->queue && self->second && self->buffer);
  for (int i = 0; i < ROWS * WIDTH; ++i) self->in[i] = (uint8_t)(i * 7 + i / WIDTH);
  return self;
}

static void bench_destroy(bench *self) {
  ggml_backend_buffer_free(self->buffer);
  ggml_free(self->ctx);
  ggml_backend_free(self->second);
  ggml_backend_free(self->queue);
  free(self);
}

static void fill_and_clear(bench *self) {
  ggml_backend_buffer_clear(self->buffer, 3);
  ggml_backend_tensor_memset(self->a, 9, WIDTH, WIDTH);
  ggml_backend_tensor_get(self->a, self->out, 0, sizeof self->out);
  CHECK(self->out[WIDTH - 1] == 3 && self->out[WIDTH] == 9 && self->out[2 * WIDTH - 1] == 9);
  CHECK(self->out[2 * WIDTH] == 3 && self->out[sizeof self->out - 1] == 3);
}

/* 16 pieces of 10 bytes, 50 apart in the tensor and 20 apart in the host's memory. */
static void strided(bench *self) {
  uint8_t back[16 * 20] = {0};
  ggml_backend_buffer_clear(self->buffer, 0);
  ggml_backend_tensor_set_2d(self->b, self->in, 5, 10, 16, 50, 20);
  ggml_backend_tensor_get(self->b, self->out, 0, sizeof self->out);
  for (int i = 0; i < 16; ++i) {
    CHECK(memcmp(self->out + 5 + i * 50, self->in + i * 20, 10) == 0);
    CHECK(self->out[5 + i * 50 - 1] == 0 && self->out[5 + i * 50 + 10] == 0);
  }
  ggml_backend_tensor_get_2d(self->b, back, 5, 10, 16, 50, 20);
  for (int i = 0; i < 16; ++i) CHECK(memcmp(back + i * 20, self->in + i * 20, 10) == 0 && back[i * 20 + 10] == 0);
}

/* The second queue reads what the first one writes, after an event. */
static void across_queues(bench *self) {
  ggml_backend_event_t event = ggml_backend_event_new(self->dev);
  CHECK(event);
  for (int round = 0; round < 20; ++round) {
    self->in[round] = (uint8_t)(200 - round);
    ggml_backend_tensor_set_async(self->queue, self->a, self->in, 0, sizeof self->in);
    ggml_backend_event_record(event, self->queue);
    ggml_backend_event_wait(self->second, event);
    ggml_backend_tensor_get_async(self->second, self->a, self->out, 0, sizeof self->out);
    ggml_backend_event_synchronize(event);
    ggml_backend_synchronize(self->second);
    CHECK(memcmp(self->in, self->out, sizeof self->in) == 0);
  }
  ggml_backend_event_free(event);
}

static void between_tensors(bench *self) {
  ggml_backend_tensor_set(self->a, self->in, 0, sizeof self->in);
  ggml_backend_tensor_copy(self->a, self->b);
  ggml_backend_tensor_get(self->b, self->out, 0, sizeof self->out);
  CHECK(memcmp(self->in, self->out, sizeof self->in) == 0);
}

static void pinned(bench *self) {
  ggml_backend_buffer_type_t type = ggml_backend_dev_host_buffer_type(self->dev);
  ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(type, sizeof self->in);
  CHECK(buffer && ggml_backend_buft_is_host(type) && ggml_backend_buffer_is_host(buffer));
  memcpy(ggml_backend_buffer_get_base(buffer), self->in, sizeof self->in);
  ggml_backend_tensor_set(self->b, ggml_backend_buffer_get_base(buffer), 0, sizeof self->in);
  ggml_backend_tensor_get(self->b, self->out, 0, sizeof self->out);
  CHECK(memcmp(self->in, self->out, sizeof self->in) == 0);
  ggml_backend_buffer_free(buffer);
}

static void lent(bench *self) {
  struct ggml_backend_dev_props props;
  ggml_backend_dev_get_props(self->dev, &props);
  CHECK(props.caps.async && props.caps.events && props.caps.host_buffer);
  CHECK(props.memory_total > 0 && props.memory_free <= props.memory_total);
  ggml_backend_buffer_t buffer = ggml_backend_dev_buffer_from_host_ptr(self->dev, self->out, sizeof self->out, WIDTH);
  CHECK(props.caps.buffer_from_host_ptr == (buffer != NULL));
  if (!buffer) return;
  CHECK(ggml_backend_buffer_get_base(buffer) == self->out);
  ggml_backend_buffer_free(buffer);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  bench *self = bench_create(argv[1]);
  fill_and_clear(self);
  strided(self);
  across_queues(self);
  between_tensors(self);
  pinned(self);
  lent(self);
  bench_destroy(self);
  printf("exercise: passed\n");
  return 0;
}
