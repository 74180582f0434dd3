#include "libs/http/wire/head_rules.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <weft/error.hpp>

#include "libs/http/wire/authority.hpp"
#include "libs/http/wire/bytes.hpp"
#include "libs/http/wire/head_parser.hpp"

namespace weft::http {

namespace {

using ByteTable = std::array<bool, 256>;

// Returns a table that is true for each digit, each letter and each byte of `others`.
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

// The headers that determine the length of a body; each header may appear only once.
struct BodyHeaders {
  unsigned lengths = 0;
  unsigned codings = 0;
  std::string_view coding;
};

// Parses a value that consists of digits only (RFC 9110, 8.6). Refuses lists, even of equal values.
bool parse_length(std::string_view text, std::uint64_t& length) noexcept {
  if (text.empty() || text.size() > 18) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  return error == std::errc() && end == text.data() + text.size();
}

// Collects the values of all Connection headers. The value "close" overrides other values (RFC
// 9112, 9.3).
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

// Returns whether the target is valid. If the target contains a host, stores this host in `host`;
// it takes precedence over the Host header.
bool is_target(std::string_view method, std::string_view target, std::string_view& host) noexcept {
  const bool visible = std::all_of(target.begin(), target.end(),
                                   [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
  if (!visible) return false;
  if (target == "*") return method == "OPTIONS";
  if (target.starts_with('/')) return true;
  // Any other valid target has the absolute form, which clients send to a proxy.
  const std::size_t colon = target.find("://");
  if (colon == std::string_view::npos) return false;
  const std::string_view rest = target.substr(colon + 3);
  host = rest.substr(0, rest.find_first_of("/?"));
  return (equal_tokens(target.substr(0, colon), "http") ||
          equal_tokens(target.substr(0, colon), "https")) &&
         !host.empty() && is_host_value(host);
}

// Returns no fault for "chunked", the only supported transfer coding.
Fault check_coding(std::string_view coding) noexcept {
  if (equal_tokens(coding, "chunked")) return {};
  const std::size_t comma = coding.rfind(',');
  std::string_view last = comma == std::string_view::npos ? coding : coding.substr(comma + 1);
  while (!last.empty() && (last.front() == ' ' || last.front() == '\t')) last.remove_prefix(1);
  // We support no coding before "chunked". A coding after "chunked" would leave the body without a
  // defined end.
  if (comma != std::string_view::npos && !equal_tokens(last, "chunked"))
    return Errc::malformed_coding;
  const std::string_view first = coding.substr(0, coding.find(','));
  if (comma != std::string_view::npos && equal_tokens(first, "chunked"))
    return Errc::malformed_coding;
  return is_token(first) ? Errc::unsupported_coding : Errc::malformed_coding;
}

// Sets the framing. Returns a fault if two readers could disagree about where the body ends.
Fault frame_body(const BodyHeaders& body, Head& head) noexcept {
  if (body.lengths > 1) return Errc::malformed_length;
  if (body.codings > 1) return Errc::malformed_coding;
  if (body.codings == 1) {
    if (body.lengths == 1) return Errc::malformed_length;
    if (head.minor_version == 0) return Errc::malformed_coding;
    head.framing = Framing::chunked;
    return check_coding(body.coding);
  }
  if (body.lengths == 1) head.framing = Framing::length;
  return {};
}

// The values of a request's headers that Head does not store.
struct RequestHeaders {
  BodyHeaders body;
  Wishes wishes;
  unsigned hosts = 0;
  bool unknown_expectation = false;
  bool connection_upgrade = false;
  bool names_protocol = false;
};

Fault read_headers(Head& head, RequestHeaders& facts) noexcept {
  for (const Header& header : head.headers()) {
    const std::string_view name = header.name;
    // The names of all relevant headers have one of these sizes.
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
        if (!parse_length(header.value, head.content_length)) return Errc::malformed_length;
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
  return {};
}

// Parses "HTTP/1." and a digit.
Fault parse_version(std::string_view text, Head& head) noexcept {
  if (text.size() != 8 || !text.starts_with("HTTP/") || !is_digit(text[5]) || text[6] != '.' ||
      !is_digit(text[7])) {
    return Errc::malformed_start;
  }
  if (text[5] != '1') return Errc::unsupported_version;
  head.minor_version = text[7] == '0' ? 0 : 1;
  return {};
}

}  // namespace

bool is_token(std::string_view text) noexcept { return !text.empty() && all_in(kTokenTable, text); }

Fault parse_request_line(std::string_view line, Head& head) noexcept {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return Errc::malformed_start;
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (!is_token(method) || target.empty() || target.find(' ') != std::string_view::npos) {
    return Errc::malformed_start;
  }
  if (const Fault fault = parse_version(line.substr(last + 1), head)) return fault;
  head.method = method;
  head.target = target;
  // Our server does not support tunnels.
  return method == "CONNECT" ? Fault(Errc::unsupported_method) : std::nullopt;
}

Fault parse_status_line(std::string_view line, Head& head) noexcept {
  if (line.size() < 12 || line[8] != ' ') return Errc::malformed_start;
  if (const Fault fault = parse_version(line.substr(0, 8), head)) return fault;
  const std::string_view digits = line.substr(9, 3);
  if (digits[0] < '1' || !std::all_of(digits.begin(), digits.end(), is_digit) ||
      (line.size() > 12 && line[12] != ' ')) {
    return Errc::malformed_start;
  }
  head.status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
  return {};
}

Fault apply_request_rules(Head& head) noexcept {
  RequestHeaders facts;
  if (const Fault fault = read_headers(head, facts)) return fault;
  if (facts.hosts > 1 || (facts.hosts == 0 && head.minor_version == 1) ||
      !is_host_value(head.host)) {
    return Errc::malformed_host;
  }
  if (!is_target(head.method, head.target, head.host)) return Errc::malformed_target;
  if (const Fault fault = frame_body(facts.body, head)) return fault;
  if (facts.unknown_expectation) return Errc::unsupported_expectation;
  head.keep_alive = facts.wishes.stays(head.minor_version);
  head.has_length = facts.body.lengths == 1;
  head.asks_for_upgrade =
      facts.connection_upgrade && facts.names_protocol && head.minor_version == 1;
  return {};
}

Fault apply_response_rules(Head& head) noexcept {
  BodyHeaders body;
  Wishes wishes;
  for (const Header& header : head.headers()) {
    if (equal_tokens(header.name, "connection")) wishes.add(header.value);
    if (equal_tokens(header.name, "content-length")) {
      ++body.lengths;
      if (!parse_length(header.value, head.content_length)) return Errc::malformed_length;
    }
    if (equal_tokens(header.name, "transfer-encoding")) {
      ++body.codings;
      body.coding = header.value;
    }
  }
  if (const Fault fault = frame_body(body, head)) return fault;
  head.keep_alive = wishes.stays(head.minor_version);
  head.has_length = body.lengths == 1;
  if (head.framing == Framing::none) head.framing = Framing::until_close;
  return {};
}

int status_of(std::error_code error) noexcept {
  if (error == weft::Errc::timed_out) return 408;
  if (error.category() != error_category()) return 400;
  switch (static_cast<Errc>(error.value())) {
    case Errc::body_too_large:
      return 413;
    case Errc::target_too_large:
      return 414;
    case Errc::unsupported_expectation:
      return 417;
    case Errc::head_too_large:
      return 431;
    case Errc::unsupported_method:
    case Errc::unsupported_coding:
      return 501;
    case Errc::unsupported_version:
      return 505;
    default:
      return 400;
  }
}

}  // namespace weft::http
