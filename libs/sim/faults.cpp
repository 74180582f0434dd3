#include "libs/sim/faults.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "libs/sim/disks.hpp"
#include "libs/sim/real_hosts.hpp"
#include "libs/sim/run_state.hpp"
#include "libs/sim/shelter.hpp"
#include "libs/sim/wires.hpp"

namespace weft::sim {

using io::CallResult;

// --- Sockets ---

bool CallFaultsKernel::is_real(int descriptor) const noexcept {
  return real_hosts_.system_of(descriptor) >= 0;
}

int CallFaultsKernel::draw(const char* call, std::initializer_list<int> errors) noexcept {
  return run_.draw_error(run_.here().faults.sockets, call, {errors.begin(), errors.size()});
}

CallResult CallFaultsKernel::open_socket(int family, int type) noexcept {
  const Shelter shelter(&run_);
  if (const int error = draw("socket", {EMFILE, ENFILE, ENOMEM})) return {0, error};
  return wires_.open_socket(family, type);
}

CallResult CallFaultsKernel::open_pair(std::array<int, 2>& ends) noexcept {
  const Shelter shelter(&run_);
  if (const int error = draw("socketpair", {EMFILE, ENFILE})) return {0, error};
  return wires_.open_pair(ends);
}

CallResult CallFaultsKernel::bind(int descriptor, const sockaddr* address) noexcept {
  const Shelter shelter(&run_);
  if (const int error = draw("bind", {EADDRINUSE, ENOMEM})) return {0, error};
  return wires_.bind(descriptor, address);
}

CallResult CallFaultsKernel::listen(int descriptor, int backlog) noexcept {
  const Shelter shelter(&run_);
  if (const int error = draw("listen", {EADDRINUSE})) return {0, error};
  return wires_.listen(descriptor, backlog);
}

// Only a call that finds a connection fails, as a call that would wait has no error to return.
CallResult CallFaultsKernel::accept(int descriptor) noexcept {
  const Shelter shelter(&run_);
  if (wires_.ready_now(descriptor, POLLIN) == 0) return wires_.accept(descriptor);
  const int error = draw("accept", {EMFILE, ENOMEM, ECONNABORTED});
  if (error == 0) return wires_.accept(descriptor);
  if (error == ECONNABORTED) {
    const CallResult aborted = wires_.accept(descriptor);
    if (aborted.error != 0) return aborted;
    wires_.close(static_cast<int>(aborted.value));
  }
  return {0, error};
}

CallResult CallFaultsKernel::connect(int descriptor, const sockaddr* address) noexcept {
  const Shelter shelter(&run_);
  if (const int error = draw("connect", {ECONNREFUSED, EADDRNOTAVAIL, ENETUNREACH})) {
    return {0, error};
  }
  if (real_hosts_.has(address)) {
    Socket* socket = wires_.find(descriptor);
    return socket == nullptr ? CallResult{0, EBADF} : real_hosts_.connect(*socket, address);
  }
  const CallResult result = wires_.connect(descriptor, address);
  if (result.error == ENETUNREACH) note_refusal("connect");
  return result;
}

void CallFaultsKernel::note_refusal(const char* call) {
  run_.note(run_.current_host(), std::string(call) +
                                     "() leads to no host of the world, and is refused: "
                                     "World::let_in_host() admits it");
}

// Returns whether the socket has datagrams: an error concerns a single datagram.
bool CallFaultsKernel::has_datagrams(int descriptor) noexcept {
  const Socket* socket = wires_.find(descriptor);
  return socket != nullptr && !socket->is_stream();
}

// A failure makes the stream useless for both ends.
CallResult CallFaultsKernel::receive(int descriptor, msghdr& message) noexcept {
  const Shelter shelter(&run_);
  if (has_datagrams(descriptor)) {
    if (const int error = draw("recv", {ECONNREFUSED, ENOMEM})) return {0, error};
  } else if (const int error = draw("recv", {ECONNRESET, ENOMEM})) {
    (void)shut_down(descriptor, SHUT_RDWR);
    return {0, error};
  }
  if (is_real(descriptor)) return real_hosts_.receive(descriptor, message);
  return wires_.receive(descriptor, message);
}

CallResult CallFaultsKernel::send(int descriptor, const msghdr& message) noexcept {
  const Shelter shelter(&run_);
  if (has_datagrams(descriptor)) {
    if (const int error = draw("send", {ECONNREFUSED, ENOBUFS})) return {0, error};
  } else if (const int error = draw("send", {EPIPE, ENOBUFS})) {
    (void)shut_down(descriptor, SHUT_RDWR);
    return {0, error};
  }
  if (is_real(descriptor)) return real_hosts_.send(descriptor, message);
  const CallResult result = wires_.send(descriptor, message);
  if (result.error == EHOSTUNREACH) note_refusal("sendmsg");
  return result;
}

CallResult CallFaultsKernel::shut_down(int descriptor, int how) noexcept {
  const Shelter shelter(&run_);
  if (is_real(descriptor)) return real_hosts_.shut_down(descriptor, how);
  return wires_.shut_down(descriptor, how);
}

CallResult CallFaultsKernel::set_option(int descriptor, int level, int name,
                                        std::span<const std::byte> value) noexcept {
  const Shelter shelter(&run_);
  if (const int error = draw("setsockopt", {ENOBUFS})) return {0, error};
  if (is_real(descriptor)) return real_hosts_.set_option(descriptor, level, name, value);
  return wires_.set_option(descriptor, level, name, value);
}

CallResult CallFaultsKernel::get_option(int descriptor, int level, int name,
                                        std::span<std::byte> value) noexcept {
  const Shelter shelter(&run_);
  if (is_real(descriptor)) return real_hosts_.get_option(descriptor, level, name, value);
  return wires_.get_option(descriptor, level, name, value);
}

CallResult CallFaultsKernel::name_of(int descriptor, sockaddr_storage& name,
                                     socklen_t& size) noexcept {
  const Shelter shelter(&run_);
  if (const int error = draw("getsockname", {ENOBUFS})) return {0, error};
  return wires_.name_of(descriptor, name, size);
}

CallResult CallFaultsKernel::peer_of(int descriptor, sockaddr_storage& name,
                                     socklen_t& size) noexcept {
  const Shelter shelter(&run_);
  if (is_real(descriptor)) return real_hosts_.peer_of(descriptor, name, size);
  return wires_.peer_of(descriptor, name, size);
}

short CallFaultsKernel::ready_now(int descriptor, short events) noexcept {
  const int system = real_hosts_.system_of(descriptor);
  return system >= 0 ? io::ready_now(system, events) : wires_.ready_now(descriptor, events);
}

bool CallFaultsKernel::is_gone(int descriptor) noexcept {
  if (is_real(descriptor)) return real_hosts_.is_gone(descriptor);
  return wires_.is_gone(descriptor);
}

void CallFaultsKernel::close(int descriptor) noexcept {
  const Shelter shelter(&run_);
  if (Disks::owns(descriptor)) return disks_.close(descriptor);
  wires_.close(descriptor);
}

bool CallFaultsKernel::owns(int descriptor) const noexcept { return wires_.owns(descriptor); }

int CallFaultsKernel::look_up(const std::string& host, std::vector<std::uint32_t>& addresses) {
  const Shelter shelter(&run_);
  if (run_.is_failure_due(run_.here().faults.sockets)) {
    run_.note(run_.current_host(),
              std::string("getaddrinfo() fails: ") + ::gai_strerror(EAI_AGAIN));
    return EAI_AGAIN;
  }
  addresses = wires_.look_up(host);
  if (addresses.empty()) addresses = real_hosts_.look_up(host);
  if (addresses.empty()) note_refusal("getaddrinfo");
  return 0;
}

// --- Files ---

int FileFaults::draw(const char* call, int error) noexcept {
  return run_.draw_error(run_.here().faults.files, call, {&error, 1});
}

bool FileFaults::draws_part(const char* call) noexcept {
  if (!run_.is_failure_due(run_.here().faults.files)) return false;
  const Shelter shelter(&run_);
  run_.note(run_.current_host(), std::string(call) + "() transfers a part");
  return true;
}

CallResult FileFaults::open(const std::string& path, int flags, unsigned mode) noexcept {
  const Shelter shelter(&run_);
  if (const int error = draw("open", EMFILE)) return {0, error};
  return disks_.open(path, flags, mode);
}

CallResult FileFaults::duplicate(int file) noexcept {
  const Shelter shelter(&run_);
  if (const int error = draw("fcntl", EMFILE)) return {0, error};
  return disks_.duplicate(file);
}

CallResult FileFaults::read(int file, std::span<std::byte> buffer, std::uint64_t offset) noexcept {
  const Shelter shelter(&run_);
  if (const int error = draw("pread", EIO)) return {0, error};
  if (buffer.size() > 1 && draws_part("pread")) buffer = buffer.first(buffer.size() / 2);
  return disks_.read(file, buffer, offset);
}

// A call may write a part before it finds that the disk is full.
CallResult FileFaults::write(int file, std::span<const std::byte> data,
                             std::uint64_t offset) noexcept {
  const Shelter shelter(&run_);
  const int error = draw("pwrite", ENOSPC);
  if (error == 0) {
    if (data.size() > 1 && draws_part("pwrite")) data = data.first(data.size() / 2);
    return disks_.write(file, data, offset);
  }
  if (data.size() > 1) (void)disks_.write(file, data.first(data.size() / 2), offset);
  return {0, error};
}

// The sync parks, so it opens a Shelter itself.
CallResult FileFaults::sync(int file) noexcept {
  if (const int error = draw("fdatasync", EIO)) return {0, error};
  return disks_.sync(file);
}

CallResult FileFaults::status(int file, struct stat& found) noexcept {
  const Shelter shelter(&run_);
  if (const int error = draw("fstat", EIO)) return {0, error};
  return disks_.status(file, found);
}

CallResult FileFaults::status_of(const std::string& path, struct stat& found) noexcept {
  const Shelter shelter(&run_);
  if (const int error = draw("stat", EIO)) return {0, error};
  return disks_.status_of(path, found);
}

CallResult FileFaults::set_mode(int file, mode_t mode) noexcept {
  const Shelter shelter(&run_);
  if (const int error = draw("fchmod", EIO)) return {0, error};
  return disks_.set_mode(file, mode);
}

CallResult FileFaults::rename(const std::string& from, const std::string& to) noexcept {
  const Shelter shelter(&run_);
  if (const int error = draw("rename", EIO)) return {0, error};
  return disks_.rename(from, to);
}

CallResult FileFaults::make_directory(const std::string& path, mode_t mode) noexcept {
  const Shelter shelter(&run_);
  if (const int error = draw("mkdir", ENOSPC)) return {0, error};
  return disks_.make_directory(path, mode);
}

CallResult FileFaults::remove(const std::string& path) noexcept {
  const Shelter shelter(&run_);
  if (const int error = draw("unlink", EIO)) return {0, error};
  return disks_.remove(path);
}

void FileFaults::clean_up(const std::string& path) noexcept {
  const Shelter shelter(&run_);
  disks_.clean_up(path);
}

CallResult FileFaults::list(const std::string& path,
                            std::vector<io::DirectoryEntry>& entries) noexcept {
  const Shelter shelter(&run_);
  if (const int error = draw("opendir", EMFILE)) return {0, error};
  return disks_.list(path, entries);
}

}  // namespace weft::sim
