// Reads and writes of whole files.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <stdexcept>
#include <utility>
#include <weft/error.hpp>
#include <weft/files.hpp>

#include "files/names.hpp"
#include "files/regular.hpp"
#include "io/kernel.hpp"

namespace weft::files {

using io::result_of;

namespace {

// The functions below run on a thread that may block, or in a simulation on a fiber.

// Writes at `position`, the end of the file.
[[gnu::noinline]] CallResult append(int file, std::string_view data,
                                    std::size_t position) noexcept {
  if (io::FileKernel* files = io::simulated_files(file)) [[unlikely]]
    return files->write(file, std::as_bytes(std::span(data)), position);
  return result_of([&] { return ::write(file, data.data(), data.size()); });
}

std::error_code write_to(int file, const std::string& data) noexcept {
  for (std::size_t done = 0; done < data.size();) {
    const CallResult result = append(file, std::string_view(data).substr(done), done);
    if (result.error != 0) return result.code();
    done += static_cast<std::size_t>(result.value);
  }
  return {};
}

// Opens a file for writing. `mode` is that of a new file, before the process's umask.
Result<Descriptor> create(const std::string& path, int flags, mode_t mode) noexcept {
  const CallResult opened = open_waiting(path, O_WRONLY | O_CREAT | kOpening | flags, mode);
  if (opened.error != 0) return {.error = opened.code()};
  return {.value = Descriptor(static_cast<int>(opened.value))};
}

std::error_code write_over(const std::string& path, const std::string& data) noexcept {
  const auto [file, unopened] = create(path, O_TRUNC, 0666);
  if (unopened) return unopened;
  const auto other = check_kind(file.get());
  return other ? other : write_to(file.get(), data);
}

// Makes a new file in the directory of `path`, and returns its name in `name`. The length of its
// file name does not depend on the file name in `path`, which may have the maximum length.
Result<Descriptor> create_beside(const std::string& path, std::string& name, mode_t mode) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  // A simulated host is a single process, and names are the same in each run.
  const pid_t process = io::simulated_files() != nullptr ? 1 : ::getpid();
  for (unsigned i = 0;; ++i) {
    name = folder + ".weft." + std::to_string(process) + '.' + std::to_string(i) + ".new";
    Result<Descriptor> file = create(name, O_EXCL, mode);
    if (file.error != std::errc::file_exists) return file;
  }
}

// Copies the owner and the rights of `old`. If the system refuses to set an owner or a group, the
// function omits it. It also omits the rights that would then go to other users.
[[gnu::noinline]] std::error_code take_rights(int file, const struct stat& old) noexcept {
  mode_t mode = old.st_mode & 07777;
  if (io::FileKernel* files = io::simulated_files(file)) [[unlikely]]
    return files->set_mode(file, mode).code();
  if (::fchown(file, old.st_uid, old.st_gid) != 0) {
    mode &= ~static_cast<mode_t>(S_ISUID);
    constexpr auto kSameOwner = static_cast<uid_t>(-1);
    if (::fchown(file, kSameOwner, old.st_gid) != 0)
      mode &= ~static_cast<mode_t>(S_ISGID | S_IRWXG);
  }
  return result_of([&] { return ::fchmod(file, mode); }).code();
}

std::error_code replace(const std::string& path, const std::string& data) {
  struct stat old {};
  const CallResult looked = look_at_path(path, old);
  const bool is_new = looked.error == ENOENT;
  if (looked.error != 0 && !is_new) return looked.code();
  // rename() would replace a device by a regular file, and the machine may need the device.
  if (!is_new) {
    if (const auto other = check_mode(old.st_mode)) return other;
  }
  std::string name;
  // Only its owner may read the file until it has the rights of the file that it replaces.
  const Result<Descriptor> created = create_beside(path, name, is_new ? 0666 : 0600);
  const int file = created.value.get();
  std::error_code error = created.error;
  if (error) return error;
  error = write_to(file, data);
  if (!error && !is_new) error = take_rights(file, old);
  if (!error) error = sync_data(file).code();
  if (!error) error = rename_path(name, path).code();
  if (error) clean_up(name);
  return error;
}

// Resizes `text`, or returns why there is no room.
std::error_code resize(std::string& text, std::size_t size) noexcept {
  try {
    text.resize(size);
    return {};
  } catch (const std::bad_alloc&) {
    return std::make_error_code(std::errc::not_enough_memory);
  } catch (const std::length_error&) {
    return std::make_error_code(std::errc::file_too_large);
  }
}

}  // namespace

Result<std::string> read_file(std::string path, std::size_t most, const Until& until) {
  auto [file, unopened] = File::open(std::move(path), {}, until);
  if (unopened) return {.error = unopened};
  // This is an estimate, because files in /proc report a size of 0, and other files may grow.
  const std::uint64_t size = file.size().value;
  std::string text;
  if (const auto full = resize(text, std::min<std::uint64_t>(size, most) + 1)) {
    return {.error = full};
  }
  std::size_t done = 0;
  for (;;) {
    const auto room = std::as_writable_bytes(std::span(text)).subspan(done);
    const auto [count, error] = file.read_some(room, done, until);
    if (error == Errc::end_of_stream) break;
    if (error) return {.error = error};
    done += count;
    if (done > most) return {.error = std::make_error_code(std::errc::file_too_large)};
    if (done < text.size()) continue;
    if (const auto full = resize(text, std::min(std::max<std::size_t>(2 * done, 4096), most) + 1)) {
      return {.error = full};
    }
  }
  text.resize(done);
  return {.value = std::move(text)};
}

Result<std::string> read_file(std::string path, const Until& until) {
  return read_file(std::move(path), std::numeric_limits<std::size_t>::max(), until);
}

Result<void> write_file(std::string path, std::string data, const Until& until) {
  if (const auto malformed = check_path(path)) return malformed;
  auto [failed, error] = file_group().run(
      [path = std::move(path), data = std::move(data)] { return write_over(path, data); }, until);
  return error ? error : failed;
}

Result<void> replace_file(std::string path, std::string data, const Until& until) {
  if (const auto malformed = check_path(path)) return malformed;
  auto [failed, error] = file_group().run(
      [path = std::move(path), data = std::move(data)] { return replace(path, data); }, until);
  return error ? error : failed;
}

}  // namespace weft::files
