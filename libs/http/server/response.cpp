#include <weft/http/response.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "libs/http/server/exchange.hpp"
#include "libs/http/wire/link.hpp"

namespace weft::http {

net::Result<std::size_t> Upgraded::read_some(std::span<std::byte> buffer, const Until& until) {
  if (early.empty()) return Link{stream, layer}.read_some(buffer, until);
  const std::size_t count = std::min(early.size(), buffer.size());
  if (count > 0) std::memcpy(buffer.data(), early.data(), count);
  early.remove_prefix(count);
  return {.value = count};
}

net::Result<std::size_t> Upgraded::write_some(std::span<const std::byte> data, const Until& until) {
  return Link{stream, layer}.write_some(data, until);
}

net::Result<std::size_t> Upgraded::write_all(std::span<const std::byte> data, const Until& until) {
  return Link{stream, layer}.write_all(data, until);
}

void Upgraded::close() noexcept {
  try {
    Link{stream, layer}.announce_end();
  } catch (const std::bad_alloc&) {
    // The peer is not told of the end; it sees that the connection has closed.
  }
  stream.close();
}

void Response::set_status(int status) noexcept { exchange_.answer().set_status(status); }
int Response::status() const noexcept { return exchange_.answer().status(); }
void Response::add_header(std::string_view name, std::string_view value) {
  exchange_.answer().add_header(name, value, Answer::Earlier::kept);
}
void Response::set_header(std::string_view name, std::string_view value) {
  exchange_.answer().add_header(name, value, Answer::Earlier::replaced);
}
void Response::remove_header(std::string_view name) noexcept {
  if (!exchange_.answer().started()) exchange_.answer().remove_header(name);
}
void Response::close_after() noexcept { exchange_.answer().close_after(); }
net::Result<void> Response::send(std::string_view body) { return exchange_.answer().send(body); }
net::Result<void> Response::write(std::string_view part) { return exchange_.answer().write(part); }
net::Result<void> Response::write(std::span<const std::byte> part) {
  return exchange_.answer().write({reinterpret_cast<const char*>(part.data()), part.size()});
}
net::Result<void> Response::write_file(int descriptor, std::uint64_t offset, std::uint64_t size) {
  return exchange_.answer().write_file(descriptor, offset, size);
}
void Response::break_off() noexcept {
  if (exchange_.answer().started()) exchange_.answer().break_off();
}
bool Response::started() const noexcept { return exchange_.answer().started(); }
net::Result<void> Response::upgrade(std::string_view protocol, std::function<void(Upgraded)> talk) {
  if (!talk) return exchange_.answer().upgrade(protocol, nullptr);
  return exchange_.answer().upgrade(protocol, [talk = std::move(talk)](const Upgraded& upgraded) {
    talk(upgraded);
    return net::Next::close;
  });
}
net::Result<void> Response::converse(std::string_view protocol, Talk talk) {
  return exchange_.answer().upgrade(protocol, std::move(talk));
}

std::string_view reason_phrase(int status) noexcept {
  switch (status) {
    // clang-format off
    case 100: return "Continue";
    case 101: return "Switching Protocols";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 203: return "Non-Authoritative Information";
    case 204: return "No Content";
    case 205: return "Reset Content";
    case 206: return "Partial Content";
    case 300: return "Multiple Choices";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 411: return "Length Required";
    case 412: return "Precondition Failed";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 416: return "Range Not Satisfiable";
    case 417: return "Expectation Failed";
    case 422: return "Unprocessable Content";
    case 426: return "Upgrade Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    default: return "Unknown";
      // clang-format on
  }
}

}  // namespace weft::http
