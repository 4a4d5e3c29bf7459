#include "wordpiece.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

enum { LONGEST_WORD = 100, LARGEST_FILE = 16 << 20 };

static int by_text(const void *a, const void *b) {
  return strcmp(((const wordpiece_piece *)a)->text, ((const wordpiece_piece *)b)->text);
}

static gm_status read_file(FILE *file, char **out) {
  long length = -1;
  if (fseek(file, 0, SEEK_END) == 0) length = ftell(file);
  if (length < 0 || length > LARGEST_FILE || fseek(file, 0, SEEK_SET) != 0) return GM_ERR_IO;
  *out = calloc(1, (size_t)length + 1);
  if (!*out) return GM_ERR_OUT_OF_HOST_MEMORY;
  return fread(*out, 1, (size_t)length, file) == (size_t)length ? GM_OK : GM_ERR_IO;
}

static gm_status read_text(wordpiece *out, const char *path, gm_error *err) {
  FILE *file = fopen(path, "rb");
  const gm_status status = file ? read_file(file, &out->text) : GM_ERR_IO;
  if (file) fclose(file);
  return status ? minilm_fail(err, status, "wordpiece_open", "%s cannot be read", path) : GM_OK;
}

/* Without `pieces` the lines are only counted. */
static uint32_t split_lines(char *text, wordpiece_piece *pieces) {
  uint32_t count = 0;
  while (*text) {
    char *end = text + strcspn(text, "\n");
    char *next = *end ? end + 1 : end;
    if (pieces) {
      pieces[count] = (wordpiece_piece){text, (int32_t)count};
      *end = '\0';
    }
    count++;
    text = next;
  }
  return count;
}

static gm_status sort(wordpiece *out, gm_error *err) {
  out->count = split_lines(out->text, NULL);
  out->pieces = calloc(out->count + 1U, sizeof *out->pieces);
  if (!out->pieces) return minilm_fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "wordpiece_open", "no host memory");
  split_lines(out->text, out->pieces);
  qsort(out->pieces, out->count, sizeof *out->pieces, by_text);
  return GM_OK;
}

/* The id of a piece, or -1. */
static int32_t find(const wordpiece *vocab, const char *text) {
  const wordpiece_piece key = {text, 0};
  const wordpiece_piece *found = bsearch(&key, vocab->pieces, vocab->count, sizeof key, by_text);
  return found ? found->id : -1;
}

gm_status wordpiece_open(wordpiece *out, const char *path, gm_error *err) {
  memset(out, 0, sizeof *out);
  gm_status status = read_text(out, path, err);
  if (!status) status = sort(out, err);
  if (status) return status;
  out->unknown = find(out, "[UNK]");
  out->begin = find(out, "[CLS]");
  out->end = find(out, "[SEP]");
  if (out->unknown >= 0 && out->begin >= 0 && out->end >= 0) return GM_OK;
  return minilm_fail(err, GM_ERR_FORMAT, "wordpiece_open", "%s has no [UNK], [CLS] or [SEP]", path);
}

void wordpiece_close(wordpiece *vocab) {
  free(vocab->text);
  free(vocab->pieces);
  memset(vocab, 0, sizeof *vocab);
}

typedef struct tokens {
  int32_t *ids;
  uint32_t count, capacity;
} tokens;

/* Counts on beyond the capacity. */
static void add(tokens *out, int32_t id) {
  if (out->count < out->capacity) out->ids[out->count] = id;
  out->count++;
}

/* The longest piece that the rest of the word begins with; a piece inside a word begins with "##". */
static uint32_t longest(const wordpiece *vocab, const char *rest, uint32_t length, int inside, int32_t *out_id) {
  char piece[LONGEST_WORD + 3];
  for (; length > 0; length--) {
    snprintf(piece, sizeof piece, "%s%.*s", inside ? "##" : "", (int)length, rest);
    *out_id = find(vocab, piece);
    if (*out_id >= 0) return length;
  }
  return 0;
}

/* A word with a rest that is no piece is unknown as a whole. */
static void add_word(const wordpiece *vocab, const char *word, uint32_t length, tokens *out) {
  const uint32_t before = out->count;
  uint32_t at = 0;
  while (length <= LONGEST_WORD && at < length) {
    int32_t id;
    const uint32_t taken = longest(vocab, word + at, length - at, at > 0, &id);
    if (!taken) break;
    add(out, id);
    at += taken;
  }
  if (at == length) return;
  out->count = before;
  add(out, vocab->unknown);
}

static int is_letter(char c) { return c && !isspace((unsigned char)c) && !ispunct((unsigned char)c); }

/* A word is a row of letters and digits, or one mark. */
static gm_status add_words(const wordpiece *vocab, const char *sentence, tokens *out, gm_error *err) {
  while (*sentence) {
    char word[LONGEST_WORD + 1];
    uint32_t length = 0;
    for (; is_letter(sentence[length]); length++) {
      const unsigned char c = (unsigned char)sentence[length];
      if (c >= 0x80 || iscntrl(c)) {
        return minilm_fail(err, GM_ERR_INVALID_ARGUMENT, "wordpiece_split", "byte %#x: sentences are ASCII here", c);
      }
      if (length < LONGEST_WORD) word[length] = (char)tolower(c);
    }
    if (length > LONGEST_WORD)
      add(out, vocab->unknown);
    else if (length > 0)
      add_word(vocab, word, length, out);
    else if (ispunct((unsigned char)*sentence))
      add_word(vocab, sentence, 1, out);
    sentence += length > 0 ? length : 1;
  }
  return GM_OK;
}

gm_status wordpiece_split(const wordpiece *vocab, const char *sentence, int32_t *ids, uint32_t capacity,
                          uint32_t *out_count, gm_error *err) {
  tokens out = {ids, 0, capacity};
  add(&out, vocab->begin);
  const gm_status status = add_words(vocab, sentence, &out, err);
  if (status) return status;
  add(&out, vocab->end);
  *out_count = out.count;
  if (out.count <= capacity) return GM_OK;
  return minilm_fail(err, GM_ERR_INVALID_ARGUMENT, "wordpiece_split", "%u tokens, and %u are allowed", out.count,
                     capacity);
}
