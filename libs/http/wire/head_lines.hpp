// Finds the end of a message's head, and validates its line ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft::http {

// Checks the lines of a head before the parser reads it. Accepts a head only if every proxy on the
// way splits it into the same lines. Refuses a bare CR or LF, a NUL, and, unless allowed, a line
// that continues the previous line (obs-fold). Each byte is checked once, however slowly the head
// arrives.
class HeadLines {
 public:
  enum class Verdict : std::uint8_t { incomplete, complete, refused };
  // Specifies how to treat lines that continue a header. Directly after the first line there is no
  // header to continue, so a continuation there is always refused.
  enum class Folds : std::uint8_t { refused, taken };

  explicit HeadLines(Folds folds = Folds::refused) noexcept : folds_(folds) {}

  // Checks the lines that have arrived since the previous call. `head` begins at the message's
  // first byte, and contains the bytes of the previous call and any new bytes.
  [[nodiscard]] Verdict look_at(std::string_view head) noexcept;
  // Returns the size of a complete head, including the blank line.
  [[nodiscard]] std::size_t size() const noexcept { return line_begin_; }
  // These functions return the offset of the first line that is not blank, and its size without the
  // line end. The size is 0 until that line is complete. One blank line may precede it.
  [[nodiscard]] std::size_t first_line() const noexcept { return first_line_; }
  [[nodiscard]] std::size_t first_line_size() const noexcept { return first_line_size_; }
  // Returns whether any line continues a header.
  [[nodiscard]] bool has_folds() const noexcept { return has_folds_; }

 private:
  const Folds folds_;
  std::size_t looked_at_ = 0;
  std::size_t line_begin_ = 0;
  std::size_t first_line_ = 0;
  std::size_t first_line_size_ = 0;
  bool skipped_blank_ = false;
  bool has_header_ = false;
  bool has_folds_ = false;
};

}  // namespace weft::http
