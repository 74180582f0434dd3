#include "net/system_calls.hpp"

#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/sanitizers.hpp"
#include "io/kernel.hpp"

namespace weft::net {

using io::result_of;

namespace {

const sockaddr* pointer_to(SystemAddress address) noexcept {
  return static_cast<const sockaddr*>(address.data);
}

template <class Call>
Result<SystemName> name_from(Call call) noexcept {
  Result<SystemName> name;
  const CallResult result = result_of(
      [&] { return call(reinterpret_cast<sockaddr*>(&name.value.data), &name.value.size); });
  name.error = result.error == 0 ? std::error_code{} : result.code();
  return name;
}

// --- The same for a simulation ---

CallResult receive_from(io::Kernel& kernel, int descriptor, std::span<std::byte> buffer) noexcept {
  iovec piece{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  return kernel.receive(descriptor, message);
}

CallResult send_to(io::Kernel& kernel, int descriptor, std::span<const std::byte> data) noexcept {
  iovec piece{const_cast<std::byte*>(data.data()), data.size()};  // Not written to.
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  return kernel.send(descriptor, message);
}

// As recvmmsg() and sendmmsg() do, this leaves an error after the first message to the next call.
template <class Call>
CallResult for_each_message(std::span<mmsghdr> messages, Call call) noexcept {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const CallResult result = call(messages[i].msg_hdr);
    if (result.error != 0) return i == 0 ? result : CallResult{static_cast<std::int64_t>(i), 0};
    messages[i].msg_len = static_cast<unsigned>(result.value);
  }
  return {static_cast<std::int64_t>(messages.size()), 0};
}

CallResult send_file_to(io::Kernel& kernel, int descriptor, int file, std::uint64_t offset,
                        std::size_t size) noexcept {
  std::array<std::byte, 16 * 1024> buffer;
  const auto room = std::span(buffer).first(std::min(size, buffer.size()));
  // A file that was opened outside of the simulation belongs to the system.
  const CallResult got =
      kernel.owns(file) ? kernel.files().read(file, room, offset) : result_of([&] {
        return ::pread(file, room.data(), room.size(), static_cast<off_t>(offset));
      });
  if (got.error != 0 || got.value == 0) return got;
  return send_to(kernel, descriptor, std::span(buffer).first(static_cast<std::size_t>(got.value)));
}

template <class Call>
Result<SystemName> name_by(io::Kernel& kernel, Call call, int descriptor) noexcept {
  Result<SystemName> name;
  const CallResult result = (kernel.*call)(descriptor, name.value.data, name.value.size);
  name.error = result.error == 0 ? std::error_code{} : result.code();
  return name;
}

}  // namespace

int SystemAddress::family() const noexcept {
  sa_family_t family = AF_UNSPEC;
  std::memcpy(&family, data, sizeof family);
  return family;
}

[[gnu::noinline]] CallResult open_socket(int family, int type) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel()) [[unlikely]]
    return kernel->open_socket(family, type);
  return result_of([=] { return ::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
}

[[gnu::noinline]] CallResult open_pair(std::array<int, 2>& ends) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel()) [[unlikely]]
    return kernel->open_pair(ends);
  return result_of([&] {
    return ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data());
  });
}

[[gnu::noinline]] CallResult bind_to(int descriptor, SystemAddress address) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return kernel->bind(descriptor, pointer_to(address));
  return result_of([=] {
    return ::bind(descriptor, pointer_to(address), static_cast<socklen_t>(address.size));
  });
}

[[gnu::noinline]] CallResult start_listening(int descriptor, int backlog) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return kernel->listen(descriptor, backlog);
  return result_of([=] { return ::listen(descriptor, backlog); });
}

[[gnu::noinline]] CallResult accept_from(int descriptor) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return kernel->accept(descriptor);
  return result_of(
      [=] { return ::accept4(descriptor, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
}

[[gnu::noinline]] CallResult connect_to(int descriptor, SystemAddress address) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return kernel->connect(descriptor, pointer_to(address));
  return result_of([=] {
    return ::connect(descriptor, pointer_to(address), static_cast<socklen_t>(address.size));
  });
}

#if defined(WEFT_ASAN) || defined(WEFT_TSAN) || defined(WEFT_MSAN)

// Sanitizers intercept the C library's functions, and so see what they write and how they
// synchronize.
[[gnu::noinline]] CallResult receive(int descriptor, std::span<std::byte> buffer) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return receive_from(*kernel, descriptor, buffer);
  return result_of([=] { return ::recv(descriptor, buffer.data(), buffer.size(), 0); });
}

