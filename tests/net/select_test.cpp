#include <array>
#include <atomic>
#include <chrono>
#include <sstream>
#include <string>
#include <utility>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/net/select.hpp>
#include <weft/select.hpp>
#include <weft/this_fiber.hpp>

#include "tests/net/loopback.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

using namespace weft;
using namespace weft::net;
using namespace weft::test;
using namespace std::chrono_literals;

namespace {

// Returns whether a caller is parked in a select with sockets.
bool somebody_selects(const Runtime& runtime) {
  std::ostringstream text;
  runtime.dump(text);
  return text.str().find("select with sockets") != std::string::npos;
}
// Lets other fibers run until a caller is parked in a select.
void wait_for_select(const Runtime& runtime) {
  while (!somebody_selects(runtime)) this_fiber::yield();
}

void write_text(TcpStream& stream, std::string_view text) {
  CHECK(stream.write_all(bytes(text)).error == std::error_code{});
}
// Reads the bytes that have arrived, without waiting.
std::string read_now(TcpStream& stream, std::size_t most = 100) {
  std::string text(most, '\0');
  const auto [count, error] =
      stream.read_some(std::as_writable_bytes(std::span(text)), Deadline::past());
  CHECK(error == std::error_code{});
  text.resize(count);
  return text;
}

}  // namespace

TEST_SUITE_BEGIN("net/select");

FIBER_TEST_CASE("a select finds a stream writable at once, and readable when bytes arrive") {
  auto [client, server] = connected_pair();
  CHECK(select(on_writable(client), otherwise()) == 0);
  CHECK(select(on_readable(client), otherwise()) == 1);
  write_text(server, "hello");
  // The byte is still in transit on this machine. No other event can end this select.
  int handled = 0;
  CHECK(select(on_readable(client, [&] { ++handled; })) == 0);
  CHECK(handled == 1);
  CHECK(select(on_readable(client), otherwise()) == 0);
  CHECK(read_now(client) == "hello");
  CHECK(select(on_readable(client), otherwise()) == 1);
}

FIBER_TEST_CASE(
    "a waiting select returns when bytes arrive, and its handler reads the bytes without waiting") {
  auto [client, server] = connected_pair();
  Channel<int> channel;
  for (int round = 0; round < 20; ++round) {
    auto writer = spawn([&, &peer = server] {
      wait_for_select(runtime);
      if (round % 3 == 2) {
        (void)channel.send(round);
      } else {
        write_text(peer, "later");
      }
    });
    const auto chosen =
        select(on_receive(channel, [](auto) {}),
               on_readable(client, [&, &stream = client] { CHECK(read_now(stream) == "later"); }));
    CHECK(chosen == (round % 3 == 2 ? 0 : 1));
    writer.join();
  }
}

FIBER_TEST_CASE("a select finds a stream readable if data arrived before the select") {
  auto [client, server] = connected_pair();
  write_text(server, "0123456789");
  CHECK(read_text(client, 4) == "0123");
  CHECK(select(on_readable(client)) == 0);
  CHECK(read_now(client) == "456789");
  // The stream is drained now. A select takes the next edge, and a later read must take account of
  // it.
  for (int round = 0; round < 10; ++round) {
    CHECK(select(on_readable(client), on_timeout(1us)) == 1);
    write_text(server, "more");
    if (round % 2 == 0) CHECK(select(on_readable(client), on_timeout(1h)) == 0);
    CHECK(read_text(client, 4) == "more");
  }
}

FIBER_TEST_CASE("a select that times out does not disturb the next read of the stream") {
  auto [client, server] = connected_pair();
  for (int round = 0; round < 5; ++round) {
    CHECK(select(on_readable(client), on_timeout(1ms)) == 1);
    auto writer = spawn([&peer = server] { write_text(peer, "x"); });
    CHECK(read_text(client, 1) == "x");
    writer.join();
  }
}

