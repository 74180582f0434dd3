// Waits in a Scope for a byte that another fiber of the same worker sends. A function of the
// program or of a plugin makes the wait. A call that did not park would keep the worker from that
// fiber.
//
//   posix_built [PLUGIN]
#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <weft/go.hpp>
#include <weft/posix.hpp>
#include <weft/runtime.hpp>

namespace {

using Receive = int (*)(int descriptor);

int receive_here(int descriptor) {
  char byte = 0;
  return static_cast<int>(::recv(descriptor, &byte, 1, 0));
}

Receive find_receive(const char* plugin) {
  if (plugin == nullptr) return &receive_here;
  void* opened = ::dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) std::fprintf(stderr, "%s\n", ::dlerror());
  return opened == nullptr ? nullptr : reinterpret_cast<Receive>(::dlsym(opened, "receive_there"));
}

int wait_for_byte(Receive receive) {
  const weft::posix::Scope scope;
  std::array<int, 2> ends{};
  const timeval limit{5, 0};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0 ||
      ::setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0)
    return 1;
  auto sender = weft::spawn([&] { return ::send(ends[1], "x", 1, 0) == 1; });
  const bool is_received = receive(ends[0]) == 1;
  const bool is_sent = sender.join();
  std::puts(is_received && is_sent ? "parked" : "blocked");
  return is_received && is_sent ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const Receive receive = find_receive(argc > 1 ? argv[1] : nullptr);
  if (receive == nullptr) return 1;
  weft::RuntimeOptions options;
  options.workers = 1;
  options.monitor = false;
  return weft::run(options, [&] { return wait_for_byte(receive); });
}
