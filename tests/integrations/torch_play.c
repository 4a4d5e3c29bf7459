/* gm_torch_play: plays torch's calls in torch's order on a card, and looks at what the memory holds.
 *
 *   gm_torch_play --backend cuda|hip [--trace FILE]
 *
 * Every hook of torch is called: a recorded training step; record_stream; fraction, empty_cache and base address;
 * graphs, replayed while other work goes on. Prints a line for each scene. Exit code 0 when all held, 77 when there is
 * no card, 1 otherwise, 2 bad usage. It needs no torch, and runs on simulated cards as on real ones. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "integrations/shared/cards.h"
#include "integrations/torch/gm_torch.h"
#include "test_data.h"
#include "tests/integrations/torch_driver.h"

enum { STREAMS = 3, TENSORS = 4096, WORD = sizeof(unsigned) };

static void *streams[STREAMS];
static unsigned *seen; /* page-locked: TENSORS words that the engine's work read */

static void *take(size_t bytes, int stream) {
  void *pointer = gm_torch_alloc((ptrdiff_t)bytes, 0, streams[stream]);
  DRIVER_CHECK(pointer);
  return pointer;
}

static void give(void *pointer, size_t bytes, int stream) {
  gm_torch_free(pointer, (ptrdiff_t)bytes, 0, streams[stream]);
}

static void wait_for_all(void) {
  for (int i = 0; i < STREAMS; i++) driver_wait(streams[i]);
}

/* The first and the last word of the memory are `word`. */
static void holds(const void *pointer, size_t bytes, unsigned word) {
  driver_read(&seen[0], pointer, WORD, streams[0]);
  driver_read(&seen[1], (const char *)pointer + bytes - WORD, WORD, streams[0]);
  driver_wait(streams[0]);
  DRIVER_CHECK(seen[0] == word);
  DRIVER_CHECK(seen[1] == word);
}

/* ---- a training step ---- */

typedef struct tensor {
  void *address;
  size_t bytes;
  int stream, user; /* user: the stream that last worked with it */
} tensor;

static tensor tensors[TENSORS];

static void play_alloc(unsigned long number, size_t bytes, int stream) {
  tensor *it = &tensors[number];
  *it = (tensor){take(bytes, stream), bytes, stream, stream};
  DRIVER_CHECK((uintptr_t)it->address % 256 == 0);
  driver_fill(it->address, bytes, (unsigned)number + 1, streams[stream]);
}

static void play_use(unsigned long number, int stream) {
  driver_follow(streams[stream], streams[tensors[number].stream]);
  gm_torch_record_stream(tensors[number].address, streams[stream]);
  tensors[number].user = stream;
}

/* The last word is read late, in the order of the tensor's last user. */
static void play_free(unsigned long number) {
  const tensor *it = &tensors[number];
  const size_t last = it->bytes / WORD;
  seen[number] = (unsigned)number + 1;
  if (last) driver_read(&seen[number], (char *)it->address + (last - 1) * WORD, WORD, streams[it->user]);
  give(it->address, it->bytes, it->stream);
}

static bool play_line(const char *line, unsigned long *number) {
  size_t bytes;
  int stream;
  const int asked = sscanf(line, "a %lu %zu %d", number, &bytes, &stream);
  if (asked == 3 && *number < TENSORS && stream < STREAMS) return play_alloc(*number, bytes, stream), true;
  const int used = sscanf(line, "r %lu %d", number, &stream);
  if (used == 2 && *number < TENSORS && stream < STREAMS) return play_use(*number, stream), true;
  if (sscanf(line, "f %lu", number) != 1 || *number >= TENSORS) return false;
  return play_free(*number), true;
}

static const char *recorded = GM_TEST_DATA "/torch/training.txt";

static unsigned long play_file(const char *path) {
  char line[64];
  unsigned long number = 0, most = 0;
  FILE *trace = fopen(path, "r");
  DRIVER_CHECK(trace);
  while (fgets(line, sizeof line, trace)) {
    DRIVER_CHECK(play_line(line, &number));
    most = number > most ? number : most;
  }
  DRIVER_CHECK(fclose(trace) == 0);
  return most + 1;
}

