// Implements W3C Trace Context: the trace and the span to which a request belongs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <weft/context.hpp>
#include <weft/http/client.hpp>
#include <weft/http/request.hpp>

namespace weft::http {

// Identifies a span, which is one step of a trace. A trace may cross many services.
// Context: plain value.
// Throws: std::bad_alloc.
struct TraceContext {
  std::array<std::uint8_t, 16> trace_id{};
  std::array<std::uint8_t, 8> span_id{};
  bool is_sampled = false;   // The sender may have recorded its span.
  std::string tracestate{};  // The tracestate header's value; may be empty.

  // Begins a trace, with random ids.
  [[nodiscard]] static TraceContext make(bool is_sampled = true);
  // Returns another span of the same trace, with a random id.
  [[nodiscard]] TraceContext child() const;
  // Parses a traceparent header's value. Ignores further fields of versions 01 to fe.
  [[nodiscard]] static std::optional<TraceContext> parse(std::string_view traceparent);
  // Returns the value of a traceparent header, "00-4bf92f3577b34da6a3ce929d0e0e4736-...-01".
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

// Returns the key under which contexts store the current span: `context.set(trace_key(), span)`.
// Context: plain value.
[[nodiscard]] const ContextKey<TraceContext>& trace_key() noexcept;
// Returns the span of the caller's context, or null.
// Context: fibers and plain threads; does not park.
[[nodiscard]] const TraceContext* current_trace() noexcept;

// Returns the client's span and tracestate (of at most 512 bytes) from this request; this span is
// the parent of the handler's span. Returns nothing if the request has no valid traceparent header,
// or more than one; the handler's span then begins a trace.
// Context: the request's handler; does not park.
// Throws: std::bad_alloc.
[[nodiscard]] std::optional<TraceContext> received_trace(const Request& request);
// Adds traceparent and tracestate to a call, unless `trace` is null or the call has a traceparent.
// Context: plain value.
// Throws: std::bad_alloc.
void add_trace(Call& call, const TraceContext* trace = current_trace());

}  // namespace weft::http
