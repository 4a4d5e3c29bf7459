#include "check_model.h"

check_words check_random(size_t count, uint32_t seed) {
  check_words out(count);
  for (uint32_t &word : out) word = seed = seed * 1664525U + 1013904223U;
  return out;
}

check_words check_compute_layer(const check_words &a, const check_words &b, const check_words &w, size_t count) {
  check_words y(count);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t at_a = i * 5, at_b = i * 3; /* they wrap around, as in the shader */
    y[i] = a[at_a % a.size()] * w[i % w.size()] + (b[at_b % b.size()] ^ i >> 3);
  }
  return y;
}

/* Blobs shrink and weights grow from layer to layer, as in networks for images. Every third layer also reads a blob of
 * two layers before. */
check_model::check_model(size_t layers) : layers_(layers) {
  std::vector<size_t> last(layers + 1);
  for (size_t i = 0; i < layers; i++) {
    layer &to = layers_[i];
    to.first = i;
    to.second = i % 3 == 2 ? i - 2 : i;
    to.outputs = 1.0 / static_cast<double>(1U << i / 5) + 0.01 * static_cast<double>(i % 4);
    to.weights = check_random((4096U << i / 3) + 13 * i, static_cast<uint32_t>(i + 1));
    last[to.first] = last[to.second] = i;
  }
  for (size_t blob = 0; blob < layers; blob++) layers_[last[blob]].ends.push_back(blob);
}

bool check_model::load(check_recorder &recorder, ncnn::VkAllocator &weights, std::vector<check_mat> *out) const {
  for (const layer &at : layers_) {
    check_mat mat;
    if (!recorder.upload_weights(at.weights, weights, &mat)) return false;
    out->push_back(std::move(mat));
  }
  return true;
}

bool check_model::record(check_recorder &recorder, const std::vector<check_mat> &weights, const check_words &input,
                         check_words *out) const {
  std::vector<check_mat> blobs(layers_.size() + 1);
  if (!recorder.upload(input, &blobs[0])) return false;
  for (size_t i = 0; i < layers_.size(); i++) {
    const layer &at = layers_[i];
    const auto count = static_cast<size_t>(at.outputs * static_cast<double>(input.size()));
    if (!recorder.layer(blobs[at.first], blobs[at.second], weights[i], count, &blobs[i + 1])) return false;
    for (const size_t blob : at.ends) blobs[blob] = {};
  }
  return recorder.download(blobs.back(), out);
}

check_words check_model::compute(const check_words &input) const {
  std::vector<check_words> blobs(layers_.size() + 1);
  blobs[0] = input;
  for (size_t i = 0; i < layers_.size(); i++) {
    const layer &at = layers_[i];
    const auto count = static_cast<size_t>(at.outputs * static_cast<double>(input.size()));
    blobs[i + 1] = check_compute_layer(blobs[at.first], blobs[at.second], at.weights, count);
  }
  return blobs.back();
}
