/* Prints the generated part of docs/configuration.md: every key, and what each preset sets. A test holds the page
 * against it. By hand: build/dev/bin/tests/print_config */
#include <stdio.h>
#include <string.h>

#include "gm/config.h"

/* The one value that depends on how gm was built: the default, which "training" takes, too. */
static const char *print_value(const char *preset, const char *key, const char *value) {
  bool depends = strcmp(key, "track_allocations") == 0 && (!preset || strcmp(preset, "training") == 0);
  return depends ? "true in debug builds" : value;
}

/* `|` ends a cell even within code. */
static void print_cell(const char *text) {
  for (; *text; text++) printf(*text == '|' ? "\\|" : "%c", *text);
}

static void print_keys(void) {
  printf("| key | environment | type | range | default | meaning |\n|---|---|---|---|---|---|\n");
  const gm_config_key *key;
  for (size_t i = 0; (key = gm_config_key_at(i)); i++) {
    const char *fallback = print_value(NULL, key->name, key->fallback);
    printf("| `%s` | `%s` | %s | ", key->name, key->environment, key->type);
    print_cell(key->range);
    printf(" | %s | %s%s |\n", fallback, key->meaning, key->effective ? "" : " (later)");
  }
}

static int print_preset(const char *name) {
  const gm_context_params params = {.struct_size = sizeof params, .preset = name, .ignore_environment = true};
  gm_context *ctx;
  gm_error err;
  if (gm_context_create(&params, &ctx, &err) != GM_OK) {
    fprintf(stderr, "%s: %s\n", name, err.message);
    return 1;
  }
  printf("| `%s` |", name);
  const gm_config_key *key;
  const char *between = " ";
  for (size_t i = 0; (key = gm_config_key_at(i)); i++) {
    char value[1024];
    gm_config_source source = GM_CONFIG_DEFAULT;
    if (gm_config_get(ctx, key->name, value, sizeof value, &source, NULL) != GM_OK || source != GM_CONFIG_PRESET) {
      continue;
    }
    printf("%s`%s` = %s", between, key->name, print_value(name, key->name, value));
    between = ", ";
  }
  printf(" |\n");
  return gm_context_destroy(ctx, NULL) != GM_OK;
}

int main(void) {
  print_keys();
  printf("\n| preset | sets |\n|---|---|\n");
  return print_preset("inference") | print_preset("training") | print_preset("constrained");
}
