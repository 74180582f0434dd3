// The functions below replace functions of the C library for sockets, as interpose.cpp does.
#include <netdb.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <string_view>

#include "tests/faults/held_look_ups.hpp"
#include "tests/faults/interpose.hpp"

namespace weft::test {
namespace {

// Returns false if the call must fail. If the call must move fewer bytes, `piece` replaces the
// pieces of the message.
bool may_move(Call call, msghdr& message, iovec& piece) noexcept {
  const int error = fault_of(call);
  if (error > 0) errno = error;
  if (error == kShort && message.msg_iovlen > 0) {
    piece = {message.msg_iov[0].iov_base, std::min<std::size_t>(message.msg_iov[0].iov_len, 1)};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
  }
  return error <= 0;
}

std::mutex held_mutex;  // Guards the next two variables.
bool holds = false;
int held_count = 0;
std::condition_variable held_changed;

// Waits for a while if a test holds lookups of this name; returns whether it does.
bool wait_if_held(const char* host) {
  if (host == nullptr || std::string_view(host) != "held.test") return false;
  std::unique_lock lock(held_mutex);
  ++held_count;
  held_changed.notify_all();
  held_changed.wait(lock, [] { return !holds; });
  return true;
}

}  // namespace

HeldLookUps::HeldLookUps() noexcept {
  const std::lock_guard lock(held_mutex);
  holds = true;
  held_count = 0;
}
HeldLookUps::~HeldLookUps() {
  const std::lock_guard lock(held_mutex);
  holds = false;
  held_changed.notify_all();
}
void HeldLookUps::await(int count) const {
  std::unique_lock lock(held_mutex);
  held_changed.wait(lock, [count] { return held_count >= count; });
}

}  // namespace weft::test

using namespace weft::test;  // NOLINT(google-build-using-namespace): only names of these files.

