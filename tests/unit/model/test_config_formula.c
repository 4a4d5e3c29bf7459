/* Formulas over the values of a config.json. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/model/config_families.h"
#include "core/model/config_formula.h"

static gm__config_values values;
static gm__formula formula;

/* The value of the rule "x" for a layer; the problem stays in `formula`. */
static uint64_t value_of(const char *json, const char *rules, uint64_t layer) {
  static char text[4096];
  snprintf(text, sizeof text, "%s", json);
  assert_true(gm__config_values_read(text, strlen(text), &values));
  gm__formula_init(&values, rules, "", "", &formula);
  return gm__formula_value(&formula, "x", layer);
}

#define FILE_OF_ALL                                                                                           \
  "{\"a\":7,\"b\":3,\"yes\":true,\"no\":false,\"nothing\":null,\"whole\":4.0,\"list\":[5,6,7],"               \
  "\"names\":[\"full\",\"slim-one\",\"full\"],\"word\":\"auto\",\"letters\":\"M-*E\",\"huge\":1099511627776," \
  "\"text_config\":{\"b\":30,\"inner\":9},\"vision_config\":{\"b\":300,\"deep\":{\"b\":1}}}"

static void test_values(void **state) {
  (void)state;
  static const struct {
    const char *rules;
    uint64_t layer, value;
  } cases[] = {
      {"x=a+2*b;", 0, 67}, /* the language model's own b counts */
      {"x=a+2*.b;", 0, 13},
      {"x=vision_config.b;", 0, 300},
      {"x=inner;", 0, 9},
      {"x=(a+2)*.b;", 0, 27},
      {"x=a-.b-1;", 0, 3},
      {"x=.b-a;", 0, 0},
      {"x=a/.b+a%.b;", 0, 3},
      {"x=whole;", 0, 4},
      {"x=yes+no;", 0, 1},
      {"x=!yes+!no;", 0, 1},
      {"x=a<.b?1:.b<a?2:3;", 0, 2},
      {"x=a=7;", 0, 1},
      {"x=(a=7)*(.b<3);", 0, 0},
      {"x=missing|5;", 0, 5},
      {"x=nothing|5;", 0, 5},
      {"x=missing|gone|(2*a);", 0, 14},
      {"x=a|missing;", 0, 7},
      {"x=no?missing:8;", 0, 8},
      {"x=yes?8:1/0;", 0, 8},
      {"x=yes?8:2+w*i?3:4;", 0, 8},
      {"x=at(list,i);", 2, 7},
      {"x=at(a,i);", 99, 7},
      {"x=in(list,6)+in(list,9);", 0, 1},
      {"x=len(list)+len(a);", 0, 4},
      {"x=says(word,auto)+says(word,aut)+says(missing,auto)+says(a,auto);", 0, 1},
      {"x=says(names,i,slim-one);", 1, 1},
      {"x=says(names,i,slim-one);", 2, 0},
      {"x=says(letters,i,*)+2*says(letters,i,E);", 2, 1},
      {"x=says(letters,i,*)+2*says(letters,i,E);", 3, 2},
      {"x=ends(word,to)+ends(word,auto)+ends(word,aauto)+ends(names,full)+ends(a,7)+ends(missing,x);", 0, 3},
      {"x=yes?1:odd(a);", 0, 1},
      {"x=has(a)+has(nothing)+has(vision_config.b)+has(vision_config.deep);", 0, 2},
      {"x=sum(4,i*10+w);", 3, 60},
      {"x=i+sum(2,i)+i;", 5, 11},
      {"x=twice(3)+twice(twice(1));twice=2*w;", 0, 10},
      {"x=y+y;y=i*z;z=a;", 3, 42},
      {"x=1;x=2;", 0, 1},
      {"x=huge*huge*huge;", 0, UINT64_MAX},
      {"x=huge*huge*huge+1;", 0, UINT64_MAX},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const uint64_t value = value_of(FILE_OF_ALL, cases[i].rules, cases[i].layer);
    if (value != cases[i].value || formula.problem[0]) {
      fail_msg("%s is %llu, not %llu; %s", cases[i].rules, (unsigned long long)value,
               (unsigned long long)cases[i].value, formula.problem);
    }
  }
}

/* A value that does not change is made once; one that does, for each layer. */
static void test_layers_differ(void **state) {
  (void)state;
  assert_int_equal(value_of(FILE_OF_ALL, "x=y+z;y=at(list,i);z=2*a;", 0), 19);
  assert_int_equal(gm__formula_value(&formula, "x", 1), 20);
  assert_int_equal(gm__formula_value(&formula, "x", 2), 21);
  assert_int_equal(gm__formula_value(&formula, "z", 1), 14);
}

