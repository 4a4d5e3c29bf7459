// A softmax of each row, in place, in two passes: largest value and sum of each row into scratch, then the division.
#version 450
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Values { float v[]; };
layout(std430, set = 0, binding = 1) buffer Scratch { float s[]; };
layout(push_constant) uniform Sizes { uint rows, unused, columns, pass; };

void main() {
  uint index = gl_GlobalInvocationID.x;
  if (pass == 0) {
    if (index >= rows) return;
    float most = v[index * columns], sum = 0.0;
    for (uint i = 1; i < columns; i++) most = max(most, v[index * columns + i]);
    for (uint i = 0; i < columns; i++) sum += exp(v[index * columns + i] - most);
    s[2 * index] = most;
    s[2 * index + 1] = sum;
  } else {
    if (index >= rows * columns) return;
    uint row = index / columns;
    v[index] = exp(v[index] - s[2 * row]) / s[2 * row + 1];
  }
}