[[gnu::noinline]] CallResult send(int descriptor, std::span<const std::byte> data) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return send_to(*kernel, descriptor, data);
  return result_of([=] { return ::send(descriptor, data.data(), data.size(), MSG_NOSIGNAL); });
}

#else

// Calls the kernel directly: the C library's functions are cancellation points, which costs each
// call two locked instructions, 2 % of a small request each. No thread cancels workers.
[[gnu::noinline]] CallResult receive(int descriptor, std::span<std::byte> buffer) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return receive_from(*kernel, descriptor, buffer);
  return result_of([=] {
    return ::syscall(SYS_recvfrom, descriptor, buffer.data(), buffer.size(), 0, nullptr, nullptr);
  });
}

[[gnu::noinline]] CallResult send(int descriptor, std::span<const std::byte> data) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return send_to(*kernel, descriptor, data);
  return result_of([=] {
    return ::syscall(SYS_sendto, descriptor, data.data(), data.size(), MSG_NOSIGNAL, nullptr, 0);
  });
}

#endif

[[gnu::noinline]] CallResult receive_message(int descriptor, msghdr& message) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return kernel->receive(descriptor, message);
  return result_of([&] { return ::recvmsg(descriptor, &message, MSG_CMSG_CLOEXEC); });
}

[[gnu::noinline]] CallResult send_message(int descriptor, const msghdr& message) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return kernel->send(descriptor, message);
  return result_of([&] { return ::sendmsg(descriptor, &message, MSG_NOSIGNAL); });
}

[[gnu::noinline]] CallResult receive_messages(int descriptor,
                                              std::span<mmsghdr> messages) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return for_each_message(messages,
                            [=](msghdr& message) { return kernel->receive(descriptor, message); });
  return result_of([=] {
    return ::recvmmsg(descriptor, messages.data(), static_cast<unsigned>(messages.size()), 0,
                      nullptr);
  });
}

[[gnu::noinline]] CallResult send_messages(int descriptor, std::span<mmsghdr> messages) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return for_each_message(messages,
                            [=](msghdr& message) { return kernel->send(descriptor, message); });
  return result_of([=] {
    return ::sendmmsg(descriptor, messages.data(), static_cast<unsigned>(messages.size()),
                      MSG_NOSIGNAL);
  });
}

[[gnu::noinline]] CallResult send_from_file(int descriptor, int file, std::uint64_t offset,
                                            std::size_t size) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return send_file_to(*kernel, descriptor, file, offset, size);
  io::NoPipeSignal quiet;
  return quiet.note(result_of([=] {
    auto position = static_cast<off_t>(offset);
    return ::sendfile(descriptor, file, &position, size);
  }));
}

[[gnu::noinline]] CallResult shut_down(int descriptor, int how) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return kernel->shut_down(descriptor, how);
  return result_of([=] { return ::shutdown(descriptor, how); });
}

[[gnu::noinline]] CallResult set_option(int descriptor, int level, int name,
                                        std::span<const std::byte> value) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return kernel->set_option(descriptor, level, name, value);
  return result_of([=] {
    return ::setsockopt(descriptor, level, name, value.data(),
                        static_cast<socklen_t>(value.size()));
  });
}

CallResult set_option(int descriptor, int level, int name, int value) noexcept {
  return set_option(descriptor, level, name, std::as_bytes(std::span(&value, 1)));
}

[[gnu::noinline]] CallResult get_option(int descriptor, int level, int name,
                                        std::span<std::byte> value) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return kernel->get_option(descriptor, level, name, value);
  auto size = static_cast<socklen_t>(value.size());
  return result_of([&] { return ::getsockopt(descriptor, level, name, value.data(), &size); });
}

[[gnu::noinline]] Result<SystemName> name_of(int descriptor) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return name_by(*kernel, &io::Kernel::name_of, descriptor);
  return name_from(
      [=](sockaddr* name, socklen_t* size) { return ::getsockname(descriptor, name, size); });
}

[[gnu::noinline]] Result<SystemName> peer_of(int descriptor) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return name_by(*kernel, &io::Kernel::peer_of, descriptor);
  return name_from(
      [=](sockaddr* name, socklen_t* size) { return ::getpeername(descriptor, name, size); });
}

}  // namespace weft::net
