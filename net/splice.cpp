#include "net/splice.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <span>
#include <vector>
#include <weft/descriptor.hpp>
#include <weft/error.hpp>

#include "io/kernel.hpp"
#include "net/transfer.hpp"

namespace weft::net {

namespace {

// The default capacity of a pipe.
constexpr std::size_t kPipeRoom = 64 * 1024;

// Not inlined, like all calls that read errno (net/system_calls.hpp).
[[gnu::noinline]] CallResult splice_bytes(int from, int to, std::size_t size) noexcept {
  io::NoPipeSignal quiet;
  return quiet.note(io::result_of([=] {
    return ::splice(from, nullptr, to, nullptr, size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  }));
}

[[gnu::noinline]] CallResult read_from_pipe(int pipe, std::span<std::byte> buffer) noexcept {
  return io::result_of([=] { return ::read(pipe, buffer.data(), buffer.size()); });
}

bool is_unsupported(const std::error_code& error) noexcept {
  return error.category() == std::system_category() &&
         (error.value() == EINVAL || error.value() == ENOSYS);
}

Result<std::size_t> fill_pipe(io::IoHandle& from, int pipe, const Until& until) noexcept {
  io::IoDirection& direction = from.read();
  const auto [count, error] =
      attempt_until(direction, detail::WaitReason::readable, until, true,
                    [&]() noexcept { return splice_bytes(from.descriptor(), pipe, kPipeRoom); });
  // The wait may have consumed the edge that the next read would check.
  direction.set_drained(false);
  return {.value = static_cast<std::size_t>(count), .error = error};
}

// Returns how many of the `size` bytes in the pipe the descriptor has accepted.
Result<std::size_t> empty_pipe(int pipe, io::IoHandle& to, std::size_t size,
                               const Until& until) noexcept {
  std::size_t done = 0;
  while (done < size) {
    const auto [count, error] = write_with(
        to, until, [&]() noexcept { return splice_bytes(pipe, to.descriptor(), size - done); });
    if (error) return {.value = done, .error = error};
    done += count;
  }
  return {.value = done};
}

Result<std::size_t> write_out(int pipe, const detail::ByteSink& sink, std::size_t size,
                              const Until& until) {
  std::vector<std::byte> buffer(size);
  const CallResult got = read_from_pipe(pipe, buffer);
  if (got.error != 0) return {.error = got.code()};
  return sink.write(sink.stream, std::span(buffer).first(static_cast<std::size_t>(got.value)),
                    until);
}

}  // namespace

Spliced copy_by_splice(io::IoHandle& from, io::IoHandle& to, const detail::ByteSink& sink,
                       const Until& until) {
  const io::IoUse source(&from);
  const io::IoUse target(&to);
  if (!source || !target) return {.moved = {.error = Errc::closed}};
  // A simulation's descriptors are not the kernel's.
  if (io::simulated_kernel() != nullptr) return {.is_done = false};
  std::array<int, 2> ends{};
  // Without descriptors for a pipe, a buffer works as well.
  if (io::open_pipe(ends).error != 0) return {.is_done = false};
  const Descriptor out(ends[0]);
  const Descriptor in(ends[1]);
  for (std::uint64_t done = 0;;) {
    const auto [count, failed] = fill_pipe(from, in.get(), until);
    if (is_unsupported(failed)) return {.moved = {.value = done}, .is_done = false};
    if (failed || count == 0) return {.moved = {.value = done, .error = failed}};
    const auto [moved, refused] = empty_pipe(out.get(), to, count, until);
    done += moved;
    if (is_unsupported(refused)) {
      const auto [written, error] = write_out(out.get(), sink, count - moved, until);
      return {.moved = {.value = done + written, .error = error}, .is_done = bool(error)};
    }
    if (refused) return {.moved = {.value = done, .error = refused}};
    // Streams that are always ready end no wait, so the loop checks the limit itself.
    if (until.is_over()) return {.moved = {.value = done, .error = until.reason()}};
  }
}

}  // namespace weft::net
