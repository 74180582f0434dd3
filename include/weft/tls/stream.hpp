// A TCP connection with TLS on it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <weft/deadline.hpp>
#include <weft/net/result.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/tls/context.hpp>
#include <weft/until.hpp>

namespace weft::tls {

class StreamState;

// As net::TcpStream: one caller reads and one writes at a time, and these may be two; deadlines,
// stop requests and close() work alike. Move-only. A call whose wait was ended may be repeated. A
// fiber of the stream's sends the rest of the bytes that it took, as long as the stream lives and
// its deadline for writes has not passed. Call it from fibers and plain threads. Calls that take an
// Until park; none throws more than std::bad_alloc, and none synchronizes with another.
class Stream {
 public:
  // Empty; of no use.
  Stream() noexcept;
  // `other` is empty then. No other call may be using it.
  Stream(Stream&& other) noexcept;
  // Closes what it had, as the destructor does; `other` is empty then.
  Stream& operator=(Stream&& other) noexcept;
  // Closes without close_notify. Parks for a moment if a fiber of the stream's is sending.
  ~Stream();

  // The handshake, as the server or the client of a connection. Parks; it runs on a stack that is
  // large enough for it, whatever the caller's is. `server_name` is what the server's certificate
  // must be for among its alternative names: a name, whose final dot does not count, or an IP
  // address. Errors: verification_category() for a refused certificate, openssl_category(),
  // Errc::truncated, TcpStream's; std::errc::invalid_argument for a name that is empty or has a
  // zero inside.
  static net::Result<Stream> accept(net::TcpStream stream, const Context& context,
                                    const Until& until = {});
  // Does the same as accept(), as the client.
  static net::Result<Stream> connect(net::TcpStream stream, const Context& context,
                                     const std::string& server_name, const Until& until = {});
  // The same on a connection that remains the caller's, and outlives the Stream, which does not
  // close it.
  static net::Result<Stream> accept_on(net::TcpStream& stream, const Context& context,
                                       const Until& until = {});
  // Does the same as accept_on(), as the client.
  static net::Result<Stream> connect_on(net::TcpStream& stream, const Context& context,
                                        const std::string& server_name, const Until& until = {});

  // Reads as TcpStream's does. weft::Errc::end_of_stream comes only after the peer's close_notify;
  // an end without it is Errc::truncated.
  net::Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until = {});
  // Returns whether bytes have been taken from the connection that no read has returned yet. The
  // caller that reads calls it.
  [[nodiscard]] bool has_read_ahead() const noexcept;
  // Reads until `buffer` is full, as TcpStream's does.
  net::Result<std::size_t> read_exactly(std::span<std::byte> buffer, const Until& until = {});
  // Writes at least one byte, as TcpStream's does.
  net::Result<std::size_t> write_some(std::span<const std::byte> data, const Until& until = {});
  // Writes all of it, as TcpStream's does.
  net::Result<std::size_t> write_all(std::span<const std::byte> data, const Until& until = {});
  // Bounds all reads that follow; Deadline::never() lifts it.
  void set_read_deadline(Deadline deadline) noexcept;
  // Bounds all writes that follow; Deadline::never() lifts it.
  void set_write_deadline(Deadline deadline) noexcept;

  // Sends close_notify, behind which nothing can be written: the peer reads the end of the stream.
  // Reading goes on until the peer's own.
  std::error_code shutdown(const Until& until = {});
  // Ends all calls that wait, and later ones, with weft::Errc::closed, without close_notify. Never
  // parks.
  void close() noexcept;
  // The connection below, for its addresses, say.
  [[nodiscard]] net::TcpStream& tcp() noexcept;

  // The protocol that was agreed upon; empty if none was.
  [[nodiscard]] std::string alpn() const;
  // "TLSv1.3".
  [[nodiscard]] std::string version() const;
  // Returns whether the handshake took up an earlier session.
  [[nodiscard]] bool resumed() const noexcept;
  // The subject of the peer's certificate, "CN = name"; empty if it has shown none.
  [[nodiscard]] std::string peer_subject() const;

 private:
  explicit Stream(std::unique_ptr<StreamState> state) noexcept;
  static net::Result<Stream> begin(std::unique_ptr<StreamState> state, const Until& until);
  std::unique_ptr<StreamState> state_;
};

}  // namespace weft::tls
