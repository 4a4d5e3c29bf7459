/* Protocol buffers are pairs of a key and a value. The key is (field * 8 + kind). The value is a number (kind 0),
 * bytes with their count (kind 2), or a float (kind 5). A message inside another one is bytes. Its count is written
 * last, in five bytes. */
#include "check_model.h"

#include <stdlib.h>
#include <string.h>

enum { MODEL_IR = 1, MODEL_GRAPH = 7, MODEL_OPSET = 8, OPSET_VERSION = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_WEIGHT = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_OPERATOR = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_NUMBER = 3, ATTRIBUTE_NUMBERS = 8, ATTRIBUTE_TYPE = 20, NUMBER = 2, NUMBERS = 7 };
enum { WEIGHT_DIMENSION = 1, WEIGHT_TYPE = 2, WEIGHT_NAME = 8, WEIGHT_BYTES = 9, FLOATS = 1, INT64S = 7 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TENSOR_TYPE = 1, TENSOR_SHAPE = 2, SHAPE_DIMENSION = 1 };
enum { DIMENSION_VALUE = 1, DIMENSION_NAME = 2 };

enum { NAME_BYTES = 16 };

typedef struct name {
  char text[NAME_BYTES];
} name;

static char *grow(check_model *to, size_t bytes) {
  if (to->size + bytes > to->capacity) {
    const size_t capacity = 2 * (to->size + bytes);
    char *grown = realloc(to->bytes, capacity);
    if (!grown) abort(); /* a check, not an engine */
    to->bytes = grown, to->capacity = capacity;
  }
  to->size += bytes;
  return to->bytes + to->size - bytes;
}

static void varint(check_model *to, uint64_t value) {
  for (; value > 127; value >>= 7) *grow(to, 1) = (char)(value | 128);
  *grow(to, 1) = (char)value;
}

static void number(check_model *to, unsigned field, int64_t value) {
  varint(to, (uint64_t)field * 8);
  varint(to, (uint64_t)value);
}

static void text(check_model *to, unsigned field, const char *value) {
  const size_t count = strlen(value);
  varint(to, (uint64_t)field * 8 + 2);
  varint(to, count);
  memcpy(grow(to, count), value, count);
}

/* Begins bytes whose count comes later; the result is for `end`. */
static size_t begin(check_model *to, unsigned field) {
  varint(to, (uint64_t)field * 8 + 2);
  (void)grow(to, 5);
  return to->size;
}

static void end(check_model *to, size_t begun) {
  const size_t count = to->size - begun;
  for (unsigned i = 0; i < 5; i++) to->bytes[begun - 5 + i] = (char)((count >> 7 * i & 127) | (i < 4 ? 128 : 0));
}

static name fresh(check_model *to) {
  name made = {"t"};
  unsigned value = to->names++;
  for (unsigned i = 1; i < 6; i++, value /= 10) made.text[i] = (char)('0' + value % 10);
  return made;
}

static float random_float(check_model *to, float scale) {
  to->seed = to->seed * 1664525u + 1013904223u;
  return ((float)(to->seed >> 8) / (float)(1 << 23) - 1) * scale;
}

/* A weight of floats between -scale and scale. */
static name weight(check_model *to, const int64_t *shape, size_t rank, float scale) {
  const name made = fresh(to);
  const size_t begun = begin(to, GRAPH_WEIGHT);
  size_t count = 1;
  for (size_t i = 0; i < rank; i++) number(to, WEIGHT_DIMENSION, shape[i]), count *= (size_t)shape[i];
  number(to, WEIGHT_TYPE, FLOATS);
  text(to, WEIGHT_NAME, made.text);
  const size_t raw = begin(to, WEIGHT_BYTES);
  for (size_t i = 0; i < count; i++) {
    const float value = random_float(to, scale);
    memcpy(grow(to, sizeof value), &value, sizeof value);
  }
  end(to, raw);
  end(to, begun);
  return made;
}

