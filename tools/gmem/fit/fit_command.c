/* The line that runs the model as it was placed, with the options that llama.cpp has. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/gmem/fit/fit.h"

/* A shell reads it: a word that is not plain goes between quotes. */
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

enum { COMMAND_SHARES = 15 /* the engine refuses more; devices that it is told nothing of get none */ };

/* Devices up to the last one that is used, or all of them where the engine takes so many. */
static uint32_t command_shares(const fit_question *self) {
  uint32_t count = self->device_count;
  while (count > COMMAND_SHARES && !self->parts[count - 1].layer_count) count--;
  return count;
}

/* Layers of each device, in its order: what its share is counted from. */
static void command_split(FILE *file, const fit_question *self) {
  if (self->device_count < 2 || !self->plan.device_layers) return;
  for (uint32_t i = 0; i < command_shares(self); i++) {
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

/* An element of a list with commas between; quotes around it double inside. */
static void command_element(FILE *file, const char *text) {
  const bool is_plain = !text[strcspn(text, ",\"")];
  if (is_plain) {
    fputs(text, file);
    return;
  }
  fputc('"', file);
  for (; *text; text++) fputs(*text == '"' ? "\"\"" : (const char[]){*text, '\0'}, file);
  fputc('"', file);
}

/* All adapters are one word: of several options the last one alone counts. */
static void command_adapters(FILE *file, const fit_question *self) {
  static char list[FIT_COMMAND];
  FILE *inner = fmemopen(list, sizeof list, "w");
  bool is_first = true;
  if (!inner) return;
  for (uint32_t i = 0; i < self->beside_count; i++) {
    if (self->beside[i].kind != FIT_ADAPTER) continue;
    if (!is_first) fputc(',', inner);
    command_element(inner, self->beside[i].path);
    is_first = false;
  }
  fclose(inner);
  if (is_first) return;
  fputs(" --lora ", file);
  command_word(file, list);
}

static void command_beside(FILE *file, const fit_question *self) {
  for (uint32_t i = 0; i < self->beside_count; i++) {
    const fit_beside *it = &self->beside[i];
    if (it->kind == FIT_PROJECTOR) fputs(" --mmproj ", file);
    if (it->kind == FIT_DRAFT) fputs(" -md ", file);
    if (it->kind == FIT_PROJECTOR || it->kind == FIT_DRAFT) command_word(file, it->path);
    if (it->kind == FIT_DRAFT) {
      fprintf(file, " -ngld %" PRIu64 " --spec-type draft-simple", self->device_count ? it->config.layers + 1 : 0);
    }
  }
  command_adapters(file, self);
}

static void command_print(FILE *file, const fit_question *self) {
  const gm_estimate_settings *settings = &self->settings;
  const uint32_t sequences = settings->sequences ? settings->sequences : 1;
  const bool is_encoder = self->config.encoder_only, serves = sequences > 1 || is_encoder;
  fprintf(file, "%s -m ", serves ? "llama-server" : "llama-cli");
  command_word(file, self->path);
  fprintf(file, " -ngl %" PRIu32, self->plan.device_layers);
  command_split(file, self);
  if (self->experts_on_host) fprintf(file, " -ncmoe %" PRIu32, self->experts_on_host);
  if (self->overrides) {
    fputs(" -ot ", file);
    command_word(file, self->overrides);
  }
  command_beside(file, self);
  fprintf(file, " -c %" PRIu64, self->estimate.context);
  if (serves) fprintf(file, " -np %" PRIu32, sequences); /* left alone, a server has four */
  if (sequences > 1 && !settings->separate_sequences) fputs(" -kvu", file);
  if (settings->full_windows) fputs(" --swa-full", file);
  if (is_encoder) fputs(" --embedding", file);
  if (settings->batch) fprintf(file, " -b %" PRIu64, settings->batch);
  if (settings->micro_batch) fprintf(file, " -ub %" PRIu64, settings->micro_batch);
  command_cache(file, self);
}

static bool command_is_gguf(const char *path) {
  const size_t length = path ? strlen(path) : 0;
  return length > 5 && strcmp(path + length - 5, ".gguf") == 0;
}

/* The engine reads numbers as ints, and takes a split of so many shares. */
static bool command_is_possible(const fit_question *self) {
  const gm_estimate_settings *settings = &self->settings;
  return self->estimate.context <= INT32_MAX && settings->batch <= INT32_MAX && settings->micro_batch <= INT32_MAX &&
         command_shares(self) <= COMMAND_SHARES;
}

bool fit_command(const fit_question *self, char *out, size_t capacity) {
  const gm_fit_part *host = &self->plan.host;
  const bool is_placed = self->plan.device_layers + host->layer_count == fit_layer_count(self);
  if (self->estimate.standing == GM_STANDING_UNKNOWN) return false;
  if (!command_is_gguf(self->path) || !is_placed || host->bytes > self->host_free_bytes) return false;
  if (!command_is_possible(self)) return false;
  FILE *file = fmemopen(out, capacity, "w");
  if (!file) return false;
  command_print(file, self);
  const long length = ftell(file);
  return fclose(file) == 0 && length > 0 && (size_t)length < capacity;
}
