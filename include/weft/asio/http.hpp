// Runs a Beast WebSocket on an http::Server. This header requires Boost's headers and weft-http.
#pragma once

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/verb.hpp>
#include <string_view>
#include <weft/asio/stream.hpp>
#include <weft/http/header.hpp>
#include <weft/http/request.hpp>
#include <weft/http/response.hpp>

namespace weft::asio {
inline namespace WEFT_ASIO_LIBRARY {

// Represents the connection of http::Response::upgrade(), with or without TLS, for Beast and
// similar libraries.
using UpgradedStream = SyncStream<http::Upgraded>;

namespace detail {

// Returns whether `key` has the size and the digits of 16 bytes in base64, which RFC 6455, 4.2.1
// requires; Beast checks only a maximum size.
[[nodiscard]] inline bool is_websocket_key(std::string_view key) noexcept {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return key.size() == 24 && key.ends_with("==") && key.find_first_not_of(kDigits) == 22;
}

}  // namespace detail

// Copies a request's head for websocket::stream::accept(), which requires Beast's request type. The
// copy may outlive the request. An invalid Sec-WebSocket-Key is not copied, so accept() refuses the
// request for lack of a key.
// Context: plain value.
[[nodiscard]] inline boost::beast::http::request<boost::beast::http::empty_body> to_beast(
    const http::Request& request) {
  const auto text = [](std::string_view from) {
    return boost::beast::string_view(from.data(), from.size());
  };
  boost::beast::http::request<boost::beast::http::empty_body> head;
  head.method_string(text(request.method()));
  head.target(text(request.target()));
  head.version(10U + static_cast<unsigned>(request.minor_version()));
  for (const http::Header& each : request.headers()) {
    if (http::equal_tokens(each.name, "sec-websocket-key") &&
        !detail::is_websocket_key(each.value)) {
      continue;
    }
    head.insert(text(each.name), text(each.value));
  }
  return head;
}

}  // namespace WEFT_ASIO_LIBRARY
}  // namespace weft::asio
