// Keeps the connections to one host.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/detail/thread_annotations.hpp>
#include <weft/error.hpp>
#include <weft/http/layer.hpp>
#include <weft/mutex.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/semaphore.hpp>
#include <weft/timer.hpp>
#include <weft/until.hpp>

#include "libs/http/wire/input.hpp"
#include "libs/http/wire/link.hpp"

namespace weft::http {

// Holds one connection to a server. Only one caller at a time may use the connection.
struct ClientConnection {
  net::TcpStream stream;
  std::unique_ptr<Layer> layer;  // Null for plain HTTP. Destroyed before the stream.
  Input input;
  std::int64_t idle_since = 0;
  bool reused = false;

  [[nodiscard]] Link link() noexcept { return {stream, layer.get()}; }
  net::Result<std::size_t> read(std::span<std::byte> buffer, const Until& until) {
    return link().read_some(buffer, until);
  }
  std::error_code write(std::string_view text, const Until& until) {
    return link().write_all(std::as_bytes(std::span(text)), until).error;
  }
  // Receives bytes and adds them to the input.
  // Errors: Errc::unexpected_end at the end of the stream; Errc::head_too_large beyond `most`
  // bytes; the errors of the stream or the layer.
  std::error_code receive(std::size_t most, const Until& until);
  // Returns true if an idle connection has received no bytes and the peer has not closed it.
  [[nodiscard]] bool is_quiet() {
    std::byte byte{};
    return read(std::span(&byte, 1), Deadline::past()).error == weft::Errc::timed_out;
  }
};

// Keeps the idle connections to one host. While the pool keeps connections, a call to sweep() is
// scheduled. sweep() closes the connections that have been idle for at least idle_.
class HostPool : public std::enable_shared_from_this<HostPool> {
 public:
  HostPool(std::size_t most, std::chrono::nanoseconds idle) : slots(most), idle_(idle) {}
  ~HostPool() { (void)sweep_.stop(); }
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  // Keeps the connection, or closes the connection if memory runs out.
  void keep(std::unique_ptr<ClientConnection> connection) noexcept;
  // Removes and returns the most recently used connection; null if there is none.
  [[nodiscard]] std::unique_ptr<ClientConnection> take();

  Semaphore slots;

 private:
  using Connections = std::vector<std::unique_ptr<ClientConnection>>;

  [[nodiscard]] Connections take_old() WEFT_REQUIRES(mutex_);
  [[nodiscard]] Connections watch() noexcept WEFT_REQUIRES(mutex_);
  void sweep() noexcept;

  const std::chrono::nanoseconds idle_;
  Mutex mutex_;
  // The first connection has been idle longest.
  Connections connections_ WEFT_GUARDED_BY(mutex_);
  DelayedCall sweep_ WEFT_GUARDED_BY(mutex_);
  bool is_watched_ WEFT_GUARDED_BY(mutex_) =
      false;  // Whether sweep() is scheduled; true while the pool keeps connections.
};

// Owns a slot of a HostPool, and the connection in that slot. The destructor gives the slot back.
class Lease {
 public:
  Lease() noexcept = default;
  // The caller must have taken a slot of the pool.
  explicit Lease(std::shared_ptr<HostPool> pool) noexcept : pool_(std::move(pool)) {}
  Lease(Lease&& other) noexcept = default;
  Lease& operator=(Lease&&) = delete;
  ~Lease();

  // Returns the connection to the pool, for the next request that takes a slot.
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

}  // namespace weft::http
