// Holds the bytes that have arrived from the peer and have not been consumed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace weft::http {

// Holds received bytes in a contiguous buffer. Small messages fit into the object itself, which a
// server keeps on a stack. Consumed bytes stay valid until the next call to make_room() or keep().
class Input {
 public:
  Input() noexcept = default;
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  [[nodiscard]] std::string_view rest() const noexcept { return {data_ + begin_, end_ - begin_}; }
  void consume(std::size_t size) noexcept { begin_ += size; }

  // Returns free space after the unconsumed bytes. Even if the caller fills this space, no more
  // than `most` bytes are unconsumed. Returns an empty span if `most` bytes are already unconsumed.
  // Moves bytes to the front if the buffer is full.
  [[nodiscard]] std::span<char> make_room(std::size_t most) {
    if (begin_ == end_) {
      begin_ = end_ = 0;
    } else if (end_ == capacity_) {
      if (begin_ > 0) {
        std::memmove(data_, data_ + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
      } else if (capacity_ < most) {
        grow(std::min(most, capacity_ * 2));
      }
    }
    return {data_ + end_, std::max(end_, std::min(capacity_, most + begin_)) - end_};
  }
  void filled(std::size_t size) noexcept { end_ += size; }

  // Replaces all bytes with `rest`.
  void keep(std::string_view rest) {
    begin_ = end_ = 0;
    if (rest.size() > capacity_) grow(rest.size());
    if (!rest.empty()) std::memmove(data_, rest.data(), rest.size());
    end_ = rest.size();
  }

 private:
  void grow(std::size_t capacity) {
    auto larger = std::make_unique_for_overwrite<char[]>(capacity);
    std::memcpy(larger.get(), data_, end_);
    heap_ = std::move(larger);
    data_ = heap_.get();
    capacity_ = capacity;
  }

  static constexpr std::size_t kOwn = 4096;

  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t capacity_ = kOwn;
  std::array<char, kOwn> own_;
  char* data_ = own_.data();
  std::unique_ptr<char[]> heap_;
};

}  // namespace weft::http
