#include "core/base/code_table.h"

const gm__code *gm__code_find(const gm__code *codes, size_t count, int number) {
  static const gm__code unknown = {0, GM_ERR_DRIVER, "unknown code"};
  for (size_t i = 0; i < count; i++) {
    if (codes[i].number == number) return &codes[i];
  }
  return &unknown;
}
