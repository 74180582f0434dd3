// Tables by address.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace weft::posix {

// A table split by address: fibers that wait for different objects seldom share a Shard.
template <class Shard>
class Shards {
 public:
  [[nodiscard]] Shard& of(const void* address) noexcept {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    return shards_[(number >> 4 ^ number >> 12) % shards_.size()];
  }
  // Empties the table in the child of a fork: no fiber waits there, and a thread that fork() did
  // not copy may hold a lock.
  void forget() noexcept {
    for (Shard& shard : shards_) std::construct_at(&shard);
  }

 private:
  std::array<Shard, 64> shards_;
};

}  // namespace weft::posix
