/* ONNX Runtime on gm: an unmodified session computes the bits that it computes on its own memory. The memory that it
 * asks for comes from a pool.
 *
 * GM_ONNXRUNTIME_LIBRARY names libonnxruntime.so. GM_ENGINES_LIBRARY and GM_CUDA_LIBRARY name libgm_engines.so and the
 * simulated driver. The models are left in GM_ENGINES_OUT for the check in Python. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../shared/cards.h"
#include "../shared/engines.h"
#include "card_allocator.h"
#include "check_figures.h"
#include "check_ort.h"
#include "gm_onnxruntime.h"

enum { MODELS = 2, BATCHES = 3, THREADS = 4 };

static const int64_t batches[BATCHES] = {1, 4, 2};
static const check_choice on_gm = {.env_allocators = true};

typedef struct scene {
  check_ort ort;
  check_model models[MODELS];
  float *expected[MODELS][BATCHES]; /* on ONNX Runtime's own memory */
  gm_context *context;
  gm_device *device;
  gm_pool *pool;
  struct OrtAllocator *allocator; /* registered */
} scene;

static bool expect(bool holds, const char *what) {
  if (!holds) printf("FAILED: %s (%s)\n", what, check_message());
  return holds;
}

static gm_stats figures(gm_pool *pool) {
  gm_stats stats = {.struct_size = sizeof stats};
  (void)gm_pool_stats(pool, &stats);
  return stats;
}

static uint64_t active(const scene *on) { return figures(on->pool).active; }

/* Whether a session answers with the expected bits. */
static bool same(const scene *on, const check_session *session, unsigned which, unsigned batch) {
  size_t count = 0;
  float *output = check_run(session, batches[batch], batch + 1, &count);
  const bool equal = output && !memcmp(output, on->expected[which][batch], count * sizeof *output);
  free(output);
  return equal;
}

static bool same_for_all(const scene *on, const check_session *session, unsigned which) {
  bool equal = true;
  for (unsigned i = 0; i < 2 * BATCHES; i++) equal = same(on, session, which, i % BATCHES) && equal;
  return equal;
}

/* With one thread and several, one order of nodes and any. */
static bool check_bits(scene *on) {
  const check_choice ways[] = {on_gm,
                               {.env_allocators = true, .threads = 2},
                               {.env_allocators = true, .no_arena = true},
                               {.env_allocators = true, .threads = 2, .parallel = true}};
  bool right = true;
  for (unsigned i = 0; i < MODELS * 4; i++) {
    check_session session;
    const unsigned which = i % MODELS;
    if (!expect(check_session_open(&session, &on->ort, &on->models[which], &ways[i / MODELS]), "a session opens"))
      return false;
    right = expect(same_for_all(on, &session, which), "the bits are those of ONNX Runtime's own memory") && right;
    check_session_close(&session);
    right = expect(active(on) == 0, "no block is left after a session") && right;
  }
  return right;
}

/* Weights that kernels repack, activations and scratch are blocks. */
static bool check_what_comes_from_gm(scene *on) {
  check_session session;
  if (!expect(check_session_open(&session, &on->ort, &on->models[0], &on_gm), "a session opens")) return false;
  const uint64_t weights = figures(on->pool).requested_bytes;
  const uint64_t before = figures(on->pool).allocs;
  bool right = expect(weights > 6000000, "6 MB of weights are in the pool");
  right = expect(same(on, &session, 0, 1), "it runs") && right;
  right = expect(figures(on->pool).allocs > before + 5, "a run asks the pool") && right;
  right = expect(figures(on->pool).requested_bytes == weights, "a run leaves nothing") && right;
  const long long in_use = check_figure(&session, "InUse");
  right = expect(in_use < 0 || (uint64_t)in_use == figures(on->pool).in_use_bytes, "statistics") && right;
  check_session_close(&session);
  printf("  the transformer: %" PRIu64 " bytes of weights in the pool, %zu in the model\n", weights,
         on->models[0].size);
  return right;
}

static void *block_of(const scene *on, size_t bytes) {
  void *pointer = gm_malloc(on->pool, bytes, NULL);
  if (!pointer) printf("FAILED: no block of %zu bytes\n", bytes);
  return pointer;
}

/* A tensor whose bytes are a block of gm. */
static struct OrtValue *tensor_over(const scene *on, void *block, const int64_t *shape, size_t rank) {
  size_t bytes = sizeof(float);
  struct OrtValue *tensor = NULL;
  for (size_t i = 0; i < rank; i++) bytes *= (size_t)shape[i];
  (void)check_worked(&on->ort,
                     on->ort.api->create_tensor_over(on->ort.cpu, block, bytes, shape, rank, ORT_FLOAT, &tensor));
  return tensor;
}

