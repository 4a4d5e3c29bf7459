/* Colours, on terminals that have them. */
#ifndef GM_TOOLS_GMEM_OUTPUT_STYLE_H
#define GM_TOOLS_GMEM_OUTPUT_STYLE_H

#include <stdbool.h>
#include <stdio.h>

typedef enum style_mode { STYLE_AUTO, STYLE_ALWAYS, STYLE_NEVER } style_mode;

typedef enum style_colour {
  STYLE_RED = 31,
  STYLE_GREEN,
  STYLE_YELLOW,
  STYLE_BLUE,
  STYLE_MAGENTA,
  STYLE_CYAN
} style_colour;

/* AUTO until told: colours on a terminal, unless NO_COLOR is set or TERM is "dumb" or not set. */
void style_choose(style_mode mode);

bool style_is_on(FILE *file);

/* A terminal that can be cleared. */
bool style_is_terminal(FILE *file);

/* The columns of the terminal that `file` is; 80 where it does not say; 0: it is no terminal. */
int style_columns(FILE *file);

/* A terminal that shows UTF-8, as the locale says. */
bool style_has_blocks(FILE *file);

/* The texts that begin and end a colour on `file`; "" where there are none. */
const char *style_begin(FILE *file, style_colour colour);
const char *style_end(FILE *file);

#endif