static name matrix(check_model *to, int64_t rows, int64_t columns) {
  const int64_t shape[] = {rows, columns};
  const name made = weight(to, shape, 2, 0.06f);
  if (!to->weight_at) {
    memcpy(to->weight, made.text, sizeof to->weight);
    memcpy(to->weight_shape, shape, sizeof shape);
    to->weight_at = to->size - (size_t)(rows * columns) * sizeof(float);
  }
  return made;
}

static name vector(check_model *to, int64_t count) { return weight(to, &count, 1, 0.5f); }

/* A constant of integers, for shapes. */
static name constant(check_model *to, const int64_t *values, int64_t count) {
  const name made = fresh(to);
  const size_t begun = begin(to, GRAPH_WEIGHT);
  number(to, WEIGHT_DIMENSION, count);
  number(to, WEIGHT_TYPE, INT64S);
  text(to, WEIGHT_NAME, made.text);
  const size_t raw = begin(to, WEIGHT_BYTES);
  memcpy(grow(to, (size_t)count * sizeof *values), values, (size_t)count * sizeof *values);
  end(to, raw);
  end(to, begun);
  return made;
}

typedef struct attribute {
  const char *name;
  int64_t values[4];
  unsigned count; /* 0: none, 1: a number, else a list */
} attribute;

static void write_attribute(check_model *to, const attribute *of) {
  const size_t begun = begin(to, NODE_ATTRIBUTE);
  text(to, ATTRIBUTE_NAME, of->name);
  number(to, ATTRIBUTE_TYPE, of->count == 1 ? NUMBER : NUMBERS);
  for (unsigned i = 0; i < of->count; i++)
    number(to, of->count == 1 ? ATTRIBUTE_NUMBER : ATTRIBUTE_NUMBERS, of->values[i]);
  end(to, begun);
}

/* A node with up to three inputs: an empty name ends them. */
static name node(check_model *to, const char *operator, const name inputs[3], attribute a, attribute b) {
  const name made = fresh(to);
  const size_t begun = begin(to, GRAPH_NODE);
  for (unsigned i = 0; i < 3 && inputs[i].text[0]; i++) text(to, NODE_INPUT, inputs[i].text);
  text(to, NODE_OUTPUT, made.text);
  text(to, NODE_OPERATOR, operator);
  if (a.count) write_attribute(to, &a);
  if (b.count) write_attribute(to, &b);
  end(to, begun);
  return made;
}

static name plain(check_model *to, const char *operator, name x, name y) {
  return node(to, operator,(const name[3]){x, y}, (attribute){0}, (attribute){0});
}

static name with(check_model *to, const char *operator, name x, attribute a) {
  return node(to, operator,(const name[3]){x}, a, (attribute){0});
}

static void value(check_model *to, unsigned field, const char *called, const int64_t *shape, size_t rank) {
  const size_t begun = begin(to, field);
  text(to, VALUE_NAME, called);
  const size_t type = begin(to, VALUE_TYPE), tensor = begin(to, TYPE_TENSOR);
  number(to, TENSOR_TYPE, FLOATS);
  const size_t dimensions = begin(to, TENSOR_SHAPE);
  for (size_t i = 0; i < rank; i++) {
    const size_t dimension = begin(to, SHAPE_DIMENSION);
    if (i == 0)
      text(to, DIMENSION_NAME, "batch");
    else
      number(to, DIMENSION_VALUE, shape[i]);
    end(to, dimension);
  }
  end(to, dimensions);
  end(to, tensor);
  end(to, type);
  end(to, begun);
}

static size_t begin_model(check_model *to) {
  number(to, MODEL_IR, 8);
  const size_t opset = begin(to, MODEL_OPSET);
  number(to, OPSET_VERSION, 17);
  end(to, opset);
  const size_t graph = begin(to, MODEL_GRAPH);
  text(to, GRAPH_NAME, to->name);
  value(to, GRAPH_INPUT, to->input, to->shape, to->rank);
  return graph;
}

/* `y` becomes the output. */
static void end_model(check_model *to, size_t graph, name y, const int64_t *shape, size_t rank) {
  const size_t begun = begin(to, GRAPH_NODE);
  text(to, NODE_INPUT, y.text);
  text(to, NODE_OUTPUT, to->output);
  text(to, NODE_OPERATOR, "Identity");
  end(to, begun);
  value(to, GRAPH_OUTPUT, to->output, shape, rank);
  end(to, graph);
}