static bool run_bound(const scene *on, const check_session *session, struct OrtValue *x, struct OrtValue *y) {
  const ort_api *api = on->ort.api;
  struct OrtIoBinding *binding = NULL;
  if (!x || !y || !check_worked(&on->ort, api->create_io_binding(session->session, &binding))) return false;
  const bool ran = check_worked(&on->ort, api->bind_input(binding, session->model->input, x)) &&
                   check_worked(&on->ort, api->bind_output(binding, session->model->output, y)) &&
                   check_worked(&on->ort, api->run_with_binding(session->session, NULL, binding));
  api->release_io_binding(binding);
  return ran;
}

/* Input, output and a weight are blocks of gm: ONNX Runtime copies none of them. */
static bool check_binding(scene *on) {
  const check_model *model = &on->models[0];
  const size_t bytes = check_input_count(model, 1) * sizeof(float);
  const size_t weight_bytes = (size_t)(model->weight_shape[0] * model->weight_shape[1]) * sizeof(float);
  float *input = block_of(on, bytes), *output = block_of(on, bytes), *weight = block_of(on, weight_bytes);
  if (!input || !output || !weight) return false;
  check_input(model, 1, 1, input);
  memcpy(weight, model->bytes + model->weight_at, weight_bytes);
  struct OrtValue *x = tensor_over(on, input, model->shape, 3), *y = tensor_over(on, output, model->shape, 3);
  struct OrtValue *w = tensor_over(on, weight, model->weight_shape, 2);
  const check_choice how = {.env_allocators = true, .weight = model->weight, .value = w};
  check_session session;
  bool right = expect(check_session_open(&session, &on->ort, model, &how), "a session with a weight of ours opens");
  right = right && expect(run_bound(on, &session, x, y), "it runs on bound blocks");
  right = right && expect(!memcmp(output, on->expected[0][0], bytes), "the output is in the block");
  check_session_close(&session);
  if (x) on->ort.api->release_value(x);
  if (y) on->ort.api->release_value(y);
  if (w) on->ort.api->release_value(w);
  for (unsigned i = 0; i < 3; i++) (void)gm_free_ptr(on->pool, i == 0 ? input : i == 1 ? output : weight, 0, NULL);
  return expect(active(on) == 0, "no block is left after bound runs") && right;
}

typedef struct worker {
  const scene *on;
  const check_session *sessions; /* one for each model */
  unsigned number;
  bool right;
} worker;

static void *work(void *user) {
  worker *self = user;
  self->right = true;
  for (unsigned i = 0; i < 24; i++) {
    const unsigned which = (i + self->number) % MODELS;
    self->right = same(self->on, &self->sessions[which], which, (i + self->number) % BATCHES) && self->right;
  }
  return NULL;
}

/* Several sessions on one pool, each used by several threads. */
static bool check_threads(scene *on) {
  check_session sessions[MODELS] = {{NULL, NULL, NULL}};
  worker workers[THREADS];
  pthread_t threads[THREADS];
  bool right = true;
  for (unsigned i = 0; i < MODELS && right; i++)
    right = expect(check_session_open(&sessions[i], &on->ort, &on->models[i], &on_gm), "a session opens");
  if (!right) return false;
  for (unsigned i = 0; i < THREADS; i++) {
    workers[i] = (worker){on, sessions, i, false};
    if (pthread_create(&threads[i], NULL, work, &workers[i])) return false;
  }
  for (unsigned i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    right = expect(workers[i].right, "each thread gets the bits that it expects") && right;
  }
  for (unsigned i = 0; i < MODELS; i++) check_session_close(&sessions[i]);
  return expect(active(on) == 0, "no block is left after threads") && right;
}

/* One attempt under a cap. Returns how far it came: 0 no session, 1 no run, 2 a run with the right bits, -1 a wrong
 * one.
 */
static int attempt(scene *on, unsigned which, uint64_t cap, const check_choice *how) {
  check_session session;
  (void)gm_pool_trim(on->pool, 0);
  if (gm_pool_set_max_bytes(on->pool, cap, NULL)) return -1;
  if (!check_session_open(&session, &on->ort, &on->models[which], how)) return 0;
  size_t count = 0;
  float *output = check_run(&session, batches[1], 2, &count);
  const int came = !output ? 1 : memcmp(output, on->expected[which][1], count * sizeof *output) ? -1 : 2;
  free(output);
  if (came == 1 && (gm_pool_set_max_bytes(on->pool, 0, NULL) || !same(on, &session, which, 1))) return -1;
  check_session_close(&session);
  return came;
}

