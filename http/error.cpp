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
        return "malformed: what the peer has sent, or what was to be sent to it, breaks the rules "
               "of HTTP/1.1";
      case Errc::body_too_large:
        return "the body is larger than Limits::body_bytes allows, or a client's "
               "ClientOptions::body_bytes: raise it, or refuse such bodies";
      case Errc::head_too_large:
        return "the head is larger than Limits::head_bytes, target_bytes or headers allow, or a "
               "client's ClientOptions::head_bytes: raise the limit that is met";
      case Errc::unexpected_end:
        return "the peer ended the stream in the middle of a message: what came of it is not all";
      case Errc::already_started:
        return "the head of the answer has been sent, and says what it says: set status and "
               "headers, and call send() or upgrade(), before the first write()";
      case Errc::wrong_length:
        return "the body is not as long as its Content-Length says: write so many bytes, or set "
               "none";
      case Errc::too_many_redirects:
        return "more redirects than ClientOptions::max_redirects allows: raise it, or do they go "
               "in circles?";
      case Errc::unsupported:
        return "not supported: a URL of another scheme than http (or https, with "
               "ClientOptions::secure), a redirect that cannot be followed, a coding that nobody "
               "knows, or an upgrade that was not asked for";
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
