#include <weft/http/trace_context.hpp>

#include <sys/random.h>

#include <algorithm>
#include <span>

#include "libs/http/wire/bytes.hpp"
#include "libs/http/wire/list_items.hpp"

namespace weft::http {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

template <std::size_t size>
void fill_id(std::array<std::uint8_t, size>& id) noexcept {
  do {
    // For so few bytes, one call always suffices.
    (void)::getrandom(id.data(), id.size(), 0);
  } while (std::all_of(id.begin(), id.end(), [](std::uint8_t byte) { return byte == 0; }));
}

// Parses lower-case hexadecimal digits, which must exactly fill `bytes`.
bool parse_hex(std::string_view digits, std::span<std::uint8_t> bytes) noexcept {
  if (digits.size() != 2 * bytes.size()) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t high = kHexDigits.find(digits[2 * i]);
    const std::size_t low = kHexDigits.find(digits[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return false;
    bytes[i] = static_cast<std::uint8_t>(high << 4U | low);
  }
  return true;
}

bool parse_id(std::string_view digits, std::span<std::uint8_t> id) noexcept {
  return parse_hex(digits, id) &&
         std::any_of(id.begin(), id.end(), [](std::uint8_t byte) { return byte != 0; });
}

void append_hex(std::span<const std::uint8_t> bytes, std::string& text) {
  for (const std::uint8_t byte : bytes) {
    text += kHexDigits[byte >> 4U];
    text += kHexDigits[byte & 0xfU];
  }
}

bool has_header(const Call& call, std::string_view name) noexcept {
  return std::any_of(call.headers.begin(), call.headers.end(),
                     [name](const auto& header) { return equal_tokens(header.first, name); });
}

}  // namespace

TraceContext TraceContext::make(bool is_sampled) {
  TraceContext made{.is_sampled = is_sampled};
  fill_id(made.trace_id);
  fill_id(made.span_id);
  return made;
}

TraceContext TraceContext::child() const {
  TraceContext made = *this;
  fill_id(made.span_id);
  return made;
}

std::optional<TraceContext> TraceContext::parse(std::string_view traceparent) {
  constexpr std::size_t kSize = 55;  // "00-", 32 digits, "-", 16 digits, "-", 2 digits.
  const std::string_view text = traceparent.substr(0, kSize);
  if (text.size() != kSize || text[2] != '-' || text[35] != '-' || text[52] != '-') {
    return std::nullopt;
  }
  TraceContext parsed;
  std::array<std::uint8_t, 1> version{};
  std::array<std::uint8_t, 1> flags{};
  if (!parse_hex(text.substr(0, 2), version) || !parse_id(text.substr(3, 32), parsed.trace_id) ||
      !parse_id(text.substr(36, 16), parsed.span_id) || !parse_hex(text.substr(53), flags)) {
    return std::nullopt;
  }
  const std::string_view rest = traceparent.substr(kSize);
  const bool may_have_more = version[0] > 0 && rest.starts_with('-');
  if (version[0] == 0xff || (!rest.empty() && !may_have_more)) return std::nullopt;
  parsed.is_sampled = (flags[0] & 1U) != 0;
  return parsed;
}

std::string TraceContext::to_string() const {
  std::string text = "00-";
  append_hex(trace_id, text);
  text += '-';
  append_hex(span_id, text);
  return text += is_sampled ? "-01" : "-00";
}

const ContextKey<TraceContext>& trace_key() noexcept {
  static const ContextKey<TraceContext> key;
  return key;
}

const TraceContext* current_trace() noexcept {
  const Context* const context = this_fiber::context();
  return context != nullptr ? context->get(trace_key()) : nullptr;
}

std::optional<TraceContext> received_trace(const Request& request) {
  constexpr std::size_t kMostOfState = 512;
  std::optional<TraceContext> trace;
  std::string state;
  int parents = 0;
  for (const Header& header : request.headers()) {
    if (equal_tokens(header.name, "traceparent")) {
      trace = TraceContext::parse(trimmed(header.value));
      ++parents;
    } else if (equal_tokens(header.name, "tracestate")) {
      state.append(state.empty() ? "" : ",").append(header.value);
    }
  }
  if (parents != 1) return std::nullopt;
  // The standard allows a receiver to drop a tracestate that is longer than kMostOfState.
  if (trace && state.size() <= kMostOfState) trace->tracestate = std::move(state);
  return trace;
}

void add_trace(Call& call, const TraceContext* trace) {
  if (trace == nullptr || has_header(call, "traceparent")) return;
  call.headers.emplace_back("traceparent", trace->to_string());
  if (!trace->tracestate.empty() && !has_header(call, "tracestate")) {
    call.headers.emplace_back("tracestate", trace->tracestate);
  }
}

}  // namespace weft::http
