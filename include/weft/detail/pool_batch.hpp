// Holds several items that a pool accepts together.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <weft/detail/pool_job.hpp>

namespace weft::detail {

// Holds up to kCapacity items, which it constructs in place.
class PoolBatch {
 public:
  static constexpr std::size_t kCapacity = 16;

  PoolBatch() noexcept = default;
  PoolBatch(const PoolBatch&) = delete;
  PoolBatch& operator=(const PoolBatch&) = delete;
  ~PoolBatch() { clear(); }

  [[nodiscard]] bool full() const noexcept { return size_ == kCapacity; }
  // Adds the item that `make` returns. The batch must not be full.
  template <class Make>
  void add(Make make) {
    ::new (static_cast<void*>(places_ + size_ * sizeof(PoolItem))) PoolItem(make());
    ++size_;
  }
  [[nodiscard]] std::span<PoolItem> items() noexcept {
    return {std::launder(reinterpret_cast<PoolItem*>(places_)), size_};
  }
  void clear() noexcept {
    std::destroy_n(items().data(), size_);
    size_ = 0;
  }

 private:
  alignas(PoolItem) std::byte places_[kCapacity * sizeof(PoolItem)];
  std::size_t size_ = 0;
};

}  // namespace weft::detail
