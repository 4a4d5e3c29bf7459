/* Embeddings of sentences, and how similar they are.
 *
 *   minilm MODEL.safetensors [--backend cpu|opencl|opencl-gm] [--platform NAME] [--print] [--compare FILE]
 *          [--repeat N] SENTENCE...
 *   minilm MODEL.safetensors ... --ids FILE
 *
 * With opencl the engine makes the device and lends it to gm; with opencl-gm it uses a device that gm opened.
 * Sentences are split into tokens by the vocab.txt beside the model. A line of the file of --ids has the tokens of one
 * sentence instead. --print writes whole embeddings. --compare reads others, one on each line, and fails if a number
 * differs by more than 1e-4. --repeat embeds all of them N times more, and prints the least time. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "minilm.h"
#include "wordpiece.h"

enum { MOST_SENTENCES = 32, MOST_TOKENS = 512, LONGEST_LINE = 1 << 16 };
#define LARGEST_DIFFERENCE 1e-4

typedef struct program {
  minilm_params params;
  const char *ids, *compare, *repeat, *sentences[MOST_SENTENCES];
  int print;
  uint32_t count;
  int32_t tokens[MOST_SENTENCES][MOST_TOKENS];
  uint32_t token_counts[MOST_SENTENCES];
  float embeddings[MOST_SENTENCES][MINILM_MAX_WIDTH];
  char line[LONGEST_LINE];
} program;

static int failed(const gm_error *err) {
  fprintf(stderr, "minilm: %s: %s: %s\n", err->op, gm_status_name(err->status), err->message);
  return 1;
}

static int usage(void) {
  fprintf(
      stderr,
      "usage: minilm MODEL.safetensors [--backend cpu|opencl|opencl-gm] [--platform NAME] [--print] [--compare FILE]\n"
      "              [--repeat N] SENTENCE... | --ids FILE\n");
  return 2;
}

static int read_args(program *p, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const char *const names[] = {"--backend", "--platform", "--ids", "--compare", "--repeat"};
    const char **const values[] = {&p->params.backend, &p->params.platform, &p->ids, &p->compare, &p->repeat};
    int option = 0;
    while (option < 5 && strcmp(argv[i], names[option]) != 0) option++;
    if (option < 5 && i + 1 < argc)
      *values[option] = argv[++i];
    else if (strcmp(argv[i], "--print") == 0)
      p->print = 1;
    else if (strncmp(argv[i], "--", 2) == 0 || p->count == MOST_SENTENCES)
      return 1;
    else if (!p->params.model)
      p->params.model = argv[i];
    else
      p->sentences[p->count++] = argv[i];
  }
  return !p->params.model || !p->ids == !p->count;
}

static int split_sentences(program *p) {
  const char *slash = strrchr(p->params.model, '/');
  const int folder = slash ? (int)(slash - p->params.model) + 1 : 0;
  wordpiece vocab;
  gm_error err;
  snprintf(p->line, sizeof p->line, "%.*svocab.txt", folder, p->params.model);
  gm_status status = wordpiece_open(&vocab, p->line, &err);
  for (uint32_t i = 0; !status && i < p->count; i++) {
    status = wordpiece_split(&vocab, p->sentences[i], p->tokens[i], MOST_TOKENS, &p->token_counts[i], &err);
  }
  wordpiece_close(&vocab);
  return status ? failed(&err) : 0;
}

/* The tokens of one line. A number that fits no token becomes -1, which the engine refuses. */
static int read_row(program *p, uint32_t row) {
  char *at = p->line, *end = at;
  for (;; at = end) {
    const long id = strtol(at, &end, 10);
    if (end == at) return *(at + strspn(at, " \r\n")) != '\0';
    if (p->token_counts[row] == MOST_TOKENS) return 1;
    p->tokens[row][p->token_counts[row]++] = id < 0 || id > INT32_MAX ? -1 : (int32_t)id;
  }
}

static int read_ids(program *p) {
  FILE *file = fopen(p->ids, "r");
  int bad = !file;
  while (!bad && fgets(p->line, sizeof p->line, file)) {
    bad = p->count == MOST_SENTENCES || read_row(p, p->count);
    if (!bad) p->count++;
  }
  if (file) fclose(file);
  if (!bad && p->count > 0) return 0;
  fprintf(stderr, "minilm: %s: line %u is no list of at most %d tokens; %d lines are allowed\n", p->ids, p->count + 1,
          MOST_TOKENS, MOST_SENTENCES);
  return 1;
}

