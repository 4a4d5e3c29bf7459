/* fit_work DEVICES FILE...: how much work `gmem fit FILE --devices DEVICES` is, a line for each file on standard error.
 * Tensors that are planned; layers that are placed, times devices; and names of the file that are compared. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/model/json_scan.h"
#include "gm/fit.h"
#include "gm/plan.h"
#include "tools/gmem/command.h"

static uint64_t planned, placed, looks;

gm_status __real_gm_plan_make(const gm_services *services, gm_plan_policy policy, const gm_plan_tensor *tensors,
                              uint64_t count, uint64_t *out_offsets, uint64_t *out_peak, gm_error *err);
gm_status __wrap_gm_plan_make(const gm_services *services, gm_plan_policy policy, const gm_plan_tensor *tensors,
                              uint64_t count, uint64_t *out_offsets, uint64_t *out_peak, gm_error *err);
gm_status __real_gm_place_layers(const gm_services *services, const gm_fit_request *request, gm_fit_part *out_parts,
                                 gm_fit_plan *out, gm_error *err);
gm_status __wrap_gm_place_layers(const gm_services *services, const gm_fit_request *request, gm_fit_part *out_parts,
                                 gm_fit_plan *out, gm_error *err);
bool __real_gm__json_text_is(const gm__json_text *text, const char *literal);
bool __wrap_gm__json_text_is(const gm__json_text *text, const char *literal);
int __real_gm__json_text_order(const gm__json_text *text, const char *literal);
int __wrap_gm__json_text_order(const gm__json_text *text, const char *literal);

gm_status __wrap_gm_plan_make(const gm_services *services, gm_plan_policy policy, const gm_plan_tensor *tensors,
                              uint64_t count, uint64_t *out_offsets, uint64_t *out_peak, gm_error *err) {
  planned += count;
  return __real_gm_plan_make(services, policy, tensors, count, out_offsets, out_peak, err);
}

gm_status __wrap_gm_place_layers(const gm_services *services, const gm_fit_request *request, gm_fit_part *out_parts,
                                 gm_fit_plan *out, gm_error *err) {
  placed += (uint64_t)request->layer_count * request->device_count;
  return __real_gm_place_layers(services, request, out_parts, out, err);
}

bool __wrap_gm__json_text_is(const gm__json_text *text, const char *literal) {
  looks++;
  return __real_gm__json_text_is(text, literal);
}

int __wrap_gm__json_text_order(const gm__json_text *text, const char *literal) {
  looks++;
  return __real_gm__json_text_order(text, literal);
}

static int work_of(char *path, char *devices) {
  char *command[] = {"gmem fit", path, "--devices", devices, NULL};
  planned = placed = looks = 0;
  const int code = command_fit(4, command);
  return fprintf(stderr, "%d\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", code, planned, placed, looks) < 0;
}

int main(int count, char **words) {
  for (int i = 2; i < count; i++) {
    if (work_of(words[i], words[1])) return 1;
  }
  return count > 2 ? 0 : 2;
}
