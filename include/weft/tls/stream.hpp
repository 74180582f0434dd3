// Encrypts a TCP connection with TLS.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <weft/deadline.hpp>
#include <weft/net/result.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/net/tls_info.hpp>
#include <weft/tls/context.hpp>
#include <weft/until.hpp>

namespace weft::tls {

class StreamState;

// Reads and writes a TLS connection over TCP. One caller may read and one may write at a time.
// Deadlines, stop requests and close() work as for net::TcpStream. The stream is move-only. A read
// or write that timed out or was stopped may be repeated. If it leaves bytes unsent, a fiber sends
// them until the write deadline. If that fiber cannot send all bytes, the next call sends the rest.
// Context: fibers and plain threads; calls that take an Until park; has_read_ahead(), info() and
// peer_subject() park briefly while another caller is using the stream.
// Errors: errors of net::TcpStream and openssl_category(); not_enough_memory, protocol_error.
// Throws: std::bad_alloc; handshakes also throw what go() throws.
class Stream {
 public:
  // Makes an empty stream, which can only be assigned to or destroyed.
  Stream() noexcept;
  // Takes over the stream of `other`, which is then empty. No other call may be using `other`.
  Stream(Stream&& other) noexcept;
  // Ends the current stream as the destructor does, and takes over the stream of `other`.
  Stream& operator=(Stream&& other) noexcept;
  // Closes an owned connection without close_notify. Parks while the stream's fiber is sending.
  ~Stream();

  // Performs the handshake as a server, in a fiber with a large stack.
  // Errors: an error in verification_category() if the certificate is refused, errors in
  // openssl_category(), Errc::truncated, Errc::too_many_handshakes (servers), errors of TcpStream.
  static net::Result<Stream> accept(net::TcpStream stream, const Context& context,
                                    const Until& until = Until::ambient());
  // Performs the handshake as a client. The server's certificate must list `server_name` among its
  // alternative names. `server_name` is an IP address, or a host name whose final dot is ignored.
  // Errors: as for accept(); std::errc::invalid_argument if the name is empty or has a zero byte.
  static net::Result<Stream> connect(net::TcpStream stream, const Context& context,
                                     const std::string& server_name,
                                     const Until& until = Until::ambient());
  // Works like accept(), but on a connection that the caller owns. The connection must outlive the
  // Stream, whose destructor does not close it.
  static net::Result<Stream> accept_on(net::TcpStream& stream, const Context& context,
                                       const Until& until = Until::ambient());
  // Works like accept_on(), but performs the handshake as a client.
  static net::Result<Stream> connect_on(net::TcpStream& stream, const Context& context,
                                        const std::string& server_name,
                                        const Until& until = Until::ambient());

  // Reads at least one byte unless `buffer` is empty. Returns weft::Errc::end_of_stream only after
  // the peer's close_notify; if the stream ends without it, the error is Errc::truncated.
  net::Result<std::size_t> read_some(std::span<std::byte> buffer,
                                     const Until& until = Until::ambient());
  // Returns whether received bytes remain for a read. Bytes of an incomplete record that a read has
  // passed to OpenSSL do not count. Only the reader may call this function.
  [[nodiscard]] bool has_read_ahead() const noexcept;
  // Reads until `buffer` is full.
  net::Result<std::size_t> read_exactly(std::span<std::byte> buffer,
                                        const Until& until = Until::ambient());
  // Writes at least one byte unless `data` is empty, and at most 16 KiB.
  net::Result<std::size_t> write_some(std::span<const std::byte> data,
                                      const Until& until = Until::ambient());
  // Writes all of `data`.
  net::Result<std::size_t> write_all(std::span<const std::byte> data,
                                     const Until& until = Until::ambient());
  // Writes all of `text`.
  net::Result<std::size_t> write_all(std::string_view text, const Until& until = Until::ambient()) {
    return write_all(std::as_bytes(std::span(text)), until);
  }
  // Sets the deadline of current and later reads; Deadline::never() removes the deadline.
  void set_read_deadline(Deadline deadline) noexcept;
  // Sets the deadline of current and later writes; Deadline::never() removes the deadline.
  void set_write_deadline(Deadline deadline) noexcept;

  // Sends close_notify, so the peer reads the end of the stream. Later writes by this side fail,
  // but its reads succeed until the peer's close_notify.
  net::Result<void> shutdown(const Until& until = Until::ambient());
  // Closes the connection without close_notify; calls fail with weft::Errc::closed. Bytes already
  // received stay readable.
  void close() noexcept;
  // Returns the TCP connection, for example to read its addresses.
  [[nodiscard]] net::TcpStream& tcp() noexcept;

  // Returns the negotiated ALPN protocol, or an empty string if there is none.
  [[nodiscard]] std::string alpn() const;
  // Returns the TLS version, such as "TLSv1.3".
  [[nodiscard]] std::string version() const;
  // Returns whether the handshake resumed an earlier session.
  [[nodiscard]] bool resumed() const noexcept;
  // Returns the subject of the peer's certificate, "CN = name"; empty without a certificate.
  [[nodiscard]] std::string peer_subject() const;
  // Returns the TLS data of the connection, including the peer's certificate.
  [[nodiscard]] net::TlsInfo info() const;

 private:
  explicit Stream(std::unique_ptr<StreamState> state) noexcept;
  static net::Result<Stream> begin(std::unique_ptr<StreamState> state, const Until& until);
  std::unique_ptr<StreamState> state_;
};

}  // namespace weft::tls
