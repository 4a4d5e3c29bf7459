// Floats of 16 bits as floats of 32 bits, by whole numbers: no device's way with small numbers or NaNs matters.
#version 450
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) writeonly buffer Target { uint to[]; };
layout(std430, set = 0, binding = 1) readonly buffer Source { uint from[]; };
layout(std430, set = 0, binding = 2) readonly buffer Items { uvec4 items[]; };

uint from_half(uint number) {
  uint sign = (number & 0x8000u) << 16, exponent = number >> 10 & 31u, fraction = number & 0x3ffu;
  if (exponent == 31u) return sign | 0x7f800000u | fraction << 13 | (fraction != 0u ? 0x400000u : 0u);
  if (exponent != 0u) return sign | exponent + 112u << 23 | fraction << 13;
  if (fraction == 0u) return sign;
  uint top = uint(findMSB(fraction));
  return sign | top + 103u << 23 | fraction << 23u - top & 0x7fffffu;
}

// The place in the target in words, that in the source in numbers, how many, and whether they are fp16.
void main() {
  uvec4 item = items[0];
  uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  for (uint i = gl_GlobalInvocationID.x; i < item.z; i += step) {
    uint at = item.y + i, number = from[at >> 1] >> ((at & 1u) << 4) & 0xffffu;
    to[item.x + i] = item.w != 0u ? from_half(number) : number << 16;
  }
}
