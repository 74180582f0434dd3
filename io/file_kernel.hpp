// A simulation's files (weft/sim.hpp), which replace the system's.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/attempt.hpp"

namespace weft::io {

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
};

// The system calls about files, as files/ makes them, with errors as values. Each call refers to
// the host of the calling fiber. The simulation's worker makes them.
class FileKernel {
 public:
  FileKernel() = default;
  virtual ~FileKernel() = default;
  FileKernel(const FileKernel&) = delete;
  FileKernel& operator=(const FileKernel&) = delete;

  [[nodiscard]] virtual CallResult open(const std::string& path, int flags,
                                        unsigned mode) noexcept = 0;
  [[nodiscard]] virtual CallResult duplicate(int file) noexcept = 0;
  [[nodiscard]] virtual CallResult read(int file, std::span<std::byte> buffer,
                                        std::uint64_t offset) noexcept = 0;
  [[nodiscard]] virtual CallResult write(int file, std::span<const std::byte> data,
                                         std::uint64_t offset) noexcept = 0;
  // Writes the file to the disk. Parks, because the sync takes virtual time.
  [[nodiscard]] virtual CallResult sync(int file) noexcept = 0;
  [[nodiscard]] virtual CallResult status(int file, struct stat& found) noexcept = 0;
  [[nodiscard]] virtual CallResult status_of(const std::string& path,
                                             struct stat& found) noexcept = 0;
  [[nodiscard]] virtual CallResult set_mode(int file, mode_t mode) noexcept = 0;
  [[nodiscard]] virtual CallResult rename(const std::string& from,
                                          const std::string& to) noexcept = 0;
  [[nodiscard]] virtual CallResult make_directory(const std::string& path,
                                                  mode_t mode) noexcept = 0;
  // Removes a file or an empty directory.
  [[nodiscard]] virtual CallResult remove(const std::string& path) noexcept = 0;
  // Removes a path that the library has made. The seed never makes this call fail.
  virtual void clean_up(const std::string& path) noexcept = 0;
  // Lists the entries without "." and "..", in no particular order.
  [[nodiscard]] virtual CallResult list(const std::string& path,
                                        std::vector<DirectoryEntry>& entries) noexcept = 0;
};

}  // namespace weft::io
