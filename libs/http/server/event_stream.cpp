#include <weft/http/event_stream.hpp>

#include <stdexcept>

namespace weft::http {

namespace {

// Appends each line of `text` to `to`, preceded by `start`. A line of `text` ends in LF, CR or
// both.
void append_lines(std::string& to, std::string_view start, std::string_view text) {
  for (;;) {
    const std::size_t end = text.find_first_of("\r\n");
    to.append(start).append(text.substr(0, end)).append("\n");
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + (text.substr(end).starts_with("\r\n") ? 2 : 1));
  }
}

void append_field(std::string& to, const char* name, std::string_view value) {
  if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
    throw std::invalid_argument(std::string("weft::http::ServerEvent: ") + name +
                                " must have no line's end and no NUL");
  }
  to.append(name).append(": ").append(value).append("\n");
}

}  // namespace

EventStream::EventStream(Request& request, Response& response)
    : request_(request), response_(response), context_(request.context()) {
  response.add_header("Content-Type", "text/event-stream");
  response.add_header("Cache-Control", "no-cache");
  response.add_header("X-Accel-Buffering", "no");  // Stops proxies from buffering events.
}

net::Result<void> EventStream::send(const ServerEvent& event) {
  std::string text;
  if (!event.event.empty()) append_field(text, "event", event.event);
  if (event.id) append_field(text, "id", *event.id);
  if (event.retry) {
    if (event.retry->count() < 0) {
      throw std::invalid_argument("weft::http::ServerEvent: retry = " +
                                  std::to_string(event.retry->count()) + " ms; must be at least 0");
    }
    append_field(text, "retry", std::to_string(event.retry->count()));
  }
  if (event.data) append_lines(text, "data: ", *event.data);
  return write(text.append("\n"));
}

net::Result<void> EventStream::comment(std::string_view text) {
  std::string lines;
  append_lines(lines, ": ", text);
  return write(lines.append("\n"));
}

net::Result<void> EventStream::status() noexcept {
  if (!error_ && context_.is_over()) error_ = context_.status();
  return error_;
}

std::optional<std::string_view> EventStream::last_id() const noexcept {
  return request_.header("last-event-id");
}

net::Result<void> EventStream::write(std::string_view text) {
  if (!status()) return error_;
  // The response to a HEAD request has no body, so it cannot carry events.
  error_ = request_.method() == "HEAD" ? net::Result<void>(weft::Errc::end_of_stream)
                                       : response_.write(text);
  return error_;
}

}  // namespace weft::http