static int embed_all(program *p, minilm *m) {
  gm_error err;
  for (uint32_t i = 0; i < p->count; i++) {
    if (minilm_embed(m, p->tokens[i], p->token_counts[i], p->embeddings[i], &err)) return failed(&err);
  }
  return 0;
}

static double now_ms(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int embed_again(program *p, minilm *m) {
  double least = INFINITY;
  const long times = strtol(p->repeat, NULL, 10);
  for (long i = 0; i < times; i++) {
    const double begin = now_ms();
    if (embed_all(p, m)) return 1;
    least = fmin(least, now_ms() - begin);
  }
  printf("time        %.2f ms for all sentences, the least of %ld\n", least, times);
  return 0;
}

static void print_embeddings(const program *p, uint32_t width) {
  for (uint32_t i = 0; i < p->count; i++) {
    printf("sentence %-2u %3u tokens:", i + 1, p->token_counts[i]);
    for (uint32_t k = 0; k < (p->print ? width : 4); k++) printf(" %.9g", (double)p->embeddings[i][k]);
    printf(p->print ? "\n" : " ...\n");
  }
}

/* Embeddings have the length 1, so their product is the cosine. */
static void print_similarities(const program *p, uint32_t width) {
  for (uint32_t i = 0; p->count > 1 && i < p->count; i++) {
    printf("%-11s", i == 0 ? "similarity" : "");
    for (uint32_t k = 0; k <= i; k++) {
      double sum = 0;
      for (uint32_t at = 0; at < width; at++) sum += (double)p->embeddings[i][at] * (double)p->embeddings[k][at];
      printf(" %6.3f", sum);
    }
    printf("\n");
  }
}

static void print_memory(const minilm *m) {
  gm_stats weights = {.struct_size = sizeof weights}, work = {.struct_size = sizeof work};
  char of_weights[16], of_work[16];
  gm_pool_stats(m->weights_pool, &weights);
  gm_pool_stats(m->work_pool, &work);
  gm_format_bytes(weights.requested_bytes, of_weights, sizeof of_weights);
  gm_format_bytes(work.peak_requested_bytes, of_work, sizeof of_work);
  printf("weights     %s of gm in %" PRIu64 " blocks\n", of_weights, weights.active);
  printf("work        %s of gm at most; %" PRIu64 " requests, %" PRIu64 " of them new at the driver; %" PRIu64
         " blocks left\n",
         of_work, work.allocs, work.misses, work.active);
}

static int compare(program *p, uint32_t width) {
  FILE *file = fopen(p->compare, "r");
  double largest = 0;
  uint32_t rows = 0;
  while (file && rows < p->count && fgets(p->line, sizeof p->line, file)) {
    char *at = p->line, *end = at;
    for (uint32_t i = 0; i < width; i++, at = end) {
      const double difference = fabs(strtod(at, &end) - (double)p->embeddings[rows][i]);
      if (end == at || !(difference <= largest)) largest = end == at ? INFINITY : difference;
    }
    rows++;
  }
  if (file) fclose(file);
  printf("compared    %" PRIu32 " of %" PRIu32 " sentences, largest difference %.2g\n", rows, p->count, largest);
  return rows != p->count || !(largest <= LARGEST_DIFFERENCE);
}

static int work(program *p) {
  minilm m;
  gm_error err;
  if (minilm_open(&m, &p->params, &err)) return failed(&err);
  const uint32_t width = m.dims.width;
  printf("device      %s: %s\n", p->params.backend, m.backend.name);
  printf("model       %u layers of width %u, %u heads, %u words\n", m.dims.layers, width, m.dims.heads, m.dims.words);
  int bad = embed_all(p, &m) || (p->repeat && embed_again(p, &m));
  if (!bad) {
    print_embeddings(p, width);
    print_similarities(p, width);
    print_memory(&m);
    bad = p->compare && compare(p, width);
  }
  if (minilm_close(&m, &err)) bad = failed(&err);
  return bad;
}

int main(int argc, char **argv) {
  static program p = {.params = {.backend = "cpu"}};
  if (read_args(&p, argc, argv)) return usage();
  if (p.ids ? read_ids(&p) : split_sentences(&p)) return 1;
  return work(&p);
}
