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
  // The maximum bytes of a head, together with interim heads (100, 103), and of the trailers.
  std::size_t head_bytes = 64 * 1024;
  // The largest number of headers in each head, and in the trailers.
  std::size_t headers = 128;
  // The size limit of Reply::read_all(), in bytes.
  std::uint64_t body_bytes = 64 * 1024 * 1024;
  // True: requests compressed answers for calls without Accept-Encoding and Range headers, and
  // decompresses gzip bodies. The answer's headers do not change; body_bytes limits the result.
  bool decompress = false;
  // The largest number of redirects of a call. With 0, send() returns redirects as answers.
  std::size_t max_redirects = 10;
  // The layer for https: tls::client_layer(context). Empty: https URLs fail with Errc::unsupported.
  ClientLayer secure = {};
  // Connects to this address, not to the URL's host. Empty: connects to the host by TCP.
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
  // CONNECT takes its target from the URL or a Host header. A header for another host needs a port.
  // CONNECT has no body and no redirects. After a 2xx answer, its connection is not reused.
  std::string method = "GET";
  std::string url;
  // Connection, Content-Length and Transfer-Encoding make the call malformed. Until a redirect to
  // another origin, a Cookie header replaces the cookies of the jar, and a Host header replaces the
  // URL's host. With "Expect: 100-continue", the client does not send the body if a final answer
  // arrives first.
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  // If set, the client ignores `body` and sends the parts that this function writes into its
  // argument, in chunks, until weft::Errc::end_of_stream. Another error ends the call. The function
  // serves one request only, so send() neither repeats the call nor redirects it with its body.
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
  // Returns the first header with this name.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept;
  // Returns the URL of the answer, after all redirects.
  [[nodiscard]] const Url& url() const noexcept;
  // Returns the body's size if the head contains it and the body is not decompressed; after HEAD or
  // 304, returns the size of the unsent body.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept;

  // Returns whether read_some() decompresses the body (ClientOptions::decompress). If so,
  // Content-Encoding and Content-Length describe the compressed bytes.
  [[nodiscard]] bool is_decompressed() const noexcept;

  // Reads at least one byte of the body. weft::Errc::end_of_stream reports the end of the body. The
  // caller may repeat the call after weft::Errc::timed_out or cancelled.
  // Errors: also the codes of ErrorKind::malformed, which include malformed_coding for a body that
  // cannot be decompressed; unexpected_end, head_too_large (trailers); the errors of the stream.
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

// Counts events since the client was made. The counts may be stale.
struct ClientStats {
  std::uint64_t connections = 0;  // Connections made.
  std::uint64_t reused = 0;       // Requests that used an idle connection.
  std::uint64_t retried = 0;      // Requests repeated because a reused connection was closed.
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
  // The parameter is not const, or else g++ would bind it to the braces in Client({}).
  Client(Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Sends the request and returns once the head of an answer of any status has arrived; `until` can
  // end each wait. After 303, every method except HEAD becomes GET; after 301 and 302, POST becomes
  // GET. Other redirects keep the method and, except for GET and HEAD after 301 to 303, the body.
  // Authorization, Cookie and similar headers go to no other scheme, host or port. The client
  // returns a redirect that it cannot follow, such as one from https to http. If a kept connection
  // is closed, the client repeats an idempotent request (GET, HEAD, PUT, DELETE, OPTIONS, TRACE).
  // Errors: weft::Errc::timed_out, cancelled; codes of ErrorKind::malformed; Errc::unsupported,
  // unexpected_end, head_too_large, too_many_redirects, refused_by_proxy; the errors of dial(), the
  // layer and the stream.
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
