// Tests Autobahn's cases 1 to 5, 7, 9 and 10, by their numbers, with the required answers. The
// sizes in cases 9 are a fraction of the suite's.
#include <string>
#include <string_view>

#include "tests/http/autobahn.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::string_literals;

void run_framing(Suite& suite) {
  for_each_numbered<std::size_t>(
      {0, 125, 126, 127, 128, 65535, 65536, 65536}, [&](std::size_t i, std::size_t size) {
        const std::string star(size, '*');
        const std::string any(size, '\xfe');
        const std::size_t chop = i == 8 ? 997 : 0;
        suite.check_well(number("1.1", i), frame(0x81, star), text(star), chop);
        suite.check_well(number("1.2", i), frame(0x82, any), binary(any), chop);
      });
}

void run_pings(Suite& suite) {
  const std::string bytes = "\0\xff\xfe\xfd\xfc\xfb\0\xff"s;
  const std::string most(125, '\xfe');
  suite.check_well("2.1", frame(0x89, ""), pong(""));
  suite.check_well("2.2", frame(0x89, "Hello, world!"), pong("Hello, world!"));
  suite.check_well("2.3", frame(0x89, bytes), pong(bytes));
  suite.check_well("2.4", frame(0x89, most), pong(most));
  suite.check_refused("2.5", frame(0x89, most + "x"));
  suite.check_well("2.6", frame(0x89, most), pong(most), 1);
  suite.check_well("2.7", frame(0x8a, ""), "");
  suite.check_well("2.8", frame(0x8a, "unsolicited"), "");
  suite.check_well("2.9", frame(0x8a, "unsolicited") + frame(0x89, "ping"), pong("ping"));
  std::string pings;
  std::string pongs;
  for (int i = 0; i < 10; ++i) {
    pings += frame(0x89, "payload-" + std::to_string(i));
    pongs += pong("payload-" + std::to_string(i));
  }
  suite.check_well("2.10", pings, pongs);
  suite.check_well("2.11", pings, pongs, 1);
}

void run_reserved(Suite& suite) {
  const std::string hello = "Hello, world!";
  const std::string before = frame(0x81, hello);
  const std::string ping = frame(0x89, "");
  const std::string answer = text(hello) + closed(1002);
  suite.check_refused("3.1", frame(0x91, hello));
  suite.check("3.2", {before + frame(0xa1, hello) + ping}, answer);
  suite.check("3.3", {before + frame(0xb1, hello) + ping}, answer, before.size());
  suite.check("3.4", {before + frame(0xc1, hello) + ping}, answer, 1);
  suite.check_refused("3.5", frame(0xd2, hello));
  suite.check_refused("3.6", frame(0xe9, hello));
  suite.check_refused("3.7", frame(0xf8, http::make_close(1000, {})));

  for (unsigned i = 0; i < 5; ++i) {
    for (const bool is_control : {false, true}) {
      const unsigned first = 0x80 | ((is_control ? 0xb : 0x3) + i);
      const std::string name = number(is_control ? "4.2" : "4.1", i + 1);
      const std::string wrong = frame(first, i % 2 == 0 ? "" : "reserved opcode");
      if (i < 2) {
        suite.check_refused(name, wrong);
      } else {
        suite.check(name, {before + wrong + ping}, answer, i == 4 ? 1 : 0);
      }
    }
  }
}

void run_fragments(Suite& suite) {
  const std::string ab = frame(0x01, "a") + frame(0x80, "b");
  const std::string pinged = frame(0x01, "a") + frame(0x89, "p") + frame(0x80, "b");
  suite.check_refused("5.1", frame(0x09, "a") + frame(0x80, "b"));
  suite.check_refused("5.2", frame(0x0a, "a") + frame(0x80, "b"));
  suite.check_well("5.3", ab, text("ab"));
  suite.check_well("5.4", ab, text("ab"), 7);
  suite.check_well("5.5", ab, text("ab"), 1);
  suite.check_well("5.6", pinged, pong("p") + text("ab"));
  suite.check_well("5.7", pinged, pong("p") + text("ab"), 7);
  suite.check_well("5.8", pinged, pong("p") + text("ab"), 1);
  for_each_numbered<std::size_t>({0, 20, 1}, [&](std::size_t i, std::size_t chop) {
    const std::string after = frame(0x81, "Hello, world!");
    suite.check_refused(number("5", 8 + i), frame(0x80, "non-continuation") + after, 1002, chop);
    suite.check_refused(number("5", 11 + i), frame(0x00, "non-continuation") + after, 1002, chop);
  });
  suite.check("5.15", {ab + frame(0x00, "c") + frame(0x81, "d")}, text("ab") + closed(1002));
  suite.check_refused("5.16", frame(0x00, "a") + ab + frame(0x00, "a") + ab);
  suite.check_refused("5.17", frame(0x80, "a") + ab + frame(0x80, "a") + ab);
  suite.check_refused("5.18", frame(0x01, "a") + frame(0x81, "b"));
  const std::string first = frame(0x01, "1") + frame(0x00, "2") + frame(0x89, "p1");
  const std::string second = frame(0x00, "3") + frame(0x00, "4") + frame(0x89, "p2");
  const std::string answer = pong("p1") + pong("p2") + text("12345") + closed(1000);
  suite.check("5.19", {first, second, frame(0x80, "5") + close_frame(1000)}, answer);
  suite.check("5.20", {first + second + frame(0x80, "5") + close_frame(1000)}, answer);
}