extern "C" {

int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found) {
  if (wait_if_held(host)) return EAI_NONAME;
  if (const int error = fault_of(Call::look_up); error > 0) return -error;
  const int outcome = real<decltype(getaddrinfo)>("getaddrinfo")(host, service, hints, found);
  if (outcome == 0) count_answers(1);
  return outcome;
}
void freeaddrinfo(addrinfo* found) noexcept {
  count_answers(-1);
  real<decltype(freeaddrinfo)>("freeaddrinfo")(found);
}
int socketpair(int family, int type, int protocol, int* ends) noexcept {
  return fails(Call::make_pair)
             ? -1
             : real<decltype(socketpair)>("socketpair")(family, type, protocol, ends);
}
int socket(int family, int type, int protocol) noexcept {
  return fails(Call::make_socket) ? -1 : real<decltype(socket)>("socket")(family, type, protocol);
}
int bind(int descriptor, const sockaddr* address, socklen_t size) noexcept {
  return fails(Call::bind_socket) ? -1 : real<decltype(bind)>("bind")(descriptor, address, size);
}
int listen(int descriptor, int backlog) noexcept {
  return fails(Call::listen_socket) ? -1 : real<decltype(listen)>("listen")(descriptor, backlog);
}
int accept4(int descriptor, sockaddr* address, socklen_t* size, int flags) {
  if (!fails(Call::accept_socket)) {
    return real<decltype(accept4)>("accept4")(descriptor, address, size, flags);
  }
  follow_up(descriptor, -1);
  return -1;
}
int connect(int descriptor, const sockaddr* address, socklen_t size) {
  return fails(Call::connect_socket)
             ? -1
             : real<decltype(connect)>("connect")(descriptor, address, size);
}
int setsockopt(int descriptor, int level, int name, const void* value, socklen_t size) noexcept {
  return fails(Call::set_option)
             ? -1
             : real<decltype(setsockopt)>("setsockopt")(descriptor, level, name, value, size);
}
int getsockopt(int descriptor, int level, int name, void* value, socklen_t* size) noexcept {
  return fails(Call::get_option)
             ? -1
             : real<decltype(getsockopt)>("getsockopt")(descriptor, level, name, value, size);
}
int getpeername(int descriptor, sockaddr* address, socklen_t* size) noexcept {
  return fails(Call::get_name)
             ? -1
             : real<decltype(getpeername)>("getpeername")(descriptor, address, size);
}
int getsockname(int descriptor, sockaddr* address, socklen_t* size) noexcept {
  return fails(Call::get_name)
             ? -1
             : real<decltype(getsockname)>("getsockname")(descriptor, address, size);
}
// weft makes these four system calls directly; other libraries use the C library's functions.
ssize_t recv(int descriptor, void* data, size_t bytes, int flags) {
  const std::size_t allowed = allowance(Call::receive, bytes);
  const ssize_t moved = allowed == 0 && bytes > 0
                            ? -1
                            : real<decltype(recv)>("recv")(descriptor, data, allowed, flags);
  follow_up(descriptor, moved);
  return moved;
}
ssize_t recvfrom(int descriptor, void* data, size_t bytes, int flags, sockaddr* from,
                 socklen_t* size) {
  const int error = fault_of(Call::receive);
  if (error > 0) errno = error;
  const ssize_t moved =
      error > 0 ? -1
                : real<decltype(recvfrom)>("recvfrom")(descriptor, data, bytes, flags, from, size);
  follow_up(descriptor, moved);
  return moved;
}
ssize_t send(int descriptor, const void* data, size_t bytes, int flags) {
  const int error = fault_of(Call::send);
  if (error > 0) errno = error;
  const ssize_t moved =
      error > 0 ? -1 : real<decltype(send)>("send")(descriptor, data, bytes, flags);
  follow_up(descriptor, moved);
  return moved;
}
ssize_t writev(int descriptor, const iovec* pieces, int count) {
  const int error = fault_of(Call::send);
  if (error > 0) errno = error;
  iovec first = pieces[0];
  first.iov_len = std::min<std::size_t>(first.iov_len, 1);
  const ssize_t moved = error > 0 ? -1
                        : error == kShort
                            ? real<decltype(writev)>("writev")(descriptor, &first, 1)
                            : real<decltype(writev)>("writev")(descriptor, pieces, count);
  follow_up(descriptor, moved);
  return moved;
}
ssize_t recvmsg(int descriptor, msghdr* message, int flags) {
  iovec piece{};
  msghdr part = *message;
  const ssize_t moved = may_move(Call::receive_message, part, piece)
                            ? real<decltype(recvmsg)>("recvmsg")(descriptor, &part, flags)
                            : -1;
  part.msg_iov = message->msg_iov;
  part.msg_iovlen = message->msg_iovlen;
  *message = part;
  follow_up(descriptor, moved);
  return moved;
}
ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
  iovec piece{};
  msghdr part = *message;
  const ssize_t moved = may_move(Call::send_message, part, piece)
                            ? real<decltype(sendmsg)>("sendmsg")(descriptor, &part, flags)
                            : -1;
  follow_up(descriptor, moved);
  return moved;
}
int recvmmsg(int descriptor, mmsghdr* messages, unsigned count, int flags, timespec* limit) {
  const std::size_t allowed = allowance(Call::receive_message, count);
  const int moved = allowed == 0
                        ? -1
                        : real<decltype(recvmmsg)>("recvmmsg")(
                              descriptor, messages, static_cast<unsigned>(allowed), flags, limit);
  follow_up(descriptor, moved);
  return moved;
}
int sendmmsg(int descriptor, mmsghdr* messages, unsigned count, int flags) {
  const std::size_t allowed = allowance(Call::send_message, count);
  const int moved = allowed == 0 ? -1
                                 : real<decltype(sendmmsg)>("sendmmsg")(
                                       descriptor, messages, static_cast<unsigned>(allowed), flags);
  follow_up(descriptor, moved);
  return moved;
}
ssize_t sendfile(int descriptor, int file, off_t* offset, size_t bytes) noexcept {
  const std::size_t allowed = allowance(Call::send_file, bytes);
  const ssize_t moved = allowed == 0 && bytes > 0 ? -1
                                                  : real<decltype(sendfile)>("sendfile")(
                                                        descriptor, file, offset, allowed);
  follow_up(descriptor, moved);
  return moved;
}
int shutdown(int descriptor, int how) noexcept {
  return fails(Call::shut_down) ? -1 : real<decltype(shutdown)>("shutdown")(descriptor, how);
}
int poll(pollfd* states, nfds_t count, int milliseconds) {
  return fails(Call::poll_socket) ? -1 : real<decltype(poll)>("poll")(states, count, milliseconds);
}

}  // extern "C"
