/* Formulas are evaluated while they are read. Invariants: formulas are gm's own and well formed; values are a
 * stranger's, and any of them may be missing, huge or of another form. A term that is not looked at costs nothing and
 * is no problem. */
#include "core/model/config_formula.h"

#include <stdio.h>
#include <string.h>

#include "core/base/saturate.h"

enum { FORMULA_DEPTH_MAX = 40, FORMULA_SUM_MAX = 1024 };

typedef struct formula_name {
  const char *text;
  uint32_t length;
} formula_name;

static uint64_t formula_whole(gm__formula *formula);
static uint64_t formula_primary(gm__formula *formula);

static uint64_t formula_problem(gm__formula *formula, const formula_name *name, const char *what) {
  const uint32_t dot = name->text[0] == '.'; /* a key of the outermost object */
  const int shown = name->length < 48 ? (int)(name->length - dot) : 48;
  if (formula->unlooked || formula->problem[0]) return 0;
  snprintf(formula->problem, sizeof formula->problem, "\"%.*s\" %s", shown, name->text + dot, what);
  return 0;
}

static bool formula_take(gm__formula *formula, char wanted) {
  if (*formula->at != wanted) return false;
  formula->at++;
  return true;
}

static formula_name formula_take_name(gm__formula *formula) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  const formula_name name = {formula->at, (uint32_t)strspn(formula->at, letters)};
  formula->at += name.length;
  return name;
}

static bool formula_is(const formula_name *name, const char *text) {
  return strlen(text) == name->length && memcmp(text, name->text, name->length) == 0;
}

/* ---- values of the file ---- */

static const gm__config_value *formula_find(const gm__formula *formula, const formula_name *name) {
  return formula->unlooked ? NULL : gm__config_values_find(formula->values, name->text, name->length);
}

static uint64_t formula_count(gm__formula *formula, const formula_name *name, const gm__config_element *element) {
  return element->form == GM__CONFIG_COUNT ? element->count : formula_problem(formula, name, "is no count");
}

static const gm__config_element *formula_element(gm__formula *formula, const formula_name *name, uint64_t at) {
  static const gm__config_element nothing;
  const gm__config_value *value = formula_find(formula, name);
  const bool is_list = value && value->is.form == GM__CONFIG_LIST;
  if (value && value->is.form == GM__CONFIG_COUNT) return &value->is;
  if (is_list && at < value->length) return &formula->values->element[value->first + at];
  formula_problem(formula, name, !value ? "is not stated" : is_list ? "has too few elements" : "is no list");
  return &nothing;
}

/* ---- functions ---- */

static uint64_t formula_in(gm__formula *formula, const formula_name *list) {
  formula_take(formula, ',');
  const uint64_t wanted = formula_whole(formula);
  const gm__config_value *value = formula_find(formula, list);
  if (!value) return formula_problem(formula, list, "is not stated");
  for (uint32_t i = 0; i < value->length; i++) {
    const gm__config_element *element = &formula->values->element[value->first + i];
    if (element->form == GM__CONFIG_COUNT && element->count == wanted) return 1;
  }
  return 0;
}

static uint64_t formula_says_key(gm__formula *formula, const formula_name *key, const formula_name *word) {
  const gm__config_value *value = formula_find(formula, key);
  return value && value->is.form == GM__CONFIG_TEXT && formula_is(word, value->is.text);
}

static uint64_t formula_says_element(gm__formula *formula, const formula_name *key, uint64_t at,
                                     const formula_name *word) {
  const gm__config_value *value = formula_find(formula, key);
  if (value && value->is.form == GM__CONFIG_TEXT) {
    if (at >= strlen(value->is.text)) return formula_problem(formula, key, "has too few letters");
    return value->is.text[at] == word->text[0];
  }
  const gm__config_element *element = formula_element(formula, key, at);
  return element->form == GM__CONFIG_TEXT && formula_is(word, element->text);
}

static formula_name formula_take_word(gm__formula *formula) {
  const formula_name word = {formula->at, (uint32_t)strcspn(formula->at, ",)")};
  formula->at += word.length;
  return word;
}

/* says(key,word), says(list,a,word): a word alone is the last of them. */
static uint64_t formula_says(gm__formula *formula, const formula_name *key) {
  formula_take(formula, ',');
  const char *second = formula->at;
  const formula_name word = formula_take_word(formula);
  if (*formula->at == ')') return formula_says_key(formula, key, &word);
  formula->at = second;
  const uint64_t at = formula_whole(formula);
  formula_take(formula, ',');
  const formula_name last = formula_take_word(formula);
  return formula_says_element(formula, key, at, &last);
}

