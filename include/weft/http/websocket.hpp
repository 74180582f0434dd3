// Provides WebSockets (RFC 6455), with compression (RFC 7692).
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/detail/shared_function.hpp>
#include <weft/http/layer.hpp>
#include <weft/http/request.hpp>
#include <weft/http/response.hpp>
#include <weft/net/dial.hpp>
#include <weft/net/result.hpp>
#include <weft/net/unix_address.hpp>
#include <weft/until.hpp>

namespace weft::http {

struct WebSocketOptions {
  // The largest size of a decompressed message; a larger message ends the connection with 1009.
  std::size_t message_bytes = 1024 * 1024;
  // The largest number of frames in a message; more frames end the connection with 1008.
  std::size_t fragments = 4096;
  // After this time without data, receive() (or the server, with WebSocketHandlers) sends a ping;
  // if the same time passes again without data, the connection ends. kNever: no pings.
  std::chrono::nanoseconds ping = std::chrono::seconds(30);
  // A message that takes longer, from its first byte to its last, ends the connection with 1008.
  std::chrono::nanoseconds message = std::chrono::seconds(60);
  // The time limit of a send, including waits for other sends. At the limit, the connection ends.
  std::chrono::nanoseconds write = std::chrono::seconds(30);
  // The time limit of close(), and of waits for the peer to end the connection.
  std::chrono::nanoseconds close = std::chrono::seconds(5);
  // Subprotocols in order of preference. A client offers its list; a server selects the first
  // protocol in its own list that the client offers.
  std::vector<std::string> protocols = {};
  // Compresses messages of `compress_bytes` or more if they shrink and the peer agrees; needs zlib.
  bool compress = true;
  std::size_t compress_bytes = 256;
  // Whether messages are compressed with the context of earlier messages, if the peer agrees. The
  // option suits small, similar messages, and uses about 300 KiB for each connection. If false, no
  // memory is kept between messages.
  bool compress_context = false;
};

// Holds a whole message.
// Context: plain value.
struct Message {
  std::string data;
  bool is_text = false;  // If true, the text is valid UTF-8.
};

// Sends and receives messages. While receive() waits, it answers pings and close frames, and closes
// with 1001 if the server stops. If the WebSocket has WebSocketHandlers, the server does all this.
// Context: fibers and plain threads, any number of callers; all calls with an Until park.
// Throws: std::bad_alloc.
// Ordering: the same as for net::TcpStream.
// Lifetime: at a server, until `talk` or on_close has returned and no pointer from on_open is left.
class WebSocket {
 public:
  class Core;  // Only the library uses Core and the constructor.
  // Wraps a connection.
  explicit WebSocket(Core& core) noexcept : core_(core) {}
  WebSocket(const WebSocket&) = delete;
  WebSocket& operator=(const WebSocket&) = delete;

  // Receives the next message. The caller may repeat the call after weft::Errc::timed_out or
  // cancelled. If the peer leaves a ping unanswered, the connection ends with timed_out.
  // Errors: weft::Errc::end_of_stream after a close handshake or a server stop;
  // Errc::unexpected_end if the stream ends earlier; Errc::malformed_frame, message_too_large and
  // message_too_slow, which close the connection with 1002, 1007, 1008 or 1009; Errc::unsupported
  // if the WebSocket has WebSocketHandlers and none of them is running; the errors of the stream.
  net::Result<Message> receive(const Until& until = Until::ambient());

  // Sends a message, and returns once the kernel has accepted it. An error in the middle of a
  // message ends the connection.
  // Errors: weft::Errc::closed after a close; weft::Errc::timed_out, cancelled; the errors of the
  // stream. If `text` is not UTF-8, send_text() sends nothing and returns Errc::malformed_frame.
  net::Result<void> send_text(std::string_view text, const Until& until = Until::ambient());
  // Does the same as send_text(), for a message of any bytes.
  net::Result<void> send_binary(std::span<const std::byte> data,
                                const Until& until = Until::ambient());

  // Ends the connection by a close handshake, which takes at most WebSocketOptions::close. Messages
  // received meanwhile are dropped, or go to receive() or on_message. Further calls have no effect.
  // Errors: std::errc::invalid_argument if `code` must not be sent, or if `reason` exceeds 123
  // bytes or is not UTF-8; the errors of receive() except end_of_stream and unsupported.
  net::Result<void> close(std::uint16_t code = 1000, std::string_view reason = {},
                          const Until& until = Until::never());

