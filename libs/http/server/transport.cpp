#include "libs/http/server/transport.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <weft/error.hpp>
#include <weft/http/error.hpp>

#include "io/poller.hpp"
#include "libs/http/server/allowance.hpp"

namespace weft::http {

namespace {

// Returns the IoDirection for reads from the stream's socket, even if the socket is closed. Returns
// null if an upgrade has taken the stream.
io::IoDirection* reading_of(const net::TcpStream& stream) noexcept {
  io::IoHandle* const handle = stream.socket().handle();
  return handle == nullptr ? nullptr : &handle->read();
}

}  // namespace

void Transport::expect_bytes() noexcept {
  if (io::IoDirection* const direction = reading_of(stream_)) direction->set_drained(false);
}

bool Transport::may_have_bytes() noexcept {
  if (link().may_have_read_ahead()) return true;
  io::IoDirection* const direction = reading_of(stream_);
  return direction == nullptr || direction->worth_trying();
}

bool Transport::has_bytes() {
  return link().may_have_read_ahead() ||
         stream_.wait_readable(Deadline::past()) != weft::Errc::timed_out;
}

net::Result<std::size_t> Transport::read(std::span<std::byte> room, Deadline deadline) {
  std::optional<ClientWait> wait;
  if (deadline != Deadline::past()) wait.emplace(progress_, ClientWait::For::bytes);
  const auto result = link().read_some(room, deadline);
  if (!result.error) progress_.count_received(result.value);
  return result;
}

std::error_code Transport::write(std::string_view text, Allowance& allowance) {
  auto bytes = std::as_bytes(std::span(text));
  if (layer_ != nullptr) return write_by_layer(bytes, allowance);
  // Most responses fit into the send buffer, so the first attempt does not wait or read the clock.
  auto result = stream_.write_some(bytes, Deadline::past());
  allowance.earn(result.value);
  for (;;) {
    progress_.count_sent(result.value);
    bytes = bytes.subspan(result.value);
    if (result.error && result.error != weft::Errc::timed_out) return result.error;
    if (bytes.empty()) return {};
    const ClientWait wait(progress_, ClientWait::For::room);
    result = allowance.wait(
        [&](const Deadline deadline) { return stream_.write_some(bytes, deadline); });
    if (result.error == weft::Errc::timed_out && !allowance.covers(result)) return result.error;
  }
}

// Writes the bytes in parts, because progress becomes visible only when a call returns.
std::error_code Transport::write_by_layer(std::span<const std::byte> bytes, Allowance& allowance) {
  constexpr std::size_t kPart = 64 * 1024;
  const ClientWait wait(progress_, ClientWait::For::room);
  for (;;) {
    const auto part = bytes.first(std::min(kPart, bytes.size()));
    const auto result =
        allowance.wait([&](const Deadline deadline) { return layer_->write_all(part, deadline); });
    progress_.count_sent(result.value);
    bytes = bytes.subspan(result.value);
    if (result.error && !allowance.covers(result)) return result.error;
    // A layer may accept all bytes but fail to deliver them in time. The loop then calls the layer
    // again with an empty span.
    if (!result.error && bytes.empty()) return {};
  }
}

// Sends the file in parts, because the progress is known only when send_file() returns.
std::error_code Transport::write_file(int descriptor, std::uint64_t offset, std::uint64_t size,
                                      Allowance& allowance, std::uint64_t& written) {
  constexpr std::uint64_t kPart = 256 * 1024;
  while (written < size) {
    const ClientWait wait(progress_, ClientWait::For::room);
    const auto result = allowance.wait([&](const Deadline deadline) {
      return stream_.send_file(descriptor, offset + written, std::min(kPart, size - written),
                               deadline);
    });
    written += result.value;
    // The file has become shorter.
    if (result.error == weft::Errc::end_of_stream) return Errc::wrong_length;
    if (result.error && !allowance.covers(result)) return result.error;
  }
  return {};
}

// Reads and drops received bytes. A client that is still sending a large body can thus receive the
// refusal.
void Transport::linger() {
  const Deadline deadline = Deadline::after(std::chrono::seconds(1));
  if (layer_ != nullptr) (void)layer_->shutdown(deadline);
  if (!stream_.shutdown(net::Shutdown::write)) return;
  std::array<char, 4096> room;
  // Reads directly from the stream, not through the layer, because these bytes are dropped. Checks
  // the clock, because a read that finds bytes succeeds even after its deadline.
  while (!deadline.passed()) {
    if (stream_.read_some(std::as_writable_bytes(std::span(room)), deadline).error) return;
  }
}

void Transport::reset() noexcept {
  (void)stream_.set_reset_on_close(true);
  stream_.close();
}

}  // namespace weft::http
