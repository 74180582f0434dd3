#include <weft/net/buffered.hpp>

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <weft/error.hpp>
#include <weft/go.hpp>
#include <weft/io.hpp>
#include <weft/net/unix_stream.hpp>

#include "tests/net/loopback.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;
using net::BufferedReader;
using net::BufferedWriter;
using net::ReadErrc;

TEST_SUITE_BEGIN("net/buffered");

namespace {

// Is a stream that returns one of the pieces per read, and accepts `room` bytes in total.
struct Script {
  std::deque<std::string> pieces;
  std::size_t room = 1000;
  std::string written = {};
  int writes = 0;

  Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until) {
    if (pieces.empty()) return {.error = until.is_over() ? until.reason() : Errc::end_of_stream};
    std::string& piece = pieces.front();
    const std::size_t count = std::min(buffer.size(), piece.size());
    std::ranges::copy(bytes(piece).first(count), buffer.begin());
    piece.erase(0, count);
    if (piece.empty()) pieces.pop_front();
    return {.value = count};
  }
  Result<std::size_t> write_all(std::span<const std::byte> data, const Until& /*until*/) {
    ++writes;
    const std::size_t count = std::min(room, data.size());
    for (const std::byte byte : data.first(count)) written += static_cast<char>(byte);
    room -= count;
    if (count < data.size()) return {.value = count, .error = Errc::timed_out};
    return {.value = count};
  }
};

}  // namespace

TEST_CASE(
    "a BufferedReader returns lines without their line endings, however the stream splits the "
    "lines") {
  Script script{.pieces = {"PI", "NG\r", "\nECHO\n\n", "a\rb\r\nmore"}};
  BufferedReader reader(script);
  CHECK(reader.read_line().value == "PING");
  CHECK(reader.read_line().value == "ECHO");
  const auto empty = reader.read_line();
  CHECK_FALSE(empty.error);
  CHECK(empty.value.empty());
  CHECK(reader.read_line().value == "a\rb");
  const auto rest = reader.read_line();
  CHECK(rest.error == ReadErrc::truncated);
  CHECK(rest.value == "more");
  CHECK(reader.read_line().error == Errc::end_of_stream);
}

TEST_CASE(
    "a BufferedReader refuses a line that exceeds the length limit, and keeps the line's bytes") {
  const net::ReaderOptions options{.capacity = 3, .longest = 8};
  Script script{.pieces = {"12345678\n123456789\n"}};
  BufferedReader reader(script, options);
  CHECK(reader.read_line().value == "12345678");
  CHECK(reader.read_line().error == ReadErrc::too_long);
  CHECK(reader.read_line().error == ReadErrc::too_long);
  CHECK(reader.peek(9).error == ReadErrc::too_long);
  CHECK(reader.read_exactly(8).value == "12345678");
  CHECK(reader.read_line().value == "9");
  Script endless{.pieces = {std::string(9, 'x')}};
  BufferedReader other(endless, options);
  CHECK(other.read_line().error == ReadErrc::too_long);
  CHECK(std::error_code(ReadErrc::too_long).message().starts_with("the line or the size exceeds"));
}