/* The cap grows until a session opens, and runs. Each refusal is an error of ONNX Runtime with gm's reason. */
static bool check_refusals(scene *on) {
  const check_choice ways[] = {on_gm, {.env_allocators = true, .threads = 2, .parallel = true}};
  unsigned seen[3] = {0};
  bool right = true;
  for (unsigned i = 0; i < MODELS * 2 && right; i++) {
    int came = 0;
    for (uint64_t cap = 64 << 10; came != 2 && right; cap += 192 << 10) {
      came = attempt(on, i % MODELS, cap, &ways[i / MODELS]);
      right = expect(came >= 0, "a session that was refused memory runs once there is some");
      if (came >= 0) seen[came]++;
      if (came == 0 || came == 1)
        right = expect(strstr(check_message(), "limit") != NULL, "the reason is told") && right;
      right = expect(active(on) == 0, "no block is left after a refusal") && right;
    }
  }
  (void)gm_pool_set_max_bytes(on->pool, 0, NULL);
  printf("  refused: %u sessions, %u runs; the last: %s\n", seen[0], seen[1], check_message());
  return expect(seen[0] > 0 && seen[1] > 0, "sessions and runs were refused") && right;
}

/* The environment gets the check's own allocator again. */
static bool put_back(scene *on) {
  (void)check_worked(&on->ort, on->ort.api->unregister_allocator(on->ort.env, on->ort.cpu)); /* there may be none */
  return expect(check_worked(&on->ort, on->ort.api->register_allocator(on->ort.env, on->allocator)),
                "the check's allocator is back");
}

/* A pool does not go before its sessions, and goes after them. */
static bool check_order_of_ends(scene *on) {
  check_session session;
  gm_pool *pool = NULL;
  if (gm_pool_create(on->device, NULL, &pool, NULL)) return false;
  struct OrtAllocator *own = gm_ort_allocator_create(on->ort.base, pool);
  bool right = expect(own && check_worked(&on->ort, on->ort.api->unregister_allocator(on->ort.env, on->ort.cpu)) &&
                          check_worked(&on->ort, on->ort.api->register_allocator(on->ort.env, own)),
                      "another allocator takes the place");
  if (!right || !expect(check_session_open(&session, &on->ort, &on->models[1], &on_gm), "a session opens"))
    return false;
  right = expect(gm_pool_destroy(pool, NULL) == GM_ERR_BUSY, "a pool with blocks stays");
  right = expect(same_for_all(on, &session, 1), "the session goes on") && right;
  right = expect(check_worked(&on->ort, on->ort.api->unregister_allocator(on->ort.env, on->ort.cpu)),
                 "an allocator that is in use leaves the environment") &&
          right;
  right = expect(same_for_all(on, &session, 1), "and serves its session") && right;
  check_session_close(&session);
  gm_ort_allocator_destroy(own);
  right = expect(gm_pool_destroy(pool, NULL) == GM_OK, "the pool goes after its session") && right;
  return put_back(on) && right;
}

/* The library of custom operators: one line for every language. */
static bool check_custom_operators(scene *on) {
  const check_choice how = {.custom_operators = getenv("GM_ENGINES_LIBRARY")};
  check_session sessions[2];
  const uint64_t before = gm_engines_host_figure("active");
  if (!how.custom_operators) return expect(false, "GM_ENGINES_LIBRARY is set");
  bool right = true;
  for (unsigned i = 0; i < 2; i++) {
    right = expect(check_session_open(&sessions[i], &on->ort, &on->models[i], &how), "a session opens") && right;
    right = expect(right && same_for_all(on, &sessions[i], i), "it gives the bits") && right;
  }
  right = expect(gm_engines_host_figure("active") > before, "its memory is the shared pool's") && right;
  for (unsigned i = 0; i < 2; i++) check_session_close(&sessions[i]);
  right = expect(gm_engines_host_figure("active") == before, "no block is left in the shared pool") && right;
  return put_back(on) && right;
}

