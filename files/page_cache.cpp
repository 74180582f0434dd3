#include "files/page_cache.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <memory>
#include <utility>
#include <weft/blocking_group.hpp>
#include <weft/descriptor.hpp>
#include <weft/files.hpp>

#include "io/kernel.hpp"

namespace weft::files {

using io::result_of;

namespace {

// No file has bytes at these offsets, and some of them would select the system's own position.
bool is_beyond_all(std::uint64_t offset) noexcept {
  return offset > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
}

CallResult or_would_wait(CallResult result) noexcept {
  // The file system does not support the call, the kernel lacks it, or a sandbox refuses it.
  if (result.error == EOPNOTSUPP || result.error == ENOSYS || result.error == EPERM) {
    result.error = EAGAIN;
  }
  return result;
}

[[gnu::noinline]] CallResult read_pieces_now(int file, std::span<const iovec> pieces,
                                             std::uint64_t offset) noexcept {
  if (is_beyond_all(offset)) return {};
  return or_would_wait(result_of([&] {
    return ::preadv2(file, pieces.data(), static_cast<int>(pieces.size()),
                     static_cast<off_t>(offset), RWF_NOWAIT);
  }));
}

}  // namespace

CallResult read_now(int file, std::span<std::byte> buffer, std::uint64_t offset) noexcept {
  if (io::FileKernel* files = io::simulated_files(file)) [[unlikely]]
    return files->read(file, buffer, offset);
  const iovec piece{buffer.data(), buffer.size()};
  return read_pieces_now(file, {&piece, 1}, offset);
}

[[gnu::noinline]] CallResult write_now(int file, std::span<const std::byte> data,
                                       std::uint64_t offset) noexcept {
  if (is_beyond_all(offset)) return {0, EFBIG};
  if (io::FileKernel* files = io::simulated_files(file)) [[unlikely]]
    return files->write(file, data, offset);
  // The system does not write to the data that it writes to a file.
  const iovec piece{const_cast<std::byte*>(data.data()), data.size()};
  return or_would_wait(result_of(
      [&] { return ::pwritev2(file, &piece, 1, static_cast<off_t>(offset), RWF_NOWAIT); }));
}

bool is_cached_hint(int file, std::uint64_t offset, std::size_t size) noexcept {
  if (io::simulated_files(file) != nullptr) [[unlikely]]
    return true;
  // All pieces are read to the same place, which stays in the processor's nearest cache.
  std::array<std::byte, 4096> nowhere;
  std::array<iovec, 32> pieces;
  pieces.fill({nowhere.data(), nowhere.size()});
  for (std::size_t done = 0; done < size;) {
    const std::size_t wanted = (size - done + nowhere.size() - 1) / nowhere.size();
    const auto some = std::span(pieces).first(std::min(wanted, pieces.size()));
    const CallResult read = read_pieces_now(file, some, offset + done);
    if (read.would_wait()) return false;
    // At the end of a file, or if the file cannot be read, the call does not wait.
    if (read.error != 0 || read.value == 0) break;
    done += static_cast<std::size_t>(read.value);
  }
  return true;
}

[[gnu::noinline]] std::error_code bring_in(int file, std::uint64_t offset, std::size_t size,
                                           const Until& until) {
  const CallResult copied = result_of([=] { return ::fcntl(file, F_DUPFD_CLOEXEC, 0); });
  if (copied.error != 0) return copied.code();
  auto read_it = [own = Descriptor(static_cast<int>(copied.value)), offset, size] {
    // Reads the bytes and drops them: after a mere request (readahead) they may not be there yet.
    const auto scratch = std::make_unique_for_overwrite<std::byte[]>(size);
    for (std::size_t done = 0; done < size;) {
      const CallResult result = result_of([&] {
        return ::pread(own.get(), scratch.get(), size - done, static_cast<off_t>(offset + done));
      });
      if (result.error != 0) return result.code();
      if (result.value == 0) break;
      done += static_cast<std::size_t>(result.value);
    }
    return std::error_code{};
  };
  auto [failed, error] = file_group().run(std::move(read_it), until);
  return error ? error : failed;
}

}  // namespace weft::files
