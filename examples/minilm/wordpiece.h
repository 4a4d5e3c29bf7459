/* The tokens of a sentence, by BERT's WordPiece in lower case. ASCII only: the program has no tables of Unicode. */
#ifndef GM_EXAMPLES_MINILM_WORDPIECE_H
#define GM_EXAMPLES_MINILM_WORDPIECE_H

#include <stdint.h>

#include "gm/status.h"

typedef struct wordpiece_piece {
  const char *text;
  int32_t id; /* its line */
} wordpiece_piece;

typedef struct wordpiece {
  char *text;              /* the file, each line ended with a zero */
  wordpiece_piece *pieces; /* in the order of strcmp */
  uint32_t count;
  int32_t unknown, begin, end;
} wordpiece;

/* Reads a vocab.txt, with one piece on each line. The caller closes *out, also after a failure. IO, OUT_OF_HOST_MEMORY.
 * FORMAT: it has no [UNK], [CLS] or [SEP]. */
gm_status wordpiece_open(wordpiece *out, const char *path, gm_error *err);
void wordpiece_close(wordpiece *vocab);

/* Writes the tokens of a sentence between [CLS] and [SEP]. INVALID_ARGUMENT: the sentence is not ASCII, or has more
 * than `capacity` tokens. */
gm_status wordpiece_split(const wordpiece *vocab, const char *sentence, int32_t *ids, uint32_t capacity,
                          uint32_t *out_count, gm_error *err);

#endif