enum { WIDTH = 256, INNER = 1024, HEADS = 4, ROWS = 32 };

static const attribute last_axis = {"axis", {-1}, 1};

static name linear(check_model *to, name x, int64_t from, int64_t into) {
  return plain(to, "Add", plain(to, "MatMul", x, matrix(to, from, into)), vector(to, into));
}

static name add_norm(check_model *to, name x, name y) {
  const name sum = plain(to, "Add", x, y);
  return node(to, "LayerNormalization", (const name[3]){sum, vector(to, WIDTH), vector(to, WIDTH)}, last_axis,
              (attribute){0});
}

/* Splits rows into heads, in the order of dimensions that is given. */
static name heads(check_model *to, name x, name shape, attribute order) {
  return with(to, "Transpose", plain(to, "Reshape", linear(to, x, WIDTH, WIDTH), shape), order);
}

static name attention(check_model *to, name x) {
  const attribute rows_last = {"perm", {0, 2, 1, 3}, 4}, columns_last = {"perm", {0, 2, 3, 1}, 4};
  const name apart = constant(to, (const int64_t[]){0, 0, HEADS, WIDTH / HEADS}, 4);
  const name together = constant(to, (const int64_t[]){0, 0, WIDTH}, 3);
  const name scores = plain(to, "MatMul", heads(to, x, apart, rows_last), heads(to, x, apart, columns_last));
  const name shares = with(to, "Softmax", scores, last_axis);
  const name mixed = plain(to, "MatMul", shares, heads(to, x, apart, rows_last));
  return linear(to, plain(to, "Reshape", with(to, "Transpose", mixed, rows_last), together), WIDTH, WIDTH);
}

check_model check_transformer(void) {
  check_model to = {
      .name = "transformer", .input = "x", .output = "y", .shape = {1, ROWS, WIDTH}, .rank = 3, .seed = 1};
  const size_t graph = begin_model(&to);
  name x = {"x"};
  for (unsigned block = 0; block < 2; block++) {
    x = add_norm(&to, x, attention(&to, x));
    const name wide = plain(&to, "Relu", linear(&to, x, WIDTH, INNER), (name){""});
    x = add_norm(&to, x, linear(&to, wide, INNER, WIDTH));
  }
  end_model(&to, graph, x, to.shape, to.rank);
  return to;
}

static name convolution(check_model *to, name x, int64_t from, int64_t into) {
  const attribute shape = {"kernel_shape", {3, 3}, 2}, padding = {"pads", {1, 1, 1, 1}, 4};
  const name kernel = weight(to, (const int64_t[]){into, from, 3, 3}, 4, 0.08f), bias = vector(to, into);
  return plain(to, "Relu", node(to, "Conv", (const name[3]){x, kernel, bias}, shape, padding), (name){""});
}

static name pool(check_model *to, name x) {
  return node(to, "MaxPool", (const name[3]){x}, (attribute){"kernel_shape", {2, 2}, 2},
              (attribute){"strides", {2, 2}, 2});
}

check_model check_convnet(void) {
  check_model to = {
      .name = "convnet", .input = "image", .output = "classes", .shape = {1, 3, 48, 48}, .rank = 4, .seed = 2};
  const int64_t classes[] = {1, 100};
  const size_t graph = begin_model(&to);
  name x = pool(&to, convolution(&to, (name){"image"}, 3, 32));
  x = pool(&to, convolution(&to, x, 32, 64));
  x = convolution(&to, convolution(&to, x, 64, 192), 192, 224);
  x = with(&to, "Flatten", plain(&to, "GlobalAveragePool", x, (name){""}), (attribute){"axis", {1}, 1});
  end_model(&to, graph, with(&to, "Softmax", linear(&to, x, 224, 100), last_axis), classes, 2);
  return to;
}

void check_model_free(check_model *model) {
  free(model->bytes);
  model->bytes = NULL;
}
