#include "net/system_calls.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEFT_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define WEFT_SANITIZED
#endif
#endif

namespace weft::net {

using io::result_of;

namespace {

const sockaddr* system_form(const Address& address) noexcept {
  return static_cast<const sockaddr*>(address.system_data());
}

template <class Call>
Result<Address> address_from(Call call) noexcept {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  const CallResult result =
      result_of([&] { return call(reinterpret_cast<sockaddr*>(&storage), &size); });
  if (result.error != 0) return {.error = result.code()};
  return Address::from_system(&storage, size);
}

}  // namespace

[[gnu::noinline]] CallResult open_tcp(const Address& address) noexcept {
  const int family = address.is_v6() ? AF_INET6 : AF_INET;
  return result_of(
      [=] { return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP); });
}

[[gnu::noinline]] CallResult bind_to(int descriptor, const Address& address) noexcept {
  return result_of([&] {
    return ::bind(descriptor, system_form(address), static_cast<socklen_t>(address.system_size()));
  });
}

[[gnu::noinline]] CallResult start_listening(int descriptor, int backlog) noexcept {
  return result_of([=] { return ::listen(descriptor, backlog); });
}

[[gnu::noinline]] CallResult accept_from(int descriptor) noexcept {
  return result_of(
      [=] { return ::accept4(descriptor, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
}

[[gnu::noinline]] CallResult connect_to(int descriptor, const Address& address) noexcept {
  return result_of([&] {
    return ::connect(descriptor, system_form(address),
                     static_cast<socklen_t>(address.system_size()));
  });
}

#ifdef WEFT_SANITIZED

// Sanitizers know the C library's functions: what they write, and that they synchronize.
[[gnu::noinline]] CallResult receive(int descriptor, std::span<std::byte> buffer) noexcept {
  return result_of([=] { return ::recv(descriptor, buffer.data(), buffer.size(), 0); });
}

[[gnu::noinline]] CallResult send(int descriptor, std::span<const std::byte> data) noexcept {
  return result_of([=] { return ::send(descriptor, data.data(), data.size(), MSG_NOSIGNAL); });
}

#else

// Straight to the kernel: the C library's functions are points of thread cancellation, which
// costs every call two locked instructions, 2 % of a small request each. Nobody cancels workers.
[[gnu::noinline]] CallResult receive(int descriptor, std::span<std::byte> buffer) noexcept {
  return result_of([=] {
    return ::syscall(SYS_recvfrom, descriptor, buffer.data(), buffer.size(), 0, nullptr, nullptr);
  });
}

[[gnu::noinline]] CallResult send(int descriptor, std::span<const std::byte> data) noexcept {
  return result_of([=] {
    return ::syscall(SYS_sendto, descriptor, data.data(), data.size(), MSG_NOSIGNAL, nullptr, 0);
  });
}

#endif

[[gnu::noinline]] CallResult shut_down(int descriptor, int how) noexcept {
  return result_of([=] { return ::shutdown(descriptor, how); });
}

[[gnu::noinline]] CallResult set_option(int descriptor, int level, int name, int value) noexcept {
  return result_of([&] { return ::setsockopt(descriptor, level, name, &value, sizeof value); });
}

[[gnu::noinline]] Result<Address> name_of(int descriptor) noexcept {
  return address_from(
      [=](sockaddr* name, socklen_t* size) { return ::getsockname(descriptor, name, size); });
}

[[gnu::noinline]] Result<Address> peer_of(int descriptor) noexcept {
  return address_from(
      [=](sockaddr* name, socklen_t* size) { return ::getpeername(descriptor, name, size); });
}

}  // namespace weft::net
