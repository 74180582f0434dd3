#include <weft/http/error.hpp>

#include <string>

namespace weft::http {

namespace {

class Category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "weft-http"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<Errc>(code)) {
      case Errc::malformed:
        return "malformed message: it breaks the rules of HTTP/1.1";
      case Errc::body_too_large:
        return "the body is too large: above Limits::body_bytes";
      case Errc::head_too_large:
        return "the head is too large: above Limits::head_bytes, target_bytes or headers";
      case Errc::unexpected_end:
        return "the stream ended within a message";
      case Errc::already_started:
        return "the head of the answer has been sent";
      case Errc::wrong_length:
        return "not as long as Content-Length says";
      case Errc::too_many_redirects:
        return "too many redirects";
      case Errc::unsupported:
        return "not supported";
    }
    return "unknown weft-http error";
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const Category category;
  return category;
}

}  // namespace weft::http
