#include "libs/http/wire/head_lines.hpp"

#include <cstring>

namespace weft::http {

HeadLines::Verdict HeadLines::look_at(std::string_view head) noexcept {
  const char* const data = head.data();
  while (looked_at_ < head.size()) {
    const void* found = std::memchr(data + looked_at_, '\n', head.size() - looked_at_);
    if (found == nullptr) {
      looked_at_ = head.size();
      break;
    }
    const auto line_end = static_cast<std::size_t>(static_cast<const char*>(found) - data);
    if (line_end == line_begin_ || data[line_end - 1] != '\r') return Verdict::refused;
    const char* const line = data + line_begin_;
    const std::size_t size = line_end - 1 - line_begin_;
    const std::size_t begin = line_begin_;
    looked_at_ = line_begin_ = line_end + 1;
    if (size == 0) {
      if (first_line_size_ != 0) return Verdict::complete;
      if (skipped_blank_) return Verdict::refused;
      skipped_blank_ = true;
      first_line_ = line_begin_;
      continue;
    }
    if (std::memchr(line, '\r', size) != nullptr || std::memchr(line, '\0', size) != nullptr) {
      return Verdict::refused;
    }
    if (first_line_size_ == 0) {
      first_line_size_ = size;
      first_line_ = begin;
    } else if (line[0] == ' ' || line[0] == '\t') {
      if (folds_ == Folds::refused || !has_header_) return Verdict::refused;
      has_folds_ = true;
    } else {
      has_header_ = true;
    }
  }
  return Verdict::incomplete;
}

}  // namespace weft::http
