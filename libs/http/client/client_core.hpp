// The connections that a client's requests share.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/detail/atomic.hpp>
#include <weft/detail/thread_annotations.hpp>
#include <weft/error.hpp>
#include <weft/http/client.hpp>
#include <weft/http/layer.hpp>
#include <weft/http/url.hpp>
#include <weft/mutex.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/semaphore.hpp>
#include <weft/timer.hpp>

#include "libs/http/wire/input.hpp"

namespace weft::http {

// One connection to a server. One caller uses it at a time.
struct ClientConnection {
  net::TcpStream stream;
  std::unique_ptr<Layer> layer;  // Null for plain HTTP. It is destroyed before the stream.
  Input input;
  std::int64_t idle_since = 0;
  bool reused = false;

  net::Result<std::size_t> read(std::span<std::byte> buffer, const Until& until) {
    return layer != nullptr ? layer->read_some(buffer, until) : stream.read_some(buffer, until);
  }
  std::error_code write(std::string_view text, const Until& until) {
    const auto bytes = std::as_bytes(std::span(text));
    return (layer != nullptr ? layer->write_all(bytes, until) : stream.write_all(bytes, until))
        .error;
  }
  // Fills the input. Errc::unexpected_end at the stream's end; head_too_large beyond `most` bytes.
  std::error_code receive(std::size_t most, const Until& until);
  // Returns true if nothing has arrived while the connection was idle, not even its end.
  [[nodiscard]] bool is_quiet() {
    std::byte byte{};
    return read(std::span(&byte, 1), Deadline::past()).error == weft::Errc::timed_out;
  }
};

// The idle connections to one host. While there are any, a delayed call is scheduled that closes
// connections that no request has used for `idle`.
class HostPool : public std::enable_shared_from_this<HostPool> {
 public:
  HostPool(std::size_t most, std::chrono::nanoseconds idle) : slots(most), idle_(idle) {}
  ~HostPool() { (void)sweep_.stop(); }
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  // Keeps the connection, or closes it if there is no memory.
  void keep(std::unique_ptr<ClientConnection> connection) noexcept;
  // Takes the connection used last; null if there is none.
  [[nodiscard]] std::unique_ptr<ClientConnection> take();

  Semaphore slots;

 private:
  using Connections = std::vector<std::unique_ptr<ClientConnection>>;

  [[nodiscard]] Connections take_old() WEFT_REQUIRES(mutex_);
  [[nodiscard]] Connections watch() noexcept WEFT_REQUIRES(mutex_);
  void sweep() noexcept;

  const std::chrono::nanoseconds idle_;
  Mutex mutex_;
  // The connection idle for longest comes first.
  Connections connections_ WEFT_GUARDED_BY(mutex_);
  DelayedCall sweep_ WEFT_GUARDED_BY(mutex_);
  bool is_watched_ WEFT_GUARDED_BY(mutex_) =
      false;  // A call of sweep() is scheduled, as it is whenever there are connections.
};

// A slot of a host, and its connection. The destructor gives the slot back.
class Lease {
 public:
  Lease() noexcept = default;
  // The caller has taken a slot.
  explicit Lease(std::shared_ptr<HostPool> pool) noexcept : pool_(std::move(pool)) {}
  Lease(Lease&& other) noexcept = default;
  Lease& operator=(Lease&&) = delete;
  ~Lease();

  // Keeps the connection for the next request that takes a slot.
  void keep() noexcept;
  void drop() noexcept { connection_.reset(); }
  void set(std::unique_ptr<ClientConnection> connection) noexcept {
    connection_ = std::move(connection);
  }
  [[nodiscard]] ClientConnection* operator->() const noexcept { return connection_.get(); }
  [[nodiscard]] ClientConnection& operator*() const noexcept { return *connection_; }
  [[nodiscard]] explicit operator bool() const noexcept { return connection_ != nullptr; }

 private:
  std::shared_ptr<HostPool> pool_;
  std::unique_ptr<ClientConnection> connection_;
};

// Returns the head of a request. An empty text means that a part of the call must not be sent.
[[nodiscard]] std::string make_call_head(const Url& url, const Call& call);

// Dials the URL's server; `secure` makes the layer for https. Returns Errc::unsupported if https is
// needed and `secure` is empty.
net::Result<std::unique_ptr<ClientConnection>> dial_server(const Url& url,
                                                           const ClientLayer& secure,
                                                           net::AnyResolver* resolver,
                                                           const Until& until);

// Receives the next head of an answer.
std::error_code receive_head(ClientConnection& connection, std::size_t most, std::string& text,
                             const Until& until);

// Removes "Expect: 100-continue" from a call that can be repeated. Returns false if the header is
// absent, or the body can be read only once.
[[nodiscard]] bool take_expectation_back(Call& call) noexcept;

class ClientCore {
 public:
  explicit ClientCore(ClientOptions options);

  net::Result<Reply> send(Call call, const Until& until);
  [[nodiscard]] ClientStats stats() const noexcept;

 private:
  // Sends a call; if the server refuses its expectation, repeats it without (RFC 9110, 10.1.1).
  net::Result<Reply> send_to(const Url& url, Call& call, const Until& until);
  // The same with the cookies of the jar, which also keeps what the answer sets.
  net::Result<Reply> send_with_cookies(const Url& url, Call& call, const Until& until);
  net::Result<Reply> send_once(const Url& url, const Call& call, const Until& until);
  // Sends the request on the connection of the lease.
  net::Result<Reply> send_by(Lease& lease, const Url& url, const std::string& head,
                             const Call& call, const Until& until);
  // Sends the request, and reads the head of its answer.
  std::error_code converse(ClientConnection& connection, const std::string& head, const Call& call,
                           Reply::State& state, const Until& until) const;
  // Whether a redirect may be followed.
  [[nodiscard]] bool may_lead(const Url& from, const Url& to) const noexcept;
  [[nodiscard]] std::shared_ptr<HostPool> pool_of(const Url& url);
  net::Result<std::unique_ptr<ClientConnection>> connect(const Url& url, const Until& until);

  const ClientOptions options_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<HostPool>> hosts_ WEFT_GUARDED_BY(mutex_);
  // Relaxed, all of them: they publish nothing.
  detail::Atomic<std::uint64_t> connections_{0};
  detail::Atomic<std::uint64_t> reused_{0};
  detail::Atomic<std::uint64_t> retried_{0};
};

}  // namespace weft::http
