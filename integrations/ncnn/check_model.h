// A network of layers in whole numbers: recorded for the device as ncnn does, and computed by the CPU.
#pragma once

#include "check_recorder.h"

check_words check_random(size_t count, uint32_t seed);
// The results of the shader, computed on the host.
check_words check_compute_layer(const check_words &a, const check_words &b, const check_words &w, size_t count);

class check_model {
 public:
  explicit check_model(size_t layers);

  size_t layer_count() const { return layers_.size(); }
  // Records the upload of the weights. False: an allocator has no memory; `out` has what was had before.
  bool load(check_recorder &recorder, ncnn::VkAllocator &weights, std::vector<check_mat> *out) const;
  // Records everything from the upload of `input` to the download into `out`. A blob is freed when the last layer that
  // reads it is recorded. False: an allocator has no memory.
  bool record(check_recorder &recorder, const std::vector<check_mat> &weights, const check_words &input,
              check_words *out) const;
  check_words compute(const check_words &input) const;

 private:
  struct layer {
    size_t first, second;  // blobs that it reads; blob 0 is the input, and blob i + 1 the output of layer i
    double outputs;        // words for each word of the input
    check_words weights;
    std::vector<size_t> ends;  // blobs that no later layer reads
  };
  std::vector<layer> layers_;
};
