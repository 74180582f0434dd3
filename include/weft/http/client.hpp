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
  // The maximum number of idle and used connections per scheme, host and port; further calls wait.
  std::size_t max_per_host = 16;
  // A connection that has been idle for this long is closed.
  std::chrono::nanoseconds idle = std::chrono::seconds(30);
  // The time limit for name resolution, connecting, a proxy's tunnel and the handshake in total.
  std::chrono::nanoseconds connect = std::chrono::seconds(10);
  // How long a call with "Expect: 100-continue" waits before it sends the body; kNever: no limit.
  std::chrono::nanoseconds continue_wait = std::chrono::seconds(1);
  // The size limit for all heads of a response (100, 103, final) together, and for its trailers.
  std::size_t head_bytes = 64 * 1024;
  // The maximum number of headers in each head, and in the trailers.
  std::size_t headers = 128;
  // The maximum number of bytes that Reply::read_all() returns.
  std::uint64_t body_bytes = 64 * 1024 * 1024;
  // If true, the client decompresses gzip bodies, except in 206 responses, and requests gzip unless
  // the call has an Accept-Encoding or Range header. body_bytes counts decompressed bytes.
  bool decompress = false;
  // The maximum number of redirects that a call follows. With 0, send() returns each redirect.
  std::size_t max_redirects = 10;
  // For https, use tls::client_layer(context). If empty, https calls fail with Errc::unsupported.
  ClientLayer secure = {};
  // If set, the client connects to this address, not to the URL's host. Forbidden with `proxy`.
  std::optional<net::UnixAddress> unix_socket = {};
  // The URL of a proxy, such as "http://127.0.0.1:3128". For https, the client opens a tunnel.
  std::string proxy = {};
  // The value of Proxy-Authorization, such as "Basic bmFtZTp3b3Jk". If empty, it is not sent.
  std::string proxy_authorization = {};
  // Resolves host names; must outlive the client. If null, the client uses net::resolve().
  net::AnyResolver* resolver = nullptr;
  // Stores the cookies that responses set, and adds them to requests. The jar must outlive the
  // client's calls; clients may share a jar. If null, the caller handles cookies.
  CookieJar* cookies = nullptr;
};

// Describes the request for Client::send().
struct Call {
  // A CONNECT call asks for a tunnel to the URL's host, or to another host and port in the Host
  // header. It has no body and follows no redirect. After status 2xx, its connection is not reused.
  std::string method = "GET";
  std::string url;
  // A Connection, Content-Length or Transfer-Encoding header makes the call fail as malformed. A
  // Cookie header replaces the jar's cookies, and a Host header replaces the URL's host. A redirect
  // to another origin drops both. With "Expect: 100-continue", the client sends no body if a final
  // response arrives first. After 417, it retries without that header, unless body_source is set.
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  // If set, replaces `body`: the function writes each chunk into its argument, and ends the body
  // with weft::Errc::end_of_stream. After any other error, send() fails. The body can be read only
  // once, so send() neither repeats the request nor follows a redirect that keeps the body.
  std::function<net::Result<std::size_t>(std::span<std::byte>)> body_source = {};
};

// Holds a response, whose body is read on demand. A Reply is move-only. Once the body has been read
// to its end, the client may reuse the connection. Otherwise, the destructor closes it.
// Context: fibers and plain threads, one caller at a time; reads park.
// Throws: std::bad_alloc.
class Reply {
 public:
  // Makes an empty reply, which can only be assigned to or destroyed.
  Reply() noexcept;
  // Takes the reply of `other`, which is then empty.
  Reply(Reply&& other) noexcept;
  // Discards the current reply as the destructor does, and takes the reply of `other`.
  Reply& operator=(Reply&& other) noexcept;
  // Closes the connection, unless the body has been read to its end. Parks only briefly.
  ~Reply();

