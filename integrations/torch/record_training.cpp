// Writes down what torch asks its CPU allocator for: the order of a training step, for tests that play it without
// torch. A line is `a NUMBER BYTES STREAM` (allocate), `f NUMBER` (free) or `r NUMBER STREAM` (record_stream).
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

namespace {

std::mutex lock;
std::FILE *file;
std::unordered_map<void *, unsigned long> numbers;
unsigned long next_number;
int stream;

void forget(void *pointer) {
  const std::lock_guard<std::mutex> held(lock);
  const auto found = numbers.find(pointer);
  if (file && found != numbers.end()) std::fprintf(file, "f %lu\n", found->second);
  if (found != numbers.end()) numbers.erase(found);
  std::free(pointer);
}

class Recorder final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void *pointer = bytes ? std::aligned_alloc(64, (bytes + 63) / 64 * 64) : nullptr;
    const std::lock_guard<std::mutex> held(lock);
    if (file && pointer) {
      std::fprintf(file, "a %lu %zu %d\n", next_number, bytes, stream);
      numbers[pointer] = next_number++;
    }
    return {pointer, pointer, &forget, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &forget; }
  void copy_data(void *to, const void *from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

Recorder recorder;

}  // namespace

extern "C" {
void record_install(void) { c10::SetCPUAllocator(&recorder, 1); }
void record_begin(const char *path) { file = std::fopen(path, "w"); }
void record_on_stream(int number) { stream = number; }
void record_end(void) {
  std::fclose(file);
  file = nullptr;
}
void record_use(void *pointer, int number) {
  const std::lock_guard<std::mutex> held(lock);
  const auto found = numbers.find(pointer);
  if (file && found != numbers.end()) std::fprintf(file, "r %lu %d\n", found->second, number);
}
}
