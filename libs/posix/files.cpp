// Calls that open files, and reads at an offset, which a helper thread makes if they would wait.
//
// With 64-bit offsets the C library's headers would give open() the symbol open64.
#undef _FILE_OFFSET_BITS
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <string_view>

#include "libs/posix/hooks.hpp"
#include "libs/posix/waiting.hpp"

namespace weft::posix {

namespace {

constinit Real<decltype(::open)> real_open("open");
constinit Real<decltype(::openat)> real_openat("openat");
constinit Real<decltype(::creat)> real_creat("creat");
constinit Real<decltype(::pread)> real_pread("pread");
constinit Real<decltype(::preadv)> real_preadv("preadv");

bool has_mode(int flags) noexcept {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

mode_t mode_of(int flags, std::va_list rest) noexcept {
  return has_mode(flags) ? va_arg(rest, mode_t) : 0;
}

// Returns whether the kernel opens the file from memory. /proc/thread-self refers to the caller.
[[gnu::noinline]] bool is_in_memory(const char* path) noexcept {
  if (path == nullptr) return true;
  const std::string_view name(path);
  return name.starts_with("/proc/") || name.starts_with("/sys/") || name == "/dev/null";
}

template <class Plain>
int open_by(const Call& call, const char* path, Plain plain) {
  FiberState* state = current_scope();
  if (state == nullptr || is_in_memory(path)) return plain();
  return on_helper(*state, call, plain);
}

bool is_end(int fd, off_t offset) noexcept {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && offset >= status.st_size;
}

// Reads from the page cache, or makes the call `plain`: in place if the file has no cache or the
// call fails, otherwise on a helper thread.
template <class Plain>
ssize_t read_at(const Call& call, int fd, const iovec* parts, int count, off_t offset,
                Plain plain) {
  FiberState* state = current_scope();
  // For the kernel, an offset of -1 means the current position.
  if (state == nullptr || count <= 0 || count > IOV_MAX || offset < 0) return plain();
  const ssize_t got = ::preadv2(fd, parts, count, offset, RWF_NOWAIT);
  if (got < 0 && errno != EAGAIN) return plain();
  const auto size = static_cast<ssize_t>(length_of(parts, static_cast<std::size_t>(count)));
  if (got == size || (got >= 0 && is_end(fd, offset + got))) return got;
  return on_helper(*state, call, plain);
}

}  // namespace

}  // namespace weft::posix

using namespace weft::posix;  // NOLINT: only the functions below follow.

extern "C" {

WEFT_POSIX_EXPORT int open(const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_by({"open", __builtin_return_address(0)}, path,
                 [=] { return real_open(path, flags, mode); });
}

WEFT_POSIX_EXPORT int openat(int folder, const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_by({"openat", __builtin_return_address(0)}, path,
                 [=] { return real_openat(folder, path, flags, mode); });
}

WEFT_POSIX_EXPORT int creat(const char* path, mode_t mode) {
  return open_by({"creat", __builtin_return_address(0)}, path,
                 [=] { return real_creat(path, mode); });
}

WEFT_POSIX_EXPORT ssize_t pread(int fd, void* buffer, size_t size, off_t offset) {
  const iovec whole{buffer, size};
  return read_at({"pread", __builtin_return_address(0)}, fd, &whole, 1, offset,
                 [=] { return real_pread(fd, buffer, size, offset); });
}

WEFT_POSIX_EXPORT ssize_t preadv(int fd, const iovec* parts, int count, off_t offset) {
  return read_at({"preadv", __builtin_return_address(0)}, fd, parts, count, offset,
                 [=] { return real_preadv(fd, parts, count, offset); });
}

#ifdef __GLIBC__
// Programs compiled with _FILE_OFFSET_BITS=64 call these functions.
WEFT_POSIX_EXPORT int open64(const char* path, int flags, ...) {
  static constinit Real<decltype(::open64)> real("open64");
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_by({"open", __builtin_return_address(0)}, path,
                 [=] { return real(path, flags, mode); });
}

WEFT_POSIX_EXPORT int openat64(int folder, const char* path, int flags, ...) {
  static constinit Real<decltype(::openat64)> real("openat64");
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_by({"openat", __builtin_return_address(0)}, path,
                 [=] { return real(folder, path, flags, mode); });
}

WEFT_POSIX_EXPORT int creat64(const char* path, mode_t mode) {
  static constinit Real<decltype(::creat64)> real("creat64");
  return open_by({"creat", __builtin_return_address(0)}, path, [=] { return real(path, mode); });
}

WEFT_POSIX_EXPORT ssize_t pread64(int fd, void* buffer, size_t size, off64_t offset) {
  static constinit Real<decltype(::pread64)> real("pread64");
  const iovec whole{buffer, size};
  return read_at({"pread", __builtin_return_address(0)}, fd, &whole, 1, offset,
                 [=] { return real(fd, buffer, size, offset); });
}

WEFT_POSIX_EXPORT ssize_t preadv64(int fd, const iovec* parts, int count, off64_t offset) {
  static constinit Real<decltype(::preadv64)> real("preadv64");
  return read_at({"preadv", __builtin_return_address(0)}, fd, parts, count, offset,
                 [=] { return real(fd, parts, count, offset); });
}

// Programs compiled with _FORTIFY_SOURCE call these functions. If the mode is missing or the buffer
// is too small, the C library's function ends the process.
WEFT_POSIX_EXPORT int __open_2(const char* path, int flags) {
  static constinit Real<int(const char*, int)> real("__open_2");
  return has_mode(flags) ? real(path, flags) : ::open(path, flags);
}
WEFT_POSIX_EXPORT int __open64_2(const char* path, int flags) {
  static constinit Real<int(const char*, int)> real("__open64_2");
  return has_mode(flags) ? real(path, flags) : ::open64(path, flags);
}
WEFT_POSIX_EXPORT int __openat_2(int folder, const char* path, int flags) {
  static constinit Real<int(int, const char*, int)> real("__openat_2");
  return has_mode(flags) ? real(folder, path, flags) : ::openat(folder, path, flags);
}
WEFT_POSIX_EXPORT int __openat64_2(int folder, const char* path, int flags) {
  static constinit Real<int(int, const char*, int)> real("__openat64_2");
  return has_mode(flags) ? real(folder, path, flags) : ::openat64(folder, path, flags);
}
WEFT_POSIX_EXPORT ssize_t __pread_chk(int fd, void* buffer, size_t size, off_t offset,
                                      size_t room) {
  static constinit Real<ssize_t(int, void*, size_t, off_t, size_t)> real("__pread_chk");
  return size > room ? real(fd, buffer, size, offset, room) : ::pread(fd, buffer, size, offset);
}
WEFT_POSIX_EXPORT ssize_t __pread64_chk(int fd, void* buffer, size_t size, off64_t offset,
                                        size_t room) {
  static constinit Real<ssize_t(int, void*, size_t, off64_t, size_t)> real("__pread64_chk");
  return size > room ? real(fd, buffer, size, offset, room) : ::pread64(fd, buffer, size, offset);
}
#endif

}  // extern "C"

WEFT_POSIX_HOOK(open);
WEFT_POSIX_HOOK(openat);
WEFT_POSIX_HOOK(creat);
WEFT_POSIX_HOOK(pread);
WEFT_POSIX_HOOK(preadv);
#ifdef __GLIBC__
WEFT_POSIX_HOOK(open64);
WEFT_POSIX_HOOK(openat64);
WEFT_POSIX_HOOK(creat64);
WEFT_POSIX_HOOK(pread64);
WEFT_POSIX_HOOK(preadv64);
#endif

namespace weft::posix {

std::span<const Hook> file_hooks() noexcept {
  static const std::array hooks{
      WEFT_POSIX_ENTRY(open),    WEFT_POSIX_ENTRY(openat),   WEFT_POSIX_ENTRY(creat),
      WEFT_POSIX_ENTRY(pread),   WEFT_POSIX_ENTRY(preadv),
#ifdef __GLIBC__
      WEFT_POSIX_ENTRY(open64),  WEFT_POSIX_ENTRY(openat64), WEFT_POSIX_ENTRY(creat64),
      WEFT_POSIX_ENTRY(pread64), WEFT_POSIX_ENTRY(preadv64),
#endif
  };
  return hooks;
}

}  // namespace weft::posix