FIBER_TEST_CASE("a select finds a stream readable when the peer has closed the connection") {
  auto [client, server] = connected_pair();
  auto closer = spawn([&, peer = std::move(server)]() mutable {
    wait_for_select(runtime);
    peer.close();
  });
  CHECK(select(on_readable(client)) == 0);
  std::array<std::byte, 1> buffer{};
  CHECK(client.read_some(buffer, Deadline::past()).error == Errc::end_of_stream);
  CHECK(select(on_readable(client), otherwise()) == 0);
  closer.join();
}

FIBER_TEST_CASE("closing a stream ends current and later selects on the stream") {
  for (int round = 0; round < 100; ++round) {
    auto [client, server] = connected_pair();
    auto closer = spawn([&, &stream = client] {
      wait_for_select(runtime);
      stream.close();
    });
    CHECK(select(on_readable(client), on_timeout(1h)) == 0);
    CHECK(select(on_readable(client), otherwise()) == 0);
    CHECK(select(on_writable(client)) == 0);
    closer.join();
  }
  const TcpStream none;
  CHECK(select(on_readable(none), otherwise()) == 0);
}

FIBER_TEST_CASE("a select finds a stream writable after the peer has read bytes") {
  auto [client, server] = connected_pair();
  shrink_buffers(client);
  const std::string block(1 << 16, 'x');
  std::size_t written = 0;
  // There may be room again a moment later, because the system transfers buffered data at any time.
  do {
    for (;;) {
      const auto [count, error] = client.write_some(bytes(block), Deadline::past());
      if (error) break;
      written += count;
    }
  } while (select(on_writable(client), on_timeout(1ms)) == 0);
  std::atomic<bool> was_writable{false};
  auto reader = spawn([&, &peer = server] {
    while (!was_writable && !somebody_selects(runtime)) this_fiber::yield();
    return read_text(peer, written).size();
  });
  CHECK(select(on_writable(client)) == 0);
  was_writable = true;
  CHECK(client.write_some(bytes("y"), Deadline::past()).error == std::error_code{});
  CHECK(reader.join() == written);
}

FIBER_TEST_CASE("a select finds a listener readable when accept() would not wait") {
  TcpListener listener = listen_anywhere();
  CHECK(select(on_readable(listener), otherwise()) == 1);
  auto client = spawn([&] {
    wait_for_select(runtime);
    return TcpStream::connect(listener.local_address().value);
  });
  CHECK(select(on_readable(listener)) == 0);
  CHECK(listener.accept(Deadline::past()).error == std::error_code{});
  CHECK(client.join().error == std::error_code{});
}

FIBER_TEST_CASE(
    "a select ends at a stream's read deadline, whether set before or during the select") {
  auto [client, server] = connected_pair();
  std::array<std::byte, 1> buffer{};
  auto setter = spawn([&, &stream = client] {
    wait_for_select(runtime);
    stream.set_read_deadline(Deadline::past());
  });
  CHECK(select(on_readable(client)) == 0);
  CHECK(client.read_some(buffer).error == Errc::timed_out);
  setter.join();
  client.set_read_deadline(Deadline::after(2ms));
  CHECK(select(on_readable(client)) == 0);
  CHECK(client.read_some(buffer).error == Errc::timed_out);
  client.set_read_deadline(Deadline::never());
  CHECK(select(on_readable(client), otherwise()) == 1);
}

FIBER_TEST_CASE("a select handler may read any socket in the select") {
  auto [first_client, first_server] = connected_pair();
  auto [second_client, second_server] = connected_pair();
  auto writer = spawn([&, &first = first_server, &second = second_server] {
    wait_for_select(runtime);
    write_text(first, "a");
    // The handler reads, and so waits for the stream that was not chosen.
    write_text(second, "b");
  });
  std::string both;
  const auto read_both = [&, &first = first_client, &second = second_client] {
    both = read_text(first, 1) + read_text(second, 1);
  };
  select(on_readable(first_client, read_both), on_readable(second_client, read_both));
  CHECK(both == "ab");
  writer.join();
}

