// Small copies between two buffers. A group of threads takes an item: its place in each buffer and its length, in words.
#version 450
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) writeonly buffer Target { uint to[]; };
layout(std430, set = 0, binding = 1) readonly buffer Source { uint from[]; };
layout(std430, set = 0, binding = 2) readonly buffer Items { uvec4 items[]; };

void main() {
  uvec4 item = items[gl_WorkGroupID.x];
  for (uint i = gl_LocalInvocationID.x; i < item.z; i += gl_WorkGroupSize.x) to[item.x + i] = from[item.y + i];
}
