/* The folder of a test program, `folder`: made before a test and removed after it. Needs cmocka.h included before.
 *
 *   cmocka_unit_test_setup_teardown(test_it, folder_setup, folder_teardown)
 *   cmocka_run_group_tests(tests, folder_setup, folder_teardown)   // one for all tests of the program */
#ifndef GM_TESTS_SUPPORT_TEST_FOLDER_H
#define GM_TESTS_SUPPORT_TEST_FOLDER_H

#include "support/temp_folder.h"

static temp_folder folder;

static inline int folder_setup(void **state) {
  (void)state;
  temp_folder_make(&folder);
  return 0;
}

static inline int folder_teardown(void **state) {
  (void)state;
  temp_folder_remove(&folder);
  return 0;
}

#endif