FIBER_TEST_CASE("one fiber serves two streams with selects and receives each byte once") {
  const int rounds = static_cast<int>(500 / kSlowdown);
  std::array<Pair, 2> pairs{connected_pair(), connected_pair()};
  std::array<JoinHandle<void>, 2> writers;
  for (std::size_t i = 0; i < 2; ++i) {
    writers[i] = spawn([&, &peer = pairs[i].server] {
      for (int n = 0; n < rounds; ++n) {
        write_text(peer, "12345");
        if (n % 7 == 0) this_fiber::yield();
      }
      peer.close();
    });
  }
  std::array<std::size_t, 2> received{};
  std::array<bool, 2> open{true, true};
  while (open[0] || open[1]) {
    const auto take = [&](std::size_t i) {
      return [&, i] {
        std::array<std::byte, 64> buffer{};
        const auto [count, error] = pairs[i].client.read_some(buffer, Deadline::past());
        received[i] += count;
        CHECK(error != Errc::timed_out);
        if (error) open[i] = false;
      };
    };
    if (open[0] && open[1]) {
      select(on_readable(pairs[0].client, take(0)), on_readable(pairs[1].client, take(1)));
    } else {
      const std::size_t i = open[0] ? 0 : 1;
      select(on_readable(pairs[i].client, take(i)));
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    writers[i].join();
    CHECK(received[i] == 5 * static_cast<std::size_t>(rounds));
  }
}

FIBER_TEST_CASE("no byte is lost when timeouts of 0 to 2 us race with data, reads and closes") {
  const int rounds = static_cast<int>(5000 / kSlowdown);
  auto [client, server] = connected_pair();
  auto writer = spawn([&, peer = std::move(server)]() mutable {
    Random random(1);
    for (int i = 0; i < rounds; ++i) {
      write_text(peer, "z");
      if (random.below(4) == 0) this_fiber::sleep_for(std::chrono::nanoseconds(random.below(3000)));
    }
  });
  Random random(2);
  int received = 0;
  for (bool open = true; open;) {
    const auto wait = std::chrono::nanoseconds(random.below(2000));
    const bool readable = select(on_readable(client), on_timeout(wait)) == 0;
    // Sometimes a plain read comes between two selects, and has to wait.
    if (!readable && random.below(8) != 0) continue;
    std::array<std::byte, 8> buffer{};
    const auto [count, error] =
        client.read_some(buffer, readable ? Deadline::past() : Deadline::never());
    received += static_cast<int>(count);
    CHECK(error != Errc::timed_out);
    if (error) open = false;
  }
  CHECK(received == rounds);
  writer.join();
}

FIBER_TEST_CASE(
    "a select on a stream returns when closing the stream races with the start or end of the "
    "select") {
  const int rounds = static_cast<int>(300 / kSlowdown);
  Random random(3);
  for (int i = 0; i < rounds; ++i) {
    auto [client, server] = connected_pair();
    const auto pause = std::chrono::nanoseconds(random.below(20'000));
    auto closer = spawn([&stream = client, pause] {
      this_fiber::sleep_for(pause);
      stream.close();
    });
    while (select(on_readable(client), on_timeout(std::chrono::nanoseconds(random.below(2000)))) !=
           0) {
    }
    CHECK_FALSE(client.is_open_hint());
    closer.join();
  }
}

THREAD_TEST_CASE("a plain thread may use select() on sockets") {
  auto [client, server] = connected_pair();
  Channel<int> channel;
  weft::go([&channel] { (void)channel.send(1); });
  CHECK(select(on_readable(client), on_receive(channel, [](auto) {})) == 1);
  weft::go([&peer = server] { write_text(peer, "now"); });
  CHECK(select(on_readable(client), on_receive(channel, [](auto) {})) == 0);
  CHECK(read_now(client).substr(0, 1) == "n");
  CHECK(runtime.wait_idle_for(60s));
}

TEST_SUITE_END();
