// Gives each fiber a number.
#pragma once

#include <cstdint>
#include <weft/detail/atomic.hpp>

namespace weft::scheduler {

// Numbers the fibers that one worker starts. Each worker takes the numbers from its own blocks, so
// that a start rarely accesses shared data. Each number is unique in the process, and never 0.
// Owner: the worker.
class FiberIds {
 public:
  [[nodiscard]] std::uint64_t take() noexcept {
    if (next_ % kBlock == 0) [[unlikely]]
      next_ = take_block();
    return next_++;
  }

 private:
  static constexpr std::uint64_t kBlock = 1 << 16;

  // Returns the first number of a block that no worker of the process has used. The number is never
  // 0 or another multiple of kBlock, because take() treats a multiple as a used-up block. Inlined,
  // so that callers of take() need not save registers for a call.
  [[nodiscard, gnu::always_inline]] static std::uint64_t take_block() noexcept {
    static detail::Atomic<std::uint64_t> blocks{0};
    return blocks.fetch_add(1, detail::relaxed) * kBlock +
           1;  // Relaxed: the numbers only have to be distinct.
  }

  std::uint64_t next_ = 0;
};

}  // namespace weft::scheduler
