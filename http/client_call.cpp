// One request and its answer, on a client's connection.
#include <algorithm>
#include <array>
#include <charconv>
#include <weft/error.hpp>
#include <weft/http/client.hpp>
#include <weft/http/error.hpp>

#include "http/client_core.hpp"
#include "http/head_lines.hpp"
#include "http/head_rules.hpp"
#include "http/reply_state.hpp"

namespace weft::http {

namespace {

bool client_sets(std::string_view name) noexcept {
  return equal_tokens(name, "host") || equal_tokens(name, "connection") ||
         equal_tokens(name, "content-length") || equal_tokens(name, "transfer-encoding");
}

bool is_proper(const std::pair<std::string, std::string>& header) noexcept {
  const auto is_text = [](char c) {
    return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  };
  return is_token(header.first) && !client_sets(header.first) &&
         std::all_of(header.second.begin(), header.second.end(), is_text);
}

std::error_code send_chunks(ClientConnection& connection, const Call& call, const Until& until) {
  std::array<char, 4096> part;
  for (;;) {
    const auto [count, error] = call.body_source(std::as_writable_bytes(std::span(part)));
    if (error == weft::Errc::end_of_stream) return connection.write("0\r\n\r\n", until);
    if (error) return error;
    if (count == 0) continue;  // It would end the body.
    std::array<char, 20> digits;
    char* const end = std::to_chars(digits.begin(), digits.end(), count, 16).ptr;
    std::string chunk(digits.data(), end);
    chunk.append("\r\n").append(part.data(), count).append("\r\n");
    if (const auto failed = connection.write(chunk, until)) return failed;
  }
}

std::error_code send_request(ClientConnection& connection, std::string head, const Call& call,
                             const Until& until) {
  constexpr std::size_t kSmall = 4096;
  if (call.body_source) {
    if (const auto error = connection.write(head, until)) return error;
    return send_chunks(connection, call, until);
  }
  if (call.body.size() <= kSmall) return connection.write(head.append(call.body), until);
  if (const auto error = connection.write(head, until)) return error;
  return connection.write(call.body, until);
}

// The next head, without what is informational.
std::error_code receive_head(ClientConnection& connection, std::size_t most, std::string& text,
                             const Until& until) {
  HeadLines lines;
  for (;;) {
    const std::string_view rest = connection.input.rest();
    const HeadLines::Verdict verdict = lines.look_at(rest);
    if (verdict == HeadLines::Verdict::refused || lines.size() > most) return Errc::malformed;
    if (verdict == HeadLines::Verdict::complete) {
      text = rest.substr(lines.first_line(), lines.size() - lines.first_line());
      connection.input.consume(lines.size());
      return {};
    }
    const auto error = connection.receive(most, until);
    // Of an answer that has begun the connection did not know before.
    if (error == Errc::unexpected_end && !rest.empty()) return Errc::malformed;
    if (error) return error;
  }
}

}  // namespace

std::string make_call_head(const Url& url, const Call& call) {
  if (!is_token(call.method) || !std::all_of(call.headers.begin(), call.headers.end(), is_proper)) {
    return {};
  }
  std::string head = call.method + " " + url.target + " HTTP/1.1\r\nHost: " + url.authority();
  head += "\r\n";
  for (const auto& [name, value] : call.headers) head += name + ": " + value + "\r\n";
  const bool takes_body = call.method == "POST" || call.method == "PUT" || call.method == "PATCH";
  if (call.body_source) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (!call.body.empty() || takes_body) {
    head += "Content-Length: " + std::to_string(call.body.size()) + "\r\n";
  }
  return head += "\r\n";
}

net::Result<Reply> ClientCore::send_by(Lease& lease, const Url& url, const std::string& head,
                                       const Call& call, const Until& until) {
  const std::error_code unsent = send_request(*lease, head, call, until);
  // A server that refuses a body may have answered before it closed.
  const bool may_have_answered =
      unsent == std::errc::broken_pipe || unsent == std::errc::connection_reset;
  if (unsent && !may_have_answered) return {.error = unsent};
  auto state = std::make_unique<Reply::State>(url, options_);
  for (;;) {
    std::string text;
    const std::error_code error = receive_head(*lease, options_.head_bytes, text, until);
    if (error) return {.error = unsent ? unsent : error};
    if (!state->parse(std::move(text))) return {.error = Errc::malformed};
    if (state->head().status == 101) return {.error = Errc::unsupported};
    if (state->head().status >= 200) break;
  }
  state->begin_body(std::move(lease), call.method == "HEAD");
  return {.value = Reply(std::move(state))};
}

}  // namespace weft::http
