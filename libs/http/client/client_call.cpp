// Exchanges one request and its response on a client's connection.
#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <stop_token>
#include <weft/detail/stop_registration.hpp>
#include <weft/error.hpp>
#include <weft/go.hpp>
#include <weft/http/client.hpp>
#include <weft/http/error.hpp>

#include "libs/http/client/client_core.hpp"
#include "libs/http/client/reply_state.hpp"
#include "libs/http/wire/authority.hpp"
#include "libs/http/wire/bytes.hpp"
#include "libs/http/wire/head_lines.hpp"
#include "libs/http/wire/head_repair.hpp"
#include "libs/http/wire/head_rules.hpp"

namespace weft::http {

namespace {

bool has_body(const Call& call) noexcept { return call.body_source || !call.body.empty(); }

bool asks_before_body(const std::pair<std::string, std::string>& header) noexcept {
  return equal_tokens(header.first, "expect") && equal_tokens(header.second, "100-continue");
}

bool client_sets(std::string_view name) noexcept {
  return equal_tokens(name, "connection") || equal_tokens(name, "content-length") ||
         equal_tokens(name, "transfer-encoding");
}

bool is_proper(const std::pair<std::string, std::string>& header) noexcept {
  return is_token(header.first) && !client_sets(header.first) &&
         std::all_of(header.second.begin(), header.second.end(), is_value_char);
}

// Returns the caller's Host header or, without one, the host of the URL. Returns nothing if the
// caller's Host header is not valid or is repeated.
std::optional<std::string> find_host(const Url& url, const Call& call) {
  std::optional<std::string> host;
  for (const auto& [name, value] : call.headers) {
    if (!equal_tokens(name, "host")) continue;
    if (host || !is_host_value(value)) return std::nullopt;
    host = value;
  }
  return host ? host : url.authority();
}

// Returns true for an OPTIONS call whose URL has no path and no query. Such a call concerns the
// server as a whole (RFC 9112, 3.2.4).
bool concerns_server(const Url& url, const Call& call) noexcept {
  if (call.method != "OPTIONS" || url.target != "/") return false;
  const std::size_t begin = call.url.find("://");
  return begin != std::string::npos && call.url.find_first_of("/?", begin + 3) == std::string::npos;
}

// Returns the target of a CONNECT request (RFC 9112, 3.2.3), such as "example.org:443". Returns
// nothing if the Host header differs from the URL's host and has no port.
std::optional<std::string> tunnel_target(const Url& url, const std::string& host) {
  Authority parts;
  if (!parse_authority(host, parts)) return std::nullopt;
  if (parts.port) return host;
  if (host != url.authority()) return std::nullopt;
  return host + ":" + std::to_string(url.port);
}

// Returns whether the error shows that the connection is closed. There may still be a response to
// read, because a server that refuses a body may respond before it closes the connection.
bool is_gone(std::error_code error) noexcept {
  return error == std::errc::broken_pipe || error == std::errc::connection_reset;
}

std::error_code send_chunks(ClientConnection& connection, const Call& call, const Until& until) {
  std::array<char, 4096> part;
  for (;;) {
    const auto [count, error] = call.body_source(std::as_writable_bytes(std::span(part)));
    if (error == weft::Errc::end_of_stream) return connection.write("0\r\n\r\n", until);
    // The error is from the body's source, so it must not look like an error of the connection.
    if (error) return is_gone(error) ? make_error_code(Errc::unexpected_end) : error;
    // Checks the limit even if the server accepts all bytes at once.
    if (until.is_over()) return until.reason();
    if (count == 0) continue;  // An empty chunk would end the body.
    std::array<char, 20> digits;
    char* const end = std::to_chars(digits.begin(), digits.end(), count, 16).ptr;
    std::string chunk(digits.data(), end);
    chunk.append("\r\n").append(part.data(), count).append("\r\n");
    if (const auto failed = connection.write(chunk, until)) return failed;
  }
}

}  // namespace

std::error_code receive_head(ClientConnection& connection, std::size_t most, std::string& text,
                             const Until& until) {
  HeadLines lines(HeadLines::Folds::taken);
  for (;;) {
    const std::string_view rest = connection.input.rest();
    const HeadLines::Verdict verdict = lines.look_at(rest);
    if (verdict == HeadLines::Verdict::refused) return Errc::malformed_line;
    if (lines.size() > most) return Errc::head_too_large;
    if (verdict == HeadLines::Verdict::complete) {
      text = rest.substr(lines.first_line(), lines.size() - lines.first_line());
      connection.input.consume(lines.size());
      if (lines.has_folds()) unfold(text);
      return {};
    }
    const auto error = connection.receive(most, until);
    // If the response has begun, the server has received the request, so the client must not repeat
    // the request.
    if ((error == Errc::unexpected_end || is_gone(error)) && !rest.empty()) {
      return Errc::truncated_head;
    }
    if (error) return error;
  }
}

namespace {

// Receives the head of the next response, which may be interim, and subtracts its size from `most`.
// `most` limits the total size of the heads that are still to be received.
std::error_code receive_next(ClientConnection& connection, Reply::State& state, std::size_t& most,
                             const Until& until) {
  std::string text;
  if (const auto error = receive_head(connection, most, text, until)) return error;
  most -= text.size();
  if (const Fault fault = state.parse(std::move(text))) return *fault;
  return state.head().status == 101 ? make_error_code(Errc::unsupported) : std::error_code();
}

// Receives the head of the final response, after any interim responses.
std::error_code receive_answer(ClientConnection& connection, Reply::State& state, std::size_t most,
                               const Until& until) {
  for (;;) {
    if (const auto error = receive_next(connection, state, most, until)) return error;
    if (state.head().status >= 200) return {};
    // Without this check, a server could extend the wait beyond `until` with interim responses.
    if (until.is_over()) return until.reason();
  }
}

// Sends a request with a small body or without a body, and reads the response.
std::error_code ask(ClientConnection& connection, const std::string& request, Reply::State& state,
                    std::size_t most, const Until& until) {
  const std::error_code unsent = connection.write(request, until);
  if (unsent && !is_gone(unsent)) return unsent;
  const std::error_code error = receive_answer(connection, state, most, until);
  if (unsent) state.keep_no_connection();
  return error && unsent ? unsent : error;
}

std::error_code send_all(ClientConnection& connection, const std::string& head, const Call& call,
                         const Until& until) {
  if (!head.empty()) {
    if (const auto error = connection.write(head, until)) return error;
  }
  return call.body_source ? send_chunks(connection, call, until)
                          : connection.write(call.body, until);
}

// Sends a request with a large or streamed body. A server may refuse the body after it has read
// only the head. A separate fiber therefore reads the response while the caller sends the body. If
// the server refuses the body, the caller stops sending it.
std::error_code ask_at_length(ClientConnection& connection, const std::string& head,
                              const Call& call, Reply::State& state, std::size_t most,
                              const Until& until) {
  const std::stop_source unwanted;  // Signals that the server does not need the rest of the body.
  detail::StopRegistration<detail::RequestStop> passed_on;
  if (until.token() != nullptr) passed_on.add(*until.token(), {unwanted});
  auto reading = spawn([&, unwanted]() mutable {
    const std::error_code error = receive_answer(connection, state, most, until);
    if (error || state.head().status >= 300) (void)unwanted.request_stop();
    return error;
  });
  std::error_code unsent;
  try {
    unsent = send_all(connection, head, call, Until(until.deadline(), unwanted.get_token()));
  } catch (...) {
    connection.stream.close();  // Ends the other fiber's read.
    throw;
  }
  if (!unsent) return reading.join();
  const bool may_be_answered = is_gone(unsent) || unwanted.stop_requested();
  if (!may_be_answered) connection.stream.close();
  const std::error_code error = reading.join();
  state.keep_no_connection();
  if (!may_be_answered) return unsent;
  return error && is_gone(unsent) ? unsent : error;
}

// Sends the head, and waits for one of three events: the server requests the body with status 100,
// the server sends a final response, or `wait` passes. Sets `is_answered` in the second case.
std::error_code ask_for_body(ClientConnection& connection, const std::string& head,
                             Reply::State& state, std::size_t& most, Deadline wait,
                             const Until& until, bool& is_answered) {
  if (const auto error = connection.write(head, until)) return error;
  for (;;) {
    const auto error = receive_next(connection, state, most, until.but_before(wait));
    if (error == weft::Errc::timed_out && !until.is_over()) return {};
    if (error) return error;
    is_answered = state.head().status >= 200;
    if (is_answered || state.head().status == 100) return {};
    if (until.is_over()) return until.reason();
    // Without this check, repeated interim responses could keep the caller here after `wait` has
    // passed.
    if (wait.passed()) return {};
  }
}

}  // namespace

std::string make_call_head(const Url& url, const Call& call, const ProxyRoute* proxy) {
  if (!is_token(call.method) || !std::all_of(call.headers.begin(), call.headers.end(), is_proper)) {
    return {};
  }
  auto host = find_host(url, call);
  if (!host) return {};
  const bool is_tunnel = call.method == "CONNECT";
  if (is_tunnel) {
    host = tunnel_target(url, *host);
    if (!host || has_body(call)) return {};
  }
  const bool is_to_proxy = proxy != nullptr && url.scheme == "http";
  const bool is_relayed = is_to_proxy && !is_tunnel;
  std::string target = url.target;
  if (is_tunnel) {
    target = *host;
  } else if (concerns_server(url, call)) {
    target = is_relayed ? "http://" + url.authority() : "*";
  } else if (is_relayed) {
    target.insert(0, "http://" + url.authority());
  }
  std::string head = call.method + " " + target + " HTTP/1.1\r\n";
  head += "Host: " + *host + "\r\n";
  if (is_to_proxy && !proxy->authorization.empty()) {
    head += "Proxy-Authorization: " + proxy->authorization + "\r\n";
  }
  for (const auto& header : call.headers) {
    // A request without a body must not wait for status 100 (RFC 9110, 10.1.1).
    const bool is_idle = !has_body(call) && asks_before_body(header);
    const auto& [name, value] = header;
    if (!is_idle && !equal_tokens(name, "host")) head += name + ": " + value + "\r\n";
  }
  const bool takes_body = call.method == "POST" || call.method == "PUT" || call.method == "PATCH";
  if (call.body_source) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (!call.body.empty() || takes_body) {
    head += "Content-Length: " + std::to_string(call.body.size()) + "\r\n";
  }
  return head += "\r\n";
}

bool take_expectation_back(Call& call) noexcept {
  return !call.body_source && std::erase_if(call.headers, asks_before_body) != 0;
}

net::Result<Reply> ClientCore::send_by(Lease& lease, const Url& url, const std::string& head,
                                       const Call& call, const Until& until) {
  auto state = std::make_unique<Reply::State>(url, options_);
  if (const auto error = converse(*lease, head, call, *state, until)) return {.error = error};
  state->begin_body(std::move(lease), call.method);
  return {.value = Reply(std::move(state))};
}

std::error_code ClientCore::converse(ClientConnection& connection, const std::string& head,
                                     const Call& call, Reply::State& state,
                                     const Until& until) const {
  constexpr std::size_t kSmall = 4096;
  std::size_t most = options_.head_bytes;
  if (has_body(call) && std::any_of(call.headers.begin(), call.headers.end(), asks_before_body)) {
    const Deadline wait = Deadline::after(options_.continue_wait);
    bool is_answered = false;
    const auto error = ask_for_body(connection, head, state, most, wait, until, is_answered);
    // On a kept connection, the server might mistake the next request for the missing body.
    if (!error && is_answered) state.keep_no_connection();
    if (error || is_answered) return error;
    return ask_at_length(connection, {}, call, state, most, until);
  }
  const bool is_small = !call.body_source && call.body.size() <= kSmall;
  return is_small ? ask(connection, head + call.body, state, most, until)
                  : ask_at_length(connection, head, call, state, most, until);
}

}  // namespace weft::http
