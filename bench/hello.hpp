// Contains what W9_http's two C++ servers share: the part of HTTP that a load generator needs.
#pragma once

#include <cstddef>
#include <string_view>

namespace weft::bench {

inline constexpr std::string_view kHello =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";

// Finds the ends of requests without a body, which are blank lines. Ignores all other lines.
class RequestEnds {
 public:
  // Returns how many requests end in `received`, which may begin and end inside a request.
  [[nodiscard]] std::size_t count_in(std::string_view received) noexcept {
    constexpr std::string_view kBlankLine = "\r\n\r\n";
    std::size_t found = 0;
    for (const char byte : received) {
      matched_ = byte == kBlankLine[matched_] ? matched_ + 1 : byte == '\r' ? 1 : 0;
      if (matched_ == kBlankLine.size()) {
        matched_ = 0;
        ++found;
      }
    }
    return found;
  }

 private:
  std::size_t matched_ = 0;
};

}  // namespace weft::bench
