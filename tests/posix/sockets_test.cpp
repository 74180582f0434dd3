// Compares connects, accepts and datagrams in a Scope with the same calls on a plain thread.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "tests/posix/both_ways.hpp"

namespace {

using weft::test::check_both_ways;
using weft::test::has_hooks;
using weft::test::Log;
using weft::test::loopback;
using weft::test::note;
using weft::test::Pair;
using weft::test::set_limit;

TEST_SUITE_BEGIN("posix/sockets");

FIBER_TEST_CASE("connect() and accept() in a posix::Scope return the same results as on a thread") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    note(log, ::bind(listener, generic, size));
    note(log, ::listen(listener, 8));
    note(log, ::getsockname(listener, generic, &size));
    std::thread client([=] {
      const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
      CHECK(::connect(socket, reinterpret_cast<const sockaddr*>(&address), size) == 0);
      ::close(socket);
    });
    sockaddr_in peer{};
    socklen_t peer_size = sizeof peer;
    const int accepted =
        ::accept4(listener, reinterpret_cast<sockaddr*>(&peer), &peer_size, SOCK_CLOEXEC);
    note(log, accepted >= 0);
    note(log, peer_size);
    note(log, ::fcntl(accepted, F_GETFD));
    client.join();
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    note(log, ::connect(socket, generic, size));
    note(log, ::connect(socket, generic, size));
    note(log, ::fcntl(socket, F_GETFL) & O_NONBLOCK);
    ::close(::accept(listener, nullptr, nullptr));
    set_limit(listener, SO_RCVTIMEO, 2000);
    note(log, ::accept(listener, nullptr, nullptr));
    ::fcntl(listener, F_SETFL, O_NONBLOCK);
    note(log, ::accept(listener, nullptr, nullptr));
    ::close(listener);
    const int refused = ::socket(AF_INET, SOCK_STREAM, 0);
    note(log, ::connect(refused, generic, size));
    note(log, ::connect(-1, generic, size));
    note(log, ::accept(socket, nullptr, nullptr));
    for (const int fd : {accepted, socket, refused}) ::close(fd);
  });
}

// The fiber waits for the answer without a first attempt.
FIBER_TEST_CASE(
    "a receive right after a send returns the same result in a posix::Scope as on a thread") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    const Pair pair;
    std::array<char, 8> buffer{};
    const auto ask = [&] { note(log, ::send(pair.here(), "?", 1, 0)); };
    note(log, ::send(pair.there(), "abcd", 4, 0));
    ask();
    note(log, ::recv(pair.here(), buffer.data(), 2, 0));
    ask();
    note(log, ::read(pair.here(), buffer.data(), 8));
    set_limit(pair.here(), SO_RCVTIMEO, 2000);
    ask();
    note(log, ::recv(pair.here(), buffer.data(), 1, 0));
    ask();
    note(log, ::recv(pair.here(), buffer.data(), 1, MSG_DONTWAIT));
    set_limit(pair.here(), SO_RCVTIMEO, 0);
    ask();
    std::thread answer([&] { CHECK(::send(pair.there(), "ef", 2, 0) == 2); });
    note(log, ::recv(pair.here(), buffer.data(), 8, 0));
    answer.join();
    ask();
    ::fcntl(pair.here(), F_SETFL, O_NONBLOCK);
    note(log, ::recv(pair.here(), buffer.data(), 1, 0));
    ask();
    ::shutdown(pair.there(), SHUT_WR);
    note(log, ::recv(pair.here(), buffer.data(), 1, 0));
    ask();
    std::array<int, 2> pipe{};
    CHECK(::pipe(pipe.data()) == 0);
    CHECK(::write(pipe[1], "pipe", 4) == 4);
    CHECK(::dup2(pipe[0], pair.here()) == pair.here());
    note(log, ::recv(pair.here(), buffer.data(), 1, 0));
    note(log, ::read(pair.here(), buffer.data(), 8));
    for (const int end : pipe) ::close(end);
  });
}

