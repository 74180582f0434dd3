// Implements a TLS connection.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <weft/detail/thread_annotations.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/net/result.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/net/tls_info.hpp>
#include <weft/until.hpp>

#include "libs/tls/context_state.hpp"
#include "libs/tls/openssl.hpp"
#include "libs/tls/wire.hpp"

namespace weft::tls {

// Invariants
//   I1  ssl_ and wire_ are used with ssl_mutex_ held, and no caller waits for the socket while it
//       holds that mutex. Not asserted, because a Mutex does not record its owner.
//   I2  The holder of write_mutex_ writes the bytes of wire_.out in order. After the holder has
//       unlocked the mutex, it checks for bytes that other callers have added, unless it has left
//       all to the sender. This need not hold once the connection is broken, or the stream's own
//       deadline for writes has passed. Not asserted, because an assertion needs the state of the
//       holder and of all other callers.
class StreamState {
 public:
  // Owns the connection.
  StreamState(net::TcpStream&& stream, std::shared_ptr<ContextState> context, std::string name);
  // Borrows the connection.
  StreamState(net::TcpStream& stream, std::shared_ptr<ContextState> context, std::string name);
  ~StreamState();

  // Not analyzed: no other caller has access to the stream yet.
  [[nodiscard]] std::error_code prepare() WEFT_NOT_ANALYZED;
  [[nodiscard]] std::error_code handshake(const Until& until);
  net::Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until);
  [[nodiscard]] bool has_read_ahead() const noexcept;
  net::Result<std::size_t> write_some(std::span<const std::byte> data, const Until& until);
  [[nodiscard]] std::error_code shutdown(const Until& until);
  [[nodiscard]] net::TlsInfo info() const;

  [[nodiscard]] net::TcpStream& tcp() noexcept { return stream_; }
  [[nodiscard]] SSL* ssl() const noexcept { return ssl_.get(); }
  [[nodiscard]] ContextState& context() const noexcept { return *context_; }
  [[nodiscard]] const std::string& server_name() const noexcept { return server_name_; }

 private:
  enum class Needs : std::uint8_t { nothing, bytes, end, failure };

  template <class Call>
  [[nodiscard]] Needs attempt(Call call, std::error_code& error);
  [[nodiscard]] bool knows_of_nothing() const noexcept;
  [[nodiscard]] bool has_unsent() const noexcept;
  // Not analyzed: it holds write_mutex_ by std::adopt_lock.
  [[nodiscard]] std::error_code flush(const Until& until) WEFT_NOT_ANALYZED;
  [[nodiscard]] std::error_code send_unsent(const Until& until);
  void start_sender();
  void run_sender(const std::stop_token& stop);
  [[nodiscard]] std::error_code receive(const Until& until);

  net::TcpStream own_;  // Empty if the stream is borrowed.
  net::TcpStream& stream_;
  const std::shared_ptr<ContextState> context_;
  const std::string server_name_;  // Empty for a server.
  mutable Mutex ssl_mutex_;
  Mutex write_mutex_;
  Wire wire_ WEFT_GUARDED_BY(ssl_mutex_);
  // OpenSSL has failed permanently.
  bool failed_ WEFT_GUARDED_BY(ssl_mutex_) = false;
  // Bytes taken from wire_.out that have not been written yet. Both mutexes are needed to change
  // it, and either one to read it.
  std::string sending_;
  SslPtr ssl_;
  // A fiber that exists while calls whose wait ended early have left bytes unsent.
  JoinHandle<void> sender_;  // Changed with write_mutex_, as is the next field.
  std::stop_source sender_stop_{std::nostopstate};
  bool sender_runs_ WEFT_GUARDED_BY(ssl_mutex_) = false;
};

}  // namespace weft::tls
