// An HTTP/1.1 client.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/http/header.hpp>
#include <weft/http/layer.hpp>
#include <weft/http/url.hpp>
#include <weft/net/dial.hpp>
#include <weft/net/result.hpp>
#include <weft/net/unix_address.hpp>
#include <weft/until.hpp>

namespace weft::http {

class CookieJar;  // Defined in <weft/http/cookie_jar.hpp>.

struct ClientOptions {
  // The largest number of connections to a host and port, idle or not; further calls wait.
  std::size_t max_per_host = 16;
  // A connection that has been idle for this long is closed.
  std::chrono::nanoseconds idle = std::chrono::seconds(30);
  // The time limit for name resolution, connecting and the handshake together.
  std::chrono::nanoseconds connect = std::chrono::seconds(10);
  // How long a call with "Expect: 100-continue" waits for the server before it sends the body;
  // kNever: no limit.
  std::chrono::nanoseconds continue_wait = std::chrono::seconds(1);
  // The size limit of an answer's head with all interim heads (100, 103), and of the trailers.
  std::size_t head_bytes = 64 * 1024;
  // The largest number of headers in each head, and in the trailers.
  std::size_t headers = 128;
  // The size limit of Reply::read_all(), in bytes.
  std::uint64_t body_bytes = 64 * 1024 * 1024;
  // Requests compressed answers, unless a call has an Accept-Encoding or a Range, and decompresses
  // gzip bodies during reads; body_bytes then limits the decompressed body. Headers do not change.
  bool decompress = false;
  // The largest number of redirects of a call. With 0, send() returns redirects as answers.
  std::size_t max_redirects = 10;
  // The layer for https: tls::client_layer(context). Empty: https URLs are Errc::unsupported.
  ClientLayer secure = {};
  // Connects to this address, whatever the URL's host and port. Empty: connects to the host by TCP.
  std::optional<net::UnixAddress> unix_socket = {};
  // The URL of a proxy, "http://127.0.0.1:3128"; https uses a tunnel through the proxy (CONNECT).
  std::string proxy = {};
  // The Proxy-Authorization header for the proxy, "Basic bmFtZTp3b3Jk". Empty: no header.
  std::string proxy_authorization = {};
  // The resolver for hosts, which must outlive the client. Null: uses net::resolve().
  net::AnyResolver* resolver = nullptr;
  // Stores cookies of answers, and adds them to requests. The jar must outlive the client's calls;
  // clients may share a jar. Null: the caller handles cookies.
  CookieJar* cookies = nullptr;
};

// Describes the request for Client::send().
struct Call {
  // CONNECT takes "host:port" from the URL or from a Host header, which must then have a port.
  // CONNECT has no body and is not redirected, and the connection of its answer is closed.
  std::string method = "GET";
  std::string url;
  // The client itself writes Connection, Content-Length and Transfer-Encoding. A Cookie header
  // replaces the cookies of the jar, and a Host header the URL's host, until a redirect to another
  // origin. With "Expect: 100-continue", the client does not send the body if a final answer
  // arrives first.
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  // Replaces `body`: returns the next part, or weft::Errc::end_of_stream; the body is sent in
  // chunks. Another error ends the call. send() calls the function for one request only, so it
  // neither repeats such a call nor redirects it with its body.
  std::function<net::Result<std::size_t>(std::span<std::byte>)> body_source = {};
};

// Holds an answer, whose body is read on demand. A Reply is move-only. The connection returns to
// the client at the end of the body. If the reply is destroyed earlier, the connection is closed.
// Context: fibers and plain threads, one caller at a time; reads park.
// Throws: std::bad_alloc.
class Reply {
 public:
  // Makes an empty reply, which can only be assigned to or destroyed.
  Reply() noexcept;
  // Takes the reply of `other`, which is then empty.
  Reply(Reply&& other) noexcept;
  // Ends its own reply as the destructor does, and takes the reply of `other`.
  Reply& operator=(Reply&& other) noexcept;
  // Closes the connection, unless the body has been read to its end. Parks only briefly.
  ~Reply();

