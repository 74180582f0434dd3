// Provides byte streams between processes on the same machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <vector>
#include <weft/descriptor.hpp>
#include <weft/net/byte_stream.hpp>
#include <weft/net/result.hpp>
#include <weft/net/unix_address.hpp>
#include <weft/until.hpp>

namespace weft::net {

// Holds the peer's process, user and group as of the peer's call to connect(), listen() or pair().
struct PeerCredentials {
  std::int64_t process = 0;
  std::uint32_t user = 0;
  std::uint32_t group = 0;
};

// Holds the number of received bytes, and the descriptors that were sent with these bytes.
struct ReceivedDescriptors {
  std::size_t size = 0;
  std::vector<Descriptor> descriptors;
};

struct UnixStreamPair;

// Implements a ByteStream over a Unix socket.
// Context, Errors, Throws: as for ByteStream; connect(), pair() and adopt() may also return
// Errc::no_runtime.
class UnixStream : public ByteStream {
 public:
  UnixStream() noexcept = default;
  // Takes over a connected socket, for example from a listener.
  explicit UnixStream(Socket socket) noexcept;

  // Connects; parks. While the listener's backlog is full, the call retries after pauses from 1 ms
  // to 50 ms, because the system does not report when the backlog has room.
  // Errors: connection_refused if no server listens at `address`; no_such_file_or_directory;
  // Errc::timed_out, cancelled, no_runtime; other system errors.
  static Result<UnixStream> connect(const UnixAddress& address,
                                    const Until& until = Until::ambient());
  // Returns two connected streams.
  static Result<UnixStreamPair> pair();
  // Takes over a connected socket from another library, as TcpStream::adopt() does.
  static Result<UnixStream> adopt(int descriptor);

  // Returns the process, user and group of the peer, as the system recorded them.
  Result<PeerCredentials> peer_credentials() const noexcept;
  // Returns the local address, which is unnamed unless this socket is bound or was accepted.
  Result<UnixAddress> local_address() const noexcept;
  // Returns the peer's address, which is unnamed unless the peer's socket is bound or was accepted.
  Result<UnixAddress> peer_address() const noexcept;

  // Writes at least one byte of `data`, and sends copies of at most 64 descriptors to the peer. If
  // the peer uses an ordinary read, the copies are dropped.
  // Errors: also std::errc::invalid_argument for empty `data` or more than 64 descriptors.
  Result<std::size_t> send_descriptors(std::span<const std::byte> data,
                                       std::span<const int> descriptors,
                                       const Until& until = Until::ambient());
  // Reads as read_some() does, and receives the descriptors (close-on-exec) sent with the bytes.
  // Errors: also too_many_files_open if the process cannot open all descriptors, or if the peer
  // sent more than 64. In both cases, the call consumes the bytes and closes the descriptors.
  Result<ReceivedDescriptors> receive_descriptors(std::span<std::byte> buffer,
                                                  const Until& until = Until::ambient());
};

struct UnixStreamPair {
  UnixStream first;
  UnixStream second;
};

}  // namespace weft::net
