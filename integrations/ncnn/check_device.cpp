#include "check_device.h"

#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <unordered_map>

void check_vulkan(VkResult result, const char *what) {
  if (result < 0) throw std::runtime_error(std::string(what) + " answers " + std::to_string(result));
}

namespace {

struct {
  std::mutex mutex;
  check_counts now;
  std::unordered_map<VkDeviceMemory, uint64_t> bytes;
  uint64_t room;  // 0: no bound is played
} counted;

PFN_vkAllocateMemory real_allocate;
PFN_vkFreeMemory real_free;
PFN_vkGetDeviceProcAddr real_device_entry;
PFN_vkGetInstanceProcAddr real_entry;

VKAPI_ATTR VkResult VKAPI_CALL count_allocate(VkDevice device, const VkMemoryAllocateInfo *info,
                                              const VkAllocationCallbacks *callbacks, VkDeviceMemory *out) {
  const std::lock_guard<std::mutex> guard(counted.mutex);
  if (counted.room && counted.now.bytes + info->allocationSize > counted.room) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  const VkResult result = real_allocate(device, info, callbacks, out);
  if (result) return result;
  counted.bytes[*out] = info->allocationSize;
  counted.now.allocations++;
  counted.now.bytes += info->allocationSize;
  if (counted.now.bytes > counted.now.peak_bytes) counted.now.peak_bytes = counted.now.bytes;
  return result;
}

VKAPI_ATTR void VKAPI_CALL count_free(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks *callbacks) {
  const std::lock_guard<std::mutex> guard(counted.mutex);
  if (memory) {
    counted.now.frees++;
    counted.now.bytes -= counted.bytes[memory];
    counted.bytes.erase(memory);
  }
  real_free(device, memory, callbacks);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL count_device_entry(VkDevice device, const char *name) {
  const PFN_vkVoidFunction real = real_device_entry(device, name);
  if (!strcmp(name, "vkAllocateMemory")) return reinterpret_cast<PFN_vkVoidFunction>(count_allocate);
  if (!strcmp(name, "vkFreeMemory")) return reinterpret_cast<PFN_vkVoidFunction>(count_free);
  return real;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL count_entry(VkInstance instance, const char *name) {
  const PFN_vkVoidFunction real = real_entry(instance, name);
  if (!strcmp(name, "vkGetDeviceProcAddr")) {
    real_device_entry = reinterpret_cast<PFN_vkGetDeviceProcAddr>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(count_device_entry);
  }
  if (!strcmp(name, "vkAllocateMemory")) {
    real_allocate = reinterpret_cast<PFN_vkAllocateMemory>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(count_allocate);
  }
  if (!strcmp(name, "vkFreeMemory")) {
    real_free = reinterpret_cast<PFN_vkFreeMemory>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(count_free);
  }
  return real;
}

void load() {
  const char *named = getenv("GM_VULKAN_LIBRARY");  // as gm: a simulated driver, for example
  void *library = dlopen(named && *named ? named : "libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  void *symbol = library ? dlsym(library, "vkGetInstanceProcAddr") : nullptr;
  if (!symbol) throw std::runtime_error("no libvulkan.so.1");
  real_entry = reinterpret_cast<PFN_vkGetInstanceProcAddr>(symbol);
}

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
  static_cast<check_instance *>(user)->hear(data->pMessage);
  return VK_FALSE;
}

}  // namespace

check_counts check_counted() {
  const std::lock_guard<std::mutex> guard(counted.mutex);
  return counted.now;
}

void check_count_anew() {
  const std::lock_guard<std::mutex> guard(counted.mutex);
  counted.now = {0, 0, counted.now.bytes, counted.now.bytes};
}

void check_play_full_card(bool is_full) {
  const std::lock_guard<std::mutex> guard(counted.mutex);
  counted.room = is_full ? counted.now.bytes : 0;
}

PFN_vkGetInstanceProcAddr check_instance::entry() const { return count_entry; }

void check_instance::hear(const char *message) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (expected_) {
    expected_messages_++;
    return;
  }
  messages_++;
  printf("[validation] %s\n", message);
}

check_instance::check_instance(bool validation) {
  static const char *const layers[] = {"VK_LAYER_KHRONOS_validation"};
  static const char *const extensions[] = {"VK_EXT_debug_utils", "VK_EXT_validation_features"};
  static const VkValidationFeatureEnableEXT enable = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  if (!real_entry) load();
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.apiVersion = version();
  VkDebugUtilsMessengerCreateInfoEXT messenger{};
  messenger.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  messenger.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType =
      VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  messenger.pfnUserCallback = on_message;
  messenger.pUserData = this;
  VkValidationFeaturesEXT features{};
  features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
  features.pNext = &messenger;
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = &enable;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pNext = validation ? &features : nullptr;
  info.pApplicationInfo = &application;
  info.enabledLayerCount = validation ? 1 : 0;
  info.ppEnabledLayerNames = layers;
  info.enabledExtensionCount = validation ? 2 : 0;
  info.ppEnabledExtensionNames = extensions;
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(count_entry(VK_NULL_HANDLE, "vkCreateInstance"));
  const VkResult made = create(&info, nullptr, &instance_);
  if (made == VK_ERROR_INCOMPATIBLE_DRIVER) throw std::runtime_error("no Vulkan driver");
  check_vulkan(made, validation ? "an instance with validation" : "an instance");
  if (!validation) return;
  const auto listen =
      reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(count_entry(instance_, "vkCreateDebugUtilsMessengerEXT"));
  check_vulkan(listen(instance_, &messenger, nullptr, &messenger_), "vkCreateDebugUtilsMessengerEXT");
}

check_instance::~check_instance() {
  if (messenger_) {
    reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(count_entry(instance_, "vkDestroyDebugUtilsMessengerEXT"))(
        instance_, messenger_, nullptr);
  }
  reinterpret_cast<PFN_vkDestroyInstance>(count_entry(instance_, "vkDestroyInstance"))(instance_, nullptr);
}

void check_gpu_info::find(const check_entries &vk, VkInstance instance) {
  uint32_t one = 1, count = 16;
  VkQueueFamilyProperties families[16];
  check_vulkan(vk.vkEnumeratePhysicalDevices(instance, &one, &physical_device_), "vkEnumeratePhysicalDevices");
  if (one == 0) throw std::runtime_error("no Vulkan device");
  VkPhysicalDeviceProperties2 about{};
  about.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  vk.vkGetPhysicalDeviceProperties2(physical_device_, &about);
  properties = about.properties;
  VkPhysicalDeviceMemoryProperties2 types{};
  types.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  vk.vkGetPhysicalDeviceMemoryProperties2(physical_device_, &types);
  memory = types.memoryProperties;
  vk.vkGetPhysicalDeviceQueueFamilyProperties(physical_device_, &count, families);
  while (compute_family_ < count && !(families[compute_family_].queueFlags & VK_QUEUE_COMPUTE_BIT)) compute_family_++;
  if (compute_family_ == count) throw std::runtime_error("no queue for compute");
  transfer_family_ = compute_family_;
  queue_count = families[compute_family_].queueCount;
  type_ = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU     ? 0
          : properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ? 1
          : properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU    ? 2
                                                                            : 3;
}

void check_device::look_up(const check_instance &instance) {
#define X(name)                                                                    \
  vk.name = reinterpret_cast<PFN_##name>(instance.entry()(instance.get(), #name)); \
  if (!vk.name) throw std::runtime_error("the driver lacks " #name);
  CHECK_ENTRIES(X)
#undef X
  (void)instance.entry()(instance.get(), "vkGetDeviceProcAddr");
}

check_device::check_device(const check_instance &instance) : VulkanDevice(known) {
  look_up(instance);
  known.find(vk, instance.get());
  const std::vector<float> priorities(known.queue_count, 1.0F);
  VkDeviceQueueCreateInfo queues{};
  queues.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queues.queueFamilyIndex = info.compute_queue_family_index();
  queues.queueCount = known.queue_count;
  queues.pQueuePriorities = priorities.data();
  VkDeviceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queues;
  check_vulkan(vk.vkCreateDevice(info.physical_device(), &create, nullptr, &device_), "vkCreateDevice");
  queues_.resize(known.queue_count);
  for (uint32_t i = 0; i < known.queue_count; i++)
    vk.vkGetDeviceQueue(device_, info.compute_queue_family_index(), i, &queues_[i]);
}

check_device::~check_device() { vk.vkDestroyDevice(device_, nullptr); }

VkQueue check_device::acquire_queue() const {
  std::unique_lock<std::mutex> lock(mutex_);
  if (queues_.empty()) {
    waits_++;
    waited_.notify_all();
  }
  returned_.wait(lock, [this] { return !queues_.empty(); });
  const VkQueue queue = queues_.back();
  queues_.pop_back();
  return queue;
}

void check_device::reclaim_queue(VkQueue queue) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  queues_.push_back(queue);
  returned_.notify_one();
}

bool check_device::await_queue_waits(unsigned threads) const {
  std::unique_lock<std::mutex> lock(mutex_);
  return waited_.wait_for(lock, std::chrono::minutes(1), [=] { return waits_ >= threads; });
}