  // Returns the code in the peer's close frame; 1005 if the frame has none, 0 before it arrives.
  // Call it and close_reason() in on_close, or after weft::Errc::end_of_stream from receive().
  [[nodiscard]] std::uint16_t close_code() const noexcept;
  // Returns the reason in the peer's close frame, which may be empty.
  [[nodiscard]] std::string_view close_reason() const noexcept;
  // Returns the selected subprotocol; empty if there is none.
  [[nodiscard]] std::string_view protocol() const noexcept;

 private:
  Core& core_;
};

// Implements accept_websocket() for every type of `talk`.
// Context: the handler's fiber; parks only to send the 400 or 426 that refuses a request.
// Errors, Throws: the same as for accept_websocket().
net::Result<void> accept_talk(Request& request, Response& response,
                              weft::detail::SharedFunction<void(WebSocket&)> talk,
                              const WebSocketOptions& options);

// Answers a handshake, and calls `talk` in the connection's fiber after the handler has returned.
// The connection closes with code 1000 when `talk` returns, or with 1011 if it throws. The call
// does not check Origin, so a handler that relies on a browser's cookies must check it first.
// Context: the handler's fiber; parks only to send the 400 or 426 that refuses a request.
// Errors: Errc::unsupported if the handshake is invalid (the call has then sent 400 or 426), or if
// the response had already begun.
// Throws: std::bad_alloc, and what moving `talk` throws.
template <std::invocable<WebSocket&> Talk>
net::Result<void> accept_websocket(Request& request, Response& response, Talk talk,
                                   const WebSocketOptions& options = {}) {
  return accept_talk(request, response, std::move(talk), options);
}

// Serves a WebSocket that has no running fiber and no stack while it waits for a message. Only one
// handler runs at a time. Any caller may send and close through the pointer that on_open gets.
// Once on_close is called, send calls return weft::Errc::closed, and close() has no effect.
struct WebSocketHandlers {
  // Called first. This handler may be empty.
  weft::detail::SharedFunction<void(const std::shared_ptr<WebSocket>&)> on_open = {};
  // Called for each message. The handler may send, receive and park.
  weft::detail::SharedFunction<void(WebSocket&, Message)> on_message = {};
  // Called last, once the connection has ended for any reason. This handler may be empty.
  weft::detail::SharedFunction<void(WebSocket&)> on_close = {};
};
// Does the same as accept_websocket() above, with handlers. If on_open or on_message throws, the
// connection closes with 1011.
// Context: the handler's fiber; parks only to send the 400 or 426 that refuses a request.
// Errors: the same as for the other overload.
// Throws: std::bad_alloc; std::invalid_argument if on_message is empty.
net::Result<void> accept_websocket(Request& request, Response& response, WebSocketHandlers handlers,
                                   const WebSocketOptions& options = {});

// Holds the arguments of open_websocket().
struct WebSocketCall {
  // The scheme is ws, wss, http or https.
  std::string url;
  // Further headers, such as Origin and Authorization.
  std::vector<std::pair<std::string, std::string>> headers = {};
  WebSocketOptions options = {};
  // The layer for wss and https: tls::client_layer(context). Empty: calls for such URLs return
  // Errc::unsupported.
  ClientLayer secure = {};
  // Connects to this address, not to the URL's host. Empty: connects to the host by TCP.
  std::optional<net::UnixAddress> unix_socket = {};
  // The resolver for the host. Null: uses net::resolve().
  net::AnyResolver* resolver = nullptr;
};

// Connects to a server and performs the handshake; `until` can end each wait. Follows no redirect.
// The connection is closed without a close handshake when the last pointer is destroyed.
// Context: fibers and plain threads; parks.
// Errors: weft::Errc::timed_out or cancelled; Errc::unsupported if the scheme is unknown, or if the
// server refuses or selects an option that was not offered; the codes of Client::send() for an
// invalid URL, call or response; the errors of dial(), the TLS layer and the stream.
// Throws: std::bad_alloc, and whatever go() throws.
net::Result<std::shared_ptr<WebSocket>> open_websocket(const WebSocketCall& call,
                                                       const Until& until = Until::ambient());

}  // namespace weft::http
