// Writes response bodies from files.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <weft/error.hpp>
#include <weft/http/error.hpp>

#include "io/kernel.hpp"
#include "libs/http/server/answer.hpp"
#include "libs/http/server/server_connection.hpp"

namespace weft::http {

namespace {

struct Transfer {
  std::uint64_t size = 0;
  int error = 0;
};

// Not inlined, because a compiler might otherwise keep the address of errno across a switch, after
// which the fiber may run on another thread.
[[gnu::noinline]] Transfer read_part(int from, std::uint64_t offset,
                                     std::span<char> room) noexcept {
  if (io::FileKernel* files = io::simulated_files(from)) [[unlikely]] {
    const io::CallResult read = files->read(from, std::as_writable_bytes(room), offset);
    return {static_cast<std::uint64_t>(read.value), read.error};
  }
  for (;;) {
    const ssize_t count = ::pread(from, room.data(), room.size(), static_cast<off_t>(offset));
    if (count >= 0) return {static_cast<std::uint64_t>(count), 0};
    if (errno != EINTR) return {0, errno};
  }
}

std::error_code to_code(int error) noexcept { return {error, std::system_category()}; }

}  // namespace

std::error_code Answer::write_file(int descriptor, std::uint64_t offset, std::uint64_t size) {
  if (stage_ == Stage::complete || upgrade_.talk) return Errc::already_started;
  if (promise_ && size > *promise_ - written_ && !has_no_body()) return Errc::wrong_length;
  if (!started()) begin_stream();
  if (has_no_body()) return output_.flush();
  if (stage_ == Stage::chunks || coding_.gzip != nullptr ||
      connection_.transport().layer() != nullptr) {
    return copy_file(descriptor, offset, size);
  }
  if (const auto error = output_.flush()) return error;
  std::uint64_t sent = 0;
  const std::error_code error =
      connection_.transport().write_file(descriptor, offset, size, output_.allowance(), sent);
  written_ += sent;
  if (error) break_off();
  return error;
}

// Writes part of a file through a buffer, because sendfile() cannot send this body.
std::error_code Answer::copy_file(int descriptor, std::uint64_t offset, std::uint64_t size) {
  std::array<char, 8192> room;
  while (size > 0) {
    const auto part =
        std::span(room).first(static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), size)));
    const Transfer read = read_part(descriptor, offset, part);
    if (read.error != 0 || read.size == 0) {
      break_off();
      return read.error != 0 ? to_code(read.error) : make_error_code(Errc::wrong_length);
    }
    if (const auto error = write({part.data(), static_cast<std::size_t>(read.size)})) return error;
    offset += read.size;
    size -= read.size;
  }
  return {};
}

}  // namespace weft::http
