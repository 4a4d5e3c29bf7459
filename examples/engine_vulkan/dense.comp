// One layer: y = x * transpose(w) + b, negative ones cut off with relu.
#version 450
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) readonly buffer Inputs { float x[]; };
layout(std430, set = 0, binding = 1) readonly buffer Weights { float w[]; };
layout(std430, set = 0, binding = 2) readonly buffer Bias { float b[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Outputs { float y[]; };
layout(push_constant) uniform Sizes { uint rows, inputs, outputs, relu; };

void main() {
  uint index = gl_GlobalInvocationID.x;
  if (index >= rows * outputs) return;
  uint row = index / outputs, column = index % outputs;
  float sum = b[column];
  for (uint i = 0; i < inputs; i++) sum += x[row * inputs + i] * w[column * inputs + i];
  y[index] = relu != 0 && sum < 0.0 ? 0.0 : sum;
}
