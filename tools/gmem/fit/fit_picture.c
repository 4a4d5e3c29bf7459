#include "tools/gmem/fit/fit_picture.h"

#include <inttypes.h>
#include <string.h>

#include "gm/size.h"
#include "tools/gmem/fit/fit_kinds.h"
#include "tools/gmem/output/style.h"

enum {
  PICTURE_BAR = 40, /* where there is no terminal */
  PICTURE_BAR_LEAST = 8,
  PICTURE_BAR_MOST = 120,
  PICTURE_TEXT = 64,
  PICTURE_ROWS = FIT_DEVICES + 1 + FIT_KINDS
};

/* The parts of a bar, in its order. */
typedef enum picture_part {
  PICTURE_WEIGHTS,
  PICTURE_EXPERTS,
  PICTURE_CACHE,
  PICTURE_COMPUTE,
  PICTURE_BESIDE,
  PICTURE_MARGIN,
  PICTURE_FREE, /* of a kind of layers: what a larger kind has more */
  PICTURE_PARTS
} picture_part;

typedef struct picture_row {
  char label[PICTURE_TEXT], tail[PICTURE_TEXT];
  uint64_t whole; /* 0: there is no bar */
  uint64_t parts[PICTURE_PARTS];
  bool is_place; /* what is left is free */
} picture_row;

typedef struct picture {
  FILE *file;
  bool blocks;            /* UTF-8 */
  int bar;                /* its width */
  uint32_t count, places; /* rows; those of them that are places */
  picture_row rows[PICTURE_ROWS];
} picture;

static const char *picture_bytes(uint64_t bytes, char *text, size_t size) {
  gm_format_bytes(bytes, text, size);
  return text;
}

static uint64_t picture_least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ---- rows ---- */

static void picture_used(picture_row *row, const gm_fit_part *part, uint64_t whole) {
  char used[24], all[24];
  row->whole = whole;
  row->is_place = true;
  row->parts[PICTURE_WEIGHTS] = part->weight_bytes;
  row->parts[PICTURE_CACHE] = part->kv_bytes;
  row->parts[PICTURE_COMPUTE] = part->bytes - part->weight_bytes - part->kv_bytes;
  snprintf(row->tail, sizeof row->tail, "%s of %s", picture_bytes(part->bytes, used, sizeof used),
           picture_bytes(whole, all, sizeof all));
}

static void picture_layers(picture_row *row, uint32_t layers) {
  const size_t length = strlen(row->tail);
  if (layers) snprintf(row->tail + length, sizeof row->tail - length, ", %" PRIu32 " layers", layers);
}

static void picture_device(picture_row *row, const fit_question *self, uint32_t index) {
  const gm_fit_part *part = &self->parts[index];
  char whole[24];
  snprintf(row->label, sizeof row->label, "%s %" PRIu32, self->devices[index].backend, self->devices[index].index);
  if (!part->layer_count) { /* the reason comes in the place of a bar */
    snprintf(row->tail, sizeof row->tail,
             "%s free, not used:", picture_bytes(self->room[index].free_bytes, whole, sizeof whole));
    return;
  }
  picture_used(row, part, self->room[index].free_bytes);
  row->parts[PICTURE_COMPUTE] -= self->taken[index];
  row->parts[PICTURE_BESIDE] = self->taken[index];
  row->parts[PICTURE_MARGIN] = self->room[index].margin_bytes;
  picture_layers(row, part->layer_count);
}

static void picture_host(picture_row *row, const fit_question *self) {
  const gm_fit_part *host = &self->plan.host;
  gm_fit_part used = *host; /* with what lies there in any case */
  used.weight_bytes = picture_least(self->estimate.host_weights, host->bytes);
  used.kv_bytes = picture_least(self->estimate.host_kv, host->bytes - used.weight_bytes);
  snprintf(row->label, sizeof row->label, "host");
  if (self->host_free_bytes == GM_UNKNOWN_BYTES) {
    picture_bytes(host->bytes, row->tail, sizeof row->tail);
  } else {
    picture_used(row, &used, self->host_free_bytes);
  }
  picture_layers(row, host->layer_count);
}

static void picture_kind(picture_row *row, const fit_kind *kind, uint64_t whole) {
  const uint64_t bytes = kind->weight_bytes + kind->expert_bytes + kind->kv_bytes;
  snprintf(row->label, sizeof row->label, "%" PRIu32 " %s", kind->layers, kind->name);
  picture_bytes(bytes, row->tail, sizeof row->tail);
  row->whole = whole;
  row->parts[PICTURE_WEIGHTS] = kind->weight_bytes;
  row->parts[PICTURE_EXPERTS] = kind->expert_bytes;
  row->parts[PICTURE_CACHE] = kind->kv_bytes;
}

static void picture_kinds(picture *self, const fit_question *question) {
  fit_kind kinds[FIT_KINDS];
  const uint32_t count = fit_kinds(question, kinds);
  uint64_t largest = 1;
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t bytes = kinds[i].weight_bytes + kinds[i].expert_bytes + kinds[i].kv_bytes;
    if (bytes > largest) largest = bytes;
  }
  for (uint32_t i = 0; i < count; i++) picture_kind(&self->rows[self->count++], &kinds[i], largest);
}

