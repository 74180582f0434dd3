// Receives from a channel in a range-based for loop.
#pragma once

#include <cstddef>
#include <iterator>
#include <optional>

namespace weft {

template <class T>
class Channel;

namespace detail {

// Reports that the capacity of a Channel is larger than `most`.
// Throws: std::invalid_argument.
[[noreturn]] void refuse_capacity(std::size_t capacity, std::size_t most);

// Holds the last received value; reaches the end once the channel is closed and drained.
template <class T>
class ChannelIterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = T;
  using difference_type = std::ptrdiff_t;

  // Receives the first value; parks until there is a value or the channel is closed.
  explicit ChannelIterator(Channel<T>& channel) : channel_(&channel), value_(channel.receive()) {}
  // Returns the received value. An iterator at the end has no value.
  [[nodiscard]] T& operator*() const noexcept { return *value_; }
  // Receives the next value; parks as receive() does.
  ChannelIterator& operator++() {
    value_ = channel_->receive();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const ChannelIterator& self, std::default_sentinel_t) noexcept {
    return !self.value_;
  }

 private:
  Channel<T>* channel_;
  mutable std::optional<T> value_;
};

}  // namespace detail

}  // namespace weft
