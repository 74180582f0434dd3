// Receives bytes in a Scope, which another fiber of the worker sends while the receiver is parked.
// For strace, calls to getppid() mark where a receive begins and ends.
//
//   posix_built_receives             with requests to io_uring
//   posix_built_receives without     without
//   posix_built_receives asks        as libcurl asks: sends, looks, polls two descriptors, looks
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string_view>
#include <weft/detail/one_shot.hpp>
#include <weft/go.hpp>
#include <weft/posix.hpp>
#include <weft/runtime.hpp>

namespace {

using Ends = std::array<int, 2>;

bool receive(const Ends& ends, const Ends* quiet) {
  auto sender = weft::spawn([&] { return ::send(ends[1], "x", 1, 0) == 1; });
  char byte = 0;
  (void)::syscall(SYS_getppid);
  bool is_right = true;
  if (quiet != nullptr) {
    std::array<pollfd, 2> polled{{{ends[0], POLLIN, 0}, {(*quiet)[0], POLLIN, 0}}};
    is_right = ::send(ends[0], "?", 1, 0) == 1 && ::poll(polled.data(), 1, 0) == 0 &&
               ::poll(polled.data(), 2, 1000) == 1 && ::poll(polled.data(), 1, 0) == 1;
  }
  is_right = ::recv(ends[0], &byte, 1, 0) == 1 && is_right;
  (void)::syscall(SYS_getppid);
  return sender.join() && is_right;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view way = argc == 1 ? "" : argv[1];
  weft::RuntimeOptions options;
  options.workers = 1;
  options.monitor = false;
  weft::detail::allow_one_shots(way != "without");
  return weft::run(options, [way] {
    const weft::posix::Scope scope;
    Ends ends{};
    Ends quiet{};
    bool is_right = ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0 &&
                    ::socketpair(AF_UNIX, SOCK_STREAM, 0, quiet.data()) == 0;
    for (int i = 0; is_right && i < 5; ++i)
      is_right = receive(ends, i > 0 && way == "asks" ? &quiet : nullptr);
    std::puts(is_right ? "received" : "failed");
    return is_right ? 0 : 1;
  });
}
