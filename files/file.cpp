#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <weft/detail/turn.hpp>
#include <weft/error.hpp>
#include <weft/files.hpp>

#include "files/page_cache.hpp"
#include "files/regular.hpp"
#include "io/kernel.hpp"

namespace weft::files {

using io::result_of;

namespace {

// A thread transfers at most this many bytes in one call.
constexpr std::size_t kMost = std::size_t{1} << 20;

int flags_of(const OpenOptions& options) noexcept {
  int flags = kOpening;
  if (options.access == Access::read) flags |= O_RDONLY;
  if (options.access == Access::write) flags |= O_WRONLY;
  if (options.access == Access::read_write) flags |= O_RDWR;
  if (options.create) flags |= O_CREAT;
  if (options.exclusive) flags |= O_EXCL;
  if (options.truncate) flags |= O_TRUNC;
  if (options.append) flags |= O_APPEND;
  return flags;
}

// Opens a file if its path can be looked up without waiting.
[[gnu::noinline]] CallResult open_now(const std::string& path, int flags, unsigned mode) noexcept {
  if (io::FileKernel* files = io::simulated_files()) [[unlikely]]
    return files->open(path, flags, mode);
#if defined(SYS_openat2) && defined(RESOLVE_CACHED)
  if ((flags & (O_CREAT | O_TRUNC)) == 0) {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags);
    how.resolve = RESOLVE_CACHED;
    return result_of(
        [&] { return ::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how); });
  }
#endif
  return {0, EAGAIN};
}

// Adopts the descriptor, even if there is no memory for its owner.
std::shared_ptr<const Descriptor> share(const CallResult& opened) {
  Descriptor own(static_cast<int>(opened.value));
  return std::make_shared<const Descriptor>(std::move(own));
}

// A piece that a thread has read.
struct Chunk {
  CallResult result;
  std::unique_ptr<std::byte[]> bytes;
};

}  // namespace

Result<File> File::open(std::string path, const OpenOptions& options, const Until& until) {
  if (const auto malformed = check_path(path)) return {.error = malformed};
  const int flags = flags_of(options);
  CallResult opened = open_now(path, flags, options.mode);
  // Other errors may come from a sandbox or an old kernel: the thread tries again.
  if (opened.error == ENOENT) return {.error = opened.code()};
  std::shared_ptr<const Descriptor> file;
  if (opened.error == 0) {
    file = share(opened);
  } else {
    auto [made, error] = file_group().run(
        [name = std::move(path), flags, mode = options.mode] {
          const CallResult result = open_waiting(name, flags, mode);
          Result<std::shared_ptr<const Descriptor>> own{.error = result.code()};
          if (!own.error) own.value = share(result);
          return own;
        },
        until);
    if (error) return {.error = error};
    if (made.error) return {.error = made.error};
    file = std::move(made.value);
  }
  if (const auto error = check_kind(file->get())) return {.error = error};
  return {.value = File(std::move(file), options.append)};
}

Result<std::size_t> File::read_some(std::span<std::byte> buffer, std::uint64_t offset,
                                    const Until& until) {
  if (!file_) return {.error = Errc::closed};
  if (buffer.empty()) return {};
  CallResult result = read_now(file_->get(), buffer, offset);
  if (result.would_wait()) {
    // Reads into separate memory, because the thread may continue when the wait is over.
    auto [chunk, error] = file_group().run(
        [file = file_, offset, size = std::min(buffer.size(), kMost)] {
          Chunk read{.result = {}, .bytes = std::make_unique_for_overwrite<std::byte[]>(size)};
          read.result = result_of([&] {
            return ::pread(file->get(), read.bytes.get(), size, static_cast<off_t>(offset));
          });
          return read;
        },
        until);
    if (error) return {.error = error};
    result = chunk.result;
    std::copy_n(chunk.bytes.get(), result.value, buffer.data());
  } else {
    detail::give_way_if_due();
  }
  if (result.error != 0) return {.error = result.code()};
  if (result.value == 0) return {.error = Errc::end_of_stream};
  return {.value = static_cast<std::size_t>(result.value)};
}

Result<std::size_t> File::read_exactly(std::span<std::byte> buffer, std::uint64_t offset,
                                       const Until& until) {
  std::size_t done = 0;
  while (done < buffer.size()) {
    const auto [count, error] = read_some(buffer.subspan(done), offset + done, until);
    if (error) return {.value = done, .error = error};
    done += count;
  }
  return {.value = done};
}

Result<std::size_t> File::write_all(std::span<const std::byte> data, std::uint64_t offset,
                                    const Until& until) {
  if (!file_) return {.error = Errc::closed};
  std::size_t done = 0;
  while (done < data.size()) {
    const std::span<const std::byte> part = data.subspan(done, std::min(data.size() - done, kMost));
    const std::uint64_t position = offset + done;
    CallResult result = write_now(file_->get(), part, position);
    if (result.would_wait()) {
      auto [written, error] = file_group().run(
          [file = file_, copy = std::vector<std::byte>(part.begin(), part.end()), position] {
            return result_of([&] {
              return ::pwrite(file->get(), copy.data(), copy.size(), static_cast<off_t>(position));
            });
          },
          until);
      if (error) return {.value = done, .error = error};
      result = written;
    } else {
      detail::give_way_if_due();
    }
    if (result.error != 0) return {.value = done, .error = result.code()};
    done += static_cast<std::size_t>(result.value);
  }
  return {.value = done};
}

Result<std::size_t> File::append(std::span<const std::byte> data, const Until& until) {
  if (file_ && !appends_) return {.error = std::make_error_code(std::errc::invalid_argument)};
  return write_all(data, 0, until);
}

Result<void> File::sync(const Until& until) {
  if (!file_) return Errc::closed;
  auto [result, error] = file_group().run([file = file_] { return sync_data(file->get()); }, until);
  return error ? error : result.code();
}

Result<std::uint64_t> File::size() const noexcept {
  if (!file_) return {.error = Errc::closed};
  struct stat found {};
  const CallResult result = look_at(file_->get(), found);
  return {.value = static_cast<std::uint64_t>(found.st_size), .error = result.code()};
}

}  // namespace weft::files
