/* A device case's input as the backend and the readers would hand it to the resolver. */
#ifndef GM_TESTS_VIEW_DEVICE_INPUT_H
#define GM_TESTS_VIEW_DEVICE_INPUT_H

#include "core/figures/memory_info.h"
#include "view/view_case.h"

typedef struct view_device_input {
  gm_raw_figures raw;
  gm_host_info host;
  gm_memory_info peer;
  gm__figures_input figures; /* points at the others: do not move */
  gm__dmem dmem;
} view_device_input;

void view_device_input_read(view_case *view, view_device_input *out);

#endif