/* ---- drawing ---- */

static int picture_longest(const picture *self, bool labels) {
  size_t longest = 0;
  for (uint32_t i = 0; i < self->count; i++) {
    const picture_row *row = &self->rows[i];
    const size_t length = strlen(labels ? row->label : row->tail);
    if (length > longest && (labels || row->whole)) longest = length;
  }
  return (int)longest;
}

/* A bar has what is left of a line beside two blanks, the label, "  [", "]  " and the tail. */
static void picture_measure(picture *self) {
  const int columns = style_columns(self->file);
  self->blocks = style_has_blocks(self->file);
  self->bar = PICTURE_BAR;
  if (!columns) return;
  self->bar = columns - 1 - 8 - picture_longest(self, true) - picture_longest(self, false);
  if (self->bar < PICTURE_BAR_LEAST) self->bar = PICTURE_BAR_LEAST;
  if (self->bar > PICTURE_BAR_MOST) self->bar = PICTURE_BAR_MOST;
}

static void picture_signs(const picture *self, int part, int count) {
  static const char *const plain[] = {"#", "%", "=", "+", "@", "-", "."}, *const blocks[] = {"█", "▓", "▒", "░",
                                                                                             "▞", "╌", "·"};
  static const style_colour colours[] = {STYLE_BLUE, STYLE_GREEN, STYLE_CYAN, STYLE_MAGENTA, STYLE_RED, STYLE_YELLOW};
  const bool is_coloured = part < PICTURE_FREE;
  if (count <= 0) return;
  if (is_coloured) fputs(style_begin(self->file, colours[part]), self->file);
  for (int i = 0; i < count; i++) fputs(self->blocks ? blocks[part] : plain[part], self->file);
  if (is_coloured) fputs(style_end(self->file), self->file);
}

/* Signs of each part, by its share. A part that is there at all gets a sign, which the part with the most signs gives.
 */
static void picture_share(const picture_row *row, int bar, int *signs) {
  uint64_t bytes[PICTURE_PARTS], done = 0;
  int at = 0, largest = 0;
  memcpy(bytes, row->parts, sizeof bytes);
  for (int part = 0; part < PICTURE_PARTS; part++) {
    done += bytes[part];
    if (part == PICTURE_FREE) bytes[part] = done < row->whole ? row->whole - done : 0;
    const double share = part == PICTURE_FREE ? 1 : (double)done / (double)row->whole;
    const int to = share >= 1 ? bar : (int)(share * bar + 0.5);
    signs[part] = to > at ? to - at : 0;
    if (to > at) at = to;
    if (signs[part] > signs[largest]) largest = part;
  }
  for (int part = 0; part < PICTURE_PARTS; part++) {
    if (!bytes[part] || signs[part] || signs[largest] < 2) continue;
    signs[part] = 1;
    signs[largest]--;
  }
}

static void picture_bar(const picture *self, const picture_row *row) {
  int signs[PICTURE_PARTS];
  picture_share(row, self->bar, signs);
  fputc('[', self->file);
  for (int part = 0; part < PICTURE_FREE; part++) picture_signs(self, part, signs[part]);
  if (row->is_place) {
    picture_signs(self, PICTURE_FREE, signs[PICTURE_FREE]);
  } else {
    fprintf(self->file, "%*s", signs[PICTURE_FREE], "");
  }
  fputc(']', self->file);
}

static void picture_row_print(const picture *self, const picture_row *row, int labels, const char *why) {
  fprintf(self->file, "  %-*s  ", labels, row->label);
  if (row->whole) {
    picture_bar(self, row);
    fputs("  ", self->file);
  }
  fprintf(self->file, "%s%s%s\n", row->tail, *why ? " " : "", why);
}

static void picture_legend(const picture *self) {
  static const char *const names[] = {"weights", "experts", "cache", "compute, overhead", "beside", "margin"};
  fputs("  ", self->file);
  for (int part = 0; part < PICTURE_FREE; part++) {
    bool is_there = false;
    for (uint32_t i = 0; i < self->count; i++) is_there = is_there || self->rows[i].parts[part];
    if (!is_there) continue;
    picture_signs(self, part, 1);
    fprintf(self->file, " %s  ", names[part]);
  }
  picture_signs(self, PICTURE_FREE, 1);
  fputs(" free\n", self->file);
}

void fit_picture(FILE *file, const fit_question *question) {
  static picture self; /* too large for a stack */
  self = (picture){.file = file};
  for (uint32_t i = 0; i < question->device_count; i++) picture_device(&self.rows[self.count++], question, i);
  picture_host(&self.rows[self.count++], question);
  self.places = self.count;
  picture_kinds(&self, question);
  picture_measure(&self);
  const int labels = picture_longest(&self, true);
  for (uint32_t i = 0; i < self.count; i++) {
    const char *why = i < question->device_count ? question->parts[i].why : "";
    if (i == self.places) fputs("\n", file);
    picture_row_print(&self, &self.rows[i], labels, why);
  }
  picture_legend(&self);
}