// make_close() has no bytes for 1005.
std::string code_bytes(unsigned code) {
  return {static_cast<char>(code >> 8U), static_cast<char>(code & 0xffU)};
}

void run_closes(Suite& suite) {
  const std::string end = close_frame(1000);
  const std::string hello = frame(0x81, "Hello World!");
  const std::string large(256 * 1024, 'B');
  suite.check_well("7.1.1", hello, text("Hello World!"));
  suite.check("7.1.2", {end + end}, closed(1000));
  suite.check("7.1.3", {end + frame(0x89, "")}, closed(1000));
  suite.check("7.1.4", {end + hello}, closed(1000));
  suite.check("7.1.5", {frame(0x01, "a") + end + frame(0x80, "b")}, closed(1000));
  suite.check("7.1.6", {frame(0x81, large) + hello + end + frame(0x89, "")},
              text(large) + text("Hello World!") + closed(1000));
  suite.check("7.3.1", {frame(0x88, "")}, "close ");
  suite.check_refused("7.3.2", frame(0x88, "a"));
  suite.check("7.3.3", {end}, closed(1000));
  suite.check("7.3.4", {close_frame(1000, "Hello World!")}, closed(1000));
  suite.check("7.3.5", {close_frame(1000, std::string(123, '*'))}, closed(1000));
  suite.check_refused("7.3.6", close_frame(1000, std::string(124, '*')));
  suite.check_refused("7.5.1", close_frame(1000, "\xce\xba\xed\xa0\x80"), 1007);
  for_each_numbered<unsigned>(
      {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999},
      [&](std::size_t i, unsigned code) {
        suite.check(number("7.7", i), {close_frame(code)}, closed(code));
      });
  for_each_numbered<unsigned>(
      {0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999}, [&](std::size_t i, unsigned code) {
        suite.check_refused(number("7.9", i), frame(0x88, code_bytes(code)));
      });
  suite.check_refused("7.13.1", close_frame(5000));
  suite.check_refused("7.13.2", close_frame(65535));
}

void run_limits(Suite& suite) {
  constexpr std::size_t kKilo = 1024;
  const auto both = [&](std::string_view of_text, std::string_view of_binary, std::size_t i,
                        const std::string& payload, std::size_t fragment, std::size_t chop) {
    suite.check_well(number(of_text, i), fragments(1, payload, fragment), text(payload), chop);
    suite.check_well(number(of_binary, i), fragments(2, payload, fragment), binary(payload), chop);
  };
  for_each_numbered<std::size_t>({64, 256, 1024, 4096, 8192, 16384},
                                 [&](std::size_t i, std::size_t kilos) {
                                   const std::string payload(kilos * kKilo / kPart, '*');
                                   both("9.1", "9.2", i, payload, payload.size(), 0);
                                 });
  const std::string four(4096 * kKilo / kPart, '*');
  for_each_numbered<std::size_t>(
      {64, 256, kKilo, 4 * kKilo, 16 * kKilo, 64 * kKilo, 256 * kKilo, 1024 * kKilo, 4096 * kKilo},
      [&](std::size_t i, std::size_t size) { both("9.3", "9.4", i, four, size, 0); });
  const std::string one(1024 * kKilo / kPart, '*');
  for_each_numbered<std::size_t>(
      {64, 128, 256, 512, 1024, 2048},
      [&](std::size_t i, std::size_t chop) { both("9.5", "9.6", i, one, one.size(), chop); });
  for_each_numbered<std::size_t>(
      {0, 16, 64, 256, 1024, 4096}, [&](std::size_t i, std::size_t size) {
        for (const unsigned opcode : {1U, 2U}) {
          suite.begin(number(opcode == 1 ? "9.7" : "9.8", i));
          Peer peer(suite.server());
          const std::string payload(size, '*');
          http::FrameHeader header;
          std::string answer;
          for (std::size_t round = 0; round < 1000 / kPart; ++round) {
            peer.send(frame(0x80 | opcode, payload));
            const bool is_answered = peer.receive(header, answer) && answer == payload;
            CHECK(is_answered);
          }
        }
      });
  const std::string star(65536, '*');
  suite.check_well("10.1.1", fragments(1, star, 1300), text(star));
}

TEST_SUITE_BEGIN("http/autobahn");

SIM_TEST_CASE_WITH(
    "a WebSocket server sends the expected replies in cases 1 to 5 and 7 to 10 of the Autobahn "
    "suite",
    {.workers = {1}, .options = {.seeds = 1}}) {
  Suite suite({.message_bytes = 16 << 20, .fragments = 100'000});
  run_framing(suite);
  run_pings(suite);
  run_reserved(suite);
  run_fragments(suite);
  run_closes(suite);
  run_limits(suite);
  CHECK(suite.count() == 156);
}

TEST_SUITE_END();

}  // namespace
