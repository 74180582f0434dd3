// Where the head of a message ends, and whether its lines are lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft::http {

// Looks at the lines of a head before a parser does, so that no proxy between the client and us can
// have seen other lines than we do. It refuses a bare CR or LF, a NUL, and, unless it is wanted, a
// line that continues the one before (obs-fold). Each byte is looked at once, however slowly they
// come.
class HeadLines {
 public:
  enum class Verdict : std::uint8_t { incomplete, complete, refused };
  // Lines that continue a header. Behind the first line they continue none, and are refused.
  enum class Folds : std::uint8_t { refused, taken };

  explicit HeadLines(Folds folds = Folds::refused) noexcept : folds_(folds) {}

  // `head` begins at the message's first byte and has what it had the last time, and more.
  [[nodiscard]] Verdict look_at(std::string_view head) noexcept;
  // Once complete: the bytes up to and with the blank line.
  [[nodiscard]] std::size_t size() const noexcept { return line_begin_; }
  // Where the first line that is not blank begins, and its size without its end; 0 before that is
  // known. One blank line may come before it.
  [[nodiscard]] std::size_t first_line() const noexcept { return first_line_; }
  [[nodiscard]] std::size_t first_line_size() const noexcept { return first_line_size_; }
  // There were lines that continue others.
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