static void training_keeps_every_tensor(void) {
  unsigned long count = 0;
  for (int round = 0; round < 3; round++) {
    count = play_file(recorded);
    wait_for_all();
    DRIVER_CHECK(count > 500);
    for (unsigned i = 0; i < count; i++) DRIVER_CHECK(seen[i] == i + 1);
  }
  DRIVER_CHECK(gm_cards_figure(0, "active") == 0);
  DRIVER_CHECK(gm_cards_figure(0, "allocs") == 3 * count);
  DRIVER_CHECK(gm_cards_figure(0, "driver_allocs") < count / 20);
}

/* ---- the smaller hooks ---- */

/* A tensor is freed while another stream still reads it, after much work: who gets the memory next writes it later. */
static void recorded_use_delays_the_reuse(void) {
  enum { BYTES = 4 << 20, BUSY_BYTES = 64 << 20, ROUNDS = 20, FILLS = 8 };
  void *busy = take(BUSY_BYTES, 0);
  for (int round = 0; round < ROUNDS; round++) {
    void *first = take(BYTES, 1);
    driver_fill(first, BYTES, 1, streams[1]);
    driver_follow(streams[0], streams[1]);
    for (int i = 0; i < FILLS; i++) driver_fill(busy, BUSY_BYTES, 7, streams[0]);
    driver_read(seen, first, WORD, streams[0]);
    gm_torch_record_stream((char *)first + 4096, streams[0]);
    give(first, BYTES, 1);
    void *second = take(BYTES, 1);
    driver_fill(second, BYTES, 2, streams[1]);
    give(second, BYTES, 1);
    wait_for_all();
    DRIVER_CHECK(*seen == 1);
  }
  give(busy, BUSY_BYTES, 0);
}

static void base_addresses_are_the_drivers(void) {
  size_t bytes = 0;
  char *small = take(1000, 0);
  const char *base = gm_torch_base_alloc(small + 999, &bytes);
  DRIVER_CHECK(base && base <= small && small + 1000 <= base + bytes);
  DRIVER_CHECK(!gm_torch_base_alloc(&bytes, &bytes));
  give(small, 1000, 0);
}

static void a_fraction_bounds_the_card(void) {
  enum { PART = 64 };
  uint64_t free_bytes = 0, total = 0;
  DRIVER_CHECK(gm_cards_memory(0, &free_bytes, &total) == 0);
  DRIVER_CHECK(0 < free_bytes && free_bytes <= total);
  gm_torch_memory_fraction(1.0 / PART, 0);
  DRIVER_CHECK(!gm_torch_alloc((ptrdiff_t)(total / PART * 2), 0, streams[0]));
  gm_torch_memory_fraction(1, 0);
  if (free_bytes < total / PART * 3) return; /* others hold the card */
  void *large = take(total / PART * 2, 0);
  give(large, total / PART * 2, 0);
}

static void empty_cache_gives_all_back(void) {
  for (int turns = 0; turns < 10000 && gm_cards_figure(0, "reserved_bytes"); turns++) { /* a stream tells late */
    wait_for_all();
    gm_torch_reset();
  }
  DRIVER_CHECK(gm_cards_figure(0, "reserved_bytes") == 0);
}

/* ---- graphs ---- */

enum { GRAPH_BYTES = 256 << 10, OUTPUTS = 3, SPOTS = 64, REPLAYS = 100 };

/* torch's filter does this: it wants the streams of one capture. The id is known once the capture has begun. */
typedef struct torch_graph {
  gm_torch_pool_id pool;
  _Atomic uint64_t capture;
  void *exec;
  void *outputs[OUTPUTS];
  unsigned word; /* output i holds word + i */
} torch_graph;

static pthread_mutex_t spots_lock = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t spots[SPOTS]; /* all memory that captures were given */
static size_t spot_count;

