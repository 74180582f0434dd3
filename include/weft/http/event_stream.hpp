// Sends server-sent events.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <weft/http/request.hpp>
#include <weft/http/response.hpp>
#include <weft/net/result.hpp>

namespace weft::http {

// Describes an event of a stream.
struct ServerEvent {
  // The text; each of its lines becomes a `data` line. An event without data only sets `id` and
  // `retry`; browsers do not dispatch such an event.
  std::optional<std::string_view> data = {};
  // The type that a page listens for. Empty: "message".
  std::string_view event = {};
  // The client sends the last id when it connects again. An empty id makes it forget the last id.
  std::optional<std::string_view> id = {};
  // How long the client waits before it connects again.
  std::optional<std::chrono::milliseconds> retry = {};
};

// Sends a response with Content-Type: text/event-stream, which a page reads with EventSource. The
// first event or comment also sends the head. Each call sends a whole event or comment. Example:
//
//   EventStream events(request, response);
//   while (events.status()) {
//     std::optional<std::string> text;
//     const Until until = events.context().until().but_before(Deadline::after(15s));
//     const ChannelStatus status = news.receive_until(text, until);
//     if (status == ChannelStatus::closed) break;
//     (void)(text ? events.send({.data = *text}) : events.comment());
//   }
//
// Context: one caller at a time, in the request's handler; send() and comment() park.
// Errors: as for Response::write(); weft::Errc::cancelled if the client disconnects or the grace
// period ends; timed_out after Limits::request; end_of_stream for HEAD. Errors are permanent.
// Throws: std::bad_alloc; the constructor also throws what Request::context() throws.
class EventStream {
 public:
  // Sets the headers of the response. If the request has a body, the handler must have read it.
  EventStream(Request& request, Response& response);

  // Sends an event; parks until the kernel has taken it.
  // Throws: also std::invalid_argument for a line end or a NUL in `event` or `id`, and for a
  // negative `retry`.
  net::Result<void> send(const ServerEvent& event);
  // Sends a comment, which clients ignore. A comment about every 15 seconds keeps proxies from
  // closing an idle connection, and lets the server detect a disconnected client.
  net::Result<void> comment(std::string_view text = {});
  // Returns the error that ended the stream, such as a disconnect, or no error while it is open.
  [[nodiscard]] net::Result<void> status() noexcept;
  // Returns the id of the last event that the client received before it connected again.
  [[nodiscard]] std::optional<std::string_view> last_id() const noexcept;
  // Returns the request's context. Use it for waits that must end when the client disconnects.
  [[nodiscard]] Context& context() noexcept { return context_; }

 private:
  net::Result<void> write(std::string_view text);

  Request& request_;
  Response& response_;
  Context& context_;
  std::error_code error_;
};

}  // namespace weft::http
