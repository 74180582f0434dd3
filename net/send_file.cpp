#include <algorithm>
#include <weft/net/byte_stream.hpp>

#include "files/page_cache.hpp"
#include "net/transfer.hpp"

namespace weft::net {

Result<std::uint64_t> ByteStream::send_file(int file, std::uint64_t offset, std::uint64_t size,
                                            const Until& until) {
  // Each step checks and sends at most this many bytes of the file.
  constexpr std::uint64_t kPart = 256 * 1024;
  const io::IoUse use(socket_.handle());
  if (!use) return {.error = Errc::closed};
  std::uint64_t brought = 0;  // The position up to which the thread has read.
  std::uint64_t done = 0;
  while (done < size) {
    const std::uint64_t position = offset + done;
    const auto part = static_cast<std::size_t>(std::min(size - done, kPart));
    if (position >= brought && !files::is_cached_hint(file, position, part)) {
      if (const auto error = files::bring_in(file, position, part, until)) {
        return {.value = done, .error = error};
      }
      brought = position + part;
    }
    const auto [count, error] = write_with(*use, until, [&]() noexcept {
      return send_from_file(use->descriptor(), file, position, part);
    });
    if (error) return {.value = done, .error = error};
    if (count == 0) return {.value = done, .error = Errc::end_of_stream};
    done += count;
  }
  return {.value = done};
}

}  // namespace weft::net
