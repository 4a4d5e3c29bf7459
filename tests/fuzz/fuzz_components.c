/* Any bytes as the header of a model, whose components are estimated: each tensor counts once, and every interval has
 * its figure inside. */
#include "fuzz/fuzz_model.h"
#include "gm/components.h"

static void check_part(const gm_estimate_part *part) {
  fuzz_require(part->range.low <= part->range.bytes && part->range.bytes <= part->range.high);
  fuzz_require((part->standing == GM_STANDING_EXACT) == (part->reason[0] == '\0'));
  fuzz_require(part->standing != GM_STANDING_EXACT || part->range.low == part->range.high);
  fuzz_require(part->standing != GM_STANDING_UNKNOWN || part->range.high == UINT64_MAX);
}

static void check_run(const gm_model *model, const gm_component_settings *run) {
  static gm_component out[GM_COMPONENTS_MAX];
  uint32_t count = UINT32_MAX;
  uint64_t bytes = 0;
  fuzz_require(gm_estimate_components(model, run, out, GM_COMPONENTS_MAX, &count, NULL) == GM_OK);
  fuzz_require(count <= GM_COMPONENTS_MAX);
  for (uint32_t i = 0; i < count; i++) {
    fuzz_require(memchr(out[i].name, '\0', sizeof out[i].name) && memchr(out[i].family, '\0', sizeof out[i].family));
    fuzz_require(out[i].kind <= GM_COMPONENT_OTHER);
    check_part(&out[i].cache);
    check_part(&out[i].compute);
    bytes += out[i].weight_bytes;
  }
  fuzz_require(!count || bytes == gm_model_tensor_bytes(model));
}

static void check_model(const gm_model *model, uint64_t length) {
  const gm_component_settings huge = {.struct_size = sizeof huge,
                                      .plain_attention = true,
                                      .width = GM_IMAGE_SIDE_MAX,
                                      .height = 1,
                                      .images = UINT32_MAX,
                                      .beams = UINT32_MAX};
  (void)length;
  check_run(model, NULL);
  check_run(model, &huge);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  fuzz_open_model(bytes, length, true, check_model);
  return 0;
}
