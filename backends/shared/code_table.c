#include "backends/shared/code_table.h"

#include "core/base/error.h"

const gm__code *gm__code_find(const gm__code_table *table, int number) {
  static const gm__code unknown = {0, GM_ERR_DRIVER, "unknown code"};
  for (size_t i = 0; i < table->count; i++) {
    if (table->codes[i].number == number) return &table->codes[i];
  }
  return &unknown;
}

gm_status gm__code_fail_as(const gm__code_table *table, gm_error *err, gm_status status, int code, const char *op) {
  return gm__fail_native(err, status, code, op, "%s: %s (%d): %s", op, gm__code_find(table, code)->name, code,
                         gm_status_text(status));
}

gm_status gm__code_fail(const gm__code_table *table, gm_error *err, int code, const char *op) {
  const gm_status status = gm__code_find(table, code)->status;
  return gm__code_fail_as(table, err, status == GM_OK ? GM_ERR_DRIVER : status, code, op);
}

gm_status gm__code_nonsense(const gm__code_table *table, gm_error *err, const char *op, const char *what) {
  return gm__fail(err, GM_ERR_DRIVER, op, "%s: %s answered success, and %s", op, table->speaker, what);
}
