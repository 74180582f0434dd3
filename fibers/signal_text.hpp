// Text that a signal handler composes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::fibers {

// Builds a line with functions that a signal handler may call. A text that is too long is
// truncated. Any thread may use it, even in a signal handler.
class SignalText {
 public:
  SignalText& operator<<(const char* text) noexcept;
  SignalText& operator<<(std::uint64_t number) noexcept;
  // Appends `module+0x1a2b`, which tools/symbolize takes; the module is the program or a shared
  // library.
  SignalText& add_place(const void* address) noexcept;
  void write_to_stderr() const noexcept;

 private:
  void add_digits(std::uint64_t number, unsigned base) noexcept;

  std::array<char, 512> text_;
  std::size_t length_ = 0;
};

}  // namespace weft::fibers