/* A tensor on a simulated card. ONNX Runtime has no provider for it here, so it computes nothing there. */
static bool check_card(scene *on) {
  const int64_t shape[] = {1 << 20}, huge[] = {(int64_t)1 << 48};
  const ort_api *api = on->ort.api;
  struct OrtValue *tensor = NULL, *none = NULL;
  struct OrtMemoryInfo *card = NULL;
  void *data = NULL;
  struct OrtAllocator *allocator = gm_ort_card_allocator_create(on->ort.base, 0);
  if (!expect(allocator != NULL, gm_engines_why())) return false;
  bool right = expect(check_worked(&on->ort, api->register_allocator(on->ort.env, allocator)), "it is registered");
  right = right && expect(check_worked(&on->ort, api->create_tensor(allocator, shape, 1, ORT_FLOAT, &tensor)) &&
                              check_worked(&on->ort, api->get_tensor_data(tensor, &data)),
                          "a tensor on the card");
  uint64_t bytes = 0;
  right = right && expect(gm_cards_base(data, &bytes) && bytes >= 4 << 20, "it is a block of the card's pool");
  right =
      expect(!check_worked(&on->ort, api->create_tensor(allocator, huge, 1, ORT_FLOAT, &none)) && check_message()[0],
             "a tensor that the card cannot have is an error") &&
      right;
  if (tensor) api->release_value(tensor);
  right = expect(gm_cards_figure(0, "active") == 0, "no block is left on the card") && right;
  right = expect(check_worked(&on->ort, api->create_memory_info("Cuda", ORT_DEVICE_ALLOCATOR, 0, 0, &card)) &&
                     check_worked(&on->ort, api->unregister_allocator(on->ort.env, card)),
                 "it leaves the environment") &&
          right;
  api->release_memory_info(card);
  gm_ort_card_allocator_destroy(allocator);
  return right;
}

static bool write_models(const scene *on) {
  const char *folder = getenv("GM_ENGINES_OUT");
  bool written = true;
  for (unsigned i = 0; i < MODELS && folder; i++) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s.onnx", folder, on->models[i].name);
    FILE *file = fopen(path, "wb");
    written = file && fwrite(on->models[i].bytes, 1, on->models[i].size, file) == on->models[i].size && written;
    if (file) written = fclose(file) == 0 && written;
  }
  return expect(written, "the models are written");
}

/* The expected outputs, and gm in the environment. */
static bool open_scene(scene *on) {
  const char *path = getenv("GM_ONNXRUNTIME_LIBRARY");
  gm_error err = {.status = GM_OK};
  on->models[0] = check_transformer();
  on->models[1] = check_convnet();
  if (!path || !check_ort_open(&on->ort, path)) return expect(false, "ONNX Runtime opens: GM_ONNXRUNTIME_LIBRARY");
  for (unsigned i = 0; i < MODELS; i++) {
    check_session session;
    const check_choice own = {.threads = 1};
    if (!expect(check_session_open(&session, &on->ort, &on->models[i], &own), "a session of its own")) return false;
    for (unsigned k = 0; k < BATCHES; k++) {
      size_t count;
      on->expected[i][k] = check_run(&session, batches[k], k + 1, &count);
      if (!expect(on->expected[i][k] != NULL, "a run of its own")) return false;
    }
    check_session_close(&session);
  }
  if (gm_context_create(NULL, &on->context, &err) || gm_device_open_index(on->context, "cpu", 0, &on->device, &err) ||
      gm_pool_create(on->device, NULL, &on->pool, &err))
    return expect(false, err.message);
  on->allocator = gm_ort_allocator_create(on->ort.base, on->pool);
  return expect(on->allocator && check_worked(&on->ort, on->ort.api->register_allocator(on->ort.env, on->allocator)),
                "gm is registered");
}

static bool close_scene(scene *on) {
  gm_error err = {.status = GM_OK};
  bool right = check_worked(&on->ort, on->ort.api->unregister_allocator(on->ort.env, on->ort.cpu));
  check_ort_close(&on->ort);
  if (gm_pool_destroy(on->pool, &err) || gm_device_close(on->device, &err) || gm_context_destroy(on->context, &err))
    right = expect(false, err.message);
  for (unsigned i = 0; i < MODELS; i++) {
    for (unsigned k = 0; k < BATCHES; k++) free(on->expected[i][k]);
    check_model_free(&on->models[i]);
  }
  return right;
}

static bool check_figures(scene *on) {
  for (unsigned i = 0; i < MODELS; i++)
    if (!check_figures_print(&on->ort, &on->models[i], on->pool)) return expect(false, "the figures");
  return true;
}

int main(void) {
  static const struct {
    const char *name;
    bool (*check)(scene *on);
  } checks[] = {{"bits", check_bits},
                {"what comes from gm", check_what_comes_from_gm},
                {"bound blocks", check_binding},
                {"threads", check_threads},
                {"refusals", check_refusals},
                {"order of ends", check_order_of_ends},
                {"custom operators", check_custom_operators},
                {"a card", check_card},
                {"figures", check_figures}};
  static scene on;
  if (!open_scene(&on) || !write_models(&on)) return 1;
  unsigned failed = 0;
  for (unsigned i = 0; i < sizeof checks / sizeof *checks; i++) {
    printf("%s\n", checks[i].name);
    (void)fflush(stdout);
    if (!checks[i].check(&on)) failed++;
  }
  const char *version = on.ort.text;
  if (!close_scene(&on)) failed++;
  if (failed == 0) printf("%s sessions on the CPU with equal bits; bound blocks, refusals, threads, ends\n", version);
  return failed ? 1 : 0;
}
