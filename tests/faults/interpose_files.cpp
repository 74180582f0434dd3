// The functions below replace functions of the C library for files and processes, as interpose.cpp
// does.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>

#include "tests/faults/interpose.hpp"

using namespace weft::test;  // NOLINT(google-build-using-namespace): only names of these files.

extern "C" {

int open(const char* path, int flags, ...) {
  if (fails(Call::open_file)) return -1;
  va_list rest;
  va_start(rest, flags);
  const unsigned mode = (flags & O_CREAT) != 0 ? va_arg(rest, unsigned) : 0;
  va_end(rest);
  using Function = int(const char*, int, ...);
  return real<Function>("open")(path, flags, mode);
}
FILE* fopen(const char* path, const char* mode) {
  return fails(Call::open_file) ? nullptr : real<decltype(fopen)>("fopen64")(path, mode);
}
// In programs with large files, the function above is fopen64, so this one replaces fopen.
FILE* open_stream(const char* path, const char* mode) asm("fopen");
FILE* open_stream(const char* path, const char* mode) {
  return fails(Call::open_file) ? nullptr : real<decltype(fopen)>("fopen64")(path, mode);
}
ssize_t read(int descriptor, void* data, size_t bytes) {
  const std::size_t allowed = allowance(Call::read_file, bytes);
  return allowed == 0 && bytes > 0 ? -1 : real<decltype(read)>("read")(descriptor, data, allowed);
}
ssize_t write(int descriptor, const void* data, size_t bytes) {
  const std::size_t allowed = allowance(Call::write_file, bytes);
  return allowed == 0 && bytes > 0 ? -1 : real<decltype(write)>("write")(descriptor, data, allowed);
}
int close(int descriptor) {
  const int result = real<decltype(close)>("close")(descriptor);
  return fails(Call::close_file) ? -1 : result;  // Linux closes it in any case.
}
ssize_t preadv2(int file, const iovec* pieces, int count, off_t offset, int flags) {
  using Function = ssize_t(int, const iovec*, int, off_t, int);
  // Callers always pass one piece.
  iovec piece = pieces[0];
  piece.iov_len = allowance(Call::read_at, piece.iov_len);
  return piece.iov_len == 0 && pieces[0].iov_len > 0
             ? -1
             : real<Function>("preadv2")(file, &piece, count, offset, flags);
}
ssize_t pread(int file, void* data, size_t bytes, off_t offset) {
  const std::size_t allowed = allowance(Call::read_at, bytes);
  return allowed == 0 && bytes > 0 ? -1
                                   : real<decltype(pread)>("pread")(file, data, allowed, offset);
}
ssize_t pwritev2(int file, const iovec* pieces, int count, off_t offset, int flags) {
  using Function = ssize_t(int, const iovec*, int, off_t, int);
  iovec piece = pieces[0];
  piece.iov_len = allowance(Call::write_at, piece.iov_len);
  return piece.iov_len == 0 && pieces[0].iov_len > 0
             ? -1
             : real<Function>("pwritev2")(file, &piece, count, offset, flags);
}
ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
  const std::size_t allowed = allowance(Call::write_at, bytes);
  return allowed == 0 && bytes > 0 ? -1
                                   : real<decltype(pwrite)>("pwrite")(file, data, allowed, offset);
}
int stat(const char* path, struct stat* status) noexcept {
  using Function = int(const char*, struct stat*);
  return fails(Call::get_status) ? -1 : real<Function>("stat")(path, status);
}
int lstat(const char* path, struct stat* status) noexcept {
  return fails(Call::get_status) ? -1 : real<decltype(lstat)>("lstat")(path, status);
}
int fstat(int file, struct stat* status) noexcept {
  return fails(Call::get_status) ? -1 : real<decltype(fstat)>("fstat")(file, status);
}
int fdatasync(int file) {
  return fails(Call::sync_file) ? -1 : real<decltype(fdatasync)>("fdatasync")(file);
}
int rename(const char* from, const char* to) noexcept {
  return fails(Call::rename_file) ? -1 : real<decltype(rename)>("rename")(from, to);
}
int unlink(const char* path) noexcept {
  return fails(Call::remove_file) ? -1 : real<decltype(unlink)>("unlink")(path);
}
int rmdir(const char* path) noexcept {
  return fails(Call::remove_file) ? -1 : real<decltype(rmdir)>("rmdir")(path);
}
int unlinkat(int folder, const char* path, int flags) noexcept {
  return fails(Call::remove_file) ? -1 : real<decltype(unlinkat)>("unlinkat")(folder, path, flags);
}
int mkdir(const char* path, mode_t mode) noexcept {
  return fails(Call::make_directory) ? -1 : real<decltype(mkdir)>("mkdir")(path, mode);
}
// The callers open only directories in this way, and pass no mode.
int openat(int folder, const char* path, int flags, ...) {
  using Function = int(int, const char*, int, ...);
  return fails(Call::open_directory) ? -1 : real<Function>("openat")(folder, path, flags);
}
DIR* fdopendir(int folder) {
  return fails(Call::open_directory) ? nullptr : real<decltype(fdopendir)>("fdopendir")(folder);
}
DIR* opendir(const char* path) {
  return fails(Call::open_directory) ? nullptr : real<decltype(opendir)>("opendir")(path);
}
dirent* readdir(DIR* directory) {
  return fails(Call::read_directory) ? nullptr : real<decltype(readdir)>("readdir")(directory);
}
int fcntl(int file, int command, ...) {
  va_list rest;
  va_start(rest, command);
  const long argument = va_arg(rest, long);
  va_end(rest);
  using Function = int(int, int, ...);
  return fails(Call::control_file) ? -1 : real<Function>("fcntl")(file, command, argument);
}
int pipe2(int* ends, int flags) noexcept {
  return fails(Call::make_pipe) ? -1 : real<decltype(pipe2)>("pipe2")(ends, flags);
}
int posix_spawnp(pid_t* process, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const* arguments,
                 char* const* environment) {
  const int error = fault_of(Call::start_process);
  return error > 0 ? error
                   : real<decltype(posix_spawnp)>("posix_spawnp")(
                         process, file, actions, attributes, arguments, environment);
}
int waitid(idtype_t kind, id_t which, siginfo_t* end, int options) {
  return fails(Call::await_process) ? -1
                                    : real<decltype(waitid)>("waitid")(kind, which, end, options);
}
int kill(pid_t process, int signal) noexcept {
  return fails(Call::kill_process) ? -1 : real<decltype(kill)>("kill")(process, signal);
}

}  // extern "C"
