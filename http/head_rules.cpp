#include "http/head_rules.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>

#include "http/authority.hpp"
#include "http/head_parser.hpp"

namespace weft::http {

namespace {

// Whether a byte is among digits, letters, and `others`.
using ByteTable = std::array<bool, 256>;

constexpr ByteTable make_table(std::string_view others) {
  ByteTable table{};
  for (unsigned c = '0'; c <= '9'; ++c) table[c] = true;
  for (unsigned c = 'a'; c <= 'z'; ++c) table[c] = table[c - 'a' + 'A'] = true;
  for (const char c : others) table[static_cast<unsigned char>(c)] = true;
  return table;
}

constexpr ByteTable kTokenTable = make_table("!#$%&'*+-.^_`|~");

bool all_in(const ByteTable& table, std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return table[static_cast<unsigned char>(c)]; });
}

// The length of a body, which must be said once.
struct BodyHeaders {
  unsigned lengths = 0;
  unsigned codings = 0;
  std::string_view coding;
};

// RFC 9110, 8.6: digits, and nothing else. No list, even of equal values.
bool parse_length(std::string_view text, std::uint64_t& length) noexcept {
  if (text.empty() || text.size() > 18) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  return error == std::errc() && end == text.data() + text.size();
}

// The values of all Connection headers. "close" counts, whatever stands before or behind it
// (RFC 9112, 9.3).
struct Wishes {
  bool close = false;
  bool keep_alive = false;

  void add(std::string_view value) noexcept {
    close = close || list_has(value, "close");
    keep_alive = keep_alive || list_has(value, "keep-alive");
  }
  [[nodiscard]] bool stays(int minor_version) const noexcept {
    return !close && (keep_alive || minor_version > 0);
  }
};

// `host` becomes that of a target that has one, which counts instead of the Host header.
bool is_target(std::string_view method, std::string_view target, std::string_view& host) noexcept {
  const bool visible = std::all_of(target.begin(), target.end(), [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && c != 0x7f && c != '#';
  });
  if (!visible) return false;
  if (target == "*") return method == "OPTIONS";
  if (target.starts_with('/')) return true;
  // absolute-form, as a proxy would be asked.
  const std::size_t colon = target.find("://");
  if (colon == std::string_view::npos) return false;
  const std::string_view rest = target.substr(colon + 3);
  host = rest.substr(0, rest.find_first_of("/?"));
  return (equal_tokens(target.substr(0, colon), "http") ||
          equal_tokens(target.substr(0, colon), "https")) &&
         !host.empty() && is_host_value(host);
}

// Sets the framing; false if two readers could see two bodies.
bool frame_body(const BodyHeaders& body, Head& head) noexcept {
  if (body.lengths > 1 || body.codings > 1) return false;
  if (body.codings == 1) {
    if (body.lengths == 1 || head.minor_version == 0) return false;
    head.framing = Framing::chunked;
    return true;
  }
  if (body.lengths == 1) head.framing = Framing::length;
  return true;
}

// 0, or what to answer to a transfer coding: it must be chunked, and nothing but that.
int check_coding(std::string_view coding) noexcept {
  if (equal_tokens(coding, "chunked")) return 0;
  const std::size_t comma = coding.rfind(',');
  std::string_view last = comma == std::string_view::npos ? coding : coding.substr(comma + 1);
  while (!last.empty() && (last.front() == ' ' || last.front() == '\t')) last.remove_prefix(1);
  // Another one before is unknown to us; one behind has no end.
  if (comma != std::string_view::npos && !equal_tokens(last, "chunked")) return 400;
  const std::string_view first = coding.substr(0, coding.find(','));
  if (comma != std::string_view::npos && equal_tokens(first, "chunked")) return 400;
  return is_token(first) ? 501 : 400;
}

// What the headers of a request say beyond Head.
struct RequestHeaders {
  BodyHeaders body;
  Wishes wishes;
  unsigned hosts = 0;
  bool unknown_expectation = false;
  bool connection_upgrade = false;
  bool names_protocol = false;
};

