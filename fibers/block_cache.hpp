// A cache of small memory blocks that a worker has freed and will reuse.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "fibers/sanitizer.hpp"

namespace weft::fibers {

// Provides the memory for the state that a fiber and its handle share, which is as short-lived as
// the fiber. operator new and delete would take as long as the rest of a spawn and a join in place.
// Every block comes from operator new; any worker's cache may take it, or it may be deleted. A
// cache has one owner and is not synchronized. Under a sanitizer, a cache keeps no blocks, so that
// the sanitizer finds a use after free.
class BlockCache {
 public:
  static constexpr std::size_t kBlockBytes = 64;

  BlockCache() noexcept = default;
  ~BlockCache() {
    while (first_ != nullptr) ::operator delete(pop());
  }
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // Throws std::bad_alloc.
  [[nodiscard]] void* take() { return first_ == nullptr ? ::operator new(kBlockBytes) : pop(); }
  void give(void* block) noexcept {
    if (kSanitized || count_ == kMost) return ::operator delete(block);
    first_ = ::new (block) Free{first_};
    ++count_;
  }

 private:
  static constexpr std::size_t kMost = 256;
  struct Free {
    Free* next;
  };

  [[nodiscard]] void* pop() noexcept {
    --count_;
    return std::exchange(first_, first_->next);
  }

  Free* first_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace weft::fibers

// The cache of the calling thread's worker; null on a plain thread. Only block_cache.cpp reads it.
extern "C" __thread weft::fibers::BlockCache* weft_block_cache;
