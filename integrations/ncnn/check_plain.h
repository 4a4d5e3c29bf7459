// Allocators without gm, in ncnn's manner, to compare with: blobs and weights are parts of large blocks, by first fit.
// A staging buffer is a driver allocation of its own, and is kept for requests of about its size.
#pragma once

#include <list>
#include <map>

#include "check_device.h"

class check_plain : public ncnn::VkAllocator {
 public:
  check_plain(const check_device &device, bool staging);
  int flush(ncnn::VkBufferMemory *ptr) override;
  int invalidate(ncnn::VkBufferMemory *ptr) override;
  ncnn::VkImageMemory *fastMalloc(int, int, int, size_t, int) override { return nullptr; }
  void fastFree(ncnn::VkImageMemory *) override {}
  using VkAllocator::fastFree;
  using VkAllocator::fastMalloc;

 protected:
  bool take(size_t bytes, ncnn::VkBufferMemory *out);
  void give_back(const ncnn::VkBufferMemory &memory);

  const check_device &on_;

 private:
  VkMappedMemoryRange whole(const ncnn::VkBufferMemory &memory) const;
};

class check_plain_blocks final : public check_plain {
 public:
  check_plain_blocks(const check_device &device, size_t block_bytes)
      : check_plain(device, false), least_(block_bytes) {}
  ~check_plain_blocks() override { clear_blocks(); }
  using check_plain::fastFree;
  using check_plain::fastMalloc;
  void clear() override { clear_blocks(); }
  ncnn::VkBufferMemory *fastMalloc(size_t size) override;
  void fastFree(ncnn::VkBufferMemory *ptr) override;

 private:
  struct block {
    ncnn::VkBufferMemory whole;
    std::map<size_t, size_t> free;  // offset and bytes
  };
  void clear_blocks();
  bool carve(block &from, size_t bytes, ncnn::VkBufferMemory *out);

  size_t least_;
  std::list<block> blocks_;
};

class check_plain_staging final : public check_plain {
 public:
  explicit check_plain_staging(const check_device &device) : check_plain(device, true) {}
  ~check_plain_staging() override { clear_kept(); }
  using check_plain::fastFree;
  using check_plain::fastMalloc;
  void clear() override { clear_kept(); }
  ncnn::VkBufferMemory *fastMalloc(size_t size) override;
  void fastFree(ncnn::VkBufferMemory *ptr) override { kept_.push_back(ptr); }

 private:
  void clear_kept();
  std::list<ncnn::VkBufferMemory *> kept_;
};
