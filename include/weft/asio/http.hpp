// Between weft-http and Beast: a WebSocket behind an http::Server. Needs the headers of Boost, and
// weft-http.
#pragma once

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/verb.hpp>
#include <string_view>
#include <weft/asio/stream.hpp>
#include <weft/http/request.hpp>
#include <weft/http/response.hpp>

namespace weft::asio {
inline namespace WEFT_ASIO_LIBRARY {

// The connection that http::Response::upgrade() hands over, with TLS below it or not, for Beast and
// its like.
using UpgradedStream = SyncStream<http::Upgraded>;

// A copy of the head, which outlives the request: what websocket::stream::accept() wants to see of
// a request that has been read already. Throws std::bad_alloc. From anybody; neither parks nor
// synchronizes.
[[nodiscard]] inline boost::beast::http::request<boost::beast::http::empty_body> to_beast(
    const http::Request& request) {
  const auto text = [](std::string_view from) {
    return boost::beast::string_view(from.data(), from.size());
  };
  boost::beast::http::request<boost::beast::http::empty_body> head;
  head.method_string(text(request.method()));
  head.target(text(request.target()));
  head.version(10U + static_cast<unsigned>(request.minor_version()));
  for (const http::Header& each : request.headers()) head.insert(text(each.name), text(each.value));
  return head;
}

}  // namespace WEFT_ASIO_LIBRARY
}  // namespace weft::asio
