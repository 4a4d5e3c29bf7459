#include "backends/cpu/cpu_options.h"

#include <stdio.h>
#include <string.h>

#include "core/base/error.h"

static gm_status options_word(const char *word, gm__cpu_options *options, gm_error *err) {
  if (strncmp(word, "numa=", 5) == 0) return gm__cpu_numa_parse(word + 5, &options->numa, err);
  if (strcmp(word, "hugetlb") == 0) {
    options->hugetlb = true;
  } else if (strcmp(word, "memfd") == 0) {
    options->memfd = true;
  } else {
    return gm__bad_argument(err, "cpu options",
                            "`%.60s` is no option of the CPU backend: numa=local|interleave|node:N, hugetlb, memfd",
                            word);
  }
  return GM_OK;
}

gm_status gm__cpu_options_parse(const char *text, gm__cpu_options *out, gm_error *err) {
  gm__cpu_options options = {0};
  for (size_t length; *text; text += length + (text[length] == ',')) {
    char word[64];
    length = strcspn(text, ",");
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word), text);
    const gm_status status = options_word(word, &options, err);
    if (status) return status;
  }
  *out = options;
  return GM_OK;
}