static uint64_t formula_ends(gm__formula *formula, const formula_name *key) {
  formula_take(formula, ',');
  const formula_name word = formula_take_word(formula);
  const gm__config_value *value = formula_find(formula, key);
  const bool is_list = value && value->is.form == GM__CONFIG_LIST && value->length > 0;
  const gm__config_element *element = !value ? NULL : is_list ? &formula->values->element[value->first] : &value->is;
  if (!element || element->form != GM__CONFIG_TEXT) return 0;
  const size_t length = strlen(element->text);
  return length >= word.length && memcmp(element->text + length - word.length, word.text, word.length) == 0;
}

static uint64_t formula_odd(gm__formula *formula, const formula_name *key) {
  return formula_problem(formula, key, "has a value that gm does not know");
}

static uint64_t formula_at(gm__formula *formula, const formula_name *list) {
  formula_take(formula, ',');
  const uint64_t at = formula_whole(formula);
  return formula->unlooked ? 0 : formula_count(formula, list, formula_element(formula, list, at));
}

static uint64_t formula_length(gm__formula *formula, const formula_name *list) {
  const gm__config_value *value = formula_find(formula, list);
  if (!value) return formula_problem(formula, list, "is not stated");
  return value->is.form == GM__CONFIG_LIST ? value->length : 1;
}

static uint64_t formula_sum(gm__formula *formula) {
  static const formula_name what = {"sum", 3};
  const uint64_t outer = formula->layer, count = formula_whole(formula);
  formula_take(formula, ',');
  const char *body = formula->at;
  uint64_t sum = 0;
  formula->unlooked++;
  formula_whole(formula);
  formula->unlooked--;
  const char *behind = formula->at;
  if (formula->unlooked) return 0;
  if (count > FORMULA_SUM_MAX) return formula_problem(formula, &what, "has too many layers");
  for (formula->layer = 0; formula->layer < count && !formula->problem[0]; formula->layer++) {
    formula->at = body;
    sum = gm__add_sat(sum, formula_whole(formula));
  }
  formula->layer = outer;
  formula->at = behind;
  return sum;
}

/* ---- names ---- */

static gm__formula_rule *formula_find_rule(gm__formula *formula, const formula_name *name) {
  for (uint32_t i = 0; i < formula->rule_count; i++) {
    gm__formula_rule *rule = &formula->rule[i];
    if (rule->name_length == name->length && memcmp(rule->name, name->text, name->length) == 0) return rule;
  }
  return NULL;
}

static uint64_t formula_apply(gm__formula *formula, gm__formula_rule *rule) {
  const char *behind = formula->at;
  const bool varied = formula->varies;
  if (formula->unlooked || rule->is_known) return formula->unlooked ? 0 : rule->value;
  if (formula->depth == FORMULA_DEPTH_MAX) {
    const formula_name name = {rule->name, rule->name_length};
    return formula_problem(formula, &name, "goes too deep");
  }
  formula->depth++;
  formula->varies = false;
  formula->at = rule->body;
  rule->value = formula_whole(formula);
  rule->is_known = !formula->varies;
  formula->varies |= varied;
  formula->at = behind;
  formula->depth--;
  return rule->value;
}

static uint64_t formula_call_rule(gm__formula *formula, const formula_name *name) {
  gm__formula_rule *rule = formula_find_rule(formula, name);
  const uint64_t outer = formula->argument, argument = formula_whole(formula);
  if (!rule) return formula_problem(formula, name, "is no rule");
  formula->argument = argument;
  const uint64_t value = formula_apply(formula, rule);
  formula->argument = outer;
  return value;
}

/* Behind "name(". */
static uint64_t formula_call(gm__formula *formula, const formula_name *name) {
  static const struct {
    const char *name;
    uint64_t (*of_key)(gm__formula *formula, const formula_name *key);
  } functions[] = {{"at", formula_at},     {"in", formula_in},     {"len", formula_length},
                   {"says", formula_says}, {"ends", formula_ends}, {"odd", formula_odd}};
  uint64_t value = 0;
  size_t which = 0;
  const size_t count = sizeof functions / sizeof *functions;
  while (which < count && !formula_is(name, functions[which].name)) which++;
  if (which < count) {
    const formula_name key = formula_take_name(formula);
    value = functions[which].of_key(formula, &key);
  } else if (formula_is(name, "has")) {
    const formula_name key = formula_take_name(formula);
    value = formula_find(formula, &key) != NULL;
  } else {
    value = formula_is(name, "sum") ? formula_sum(formula) : formula_call_rule(formula, name);
  }
  formula_take(formula, ')');
  return value;
}

