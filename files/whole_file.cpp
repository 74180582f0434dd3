// Files that are read and written as a whole.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <weft/error.hpp>
#include <weft/files.hpp>

#include "io/attempt.hpp"

namespace weft::files {

using io::CallResult;
using io::result_of;

namespace {

// These run on a thread that may block.
std::error_code write_to(int file, const std::string& data) noexcept {
  for (std::size_t done = 0; done < data.size();) {
    const CallResult result =
        result_of([&] { return ::write(file, data.data() + done, data.size() - done); });
    if (result.error != 0) return result.code();
    done += static_cast<std::size_t>(result.value);
  }
  return {};
}

Result<Descriptor> create(const std::string& path, int flags) noexcept {
  const CallResult opened =
      result_of([&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666); });
  if (opened.error != 0) return {.error = opened.code()};
  return {.value = Descriptor(static_cast<int>(opened.value))};
}

std::error_code write_over(const std::string& path, const std::string& data) noexcept {
  const auto [file, error] = create(path, O_TRUNC);
  return error ? error : write_to(file.get(), data);
}

// A new file beside `path`, whose name is told.
Result<Descriptor> create_beside(const std::string& path, std::string& name) {
  for (unsigned i = 0;; ++i) {
    name = path + '.' + std::to_string(::getpid()) + '.' + std::to_string(i) + ".new";
    Result<Descriptor> file = create(name, O_EXCL);
    if (file.error != std::errc::file_exists) return file;
  }
}

std::error_code replace(const std::string& path, const std::string& data) {
  std::string name;
  const Result<Descriptor> created = create_beside(path, name);
  const int file = created.value.get();
  std::error_code error = created.error;
  if (error) return error;
  error = write_to(file, data);
  struct stat old {};
  // The new file has the rights of the one that it replaces.
  if (!error && ::stat(path.c_str(), &old) == 0) {
    error = result_of([&] { return ::fchmod(file, old.st_mode & 07777); }).code();
  }
  if (!error) error = result_of([&] { return ::fdatasync(file); }).code();
  if (!error) error = result_of([&] { return ::rename(name.c_str(), path.c_str()); }).code();
  if (error) ::unlink(name.c_str());
  return error;
}

}  // namespace

Result<std::string> read_file(std::string path, const Until& until, std::size_t most) {
  auto [file, unopened] = File::open(std::move(path), {}, until);
  if (unopened) return {.error = unopened};
  // A guess: files of /proc have no size, and others grow.
  const std::uint64_t size = file.size().value;
  std::string text(std::min<std::uint64_t>(size, most) + 1, '\0');
  std::size_t done = 0;
  for (;;) {
    const auto room = std::as_writable_bytes(std::span(text)).subspan(done);
    const auto [count, error] = file.read_some(room, done, until);
    if (error == Errc::end_of_stream) break;
    if (error) return {.error = error};
    done += count;
    if (done > most) return {.error = std::make_error_code(std::errc::file_too_large)};
    if (done == text.size()) text.resize(std::min(std::max<std::size_t>(2 * done, 4096), most) + 1);
  }
  text.resize(done);
  return {.value = std::move(text)};
}

std::error_code write_file(std::string path, std::string data, const Until& until) {
  auto [failed, error] = file_group().run(
      [path = std::move(path), data = std::move(data)] { return write_over(path, data); }, until);
  return error ? error : failed;
}

std::error_code replace_file(std::string path, std::string data, const Until& until) {
  auto [failed, error] = file_group().run(
      [path = std::move(path), data = std::move(data)] { return replace(path, data); }, until);
  return error ? error : failed;
}

}  // namespace weft::files
