// Failures of system calls and allocations by the seed.
#pragma once

#include "io/kernel.hpp"

namespace weft::sim {

class Disks;
class RealHosts;
class RunState;
class Wires;

// Returns whether the program uses the `operator new` of the simulation.
[[nodiscard]] bool has_own_allocator() noexcept;
// Makes each `operator new` of the program call `fails`, and fail if it returns true. Null removes
// the hook.
void set_allocation_hook(bool (*fails)() noexcept) noexcept;

// The files that fibers use: the disks, except for the calls that the seed lets fail.
class FileFaults final : public io::FileKernel {
 public:
  FileFaults(RunState& run, Disks& disks) noexcept : run_(run), disks_(disks) {}

  io::CallResult open(const std::string& path, int flags, unsigned mode) noexcept override;
  io::CallResult duplicate(int file) noexcept override;
  io::CallResult read(int file, std::span<std::byte> buffer,
                      std::uint64_t offset) noexcept override;
  io::CallResult write(int file, std::span<const std::byte> data,
                       std::uint64_t offset) noexcept override;
  io::CallResult sync(int file) noexcept override;
  io::CallResult status(int file, struct stat& found) noexcept override;
  io::CallResult status_of(const std::string& path, struct stat& found) noexcept override;
  io::CallResult set_mode(int file, mode_t mode) noexcept override;
  io::CallResult rename(const std::string& from, const std::string& to) noexcept override;
  io::CallResult make_directory(const std::string& path, mode_t mode) noexcept override;
  io::CallResult remove(const std::string& path) noexcept override;
  void clean_up(const std::string& path) noexcept override;
  io::CallResult list(const std::string& path,
                      std::vector<io::DirectoryEntry>& entries) noexcept override;

 private:
  // Returns the error with which the call fails, or 0 if the call does not fail.
  [[nodiscard]] int draw(const char* call, int error) noexcept;
  // Returns whether the call must transfer only a part of its bytes.
  [[nodiscard]] bool draws_part(const char* call) noexcept;

  RunState& run_;
  Disks& disks_;
};

// The kernel that fibers call: the wires and the sockets to real hosts, except for the calls that
// the seed lets fail. Each function opens a Shelter.
class CallFaultsKernel final : public io::Kernel {
 public:
  CallFaultsKernel(RunState& run, Wires& wires, RealHosts& real_hosts, Disks& disks) noexcept
      : run_(run), wires_(wires), real_hosts_(real_hosts), disks_(disks), files_(run, disks) {}

  io::CallResult open_socket(int family, int type) noexcept override;
  io::CallResult open_pair(std::array<int, 2>& ends) noexcept override;
  io::CallResult bind(int descriptor, const sockaddr* address) noexcept override;
  io::CallResult listen(int descriptor, int backlog) noexcept override;
  io::CallResult accept(int descriptor) noexcept override;
  io::CallResult connect(int descriptor, const sockaddr* address) noexcept override;
  io::CallResult receive(int descriptor, msghdr& message) noexcept override;
  io::CallResult send(int descriptor, const msghdr& message) noexcept override;
  io::CallResult shut_down(int descriptor, int how) noexcept override;
  io::CallResult set_option(int descriptor, int level, int name,
                            std::span<const std::byte> value) noexcept override;
  io::CallResult get_option(int descriptor, int level, int name,
                            std::span<std::byte> value) noexcept override;
  io::CallResult name_of(int descriptor, sockaddr_storage& name, socklen_t& size) noexcept override;
  io::CallResult peer_of(int descriptor, sockaddr_storage& name, socklen_t& size) noexcept override;
  short ready_now(int descriptor, short events) noexcept override;
  bool is_gone(int descriptor) noexcept override;
  void close(int descriptor) noexcept override;
  bool owns(int descriptor) const noexcept override;
  io::FileKernel& files() noexcept override { return files_; }
  int look_up(const std::string& host, std::vector<std::uint32_t>& addresses) override;

 private:
  // Returns the element of `errors` with which the call fails, or 0 if the call does not fail.
  [[nodiscard]] int draw(const char* call, std::initializer_list<int> errors) noexcept;
  [[nodiscard]] bool has_datagrams(int descriptor) noexcept;
  // Returns whether the socket is connected to a real host.
  [[nodiscard]] bool is_real(int descriptor) const noexcept;
  // Adds a row to the story for a call that leads to no host.
  void note_refusal(const char* call);

  RunState& run_;
  Wires& wires_;
  RealHosts& real_hosts_;
  Disks& disks_;
  FileFaults files_;
};

}  // namespace weft::sim