  // Returns the status code, such as 200 or 404.
  [[nodiscard]] int status() const noexcept;
  // Returns the headers in the order of arrival; the span is valid as long as the reply exists.
  [[nodiscard]] std::span<const Header> headers() const noexcept;
  // Returns the first header of this name.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept;
  // Returns the URL of the answer, after all redirects.
  [[nodiscard]] const Url& url() const noexcept;
  // Returns the body's size, if the head contains it; after HEAD or 304, the size of the unsent
  // body.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept;

  // Returns whether read_some() returns the text of a compressed body (ClientOptions::decompress).
  // If so, Content-Encoding and Content-Length describe the compressed bytes.
  [[nodiscard]] bool is_decompressed() const noexcept;

  // Reads at least one byte of the body. weft::Errc::end_of_stream reports the end of the body. The
  // call may be repeated after weft::Errc::timed_out or cancelled.
  // Errors: also the codes of ErrorKind::malformed, which include malformed_coding for a body that
  // cannot be decompressed; Errc::unexpected_end; the stream's.
  net::Result<std::size_t> read_some(std::span<std::byte> buffer,
                                     const Until& until = Until::ambient());
  // Reads the body to its end. After an error, `value` is the part read so far.
  // Errors: also Errc::body_too_large.
  net::Result<std::string> read_all(const Until& until = Until::ambient());
  // Returns the headers after the last chunk; empty before the body's end has been read.
  [[nodiscard]] std::span<const Header> trailers() const noexcept;

  class State;  // For the library only, as are the next two functions.
  // Wraps the client's state.
  explicit Reply(std::unique_ptr<State> state) noexcept;
  // Returns the state, for the client.
  [[nodiscard]] State& state() const noexcept { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// Holds counts since the client was made, which may be stale.
struct ClientStats {
  std::uint64_t connections = 0;  // Connections made.
  std::uint64_t reused = 0;       // Requests that used an idle connection.
  std::uint64_t retried = 0;      // Reused connections that turned out to be closed.
};

class ClientCore;

// Sends requests over connections that it keeps for reuse. The client does not cache answers.
// Context: fibers and plain threads of one runtime; send() and get() park.
// Throws: std::bad_alloc; send() and get() also throw whatever go() throws.
// Lifetime: the client must not outlive the runtime.
class Client {
 public:
  // Makes a client, which opens no connection yet.
  // Throws: std::invalid_argument, which names the invalid option; std::bad_alloc.
  explicit Client(ClientOptions options = {});
  // Closes idle connections. Replies may outlive the client.
  ~Client();
  // Not a const reference, because g++ would bind it to the braces in Client({}).
  Client(Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Sends the request and returns once the head of the answer has arrived, whatever its status;
  // `until` can end each wait. After 303, every method except HEAD becomes GET; after 301 and 302,
  // POST becomes GET. Other redirects keep method and body. The client does not send Authorization,
  // Cookie and similar headers to another scheme, host or port, and follows no redirect from https
  // to http. The client returns a redirect that it cannot follow. If a kept connection turns out to
  // be closed, the client repeats an idempotent request (GET, HEAD, PUT, DELETE, OPTIONS, TRACE).
  // Errors: weft::Errc::timed_out, cancelled; ErrorKind::malformed's (a URL, a header, an answer),
  // Errc::unsupported, unexpected_end, head_too_large, too_many_redirects, refused_by_proxy; the
  // errors of dial(), the layer and the stream.
  net::Result<Reply> send(const Call& call, const Until& until = Until::ambient());
  // Sends a GET without extra headers, as send() does.
  net::Result<Reply> get(std::string url, const Until& until = Until::ambient()) {
    return send({.url = std::move(url)}, until);
  }

  // Returns counts that may be stale.
  [[nodiscard]] ClientStats stats() const noexcept;

 private:
  const std::shared_ptr<ClientCore> core_;
};

}  // namespace weft::http
