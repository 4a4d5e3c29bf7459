// gm under what stands for ncnn: its interface and habits on a real driver, with validation. Figures beside allocators
// in ncnn's own manner.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>

#include "check_model.h"
#include "check_plain.h"
#include "gm/native_vulkan.h"
#include "gm_ncnn.h"

namespace {

constexpr size_t kLayers = 24, kInput = 200000;

unsigned failures;

void expect(bool holds, const char *what) {
  printf("%s: %s\n", holds ? "ok" : "FAILED", what);
  if (!holds) failures++;
}

/* An engine's device with gm on it. */
struct stage {
  const check_instance &instance;
  check_device device;
  check_pipeline pipeline;
  gm::device lent;

  explicit stage(const check_instance &on) : instance(on), device(on), pipeline(device) {
    gm_error err{};
    lent = gm_ncnn_adopt(device, on.get(), on.entry(), check_instance::version(), &err);
    if (!lent) throw std::runtime_error(err.message);
  }
};

gm_ncnn_allocator allocator_on(const stage &on, gm_ncnn_use use, uint64_t max_bytes = 0) {
  return {on.lent, &on.device, use, max_bytes};
}

uint64_t reserved(const gm_ncnn_allocator &of) {
  gm_stats stats{};
  stats.struct_size = sizeof stats;
  gm_pool_stats(of.pool().get(), &stats);
  return stats.reserved_bytes;
}

using mats = std::vector<check_mat>;

bool load(const check_model &model, check_recorder &recorder, ncnn::VkAllocator &weights, mats *out) {
  recorder.begin();
  const bool loaded = model.load(recorder, weights, out);
  recorder.end();
  if (loaded)
    recorder.submit_and_wait();
  else
    recorder.drop();
  return loaded;
}

/* Runs the model on an input of a `quarters` of the usual size; false: other bytes than the CPU's, or no memory. */
bool run(const check_model &model, check_recorder &recorder, const mats &weights, size_t quarters, uint32_t seed) {
  const check_words input = check_random(kInput * quarters / 4, seed);
  check_words output;
  recorder.begin();
  const bool recorded = model.record(recorder, weights, input, &output);
  recorder.end();
  if (!recorded) {
    recorder.drop();
    return false;
  }
  recorder.submit_and_wait();
  return output == model.compute(input);
}

bool run_sizes(const check_model &model, check_recorder &recorder, const mats &weights, uint32_t seed) {
  for (const size_t quarters : {4U, 2U, 4U, 1U})
    if (!run(model, recorder, weights, quarters, seed++)) return false;
  return true;
}

/* A discrete card's way: through staging. An integrated GPU's way: the host writes and reads the blobs in place. */
bool check_style(const stage &on, const check_model &model, bool in_place) {
  gm_ncnn_allocator weights = allocator_on(on, gm_ncnn_use::weights), blobs = allocator_on(on, gm_ncnn_use::blobs),
                    staging = allocator_on(on, gm_ncnn_use::staging);
  if (in_place && !(weights.mappable && blobs.mappable)) {
    printf("not checked: the host cannot map this device's memory\n");
    return false;
  }
  check_recorder recorder(on.pipeline, blobs, in_place ? static_cast<ncnn::VkAllocator &>(blobs) : staging);
  mats loaded;
  const bool same = load(model, recorder, weights, &loaded) && run_sizes(model, recorder, loaded, 1);
  expect(same, in_place ? "in place: every output has the bytes of the CPU"
                        : "through staging: every output has the bytes of the CPU");
  loaded.clear();
  weights.clear(), blobs.clear(), staging.clear();
  expect(reserved(weights) + reserved(blobs) + reserved(staging) == 0, "clear() gives everything back");
  return true;
}

/* Two threads, each with allocators and a command buffer of its own, over the same weights. Neither gets a queue before
 * both have recorded, and have freed what they recorded. */
void check_threads(const stage &on, const check_model &model) {
  constexpr int kThreads = 2;
  gm_ncnn_allocator weights = allocator_on(on, gm_ncnn_use::weights), staging = allocator_on(on, gm_ncnn_use::staging);
  mats loaded;
  {
    check_recorder recorder(on.pipeline, weights, staging);
    expect(load(model, recorder, weights, &loaded), "weights for two threads");
  }
  bool same[kThreads] = {};
  std::thread threads[kThreads];
  std::vector<VkQueue> queues(on.device.known.queue_count);
  for (VkQueue &queue : queues) queue = on.device.acquire_queue();
  for (int i = 0; i < kThreads; i++) {
    threads[i] = std::thread([&, i] {
      gm_ncnn_allocator blobs = allocator_on(on, gm_ncnn_use::blobs), mine = allocator_on(on, gm_ncnn_use::staging);
      check_recorder recorder(on.pipeline, blobs, blobs.mappable ? static_cast<ncnn::VkAllocator &>(blobs) : mine);
      same[i] = run_sizes(model, recorder, loaded, 100U * static_cast<uint32_t>(i + 1));
    });
  }
  expect(on.device.await_queue_waits(kThreads), "both threads have recorded, and wait for a queue");
  for (const VkQueue queue : queues) on.device.reclaim_queue(queue);
  for (std::thread &thread : threads) thread.join();
  expect(same[0] && same[1], "two threads: every output has the bytes of the CPU");
}

/* An upload lands in memory that a layer of the same recording reads: ncnn's barrier comes from what gm says of it. */
void check_reuse(const stage &on) {
  gm_ncnn_allocator blobs = allocator_on(on, gm_ncnn_use::blobs), staging = allocator_on(on, gm_ncnn_use::staging);
  check_recorder recorder(on.pipeline, blobs, staging);
  const check_words first = check_random(kInput, 1), second = check_random(kInput, 2);
  check_words output;
  check_mat input, middle, later, result;
  recorder.begin();
  bool recorded = recorder.upload(first, &input) && recorder.layer(input, input, input, kInput / 2, &middle);
  const size_t offset = recorded ? input.data->offset : 0;
  input = {};
  recorded = recorded && recorder.upload(second, &later);
  expect(recorded && later.data->offset == offset, "memory that was freed while recording serves that recording");
  recorded = recorded && recorder.layer(later, middle, later, kInput, &result) && recorder.download(result, &output);
  recorder.end();
  recorder.submit_and_wait();
  const check_words half = check_compute_layer(first, first, first, kInput / 2);
  expect(recorded && output == check_compute_layer(second, half, second, kInput), "and has the bytes of the CPU");
}

/* The cap is reached in the middle of the weights, then in the middle of the blobs. The engine goes on. */
void check_no_memory(const stage &on, const check_model &model) {
  gm_ncnn_allocator weights = allocator_on(on, gm_ncnn_use::weights, 5 << 20),
                    blobs = allocator_on(on, gm_ncnn_use::blobs, 3 << 20),
                    staging = allocator_on(on, gm_ncnn_use::staging);
  check_recorder recorder(on.pipeline, blobs, staging);
  const check_model small(8);
  mats loaded;
  expect(!load(model, recorder, weights, &loaded) && !loaded.empty() && loaded.size() < model.layer_count(),
         "the weights do not fit: nullptr in the middle of the load");
  const gm_error why = weights.why();
  printf("   %s\n", why.message);
  expect(why.status == GM_ERR_OVER_LIMIT, "gm says that its limit refused");
  loaded.clear();
  weights.clear();
  expect(reserved(weights) == 0, "a load that failed leaves nothing");
  expect(load(small, recorder, weights, &loaded), "a smaller model fits");
  expect(!run(small, recorder, loaded, 4, 7), "the blobs do not fit: nullptr in the middle of recording");
  expect(run(small, recorder, loaded, 1, 8), "a smaller input fits, and its output has the bytes of the CPU");
}

/* Takes blocks of many sizes, and writes all of them on the device. */
std::set<VkDeviceMemory> overwrite_what_is_free(const stage &on, gm_ncnn_allocator &by) {
  std::set<VkDeviceMemory> memories;
  check_recorder recorder(on.pipeline, by, by);
  mats taken;
  recorder.begin();
  for (size_t count = 1000; count < 2 * kInput; count += count / 2) {
    taken.push_back(check_mat_create(by, count));
    if (!taken.back()) break;
    const ncnn::VkBufferMemory &data = *taken.back().data;
    memories.insert(data.memory);
    on.device.vk.vkCmdFillBuffer(recorder.commands(), data.buffer, data.offset, count * sizeof(uint32_t), 0xFFFFFFFF);
  }
  recorder.end();
  recorder.submit_and_wait();
  return memories;
}

/* Blobs were freed while they were recorded, and nothing was submitted yet. Another allocator that needs memory gets
 * none of theirs, also where the card is full. */
void check_recorded(const stage &on, const check_model &model) {
  gm_ncnn_allocator weights = allocator_on(on, gm_ncnn_use::weights), blobs = allocator_on(on, gm_ncnn_use::blobs),
                    staging = allocator_on(on, gm_ncnn_use::staging), other = allocator_on(on, gm_ncnn_use::blobs);
  check_recorder recorder(on.pipeline, blobs, staging);
  mats loaded;
  expect(load(model, recorder, weights, &loaded), "weights for a recording that waits");
  const check_words input = check_random(kInput, 55);
  check_words output;
  recorder.begin();
  const bool recorded = model.record(recorder, loaded, input, &output);
  recorder.end();
  const uint64_t held = reserved(blobs);
  check_count_anew();
  check_play_full_card(true);
  const bool refused = !check_mat_create(other, kInput);
  check_play_full_card(false);
  expect(recorded && refused && check_counted().frees == 0 && reserved(blobs) == held,
         "on a full card (played) nobody gets what was freed while it was recorded");
  const std::set<VkDeviceMemory> theirs = overwrite_what_is_free(on, other);
  const check_mat ours = check_mat_create(blobs, kInput / 4);
  expect(ours && !theirs.empty() && theirs.count(ours.data->memory) == 0, "allocators share no driver allocation");
  recorder.submit_and_wait();
  expect(output == model.compute(input), "the recording runs later, with the bytes of the CPU");
}

/* gm's flag is needed here: an ordinary pool gives back memory that nobody holds, and a recording may still name it.
 * This also shows that the layers speak. */
void check_that_layers_speak(const stage &on, check_instance &instance) {
  const gm::pool ordinary = gm::pool::create(on.lent), other = gm::pool::create(on.lent);
  gm_ncnn_allocator blobs = allocator_on(on, gm_ncnn_use::blobs);
  check_recorder recorder(on.pipeline, blobs, blobs);
  instance.expect_messages(true);
  recorder.begin();
  {
    const gm::block block = ordinary.alloc(4 << 20);
    gm_vulkan_memory native{};
    native.head = {sizeof native, GM_API_VULKAN};
    if (!block || gm_block_native(ordinary.get(), &block.get(), &native.head, nullptr))
      throw std::runtime_error("no block");
    on.device.vk.vkCmdFillBuffer(recorder.commands(), reinterpret_cast<VkBuffer>(native.buffer), native.buffer_offset,
                                 native.bytes, 1);
  }
  check_play_full_card(true);
  const gm::block needed = other.alloc(4 << 20);
  check_play_full_card(false);
  const VkResult ended = on.device.vk.vkEndCommandBuffer(recorder.commands());
  instance.expect_messages(false);
  expect(needed && instance.expected_messages() > 0,
         "without GM_POOL_NO_TRIM a recording loses its memory, and the layers say so");
  if (ended == VK_SUCCESS) recorder.drop();
}

struct figures {
  check_counts counts;
  double allocator_ms, ms;
};

/* Load, and six inputs. */
figures measure(const stage &on, const check_model &model, ncnn::VkAllocator &weights, ncnn::VkAllocator &blobs,
                ncnn::VkAllocator &staging) {
  check_count_anew();
  const uint64_t before = check_allocator_ns(), bytes = check_counted().bytes;
  const auto began = std::chrono::steady_clock::now();
  bool same = true;
  {
    check_recorder recorder(on.pipeline, blobs, staging);
    mats loaded;
    same = load(model, recorder, weights, &loaded);
    for (uint32_t i = 0; i < 6 && same; i++) same = run(model, recorder, loaded, 4 - i % 4, 30 + i);
  }
  weights.clear(), blobs.clear(), staging.clear();
  const auto took = std::chrono::steady_clock::now() - began;
  expect(same && check_counted().bytes == bytes, "figures: the outputs have the bytes of the CPU, and nothing is left");
  figures out{check_counted(), static_cast<double>(check_allocator_ns() - before) / 1e6,
              std::chrono::duration<double, std::milli>(took).count()};
  out.counts.peak_bytes -= bytes;
  return out;
}

void print(const char *name, const figures &of) {
  printf("%-6s %18llu %16.1f %22.2f %12.0f\n", name, static_cast<unsigned long long>(of.counts.allocations),
         static_cast<double>(of.counts.peak_bytes) / (1 << 20), of.allocator_ms, of.ms);
}

void compare(const check_model &model) {
  const check_instance plain_instance(false);
  const stage on(plain_instance);
  check_plain_blocks plain_weights(on.device, 8 << 20), plain_blobs(on.device, 16 << 20);
  check_plain_staging plain_staging(on.device);
  gm_ncnn_allocator weights = allocator_on(on, gm_ncnn_use::weights), blobs = allocator_on(on, gm_ncnn_use::blobs),
                    staging = allocator_on(on, gm_ncnn_use::staging);
  measure(on, model, weights, blobs, staging); /* the driver compiles the shader */
  const figures plain = measure(on, model, plain_weights, plain_blobs, plain_staging);
  const figures gm = measure(on, model, weights, blobs, staging);
  printf("without validation: a load and 6 inputs\n");
  printf("%-6s %18s %16s %22s %12s\n", "", "driver allocations", "most MiB at once", "in the allocators, ms",
         "in all, ms");
  print("plain", plain);
  print("gm", gm);
  expect(gm.counts.allocations <= plain.counts.allocations, "gm asks the driver no more often");
  expect(gm.counts.peak_bytes <= plain.counts.peak_bytes, "gm takes no more memory");
}

std::string check_all() {
  const check_instance kept(false); /* a loader without an instance unloads its drivers */
  check_instance instance(true);
  const check_model model(kLayers);
  std::string said;
  {
    const stage on(instance);
    said = on.device.known.properties.deviceName;
    check_style(on, model, false);
    if (check_style(on, model, true)) said += ", also in place";
    check_reuse(on);
    check_threads(on, model);
    check_no_memory(on, model);
    check_recorded(on, model);
    check_that_layers_speak(on, instance);
  }
  expect(instance.messages() == 0, "the layers had nothing else to say");
  compare(model);
  return said;
}

}  // namespace

int main(int argc, char **argv) {
  std::string said;
  /* The layers also compare submissions with one another. */
  setenv("VK_LAYER_ENABLES", "VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT", 0);
  try {
    said = check_all();
  } catch (const std::exception &failed) {
    printf("%s\n", failed.what());
    const char *required = getenv("GM_REQUIRE_BACKENDS");
    const bool may_skip = argc > 1 && !strcmp(argv[1], "--may-skip") && !(required && strstr(required, "vulkan"));
    return may_skip && !strncmp(failed.what(), "no ", 3) ? 77 : 1;
  }
  if (failures) return printf("%u checks failed\n", failures), 1;
  printf("like-ncnn layers, frees while recording, two threads, no memory, on %s\n", said.c_str());
  return 0;
}
