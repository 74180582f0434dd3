// Finds the task that holds a key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <weft/detail/task_attributes.hpp>

namespace weft::pool {

// A hash table of the tasks that hold a key. The owner's lock guards the table. The chains link the
// tasks themselves, so no function allocates memory under the lock. The owner allocates new buckets
// outside the lock.
class KeyTable {
 public:
  using Attributes = detail::TaskAttributes;
  // The number of buckets is a power of two.
  struct Buckets {
    std::unique_ptr<Attributes*[]> first;
    std::size_t count = 0;
  };

  // Returns null if no task holds the key.
  [[nodiscard]] Attributes* find(const TaskKey& key) const noexcept;
  // Requires that has_buckets() returns true, and that no task holds the key.
  void insert(Attributes& attributes) noexcept;
  void erase(Attributes& attributes) noexcept;
  // Makes `heir` the holder of the key.
  void replace(Attributes& attributes, Attributes& heir) noexcept;

  [[nodiscard]] bool has_buckets() const noexcept { return buckets_.count > 0; }
  // Returns true if the chains have become long, so that more buckets would help.
  [[nodiscard]] bool is_crowded() const noexcept { return size_ >= buckets_.count; }
  [[nodiscard]] std::size_t next_count() const noexcept {
    return buckets_.count == 0 ? kFirstCount : 2 * buckets_.count;
  }
  // Returns an empty Buckets object if no memory is available.
  [[nodiscard]] static Buckets make_buckets(std::size_t count) noexcept;
  // Moves the entries to `buckets` if `buckets` has more buckets than the table. Returns the unused
  // buckets; the caller must free them.
  [[nodiscard]] Buckets adopt(Buckets buckets) noexcept;

 private:
  static constexpr std::size_t kFirstCount = 64;

  [[nodiscard]] Attributes*& bucket_of(const TaskKey& key) const noexcept;
  // Returns the link that refers to `attributes`.
  [[nodiscard]] Attributes*& link_to(const Attributes& attributes) noexcept;

  Buckets buckets_;
  std::size_t size_ = 0;
};

}  // namespace weft::pool