static uint64_t formula_named(gm__formula *formula) {
  const formula_name name = formula_take_name(formula);
  if (formula_take(formula, '(')) return formula_call(formula, &name);
  const bool is_layer = formula_is(&name, "i");
  if (is_layer || formula_is(&name, "w")) {
    formula->varies = true;
    return is_layer ? formula->layer : formula->argument;
  }
  gm__formula_rule *rule = formula_find_rule(formula, &name);
  if (rule) return formula_apply(formula, rule);
  const gm__config_value *value = formula_find(formula, &name);
  if (!formula_take(formula, '|')) {
    return value ? formula_count(formula, &name, &value->is) : formula_problem(formula, &name, "is not stated");
  }
  const uint32_t unlooked = formula->unlooked;
  if (value) formula->unlooked++;
  const uint64_t other = formula_primary(formula);
  formula->unlooked = unlooked;
  return value ? formula_count(formula, &name, &value->is) : other;
}

/* ---- operators ---- */

static uint64_t formula_primary(gm__formula *formula) {
  uint64_t value = 0;
  if (formula_take(formula, '!')) return formula_primary(formula) == 0;
  if (formula_take(formula, '(')) {
    value = formula_whole(formula);
    formula_take(formula, ')');
    return value;
  }
  if (*formula->at < '0' || *formula->at > '9') return formula_named(formula);
  for (; *formula->at >= '0' && *formula->at <= '9'; formula->at++) value = value * 10 + (uint64_t)(*formula->at - '0');
  return value;
}

static uint64_t formula_divide(gm__formula *formula, uint64_t by, uint64_t value, bool rest) {
  static const formula_name what = {"0", 1};
  if (by == 0) return formula_problem(formula, &what, "divides");
  return rest ? value % by : value / by;
}

static uint64_t formula_product(gm__formula *formula) {
  uint64_t value = formula_primary(formula);
  while (*formula->at == '*' || *formula->at == '/' || *formula->at == '%') {
    const char sign = *formula->at++;
    const uint64_t by = formula_primary(formula);
    value = sign == '*' ? gm__mul_sat(value, by) : formula_divide(formula, by, value, sign == '%');
  }
  return value;
}

static uint64_t formula_sums(gm__formula *formula) {
  uint64_t value = formula_product(formula);
  while (*formula->at == '+' || *formula->at == '-') {
    const char sign = *formula->at++;
    const uint64_t by = formula_product(formula);
    value = sign == '+' ? gm__add_sat(value, by) : gm__sub_sat(value, by);
  }
  return value;
}

static uint64_t formula_compared(gm__formula *formula) {
  const uint64_t value = formula_sums(formula);
  if (formula_take(formula, '<')) return value < formula_sums(formula);
  if (formula_take(formula, '=')) return value == formula_sums(formula);
  return value;
}

static uint64_t formula_whole(gm__formula *formula) {
  const uint64_t value = formula_compared(formula);
  const uint32_t unlooked = formula->unlooked;
  if (!formula_take(formula, '?')) return value;
  formula->unlooked = unlooked + (value == 0);
  const uint64_t yes = formula_whole(formula);
  formula_take(formula, ':');
  formula->unlooked = unlooked + (value != 0);
  const uint64_t no = formula_whole(formula);
  formula->unlooked = unlooked;
  return value ? yes : no;
}

/* ---- the calls ---- */

static void formula_add(gm__formula *formula, const char *rules) {
  for (formula->at = rules; *formula->at;) {
    const formula_name name = formula_take_name(formula);
    formula_take(formula, '=');
    if (!formula_find_rule(formula, &name) && formula->rule_count < GM__FORMULA_RULES_MAX) {
      formula->rule[formula->rule_count++] =
          (gm__formula_rule){.name = name.text, .name_length = name.length, .body = formula->at};
    }
    formula->at += strcspn(formula->at, ";");
    formula_take(formula, ';');
  }
}

void gm__formula_init(const gm__config_values *values, const char *first, const char *second, const char *third,
                      gm__formula *out) {
  *out = (gm__formula){.values = values};
  formula_add(out, first);
  formula_add(out, second);
  formula_add(out, third);
}

uint64_t gm__formula_value(gm__formula *formula, const char *rule, uint64_t layer) {
  const formula_name name = {rule, (uint32_t)strlen(rule)};
  gm__formula_rule *found = formula_find_rule(formula, &name);
  formula->layer = layer;
  if (formula->problem[0]) return 0;
  const uint64_t value = found ? formula_apply(formula, found) : formula_problem(formula, &name, "is no rule");
  return formula->problem[0] ? 0 : value;
}
