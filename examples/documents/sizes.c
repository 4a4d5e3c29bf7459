/* round_up_power_of_2, size_class, compute_f32_bytes and compute_f16_bytes. */
#include "example.h"

int main(void) {
  uint64_t bytes = 0;
  CLAIM(gm_round_up_power_of_2(1000) == 1024 && gm_round_up_power_of_2(1024) == 1024 && gm_round_up_power_of_2(0) == 0);
  CLAIM(gm_size_class(1000) == 10 && gm_size_class(1) == 0);
  CLAIM(gm_dtype_bytes(GM_DTYPE_F32, 1000, &bytes) == GM_OK && bytes == 4000);
  CLAIM(gm_dtype_bytes(GM_DTYPE_F16, 1000, &bytes) == GM_OK && bytes == 2000);
  puts("sizes are as they say");
  return 0;
}