static bool graph_wants(void *user, void *stream) {
  const torch_graph *graph = user;
  const uint64_t capture = driver_capture_of(stream);
  return capture && capture == graph->capture;
}

static void *graph_take(int stream) {
  void *pointer = take(GRAPH_BYTES, stream);
  pthread_mutex_lock(&spots_lock);
  DRIVER_CHECK(spot_count < SPOTS);
  spots[spot_count++] = (uintptr_t)pointer;
  pthread_mutex_unlock(&spots_lock);
  return pointer;
}

/* Memory that nobody's graph may name. */
static void is_no_graphs(const void *pointer, size_t bytes) {
  pthread_mutex_lock(&spots_lock);
  for (size_t i = 0; i < spot_count; i++)
    DRIVER_CHECK((uintptr_t)pointer + bytes <= spots[i] || spots[i] + GRAPH_BYTES <= (uintptr_t)pointer);
  pthread_mutex_unlock(&spots_lock);
}

/* An output, made by way of a temporary that is freed at once, as torch's are. */
static void *graph_output(unsigned word, int stream) {
  void *temporary = graph_take(stream), *output = graph_take(stream);
  driver_fill(temporary, GRAPH_BYTES, word, streams[stream]);
  driver_copy(output, temporary, GRAPH_BYTES, streams[stream]);
  give(temporary, GRAPH_BYTES, stream);
  return output;
}

/* Work of a stream that is not captured, meanwhile. */
static void ask_beside(void) {
  enum { BLOCKS = 32 };
  void *pointers[BLOCKS];
  for (int i = 0; i < BLOCKS; i++) {
    pointers[i] = take(GRAPH_BYTES, 2);
    is_no_graphs(pointers[i], GRAPH_BYTES);
  }
  for (int i = 0; i < BLOCKS; i++) give(pointers[i], GRAPH_BYTES, 2);
}

/* Stream 0 is captured, and stream 1 joins it for a while. */
static void graph_capture(torch_graph *graph) {
  const gm_torch_filter filter = {.wants = graph_wants, .user = graph};
  gm_torch_pool_begin(0, graph->pool, &filter);
  ask_beside();
  driver_wait(streams[0]);
  ask_beside(); /* all that was freed before is known to be done */
  driver_capture_begin(streams[0]);
  graph->capture = driver_capture_of(streams[0]);
  DRIVER_CHECK(graph->capture);
  ask_beside();
  graph->outputs[0] = graph_output(graph->word, 0);
  driver_follow(streams[1], streams[0]);
  graph->outputs[1] = graph_output(graph->word + 1, 1);
  driver_follow(streams[0], streams[1]);
  graph->outputs[2] = graph_output(graph->word + 2, 0);
  graph->exec = driver_capture_end(streams[0]);
  gm_torch_end_allocate_to_pool(0, graph->pool);
  graph->capture = 0;
}

/* torch may replay on any stream. */
static void graph_replay(const torch_graph *graph, int stream) {
  for (int i = 0; i < OUTPUTS; i++) driver_fill(graph->outputs[i], GRAPH_BYTES, 0, streams[stream]);
  driver_launch(graph->exec, streams[stream]);
  driver_wait(streams[stream]);
}

static void graph_holds(const torch_graph *graph) {
  for (int i = 0; i < OUTPUTS; i++) holds(graph->outputs[i], GRAPH_BYTES, graph->word + (unsigned)i);
}

static void graph_release(torch_graph *graph) {
  driver_graph_end(graph->exec);
  gm_torch_release_pool(0, graph->pool);
}

static void graph_free_outputs(const torch_graph *graph) {
  give(graph->outputs[0], GRAPH_BYTES, 0);
  give(graph->outputs[1], GRAPH_BYTES, 1);
  give(graph->outputs[2], GRAPH_BYTES, 0);
}

/* Other work, from another thread on a stream of its own, during captures and replays. */
static _Atomic bool beside_ends;

