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
#include <weft/until.hpp>

namespace weft::http {

struct ClientOptions {
  // The most connections to one host and port, idle ones included. A request for which there is
  // none waits.
  std::size_t max_per_host = 16;
  // A connection that has been idle for this long is closed.
  std::chrono::nanoseconds idle = std::chrono::seconds(30);
  // Bounds the search for the name, the connection and the handshake together.
  std::chrono::nanoseconds connect = std::chrono::seconds(10);
  // How long a call with "Expect: 100-continue" waits for the server's word before it sends its
  // body all the same; kNever: until the server has said something.
  std::chrono::nanoseconds continue_wait = std::chrono::seconds(1);
  // The head of an answer, and all that only inform before it (100, 103). Trailers may be as large
  // again.
  std::size_t head_bytes = 64 * 1024;
  // Headers of an answer, or of what informs before it; as many trailers again.
  std::size_t headers = 128;
  // The most that Reply::read_all() takes.
  std::uint64_t body_bytes = 64 * 1024 * 1024;
  // 0: answers that redirect are returned as they are.
  std::size_t max_redirects = 10;
  // The layer that https is spoken with: tls::client_layer(context). Empty: https is
  // Errc::unsupported.
  ClientLayer secure = {};
  // The one asked for addresses of hosts; it must outlive the client. Null: as net::resolve().
  net::AnyResolver* resolver = nullptr;
};

// The request that is made.
struct Call {
  // CONNECT asks for "host:port" of the URL, or of a Host among the headers, which must have a port
  // then. It has no body and is not redirected, and the connection of its answer is closed.
  std::string method = "GET";
  std::string url;
  // Without Connection, Content-Length and Transfer-Encoding, which are the client's. A Host is
  // sent instead of the URL's, up to a redirect to another origin; the connection, and the name
  // that TLS verifies, are the URL's all the same. With "Expect: 100-continue" the body waits for
  // the server, and an answer that comes first spares it. Without a body that header is left out,
  // and after 417 a call with `body` is repeated without it.
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  // Instead of a body: gives the next part of it, or weft::Errc::end_of_stream; it goes out in
  // chunks. Another error ends the call. Called by the caller of send(), and for one request only:
  // such a call is not repeated, nor redirected with its body.
  std::function<net::Result<std::size_t>(std::span<std::byte>)> body_source = {};
};

// An answer: the head is there, the body comes as it is read. Move-only; used by one caller at a
// time. Its connection returns to the client when the body has been read to its end, and is closed
// if the reply is destroyed before. Calls park, throw and synchronize where they say so.
class Reply {
 public:
  // Empty; of no use.
  Reply() noexcept;
  // `other` is empty then, and of no use.
  Reply(Reply&& other) noexcept;
  // Ends the former reply, as the destructor does.
  Reply& operator=(Reply&& other) noexcept;
  // Closes the connection, unless the body has been read to its end. Parks for a moment at most.
  ~Reply();

  // The number of the answer's first line: 200, 404.
  [[nodiscard]] int status() const noexcept;
  // In the order in which they came; valid as long as the reply.
  [[nodiscard]] std::span<const Header> headers() const noexcept;
  // The first one of this name.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept;
  // Where it came from, after all redirects.
  [[nodiscard]] const Url& url() const noexcept;
  // Known before the body is read, unless it comes in chunks or up to the stream's end. Of an
  // answer to HEAD, and of 304, what the body's would be that does not come, if the server says it.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept;

  // Reads what there is of the body, at least one byte. Parks. At its end:
  // weft::Errc::end_of_stream. Other errors: weft::Errc::timed_out, cancelled (it may be tried
  // again); ErrorKind::malformed's, Errc::unexpected_end; the stream's.
  net::Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until = {});
  // All of it. After an error `value` is what came before; Errc::body_too_large is one.
  net::Result<std::string> read_all(const Until& until = {});
  // The headers that came behind the last chunk; empty before the body's end has been read.
  [[nodiscard]] std::span<const Header> trailers() const noexcept;

  class State;  // Of no use to others, as are the next two.
  // The client makes it.
  explicit Reply(std::unique_ptr<State> state) noexcept;
  // For the client.
  [[nodiscard]] State& state() const noexcept { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// Sums since the beginning. May be stale when they are returned.
struct ClientStats {
  std::uint64_t connections = 0;  // Made.
  std::uint64_t reused = 0;       // Requests that found one.
  std::uint64_t retried = 0;      // Reused ones whose connection turned out to be closed.
};

class ClientCore;

// Sends requests to servers, by connections that are kept for the next request. No proxies, no
// cookies, no caches. Call it from fibers and plain threads of one runtime, any number at a time;
// it must not outlive the runtime. Calls park, throw and synchronize where they say so.
class Client {
 public:
  // Throws std::invalid_argument that names the option.
  explicit Client(ClientOptions options = {});
  // Closes what is idle. Replies may live on.
  ~Client();
  // Not of a const one, which g++ would make of the braces in Client({}).
  Client(Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Sends the request and returns when the head of the answer is there; also of 404 and the like.
  // Parks: for a connection, if max_per_host are in use, and for the server. `until` ends all of
  // that. Redirects are followed: 303 by GET, unless it was a HEAD; 301 and 302 by GET, if it was a
  // POST; all else with method and body. Authorization, Proxy-Authorization, Cookie and their kin
  // do not go to another scheme, host or port, and nothing goes from https to http. An answer that
  // leads where it cannot be followed (a place that is no URL of http or https, https without a
  // layer, a body_source that would be needed again) is returned as it is. A request that may be
  // repeated (GET, HEAD, PUT, DELETE, OPTIONS, TRACE) is, when a connection that was kept turns out
  // to be closed. An answer of 300 or above that comes while a body is being sent ends the sending;
  // its connection is not kept. Errors: weft::Errc::timed_out, cancelled; ErrorKind::malformed's (a
  // URL, a header, an answer), Errc::unsupported, unexpected_end, head_too_large,
  // too_many_redirects; what dial(), the layer and the stream have.
  net::Result<Reply> send(const Call& call, const Until& until = {});
  // Works as send() does, for a GET without headers of its own.
  net::Result<Reply> get(std::string url, const Until& until = {}) {
    return send({.url = std::move(url)}, until);
  }

  // Each number may be stale when they return. From anywhere; never parks.
  [[nodiscard]] ClientStats stats() const noexcept;

 private:
  const std::shared_ptr<ClientCore> core_;
};

}  // namespace weft::http