TEST_CASE("a BufferedReader without a limit reads a line of any length") {
  Script script{.pieces = {std::string(50'000, 'x'), std::string(50'000, 'y'), "\nz"}};
  BufferedReader reader(script, {.capacity = 1, .longest = ~std::size_t{0}});
  CHECK(reader.read_line().value.size() == 100'000);
  CHECK(reader.read_line().error == ReadErrc::truncated);
}

TEST_CASE(
    "a BufferedReader distinguishes a stream that ends during a read from a stream that has "
    "already ended") {
  Script script{.pieces = {"ab", "cd", "e"}};
  BufferedReader reader(script);
  CHECK(reader.peek(3).value == "abc");
  CHECK(reader.read_exactly(3).value == "abc");
  const auto part = reader.peek(5);
  CHECK(part.error == ReadErrc::truncated);
  CHECK(part.value == "de");
  std::byte room[3];
  const auto filled = reader.read_exactly(room);
  CHECK(filled.error == ReadErrc::truncated);
  CHECK(filled.value == 2);
  CHECK(reader.read_exactly(room).error == Errc::end_of_stream);
  CHECK(reader.read_exactly(1).error == Errc::end_of_stream);
  CHECK(reader.peek(1).error == Errc::end_of_stream);
}

TEST_CASE("a large buffered read takes the buffered bytes first, and then bypasses the buffer") {
  Script script{.pieces = {"head\n123", std::string(100, 'x')}};
  BufferedReader reader(script, {.capacity = 16});
  CHECK(reader.read_until('\n').value == "head");
  CHECK(reader.buffered() == "123");
  std::byte room[103];
  CHECK(reader.read_some(room).value == 3);
  CHECK(reader.read_some(room).value == 100);
  CHECK(reader.buffered().empty());
}

TEST_CASE("a buffered read that timed out can be repeated without losing bytes") {
  Script script{.pieces = {"hal"}};
  BufferedReader reader(script);
  CHECK(reader.read_line(Deadline::past()).error == Errc::timed_out);
  CHECK(reader.read_exactly(4, Deadline::past()).error == Errc::timed_out);
  script.pieces.emplace_back("f\n");
  CHECK(reader.read_line().value == "half");
}

TEST_CASE("a BufferedWriter gathers small writes and passes large writes on without a copy") {
  Script script{.pieces = {}};
  BufferedWriter writer(script, 8);
  CHECK(writer.capacity() == 8);
  CHECK(writer.write("1234").value == 4);
  CHECK(writer.write("5678").value == 4);
  CHECK(script.writes == 0);
  CHECK(writer.write("9").value == 1);
  CHECK(script.written == "12345678");
  CHECK(writer.write("a large one").value == 11);
  CHECK(script.written == "123456789a large one");
  CHECK(script.writes == 3);
  CHECK(writer.write("capacity").value == 8);
  CHECK(script.writes == 4);
  CHECK(writer.flush());
  CHECK(script.writes == 4);
}

TEST_CASE("a BufferedWriter keeps the bytes that its stream has not accepted") {
  Script script{.pieces = {}, .room = 3};
  BufferedWriter writer(script, 8);
  CHECK(writer.write("12345").value == 5);
  CHECK(writer.flush() == Errc::timed_out);
  CHECK(writer.buffered() == 2);
  const auto refused = writer.write("6789abc");
  CHECK(refused.error == Errc::timed_out);
  CHECK(refused.value == 0);
  script.room = 100;
  CHECK(writer.flush());
  CHECK(script.written == "12345");
}

FIBER_TEST_CASE(
    "a BufferedReader and a BufferedWriter exchange lines with a peer over a connection") {
  auto [pair, error] = net::UnixStream::pair();
  CHECK_FALSE(error);
  auto answering = spawn([&peer = pair.second] {
    BufferedReader reader(peer, {.capacity = 7});
    BufferedWriter writer(peer, 16);
    int lines = 0;
    for (auto line = reader.read_line(); !line.error; line = reader.read_line(), ++lines) {
      (void)writer.write(line.value);
      (void)writer.write("\n");
      if (reader.buffered().empty()) CHECK(writer.flush());
    }
    return lines;
  });
  BufferedReader reader(pair.first);
  BufferedWriter writer(pair.first);
  for (int i = 0; i < 100; ++i) (void)writer.write("line " + std::to_string(i) + "\r\n");
  CHECK(writer.flush());
  for (int i = 0; i < 100; ++i) CHECK(reader.read_line().value == "line " + std::to_string(i));
  CHECK(pair.first.shutdown(net::Shutdown::write));
  CHECK(answering.join() == 100);
}

FIBER_TEST_CASE("a BufferedReader and a BufferedWriter read and write the descriptors of a pipe") {
  auto [pipe, error] = io::make_pipe();
  CHECK_FALSE(error);
  BufferedReader reader(pipe.read);
  BufferedWriter writer(pipe.write);
  CHECK(reader.read_line(Deadline::past()).error == Errc::timed_out);
  CHECK(writer.write("one\ntwo").value == 7);
  CHECK(writer.flush());
  CHECK(reader.read_line().value == "one");
  pipe.write.close();
  CHECK(reader.read_line().error == ReadErrc::truncated);
  CHECK(reader.read_line().error == Errc::end_of_stream);
}

TEST_SUITE_END();
