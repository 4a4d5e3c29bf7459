/* Times buffers of a device: many sizes, several alive at once, freed in another order.
 *
 * usage: allocate DEVICE
 *
 * Prints "allocate: N buffers, U us for each" and returns 0. U is the median of the rounds, and each round ends with no
 * buffer. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <ggml-backend.h>

enum { ROUNDS = 9, BUFFERS = 200, LIVE = 16 };

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* 64 KiB to 16 MiB, in no order. */
static size_t size_of(unsigned number) { return (size_t)65536 << (number * 7 % 9); }

/* Returns the microseconds for each buffer, or a negative number where one was refused. */
static double one_round(ggml_backend_buffer_type_t type) {
  ggml_backend_buffer_t live[LIVE] = {NULL};
  const double begin = now_us();
  for (unsigned i = 0; i < BUFFERS; ++i) {
    const unsigned place = i * 5 % LIVE;
    ggml_backend_buffer_free(live[place]);
    live[place] = ggml_backend_buft_alloc_buffer(type, size_of(i));
    if (!live[place]) return -1;
  }
  for (unsigned i = 0; i < LIVE; ++i) ggml_backend_buffer_free(live[i]);
  return (now_us() - begin) / BUFFERS;
}

static int compare(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

int main(int count, char **words) {
  double took[ROUNDS];
  ggml_backend_load_all();
  ggml_backend_dev_t device = count == 2 ? ggml_backend_dev_by_name(words[1]) : NULL;
  if (!device) return fprintf(stderr, "usage: allocate DEVICE\n"), 2;
  for (int i = 0; i < ROUNDS; ++i) {
    took[i] = one_round(ggml_backend_dev_buffer_type(device));
    if (took[i] < 0) return fprintf(stderr, "allocate: a buffer was refused\n"), 1;
  }
  qsort(took, ROUNDS, sizeof *took, compare);
  printf("allocate: %d buffers, %.1f us for each\n", ROUNDS * BUFFERS, took[ROUNDS / 2]);
  return 0;
}