FIBER_TEST_CASE(
    "sendmmsg() and recvmmsg() in a posix::Scope return the same results as on a thread") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    const Pair pair(SOCK_DGRAM);
    std::array<std::array<char, 8>, 3> buffers{};
    std::array<iovec, 3> parts{};
    std::array<mmsghdr, 3> messages{};
    for (std::size_t i = 0; i < 3; ++i) {
      parts[i] = {buffers[i].data(), i + 1};
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    note(log, ::sendmmsg(pair.there(), messages.data(), 3, 0));
    for (iovec& part : parts) part.iov_len = 8;
    note(log, ::recvmmsg(pair.here(), messages.data(), 2, MSG_WAITFORONE, nullptr));
    note(log, messages[1].msg_len);
    note(log, ::recvmmsg(pair.here(), messages.data(), 1, 0, nullptr));
    note(log, messages[0].msg_len);
    note(log, ::sendto(pair.there(), "", 0, 0, nullptr, 0));
    note(log, ::recv(pair.here(), buffers[0].data(), 8, 0));
    set_limit(pair.here(), SO_RCVTIMEO, 2000);
    note(log, ::recvmsg(pair.here(), &messages[0].msg_hdr, 0));
  });
}

FIBER_TEST_CASE(
    "a datagram received after a wait comes with its sender and length, as on a thread") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    const int receiver = ::socket(AF_INET, SOCK_DGRAM, 0);
    const int sender = ::socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in from = loopback(0);
    CHECK(::bind(receiver, generic, size) == 0);
    CHECK(::getsockname(receiver, generic, &size) == 0);
    CHECK(::bind(sender, reinterpret_cast<sockaddr*>(&from), sizeof from) == 0);
    CHECK(::getsockname(sender, reinterpret_cast<sockaddr*>(&from), &size) == 0);
    std::thread answer([=] {
      for (int i = 0; i < 2; ++i)
        CHECK(::sendto(sender, "abcd", 4, 0, reinterpret_cast<const sockaddr*>(&address),
                       sizeof address) == 4);
    });
    std::array<char, 2> buffer{};
    sockaddr_in got{};
    socklen_t got_size = sizeof got;
    note(log, ::recvfrom(receiver, buffer.data(), buffer.size(), MSG_TRUNC,
                         reinterpret_cast<sockaddr*>(&got), &got_size));
    note(log, got_size);
    note(log, got.sin_port == from.sin_port);
    iovec part{buffer.data(), buffer.size()};
    msghdr message{};
    message.msg_name = &got;
    message.msg_namelen = sizeof got;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    note(log, ::recvmsg(receiver, &message, 0));
    note(log, message.msg_flags);
    note(log, message.msg_namelen);
    answer.join();
    ::close(receiver);
    ::close(sender);
  });
}

// An unconnected datagram socket is writable even if its peer has no room.
FIBER_TEST_CASE("a datagram send waits while the peer has no room, as on a thread") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    sockaddr address{AF_UNIX, {}};
    std::array<char, 128> name{};
    socklen_t size = name.size();
    auto* generic = reinterpret_cast<sockaddr*>(name.data());
    const int peer = ::socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK(::bind(peer, &address, sizeof(sa_family_t)) == 0);
    CHECK(::getsockname(peer, generic, &size) == 0);
    const int sender = ::socket(AF_UNIX, SOCK_DGRAM, 0);
    while (::sendto(sender, "x", 1, MSG_DONTWAIT, generic, size) == 1) {
    }
    std::thread reader([=] {
      char byte = 0;
      CHECK(::recv(peer, &byte, 1, 0) == 1);
    });
    note(log, ::sendto(sender, "x", 1, 0, generic, size));
    reader.join();
    ::close(peer);
    ::close(sender);
  });
}

TEST_SUITE_END();

}  // namespace
