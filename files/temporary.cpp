#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <weft/descriptor.hpp>
#include <weft/error.hpp>
#include <weft/temporary_files.hpp>

#include "files/names.hpp"
#include "files/regular.hpp"
#include "io/attempt.hpp"
#include "io/kernel.hpp"

namespace weft::files {

namespace {

constexpr mode_t kPrivateFile = 0600;
constexpr mode_t kPrivateDirectory = 0700;

// Owns what a thread has made until the caller takes it; a caller whose wait has ended never takes
// it. The destructor must not call file_group(), because it may run on a thread of that group.
class Unclaimed {
 public:
  Unclaimed() noexcept = default;
  explicit Unclaimed(std::string path) noexcept : path_(std::move(path)) {}
  Unclaimed(Unclaimed&& other) noexcept
      : path_(std::exchange(other.path_, {})), descriptor(std::move(other.descriptor)) {}
  Unclaimed& operator=(Unclaimed&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(descriptor, other.descriptor);
    return *this;
  }
  ~Unclaimed() {
    if (!path_.empty()) clean_up(path_);
  }
  [[nodiscard]] std::string claim() noexcept { return std::exchange(path_, {}); }

 private:
  std::string path_;

 public:
  std::shared_ptr<const Descriptor> descriptor;  // Null for a directory.
};

// Returns a name that no other process can predict. In a simulation, names are the same in each
// run.
[[gnu::noinline]] Result<std::string> next_name(std::uint64_t attempt) {
  if (io::simulated_files() != nullptr) return {.value = std::to_string(attempt)};
  std::array<unsigned char, 12> bits{};
  // The system returns this few random bytes in a single call.
  const CallResult drawn = io::result_of([&] { return ::getrandom(bits.data(), bits.size(), 0); });
  if (drawn.error != 0) return {.error = drawn.code()};
  std::string name;
  for (const unsigned char each : bits) name += "abcdefghijklmnopqrstuvwxyz012345"[each % 32];
  return {.value = std::move(name)};
}

// Calls `make` with new paths until it succeeds, or fails with an error other than file_exists.
template <class Make>
Result<Unclaimed> make_with_new_name(const TemporaryOptions& options, Make make) {
  for (std::uint64_t attempt = 0;; ++attempt) {
    const auto [name, refused] = next_name(attempt);
    if (refused) return {.error = refused};
    std::string path = options.folder + options.prefix + name + options.suffix;
    Result<Unclaimed> made = make(std::move(path));
    if (made.error != std::errc::file_exists) return made;
  }
}

Result<Unclaimed> make_file_at(std::string path) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | kOpening;
  const CallResult opened = open_waiting(path, kFlags, kPrivateFile);
  if (opened.error != 0) return {.error = opened.code()};
  Descriptor own(static_cast<int>(opened.value));
  Result<Unclaimed> made{.value = Unclaimed(std::move(path))};
  made.value.descriptor = std::make_shared<const Descriptor>(std::move(own));
  return made;
}

Result<Unclaimed> make_directory_at(std::string path) {
  const CallResult created = make_directory(path, kPrivateDirectory);
  if (created.error != 0) return {.error = created.code()};
  return {.value = Unclaimed(std::move(path))};
}

std::error_code check_options(const TemporaryOptions& options) {
  if ((options.prefix + options.suffix).find('/') != std::string::npos) {
    return std::make_error_code(std::errc::invalid_argument);
  }
  return check_path(options.folder + options.prefix + options.suffix);
}

// Ends `folder` with a slash.
TemporaryOptions completed(TemporaryOptions options) {
  if (options.folder.empty()) {
    // A simulated host has no environment.
    const char* const folder = io::simulated_files() != nullptr ? nullptr : ::getenv("TMPDIR");
    options.folder = folder != nullptr && *folder != '\0' ? folder : "/tmp";
  }
  if (!options.folder.ends_with('/')) options.folder += '/';
  return options;
}

Result<Unclaimed> make_temporary(const TemporaryOptions& options,
                                 Result<Unclaimed> (*make)(std::string path), const Until& until) {
  if (const auto malformed = check_options(options)) return {.error = malformed};
  auto [made, error] = file_group().run(
      [wanted = completed(options), make] { return make_with_new_name(wanted, make); }, until);
  if (error) return {.error = error};
  return std::move(made);
}

// Removes a path on a thread. Returns false if there is no thread or no memory for the call.
bool remove_on_thread(const std::string& path) noexcept try {
  return !file_group().run([path] { (void)remove_tree(path); }, Until::never()).error;
} catch (const std::bad_alloc&) {
  return false;
}

void remove_here(const std::string& path) noexcept try {
  (void)remove_tree(path);
} catch (const std::bad_alloc&) {
  clean_up(path);
}

}  // namespace

TemporaryPath& TemporaryPath::operator=(TemporaryPath&& other) noexcept {
  if (this != &other) {
    discard();
    path_ = other.release();
  }
  return *this;
}

void TemporaryPath::discard() noexcept {
  if (path_.empty()) return;
  const std::string path = release();
  if (!remove_on_thread(path)) remove_here(path);
}

Result<TemporaryFile> TemporaryFile::create(const TemporaryOptions& options, const Until& until) {
  auto [made, error] = make_temporary(options, &make_file_at, until);
  if (error) return {.error = error};
  Result<TemporaryFile> result;
  result.value.file_ = File(std::move(made.descriptor), false);
  result.value.path_ = TemporaryPath(made.claim());
  return result;
}

Result<void> TemporaryFile::keep_as(std::string path, const Until& until) {
  if (path_.get().empty()) return Errc::closed;
  const Result<void> renamed = rename(path_.get(), std::move(path), until);
  if (renamed) (void)path_.release();
  return renamed;
}

Result<TemporaryDirectory> TemporaryDirectory::create(const TemporaryOptions& options,
                                                      const Until& until) {
  auto [made, error] = make_temporary(options, &make_directory_at, until);
  if (error) return {.error = error};
  Result<TemporaryDirectory> result;
  result.value.path_ = TemporaryPath(made.claim());
  return result;
}

}  // namespace weft::files
