// Passes a server's response on to the client of a proxy.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <system_error>
#include <weft/error.hpp>
#include <weft/http/forward.hpp>
#include <weft/http/header.hpp>
#include <weft/http/request.hpp>
#include <weft/http/response.hpp>
#include <weft/net/result.hpp>
#include <weft/until.hpp>

namespace weft::http {

// The highest status code that http::Server can send.
inline constexpr int kLastStatus = 599;
// The size of a buffer for bodies, in bytes.
inline constexpr std::size_t kPassedBytes = 16 * 1024;

// Returns whether a Connection header names `token`.
[[nodiscard]] bool names_in_connection(std::span<const Header> headers,
                                       std::string_view token) noexcept;
// Sets the status, and all headers except Date and the hop-by-hop headers.
void pass_head(int status, std::span<const Header> headers, Response& response);

// Sends the bytes of `body` as the response's body, with `part` as the buffer. The caller must set
// the status and the headers first. If a read fails, the response stays incomplete.
template <class Source>
std::error_code pass_body(Source& body, std::span<std::byte> part, Response& response,
                          const Until& until) {
  // Sends the head without waiting for the body, which may be slow.
  std::error_code error = response.write(std::string_view());
  while (!error) {
    const auto [count, failed] = body.read_some(part, until);
    if (failed == weft::Errc::end_of_stream) return {};
    error = failed;
    if (!error) error = response.write(part.first(count));
  }
  response.break_off();
  return error;
}

// `head` limits an upgrade until the head of the server's response has arrived. `refusal` limits
// the transfer of the response's body if the server refuses the upgrade.
struct UpgradeLimits {
  const Until& head;
  const Until& refusal;
};
// Implements the public forward_upgrade(), with two limits instead of one.
net::Result<void> forward_upgrade(Request& request, Response& response, std::string_view origin,
                                  const ForwardOptions& options, const UpgradeLimits& limits);

}  // namespace weft::http
