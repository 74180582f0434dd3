// Connections within this machine.
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

// The process that opened the other end, and its user, when it connected or listened.
struct PeerCredentials {
  std::int64_t process = 0;
  std::uint32_t user = 0;
  std::uint32_t group = 0;
};

// Bytes, and descriptors that came with them.
struct ReceivedDescriptors {
  std::size_t size = 0;
  std::vector<Descriptor> descriptors;
};

struct UnixStreamPair;

// A ByteStream over a Unix socket; all that is said there holds.
class UnixStream : public ByteStream {
 public:
  UnixStream() noexcept = default;
  // Listeners make it of a socket that is connected.
  explicit UnixStream(Socket socket) noexcept;

  // Connects. While the listener's backlog is full it tries again, after pauses from 1 ms to 50 ms:
  // the system has no better way. Parks. Errors: connection_refused: no server listens there;
  // no_such_file_or_directory; Errc::timed_out, cancelled, no_runtime; the system's.
  static Result<UnixStream> connect(const UnixAddress& address, const Until& until = {});
  // Returns two that are connected with each other. Never parks.
  static Result<UnixStreamPair> pair();
  // Works as TcpStream::adopt() does.
  static Result<UnixStream> adopt(int descriptor);

  // The peer, by process, user and group, as the system saw it then. Never parks. Errors:
  // Errc::closed; the system's.
  Result<PeerCredentials> peer_credentials() const noexcept;
  // This end's; unnamed unless it is bound. Never parks. Errors: Errc::closed; the system's.
  Result<UnixAddress> local_address() const noexcept;
  // The other end's; unnamed unless it is bound. Never parks. Errors: as local_address().
  Result<UnixAddress> peer_address() const noexcept;

  // Writes `data`, at least one byte, and with it the descriptors, of which the peer gets copies;
  // at most 64. Errors: as write_all(); std::errc::invalid_argument for no data or too many.
  // Descriptors that come while the peer makes an ordinary read are closed by the system.
  Result<std::size_t> send_descriptors(std::span<const std::byte> data,
                                       std::span<const int> descriptors, const Until& until = {});
  // As read_some(), and takes the descriptors that came with these bytes; they are close-on-exec.
  // Errors further: too_many_files_open: the process has no room for them all, and the ones that
  // came are closed; the bytes have been read.
  Result<ReceivedDescriptors> receive_descriptors(std::span<std::byte> buffer,
                                                  const Until& until = {});
};

struct UnixStreamPair {
  UnixStream first;
  UnixStream second;
};

}  // namespace weft::net