int read_headers(Head& head, RequestHeaders& facts) noexcept {
  for (const Header& header : head.headers()) {
    const std::string_view name = header.name;
    // Only names of these sizes matter.
    switch (name.size()) {
      case 4:
        if (equal_tokens(name, "host")) {
          ++facts.hosts;
          head.host = header.value;
        }
        break;
      case 6:
        if (!equal_tokens(name, "expect")) break;
        if (equal_tokens(header.value, "100-continue")) {
          head.expects_continue = head.minor_version == 1;
        } else {
          facts.unknown_expectation = true;
        }
        break;
      case 7:
        if (equal_tokens(name, "upgrade")) facts.names_protocol = true;
        break;
      case 10:
        if (!equal_tokens(name, "connection")) break;
        facts.wishes.add(header.value);
        if (list_has(header.value, "upgrade")) facts.connection_upgrade = true;
        break;
      case 14:
        if (!equal_tokens(name, "content-length")) break;
        ++facts.body.lengths;
        if (!parse_length(header.value, head.content_length)) return 400;
        break;
      case 17:
        if (!equal_tokens(name, "transfer-encoding")) break;
        ++facts.body.codings;
        facts.body.coding = header.value;
        break;
      default:
        break;
    }
  }
  return 0;
}

}  // namespace

bool is_token(std::string_view text) noexcept { return !text.empty() && all_in(kTokenTable, text); }

int check_request_line(std::string_view line, Head& head) noexcept {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return 400;
  const std::string_view method = line.substr(0, first);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(method) || line.find(' ', first + 1) != last || last == first + 1) return 400;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (version.size() != 8 || !version.starts_with("HTTP/") || !is_digit(version[5]) ||
      version[6] != '.' || !is_digit(version[7])) {
    return 400;
  }
  if (version[5] != '1' || version[7] > '1') return 505;
  head.method = method;
  head.minor_version = version[7] - '0';
  constexpr std::array<std::string_view, 8> kServed = {"GET",    "HEAD",  "POST",    "PUT",
                                                       "DELETE", "PATCH", "OPTIONS", "TRACE"};
  // Also those of WebDAV and others that the parser knows; but a tunnel is nothing for a server.
  constexpr std::array<std::string_view, 20> kOthers = {
      "COPY",     "LOCK",  "MKCOL",     "MOVE",   "PROPFIND",   "PROPPATCH", "SEARCH",
      "UNLOCK",   "BIND",  "REBIND",    "UNBIND", "ACL",        "REPORT",    "MKACTIVITY",
      "CHECKOUT", "MERGE", "SUBSCRIBE", "NOTIFY", "MKCALENDAR", "PURGE"};
  if (std::find(kServed.begin(), kServed.end(), method) != kServed.end()) return 0;
  return std::find(kOthers.begin(), kOthers.end(), method) != kOthers.end() ? 0 : 501;
}

int apply_request_rules(Head& head) noexcept {
  RequestHeaders facts;
  if (const int status = read_headers(head, facts)) return status;
  if (facts.hosts > 1 || (facts.hosts == 0 && head.minor_version == 1) ||
      !is_host_value(head.host)) {
    return 400;
  }
  if (!is_target(head.method, head.target, head.host)) return 400;
  if (!frame_body(facts.body, head)) return 400;
  if (facts.body.codings == 1) {
    if (const int status = check_coding(facts.body.coding)) return status;
  }
  if (facts.unknown_expectation) return 417;
  head.keep_alive = facts.wishes.stays(head.minor_version);
  head.has_length = facts.body.lengths == 1;
  head.asks_for_upgrade =
      facts.connection_upgrade && facts.names_protocol && head.minor_version == 1;
  return 0;
}

int apply_response_rules(Head& head) noexcept {
  BodyHeaders body;
  Wishes wishes;
  for (const Header& header : head.headers()) {
    if (equal_tokens(header.name, "connection")) wishes.add(header.value);
    if (equal_tokens(header.name, "content-length")) {
      ++body.lengths;
      if (!parse_length(header.value, head.content_length)) return 502;
    }
    if (equal_tokens(header.name, "transfer-encoding")) {
      ++body.codings;
      body.coding = header.value;
    }
  }
  if (!frame_body(body, head) || (body.codings == 1 && check_coding(body.coding) != 0)) return 502;
  head.keep_alive = wishes.stays(head.minor_version);
  head.has_length = body.lengths == 1;
  if (head.framing == Framing::none) head.framing = Framing::until_close;
  return 0;
}

}  // namespace weft::http