static void *work_beside(void *user) {
  enum { BLOCKS = 8 };
  static const size_t sizes[BLOCKS] = {128 << 10, 256 << 10, 512 << 10, 128 << 10, 256 << 10, 512 << 10, 4096, 260};
  void *blocks[BLOCKS];
  unsigned *word = user;
  driver_enter();
  for (unsigned round = 1; !beside_ends; round++) {
    for (unsigned i = 0; i < BLOCKS; i++) {
      blocks[i] = take(sizes[i], 2);
      is_no_graphs(blocks[i], sizes[i]);
      driver_fill(blocks[i], sizes[i], 1000 * round + i, streams[2]);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
      driver_read(word, (char *)blocks[i] + sizes[i] - WORD, WORD, streams[2]);
      driver_wait(streams[2]);
      DRIVER_CHECK(*word == 1000 * round + i);
      give(blocks[i], sizes[i], 2);
    }
  }
  return NULL;
}

/* Two graphs share a pool: the second may use what the first has freed, and no output of it. */
static void graphs_keep_their_memory(void) {
  pthread_t thread;
  torch_graph one = {.pool = {1, 0}, .word = 100}, other = {.pool = {1, 0}, .word = 200};
  beside_ends = false;
  DRIVER_CHECK(pthread_create(&thread, NULL, work_beside, &seen[TENSORS - 1]) == 0);
  graph_capture(&one);
  graph_capture(&other);
  for (int i = 0; i < OUTPUTS; i++)
    for (int k = 0; k < OUTPUTS; k++) DRIVER_CHECK(one.outputs[i] != other.outputs[k]);
  for (int round = 0; round < REPLAYS; round++) {
    graph_replay(&one, round % 2);
    graph_replay(&other, (round + 1) % 2);
    graph_holds(&one);
    graph_holds(&other);
  }
  beside_ends = true;
  DRIVER_CHECK(pthread_join(thread, NULL) == 0);
  graph_release(&one);
  graph_replay(&other, 0); /* one user of the pool is left */
  graph_holds(&other);
  graph_free_outputs(&one);
  graph_release(&other);
  graph_free_outputs(&other); /* outputs outlive their graphs */
}

/* ---- all of it ---- */

typedef struct scene {
  const char *name;
  void (*play)(void);
} scene;

static const scene scenes[] = {{"a training step keeps every tensor", training_keeps_every_tensor},
                               {"a recorded use delays the reuse", recorded_use_delays_the_reuse},
                               {"base addresses are the driver's", base_addresses_are_the_drivers},
                               {"empty_cache gives all back", empty_cache_gives_all_back},
                               {"a fraction bounds the card", a_fraction_bounds_the_card},
                               {"graphs keep their memory while other work goes on", graphs_keep_their_memory},
                               {"empty_cache gives all back after graphs", empty_cache_gives_all_back}};

int main(int count, char **arguments) {
  if (count == 5 && strcmp(arguments[3], "--trace") == 0) {
    recorded = arguments[4];
    count = 3;
  }
  const bool known = count == 3 && strcmp(arguments[1], "--backend") == 0 &&
                     (strcmp(arguments[2], "cuda") == 0 || strcmp(arguments[2], "hip") == 0);
  if (!known) return (void)fprintf(stderr, "usage: gm_torch_play --backend cuda|hip [--trace FILE]\n"), 2;
  driver_open(arguments[2]);
  gm_torch_init(1);
  DRIVER_CHECK(gm_cards_figure(0, "allocs") == 0);
  seen = driver_pinned((size_t)TENSORS * WORD);
  for (int i = 0; i < STREAMS; i++) streams[i] = driver_stream();
  for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
    scenes[i].play();
    printf("%s\n", scenes[i].name);
  }
  driver_pinned_end(seen);
  DRIVER_CHECK(gm_cards_close() == 0); /* no graph's pool is left, or the card were BUSY */
  for (int i = 0; i < STREAMS; i++) driver_stream_end(streams[i]);
  driver_close();
  DRIVER_CHECK(!driver_has_leaks());
  printf("%zu scenes passed on %s\n", sizeof scenes / sizeof *scenes, arguments[2]);
  return 0;
}
