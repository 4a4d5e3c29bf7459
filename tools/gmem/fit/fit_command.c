/* The line that runs the model as it was placed, with the options that llama.cpp has. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/gmem/fit/fit.h"

/* As a shell reads it: what is not plain goes between quotes. */
static void command_word(FILE *file, const char *text) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+=:,@%-";
  if (text[0] && !text[strspn(text, plain)]) {
    fputs(text, file);
    return;
  }
  fputc('\'', file);
  for (; *text; text++) {
    if (*text == '\'') {
      fputs("'\\''", file);
    } else {
      fputc(*text, file);
    }
  }
  fputc('\'', file);
}

/* Layers of each device, in its order: what its share is counted from. */
static void command_split(FILE *file, const fit_question *self) {
  if (self->device_count < 2 || !self->plan.device_layers) return;
  for (uint32_t i = 0; i < self->device_count; i++) {
    fprintf(file, "%s%" PRIu32, i ? "," : " -ts ", self->parts[i].layer_count);
  }
}

static void command_cache(FILE *file, const fit_question *self) {
  const bool is_plain = strcmp(self->kv_names[0], "f16") == 0;
  if (!is_plain) fprintf(file, " -ctk %s -ctv %s", self->kv_names[0], self->kv_names[0]);
  if (self->settings.plain_attention) {
    fprintf(file, " -fa off");
  } else if (!is_plain) {
    fprintf(file, " -fa on"); /* it reads a cache of another type with flash attention alone */
  }
}

static void command_print(FILE *file, const fit_question *self) {
  const gm_estimate_settings *settings = &self->settings;
  const uint32_t sequences = settings->sequences ? settings->sequences : 1;
  fprintf(file, "%s -m ", sequences > 1 ? "llama-server" : "llama-cli");
  command_word(file, self->path);
  fprintf(file, " -ngl %" PRIu32, self->plan.device_layers);
  command_split(file, self);
  fprintf(file, " -c %" PRIu64, self->estimate.context);
  if (sequences > 1) fprintf(file, " -np %" PRIu32 "%s", sequences, settings->separate_sequences ? "" : " -kvu");
  if (settings->full_windows) fprintf(file, " --swa-full");
  if (settings->batch) fprintf(file, " -b %" PRIu64, settings->batch);
  if (settings->micro_batch) fprintf(file, " -ub %" PRIu64, settings->micro_batch);
  command_cache(file, self);
}

static bool command_is_gguf(const char *path) {
  const size_t length = path ? strlen(path) : 0;
  return length > 5 && strcmp(path + length - 5, ".gguf") == 0;
}

bool fit_command(const fit_question *self, char *out, size_t capacity) {
  const gm_fit_part *host = &self->plan.host;
  const bool is_placed = self->plan.device_layers + host->layer_count == fit_layer_count(self);
  if (!command_is_gguf(self->path) || !is_placed || host->bytes > self->host_free_bytes) return false;
  FILE *file = fmemopen(out, capacity, "w");
  if (!file) return false;
  command_print(file, self);
  const long length = ftell(file);
  return fclose(file) == 0 && length > 0 && (size_t)length < capacity;
}
