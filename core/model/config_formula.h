/* Formulas over the values of a config.json, such as "h*H*d+2*h*K*d". The rules of a family are lines "name=formula;":
 * a name is that of a rule, or of a key. Numbers count from 0 and stop at 2^64 - 1; a difference stops at 0.
 *
 *   a+b a-b a*b a/b a%b, (a), !a    / drops the rest
 *   a<b, a=b                        1 or 0
 *   a?b:c                           one of b and c, and the other is not looked at
 *   key|b                           b where the key is not stated
 *   rule(a)                         the rule, with a for `w` in it
 *   i                               the number of the layer
 *   at(list,a) in(list,a) len(list) an element; whether a is one; how many there are; one number is a list of it
 *   says(key,word)                  whether the text is that word, without quotes
 *   says(list,a,word)               the same of an element; a text is a list of letters
 *   ends(key,word)                  whether a text, or the first of a list, ends so
 *   has(key)                        whether it is stated
 *   odd(key)                        nothing: gm does not know its value
 *   sum(n,a)                        of a for each i below n */
#ifndef GM_CORE_MODEL_CONFIG_FORMULA_H
#define GM_CORE_MODEL_CONFIG_FORMULA_H

#include "core/model/config_values.h"

enum { GM__FORMULA_RULES_MAX = 128 };

typedef struct gm__formula_rule {
  const char *name, *body;
  uint32_t name_length;
  bool is_known; /* the value holds for each layer */
  uint64_t value;
} gm__formula_rule;

typedef struct gm__formula {
  const gm__config_values *values;
  gm__formula_rule rule[GM__FORMULA_RULES_MAX];
  uint32_t rule_count;
  const char *at;
  uint64_t layer, argument; /* `i` and `w` */
  bool varies;              /* the value just made depends on them */
  uint32_t unlooked;        /* above 0: what is read does not count */
  uint32_t depth;
  char problem[96]; /* "" while all is well: the first one */
} gm__formula;

/* Begin with the rules of three texts; where two have a rule of one name, that of the earlier text holds. All texts
 * live as long as `out`. */
void gm__formula_init(const gm__config_values *values, const char *first, const char *second, const char *third,
                      gm__formula *out);

/* The value of a rule for a layer; 0 once there is a problem. */
uint64_t gm__formula_value(gm__formula *formula, const char *rule, uint64_t layer);

#endif