  // Returns the status code, such as 200 or 404.
  [[nodiscard]] int status() const noexcept;
  // Returns the headers in order of arrival; the span is valid as long as the reply exists.
  [[nodiscard]] std::span<const Header> headers() const noexcept;
  // Returns the value of the first header with this name, if any.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept;
  // Returns the URL from which the response came, after all redirects.
  [[nodiscard]] const Url& url() const noexcept;
  // Returns the value of Content-Length, or nothing if it is absent or the body is decompressed.
  // After HEAD or 304, the value is the size of the unsent body; after 204, it is 0.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept;

  // Returns whether read_some() decompresses the body (ClientOptions::decompress). If so,
  // Content-Encoding and Content-Length describe the compressed bytes.
  [[nodiscard]] bool is_decompressed() const noexcept;

  // Reads at least one byte of the body. weft::Errc::end_of_stream reports the end of the body. The
  // caller may repeat a call that failed with weft::Errc::timed_out or cancelled.
  // Errors: weft::Errc::end_of_stream, timed_out, cancelled; codes of ErrorKind::malformed
  // (malformed_coding: the body cannot be decompressed); unexpected_end, head_too_large (trailers);
  // std::errc::not_enough_memory; the errors of the TLS layer and the stream.
  net::Result<std::size_t> read_some(std::span<std::byte> buffer,
                                     const Until& until = Until::ambient());
  // Reads the body to its end. After an error, `value` is the start of the body.
  // Errors: the errors of read_some() except weft::Errc::end_of_stream; Errc::body_too_large.
  net::Result<std::string> read_all(const Until& until = Until::ambient());
  // Returns the trailers (headers after the body); empty until the body has been read to its end.
  [[nodiscard]] std::span<const Header> trailers() const noexcept;

  class State;  // State and the next two functions are for the library only.
  // Makes a reply from the state that the client prepared.
  explicit Reply(std::unique_ptr<State> state) noexcept;
  // Gives the client access to the state.
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

// Sends requests over connections that it keeps for reuse. The client does not cache responses.
// Context: fibers and plain threads of one runtime; send() and get() park.
// Throws: std::bad_alloc; send() and get() also throw whatever go() and body_source throw.
// Lifetime: the client must not outlive the runtime.
class Client {
 public:
  // Makes a client, which opens no connection yet.
  // Throws: std::invalid_argument, which names the invalid option; std::bad_alloc.
  explicit Client(ClientOptions options = {});
  // Closes idle connections, except to hosts with unread replies. Replies may outlive the client.
  ~Client();
  // The parameter is not const, because g++ would otherwise reject Client({}) as ambiguous.
  Client(Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Sends the request and returns once the head of a response has arrived, whatever its status;
  // `until` can end each wait. After 303, every method except HEAD becomes GET; after 301 and 302,
  // POST becomes GET. After 301 to 303, GET and HEAD are sent without a body. Otherwise, send()
  // keeps the method and the body. It drops Authorization, Cookie and similar headers if the origin
  // changes. It returns a redirect that it cannot follow, such as one from https to http. If the
  // server closed a reused connection, send() repeats GET, HEAD, PUT, DELETE, OPTIONS and TRACE.
  // Errors: weft::Errc::timed_out or cancelled; a code of ErrorKind::malformed; Errc::unsupported,
  // unsupported_version, unsupported_coding, unexpected_end, head_too_large, too_many_redirects or
  // refused_by_proxy; an error of dial(), the TLS layer, the stream or body_source.
  net::Result<Reply> send(const Call& call, const Until& until = Until::ambient());
  // Calls send() with a GET request for `url`, without extra headers.
  net::Result<Reply> get(std::string url, const Until& until = Until::ambient()) {
    return send({.url = std::move(url)}, until);
  }

  // Returns counts that may be stale.
  [[nodiscard]] ClientStats stats() const noexcept;

 private:
  const std::shared_ptr<ClientCore> core_;
};

}  // namespace weft::http