static void test_problems(void **state) {
  (void)state;
  static const struct {
    const char *json, *rules, *problem;
  } cases[] = {
      {"{}", "x=a;", "\"a\" is not stated"},
      {"{\"a\":null}", "x=1+a;", "\"a\" is not stated"},
      {"{\"a\":{}}", "x=a;", "\"a\" is not stated"},
      {"{\"a\":-1}", "x=a|3;", "\"a\" is no count"},
      {"{\"a\":1.5}", "x=a;", "\"a\" is no count"},
      {"{\"a\":1e3}", "x=a;", "\"a\" is no count"},
      {"{\"a\":NaN}", "x=a;", "\"a\" is no count"},
      {"{\"a\":-Infinity}", "x=a;", "\"a\" is no count"},
      {"{\"a\":18446744073709551616}", "x=a;", "\"a\" is no count"},
      {"{\"a\":\"32\"}", "x=a;", "\"a\" is no count"},
      {"{\"a\":[1]}", "x=a;", "\"a\" is no count"},
      {"{\"a\":[1,2]}", "x=at(a,2);", "\"a\" has too few elements"},
      {"{\"a\":[[1],[2]]}", "x=at(a,1);", "\"a\" is no count"},
      {"{\"a\":\"b\"}", "x=at(a,0);", "\"a\" is no list"},
      {"{\"a\":\"ME\"}", "x=says(a,2,M);", "\"a\" has too few letters"},
      {"{\"a\":[\"M\"]}", "x=says(a,1,M);", "\"a\" has too few elements"},
      {"{\"a\":\"b\"}", "x=odd(.a);", "\"a\" has a value that gm does not know"},
      {"{}", "x=in(a,2);", "\"a\" is not stated"},
      {"{}", "x=len(a);", "\"a\" is not stated"},
      {"{\"a\":0}", "x=1/a;", "\"0\" divides"},
      {"{\"a\":0}", "x=1%a;", "\"0\" divides"},
      {"{}", "x=y;y=x;", "goes too deep"},
      {"{}", "x=y(1);", "\"y\" is no rule"},
      {"{\"a\":1000000}", "x=sum(a,i);", "\"sum\" has too many layers"},
      {"{}", "y=1;", "\"x\" is no rule"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const uint64_t value = value_of(cases[i].json, cases[i].rules, 0);
    if (value != 0 || !strstr(formula.problem, cases[i].problem)) {
      fail_msg("%s of %s is %llu, \"%s\"", cases[i].rules, cases[i].json, (unsigned long long)value, formula.problem);
    }
  }
}

/* After a problem nothing has a value. */
static void test_a_problem_stays(void **state) {
  (void)state;
  value_of("{}", "x=a;y=4;", 0);
  assert_int_equal(gm__formula_value(&formula, "y", 0), 0);
  assert_string_equal(formula.problem, "\"a\" is not stated");
}

static void test_more_than_there_is_room_for(void **state) {
  (void)state;
  static char text[GM__CONFIG_ELEMENTS_MAX * 2 + 64];
  size_t at = (size_t)snprintf(text, sizeof text, "{\"a\":[1");
  for (int i = 0; i < GM__CONFIG_ELEMENTS_MAX; i++) at += (size_t)snprintf(text + at, sizeof text - at, ",1");
  at += (size_t)snprintf(text + at, sizeof text - at, "]}");
  assert_true(gm__config_values_read(text, at, &values));
  assert_true(values.overflowed);
  at = (size_t)snprintf(text, sizeof text, "{\"k\":1");
  for (int i = 0; i < GM__CONFIG_VALUES_MAX; i++) at += (size_t)snprintf(text + at, sizeof text - at, ",\"k%d\":1", i);
  at += (size_t)snprintf(text + at, sizeof text - at, "}");
  assert_true(gm__config_values_read(text, at, &values));
  assert_true(values.overflowed);
}

static void test_texts_that_are_no_object(void **state) {
  (void)state;
  static const char *const texts[] = {"", "7", "[1]", "{", "{\"a\":}", "{\"a\":[1}", "{} {}"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    char text[16];
    snprintf(text, sizeof text, "%s", texts[i]);
    assert_false(gm__config_values_read(text, strlen(text), &values));
  }
}

/* A type is a whole word: "llama4" is not "llama". */
static void test_families_by_type(void **state) {
  (void)state;
  assert_non_null(gm__family_rules("llama"));
  assert_null(gm__family_rules("llam"));
  assert_null(gm__family_rules("lama"));
  assert_null(gm__family_rules(" "));
  assert_null(gm__family_rules(""));
  assert_null(gm__family_rules("llama mistral"));
  assert_null(gm__family_around("llama"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_layers_differ),
      cmocka_unit_test(test_problems),
      cmocka_unit_test(test_a_problem_stays),
      cmocka_unit_test(test_more_than_there_is_room_for),
      cmocka_unit_test(test_texts_that_are_no_object),
      cmocka_unit_test(test_families_by_type),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
