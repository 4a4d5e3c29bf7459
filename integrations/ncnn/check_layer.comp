// One layer of the check: y from a, b and w, in whole numbers, so that the CPU gets the very bytes.
#version 450
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) readonly buffer First { uint a[]; };
layout(std430, set = 0, binding = 1) readonly buffer Second { uint b[]; };
layout(std430, set = 0, binding = 2) readonly buffer Weights { uint w[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Outputs { uint y[]; };
layout(push_constant) uniform Sizes { uint a_count, b_count, w_count, y_count; };

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i >= y_count) return;
  y[i] = a[(i * 5u) % a_count] * w[i % w_count] + (b[(i * 3u) % b_count] ^ (i >> 3));
}
