/* Replays a fuzz target's corpus without a fuzzer, as a plain test. It gives each file as it is, cut at every byte of
 * its first part, and with each of those bytes changed. Inputs lie in blocks of their exact size, so that a sanitizer
 * or valgrind sees a read behind the end. Usage: driver CORPUS_DIR [BYTES_TO_CUT]. Prints how many inputs ran. */
#include <dirent.h>
#include <string.h>

#include "fuzz/fuzz.h"

enum { DRIVER_MAX_FILE = 1 << 20 };

typedef struct driver_input {
  unsigned char *bytes;
  size_t length;
} driver_input;

static unsigned long driver_runs;

static void driver_run(const unsigned char *bytes, size_t length) {
  unsigned char *exact = malloc(length ? length : 1);
  fuzz_require(exact != NULL);
  if (length) memcpy(exact, bytes, length);
  LLVMFuzzerTestOneInput(exact, length);
  free(exact);
  driver_runs++;
}

static driver_input driver_load(const char *path) {
  driver_input input = {malloc(DRIVER_MAX_FILE), 0};
  FILE *file = fopen(path, "rb");
  if (!file || !input.bytes) {
    fprintf(stderr, "cannot read %s\n", path);
    exit(1);
  }
  input.length = fread(input.bytes, 1, DRIVER_MAX_FILE, file);
  fclose(file);
  return input;
}

static void driver_change(driver_input *input, size_t at) {
  static const unsigned char values[] = {0x00, 0xff, '"', '\\', '[', '{', '9', ' '};
  unsigned char before = input->bytes[at];
  for (size_t i = 0; i < sizeof values; i++) {
    input->bytes[at] = values[i];
    driver_run(input->bytes, input->length);
  }
  input->bytes[at] = (unsigned char)(before ^ 1);
  driver_run(input->bytes, input->length);
  input->bytes[at] = before;
}

static void driver_replay(const char *path, size_t cut) {
  driver_input input = driver_load(path);
  driver_run(input.bytes, input.length);
  for (size_t at = 0; at < input.length && at < cut; at++) {
    driver_run(input.bytes, at);
    driver_change(&input, at);
  }
  free(input.bytes);
}

int main(int argc, char **argv) {
  if (argc < 2) return fprintf(stderr, "usage: %s CORPUS_DIR [BYTES_TO_CUT]\n", argv[0]), 2;
  size_t cut = argc > 2 ? strtoul(argv[2], NULL, 10) : 512;
  DIR *corpus = opendir(argv[1]);
  if (!corpus) return fprintf(stderr, "cannot open %s\n", argv[1]), 1;
  unsigned long files = 0;
  for (const struct dirent *entry; (entry = readdir(corpus)) != NULL;) {
    char path[4096];
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
    driver_replay(path, cut);
    files++;
  }
  closedir(corpus);
  printf("%lu files, %lu inputs\n", files, driver_runs);
  return files > 0 ? 0 : 1;
}
