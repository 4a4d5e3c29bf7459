#include "core/base/text_clean.h"

void gm__text_clean(char *text) {
  for (; *text; text++) {
    if ((unsigned char)*text < 0x20 || *text == 0x7f) *text = '?';
  }
}
