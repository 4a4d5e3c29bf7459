#include "tools/gmem/report/page_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/gmem/output/json.h"

enum {
  DATA_KIND,
  DATA_SIZES,
  DATA_SIZE,
  DATA_FREE,
  DATA_STREAM,
  DATA_THREAD,
  DATA_TIME,
  DATA_TAG,
  DATA_RESERVED,
  DATA_COLUMNS
};

static const char *const data_names[DATA_COLUMNS] = {"kind",   "sizes", "size", "free",    "stream",
                                                     "thread", "time",  "tag",  "reserved"};

/* ---- sizes ---- */

/* Each size once: a table with open addresses, half of it free. */
typedef struct data_sizes {
  uint64_t *key;   /* 0: free */
  uint32_t *place; /* of the size among all */
  size_t room;     /* a power of two */
  uint32_t count;
} data_sizes;

static bool data_sizes_make(data_sizes *sizes, uint32_t blocks) {
  sizes->room = 16;
  while (sizes->room < 2 * (size_t)blocks) sizes->room *= 2;
  sizes->key = calloc(sizes->room, sizeof *sizes->key);
  sizes->place = malloc(sizes->room * sizeof *sizes->place);
  return sizes->key && sizes->place;
}

/* 0: a new size; else 1 + the place of an earlier one. */
static uint32_t data_sizes_find(data_sizes *sizes, uint64_t bytes) {
  size_t at = (size_t)((bytes * 0x9e3779b97f4a7c15u) >> 20) & (sizes->room - 1);
  while (sizes->key[at] != 0 && sizes->key[at] != bytes) at = (at + 1) & (sizes->room - 1);
  if (sizes->key[at] == bytes) return sizes->place[at] + 1;
  sizes->key[at] = bytes;
  sizes->place[at] = sizes->count++;
  return 0;
}

static void data_add_sizes(const report_events *events, page_bytes *columns) {
  data_sizes sizes = {.count = 0};
  bool made = data_sizes_make(&sizes, events->blocks);
  columns[DATA_SIZES].failed = !made;
  for (uint32_t i = 0; made && i < events->blocks; i++) {
    uint32_t place = data_sizes_find(&sizes, events->bytes[i]);
    if (place == 0) page_bytes_number(&columns[DATA_SIZES], events->bytes[i]);
    page_bytes_number(&columns[DATA_SIZE], place);
  }
  free(sizes.key);
  free(sizes.place);
}

/* ---- events ---- */

static void data_add_frees(const report_events *events, page_bytes *column) {
  uint32_t blocks = 0;
  for (uint32_t i = 0; i < events->count; i++) {
    if (events->kind[i] == REPORT_ALLOC) blocks++;
    if (events->kind[i] == REPORT_FREE) page_bytes_number(column, blocks - 1 - events->number[i]);
  }
}

static void data_add_streams(const report_events *events, page_bytes *column) {
  uint32_t before = 0;
  for (uint32_t i = 0; events->streams > 1 && i < events->count; i++) {
    if (events->kind[i] == REPORT_MARK) continue;
    page_bytes_number(column, events->stream[i] == before ? 0 : events->stream[i] + 1u);
    before = events->stream[i];
  }
}

static void data_add_times(const report_events *events, page_bytes *columns) {
  uint64_t before = 0, held = 0;
  for (uint32_t i = 0; events->time && i < events->count; i++) {
    page_bytes_number(&columns[DATA_TIME], events->time[i] - before);
    before = events->time[i];
  }
  for (uint32_t i = 0; events->reserved && i < events->count; i++) {
    uint64_t now = events->reserved[i];
    page_bytes_number(&columns[DATA_RESERVED], now < held ? 2 * (held - now) - 1 : 2 * (now - held));
    held = now;
  }
}

static void data_add_numbers(const uint32_t *numbers, uint32_t count, page_bytes *column) {
  for (uint32_t i = 0; numbers && i < count; i++) page_bytes_number(column, numbers[i]);
}

static void data_add_columns(const report_events *events, page_bytes *columns) {
  page_bytes_add(&columns[DATA_KIND], events->kind, events->count);
  data_add_sizes(events, columns);
  data_add_frees(events, &columns[DATA_FREE]);
  data_add_streams(events, &columns[DATA_STREAM]);
  data_add_times(events, columns);
  data_add_numbers(events->thread, events->count, &columns[DATA_THREAD]);
  data_add_numbers(events->tag, events->blocks, &columns[DATA_TAG]);
}

/* ---- the object in front ---- */

static void data_head_texts(json_writer *out, const char *key, char *const *texts, uint32_t count) {
  writer_open(out, key, '[');
  for (uint32_t i = 0; i < count; i++) writer_text(out, NULL, texts[i]);
  writer_close(out);
}

static void data_head_columns(json_writer *out, const page_bytes *columns) {
  writer_open(out, "columns", '[');
  for (int i = 0; i < DATA_COLUMNS; i++) {
    if (columns[i].used == 0) continue;
    writer_open(out, NULL, '{');
    writer_text(out, "name", data_names[i]);
    writer_u64(out, "bytes", columns[i].used);
    writer_close(out);
  }
  writer_close(out);
}

static void data_head(FILE *file, const char *name, const report_events *events, const page_bytes *columns) {
  json_writer out = {.file = file, .one_line = true};
  writer_open(&out, NULL, '{');
  writer_u64(&out, "version", 1);
  writer_text(&out, "name", name);
  writer_u64(&out, "events", events->count);
  writer_u64(&out, "blocks", events->blocks);
  writer_u64(&out, "before", events->before);
  writer_u64(&out, "carried", events->carried);
  writer_u64(&out, "peak_bytes", events->peak_bytes);
  writer_u64(&out, "peak_event", events->peak_event);
  writer_u64(&out, "end_bytes", events->end_bytes);
  writer_u64(&out, "end_blocks", events->end_blocks);
  data_head_texts(&out, "marks", events->label, events->marks);
  data_head_texts(&out, "tags", events->tag_name, events->tags);
  data_head_columns(&out, columns);
  writer_close(&out);
}

static void data_join(const char *head, size_t head_bytes, const page_bytes *columns, page_bytes *out) {
  unsigned char length[4] = {(unsigned char)head_bytes, (unsigned char)(head_bytes >> 8),
                             (unsigned char)(head_bytes >> 16), (unsigned char)(head_bytes >> 24)};
  out->failed = head_bytes > UINT32_MAX;
  page_bytes_add(out, length, sizeof length);
  page_bytes_add(out, head, head_bytes);
  for (int i = 0; i < DATA_COLUMNS; i++) {
    out->failed = out->failed || columns[i].failed;
    page_bytes_add(out, columns[i].data, columns[i].used);
  }
}

gm_status page_data_make(const char *name, const report_events *events, page_bytes *out, gm_error *err) {
  page_bytes columns[DATA_COLUMNS] = {{NULL, 0, 0, false}};
  char *head = NULL;
  size_t head_bytes = 0;
  data_add_columns(events, columns);
  FILE *file = open_memstream(&head, &head_bytes);
  if (file) data_head(file, name, events, columns);
  *out = (page_bytes){.failed = !file || fclose(file) != 0};
  if (!out->failed) data_join(head, head_bytes, columns, out);
  free(head);
  for (int i = 0; i < DATA_COLUMNS; i++) page_bytes_free(&columns[i]);
  if (!out->failed) return GM_OK;
  if (err) *err = (gm_error){.status = GM_ERR_OUT_OF_HOST_MEMORY, .message = "too long for this host's memory"};
  return GM_ERR_OUT_OF_HOST_MEMORY;
}
