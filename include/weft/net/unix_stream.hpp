// Provides connections within this machine.
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

// Describes the process at the other end and its user, as of its call of connect() or listen().
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
  // Takes a connected socket, from a listener for example.
  explicit UnixStream(Socket socket) noexcept;

  // Connects; parks. While the listener's backlog is full, the call retries after pauses from 1 ms
  // to 50 ms, because the system offers no better way.
  // Errors: connection_refused if no server listens there; no_such_file_or_directory;
  // Errc::timed_out, cancelled, no_runtime; errors of the system.
  static Result<UnixStream> connect(const UnixAddress& address,
                                    const Until& until = Until::ambient());
  // Returns two connected streams.
  static Result<UnixStreamPair> pair();
  // Takes a connected socket of another library, as TcpStream::adopt() does.
  static Result<UnixStream> adopt(int descriptor);

  // Returns the process, user and group of the peer, as the system recorded them.
  Result<PeerCredentials> peer_credentials() const noexcept;
  // Returns the address of this end, which is unnamed unless this end is bound.
  Result<UnixAddress> local_address() const noexcept;
  // Returns the address of the other end, which is unnamed unless that end is bound.
  Result<UnixAddress> peer_address() const noexcept;

  // Writes `data`, at least one byte, with at most 64 descriptors, of which the peer receives
  // copies. If the peer uses an ordinary read, the copies are dropped.
  // Errors: also std::errc::invalid_argument for no data or too many descriptors.
  Result<std::size_t> send_descriptors(std::span<const std::byte> data,
                                       std::span<const int> descriptors,
                                       const Until& until = Until::ambient());
  // Reads as read_some() does, and takes the descriptors of these bytes, which are close-on-exec.
  // Errors: also too_many_files_open if the process has no room for all descriptors. Received
  // descriptors are then closed; the bytes have been read.
  Result<ReceivedDescriptors> receive_descriptors(std::span<std::byte> buffer,
                                                  const Until& until = Until::ambient());
};

struct UnixStreamPair {
  UnixStream first;
  UnixStream second;
};

}  // namespace weft::net
