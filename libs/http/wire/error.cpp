#include <weft/detail/first_use.hpp>
#include <weft/http/error.hpp>

#include <string>

namespace weft::http {

namespace {

const char* message_of_malformed(Errc code) noexcept {
  switch (code) {
    case Errc::malformed_url:
      return "malformed URL: a scheme, a host and visible ASCII are needed, anything else in "
             "percent codes";
    case Errc::malformed_call:
      return "the call must not be sent: its method is no token, or a header has an impossible "
             "name or value, or is one that the client writes itself";
    case Errc::malformed_line:
      return "malformed: a bare CR or LF, a NUL, or a line that continues in the next one";
    case Errc::malformed_start:
      return "malformed: the first line is not HTTP/1.1; check which protocol the peer speaks";
    case Errc::malformed_target:
      return "malformed: the target of the request is neither a path nor a URL";
    case Errc::malformed_host:
      return "malformed: the Host is invalid, missing or repeated";
    case Errc::malformed_header:
      return "malformed: a header whose name is no token, or whose value has control characters";
    case Errc::malformed_length:
      return "malformed: a Content-Length that is no number, differs from another one, or comes "
             "with a Transfer-Encoding";
    case Errc::malformed_coding:
      return "malformed: a Transfer-Encoding that does not end with \"chunked\"";
    case Errc::malformed_chunk:
      return "malformed: the size of a chunk, or what follows its data";
    case Errc::malformed_trailer:
      return "malformed: a line after the last chunk that is no header";
    case Errc::malformed_form:
      return "malformed: a form without its boundary or its end, or a part without a name";
    case Errc::truncated_head:
      return "malformed: the peer ended the stream within a head";
    case Errc::malformed_frame:
      return "malformed: a frame or message of a WebSocket breaks its rules, or a text is not in "
             "UTF-8";
    default:
      return nullptr;
  }
}

const char* message_of(Errc code) noexcept {
  switch (code) {
    case Errc::body_too_large:
      return "the body is larger than Limits::body_bytes allows, or a client's "
             "ClientOptions::body_bytes: raise it, or refuse such bodies";
    case Errc::head_too_large:
      return "the head is larger than Limits::head_bytes or headers allow, or a client's "
             "ClientOptions::head_bytes or headers: raise the limit that is met";
    case Errc::target_too_large:
      return "the target of the request is larger than Limits::target_bytes allows: raise it";
    case Errc::unexpected_end:
      return "the peer ended the stream in the middle of a message, which is incomplete";
    case Errc::already_started:
      return "the head of the answer has been sent already: set status and "
             "headers, and call send() or upgrade(), before the first write()";
    case Errc::wrong_length:
      return "the body is not as long as its Content-Length: write that many bytes, or set no "
             "Content-Length";
    case Errc::refused_by_proxy:
      return "the proxy opens no tunnel: look at ClientOptions::proxy and proxy_authorization";
    case Errc::too_many_redirects:
      return "more redirects than ClientOptions::max_redirects allows: raise it, or look for a "
             "loop of redirects";
    case Errc::unsupported:
      return "not supported: a URL of another scheme than http (or https, with "
             "ClientOptions::secure), or an upgrade that was not asked for";
    case Errc::unsupported_version:
      return "not supported: a version of HTTP that does not begin with 1";
    case Errc::unsupported_method:
      return "not supported: CONNECT, as a server is no proxy";
    case Errc::unsupported_coding:
      return "not supported: a Transfer-Encoding besides \"chunked\"";
    case Errc::unsupported_expectation:
      return "not supported: an Expect other than \"100-continue\"";
    case Errc::form_too_large:
      return "the form is larger than FormLimits or MultipartLimits allow: raise the limit that is "
             "met";
    case Errc::unsupported_form:
      return "not supported: a form with another Content-Type; use read_form() for "
             "application/x-www-form-urlencoded, Multipart for multipart/form-data";
    case Errc::message_too_large:
      return "the message is larger than WebSocketOptions::message_bytes or fragments allow: raise "
             "the limit that is met";
    case Errc::message_too_slow:
      return "the message took longer than WebSocketOptions::message allows: raise it";
    default:
      return "unknown weft-http error";
  }
}

class Category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "weft-http"; }
  [[nodiscard]] std::string message(int code) const override {
    const char* const malformed = message_of_malformed(static_cast<Errc>(code));
    return malformed != nullptr ? malformed : message_of(static_cast<Errc>(code));
  }
};
constinit detail::StaticObject<Category> category;

class KindCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "weft-http-kind"; }
  [[nodiscard]] std::string message(int kind) const override {
    return static_cast<ErrorKind>(kind) == ErrorKind::malformed
               ? "malformed: what was sent, or was to be sent, breaks the rules of HTTP/1.1"
               : "unknown kind of weft-http error";
  }
  [[nodiscard]] bool equivalent(const std::error_code& code, int kind) const noexcept override {
    return static_cast<ErrorKind>(kind) == ErrorKind::malformed &&
           code.category() == http::error_category() &&
           message_of_malformed(static_cast<Errc>(code.value())) != nullptr;
  }
};
constinit detail::StaticObject<KindCategory> kinds;

}  // namespace

const std::error_category& error_category() noexcept { return category.get(); }

const std::error_category& kind_category() noexcept { return kinds.get(); }

}  // namespace weft::http
