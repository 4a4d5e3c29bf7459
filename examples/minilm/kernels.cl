/* The operations of backend.h on an OpenCL device. Each gets four tensors, as a buffer and the float in it where the
 * tensor begins, and three numbers. Work items beyond the tensor do nothing. */
#define OP(name)                                                                                   \
  __kernel void name(__global const float *a, ulong a_at, __global const float *b, ulong b_at,     \
                     __global const float *c, ulong c_at, __global float *out, ulong out_at,       \
                     uint rows, uint columns, uint depth)
#define COLUMN const size_t column = get_global_id(0)
#define ROW const size_t row = get_global_id(1)

float sum8(float8 v) {
  return dot(v.lo, (float4)(1.0f)) + dot(v.hi, (float4)(1.0f));
}

float dot8(__global const float *x, __global const float *y, uint count) {
  float8 sum = (float8)(0.0f);
  for (uint i = 0; i < count; i += 8) sum += vload8(0, x + i) * vload8(0, y + i);
  return sum8(sum);
}

OP(embed) {
  COLUMN;
  ROW;
  if (column >= columns || row >= rows) return;
  const int id = ((__global const int *)a)[a_at + row];
  out[out_at + row * columns + column] = b[b_at + (size_t)id * columns + column] + c[c_at + column];
}

/* Four rows in a work item: each weight is read once for them. */
OP(linear) {
  COLUMN;
  const size_t row = get_global_id(1) * 4, last = rows - 1;
  if (column >= columns || row >= rows) return;
  __global const float *weight = b + b_at + column * depth, *in = a + a_at;
  __global const float *in0 = in + row * depth, *in1 = in + min(row + 1, last) * depth;
  __global const float *in2 = in + min(row + 2, last) * depth, *in3 = in + min(row + 3, last) * depth;
  float8 sum0 = (float8)(0.0f), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  for (uint i = 0; i < depth; i += 8) {
    const float8 w = vload8(0, weight + i);
    sum0 += w * vload8(0, in0 + i);
    sum1 += w * vload8(0, in1 + i);
    sum2 += w * vload8(0, in2 + i);
    sum3 += w * vload8(0, in3 + i);
  }
  __global float *to = out + out_at + row * columns + column;
  const float bias = c[c_at + column];
  to[0] = bias + sum8(sum0);
  if (row + 1 < rows) to[columns] = bias + sum8(sum1);
  if (row + 2 < rows) to[2 * columns] = bias + sum8(sum2);
  if (row + 3 < rows) to[3 * columns] = bias + sum8(sum3);
}

OP(gelu) {
  COLUMN;
  ROW;
  if (column >= columns || row >= rows) return;
  const float x = out[out_at + row * columns + column];
  out[out_at + row * columns + column] = 0.5f * x * (1.0f + erf(x * 0.70710678f));
}

OP(scores) {
  COLUMN;
  ROW;
  if (column >= columns || row >= rows) return;
  const size_t head = row / columns, width = rows / columns * depth;
  __global const float *query = a + a_at + row % columns * width + head * depth;
  __global const float *key = b + b_at + column * width + head * depth;
  out[out_at + row * columns + column] = dot8(query, key, depth) / sqrt((float)depth);
}

OP(softmax) {
  ROW;
  if (row >= rows) return;
  __global float *x = out + out_at + row * columns;
  float most = x[0], sum = 0.0f;
  for (uint i = 1; i < columns; i++) most = fmax(most, x[i]);
  for (uint i = 0; i < columns; i++) sum += x[i] = exp(x[i] - most);
  for (uint i = 0; i < columns; i++) x[i] /= sum;
}

OP(mix_values) {
  COLUMN;
  ROW;
  if (column >= columns || row >= rows) return;
  __global const float *score = a + a_at + (column / depth * rows + row) * rows, *value = b + b_at + column;
  float sum = 0.0f;
  for (uint i = 0; i < rows; i++) sum += score[i] * value[(size_t)i * columns];
  out[out_at + row * columns + column] = sum;
}

OP(add_norm) {
  ROW;
  if (row >= rows) return;
  __global const float *add = a + a_at + row * columns;
  __global float *x = out + out_at + row * columns;
  float sum = 0.0f, squares = 0.0f;
  for (uint i = 0; i < columns; i++) sum += x[i] += add[i];
  const float mean = sum / columns;
  for (uint i = 0; i < columns; i++) squares += (x[i] - mean) * (x[i] - mean);
  const float scale = 1.0f / sqrt(squares / columns + 1e-12f);
  for (uint i = 0; i < columns; i++) x[i] = (x[i] - mean) * scale * b[b_at + i] + c[c_at + i];
}

OP(mean_of_rows) {
  COLUMN;
  if (column >= columns || get_global_id(1) > 0) return;
  float sum = 0.0f;
  for (uint i = 0; i < depth; i++) sum += a[a_at + (size_t)i * columns + column];
  out[out_at + column] = sum / depth;
}

OP(unit) {
  if (get_global_id(1) > 0) return;
  __global float *x = out + out_at;
  const float length = sqrt(dot8(x, x, columns));
  for (uint i = 0; i < columns; i++) x[i] /= length;
}
