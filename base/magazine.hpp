// Keeps the free objects of one owner, which exchanges them with a shared store in chains.
#pragma once

#include <cstdint>
#include <utility>
#include <weft/detail/invariant.hpp>

namespace weft::base {

// Returns how many objects are linked from `chain`.
template <class T>
[[nodiscard]] std::uint32_t chain_length(const T* chain) noexcept {
  std::uint32_t length = 0;
  for (; chain != nullptr; chain = chain->next) ++length;
  return length;
}

// A LIFO of objects linked through T::next, in two chains of at most `size` objects each. With one
// chain, an owner that gives and takes at the end of the chain would access the shared store each
// time; the second chain prevents this. Only the owner may use it.
// Invariants
//   I1  count_ objects are in loaded_; spare_ is empty or has exactly `size` objects.
template <class T>
class Magazine {
 public:
  explicit Magazine(std::uint32_t size) noexcept : size_(size) {}

  // Returns the object that was given last; null if both chains are empty.
  [[nodiscard]] T* take() noexcept {
    if (loaded_ == nullptr) [[unlikely]] {
      if (spare_ == nullptr) return nullptr;
      loaded_ = std::exchange(spare_, nullptr);
      count_ = size_;
    }
    WEFT_INVARIANT(count_ > 0, "Magazine I1: objects that are loaded are counted");
    --count_;
    return std::exchange(loaded_, loaded_->next);
  }

  // Keeps `object`. If both chains are full, returns one chain for the shared store; otherwise
  // returns null.
  [[nodiscard]] T* give(T& object) noexcept {
    T* surplus = nullptr;
    if (count_ == size_) [[unlikely]] {
      WEFT_INVARIANT(chain_length(loaded_) == size_,
                     "Magazine I1: a full chain has `size` objects");
      surplus = std::exchange(spare_, loaded_);
      loaded_ = nullptr;
      count_ = 0;
    }
    object.next = loaded_;
    loaded_ = &object;
    ++count_;
    return surplus;
  }

  // Adopts a chain of `count` objects, at most `size`. Requires that take() has returned null.
  void refill(T* chain, std::uint32_t count) noexcept {
    WEFT_INVARIANT(loaded_ == nullptr && spare_ == nullptr, "Magazine I1: nothing is overwritten");
    WEFT_INVARIANT(chain_length(chain) == count && count <= size_, "Magazine I1: count_ objects");
    loaded_ = chain;
    count_ = count;
  }

  // Passes all objects, as one or two chains, to `visit(chain)`, and leaves the magazine empty.
  template <class Visit>
  void drain(Visit visit) noexcept {
    if (T* chain = std::exchange(loaded_, nullptr)) visit(chain);
    if (T* chain = std::exchange(spare_, nullptr)) visit(chain);
    count_ = 0;
  }

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

 private:
  std::uint32_t size_;
  std::uint32_t count_ = 0;
  T* loaded_ = nullptr;
  T* spare_ = nullptr;
};

}  // namespace weft::base
