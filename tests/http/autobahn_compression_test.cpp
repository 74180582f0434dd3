// Tests Autobahn's cases 12 and 13: compressed messages, with all parameters of permessage-deflate.
// Counts, and sizes above 8 KiB, are a fraction of the suite's.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "libs/http/websocket/deflate.hpp"
#include "tests/http/autobahn.hpp"

namespace {

using namespace weft;
using namespace weft::test;

// Returns the data that the suite sends: prose, a picture, a compressed file, JSON or HTML.
std::string make_data(std::size_t kind) {
  constexpr std::size_t kSize = 200'000;
  std::string data;
  std::uint32_t state = 1;
  const auto random = [&state](std::uint32_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8U) % below;
  };
  while (data.size() < kSize) {
    if (kind == 1) {
      data.append(2 + random(9), static_cast<char>('a' + random(26))) += ' ';
    } else if (kind == 2) {
      data += static_cast<char>(data.size() / 512 + random(4));
    } else if (kind == 3) {
      data += static_cast<char>(random(256));
    } else if (kind == 4) {
      data += R"({"id":)" + std::to_string(random(100000)) + R"(,"name":"user","tags":["a","b"]},)";
    } else {
      data +=
          "<li class=\"entry\"><a href=\"/" + std::to_string(random(100000)) + "\">a</a></li>\n";
    }
  }
  return data;
}

struct Compression {
  std::string offer;
  std::string answer;
  http::DeflateContext server;  // The client assumes that the server has this state.
  http::DeflateContext client;
};

void run_compression(Suite& suite, std::string_view group, const std::string& data, bool is_binary,
                     const Compression& compression) {
  struct Size {
    std::size_t bytes;
    std::size_t fragment;
  };
  for_each_numbered<Size>(
      {{16, 0},
       {64, 0},
       {256, 0},
       {1024, 0},
       {4096, 0},
       {8192, 0},
       {16384, 0},
       {32768, 0},
       {65536, 0},
       {131072, 0},
       {8192, 256},
       {16384, 256},
       {32768, 256},
       {65536, 256},
       {131072, 256},
       {131072, 1024},
       {131072, 4096},
       {131072, 32768}},
      [&](std::size_t i, const Size& size) {
        suite.begin(number(group, i));
        CAPTURE(number(group, i));
        Peer peer(suite.server(), "Sec-WebSocket-Extensions: " + compression.offer + "\r\n");
        const std::string line = "\r\nSec-WebSocket-Extensions: " + compression.answer + "\r\n";
        CHECK(peer.head().find(line) != std::string::npos);
        http::MessageDeflater deflater(15, compression.client);
        http::MessageInflater inflater(compression.server);
        const std::size_t bytes =
            size.bytes > 8192 ? std::max<std::size_t>(8192, size.bytes * 4 / kPart) : size.bytes;
        for (std::size_t at = 0; at < 4; ++at) {
          const std::string message = data.substr(at * bytes, bytes);
          std::string compressed;
          CHECK(deflater.deflate(message, compressed));
          const std::size_t fragment = size.fragment == 0 ? compressed.size() : size.fragment;
          peer.send(fragments(is_binary ? 0x42 : 0x41, compressed, fragment));
          http::FrameHeader header;
          std::string answer;
          std::string inflated;
          CHECK(peer.receive(header, answer));
          CHECK((header.opcode == http::Opcode::binary) == is_binary);
          if (header.is_compressed) {
            CHECK(inflater.inflate(answer, bytes, inflated) == http::Inflated::well);
          }
          CHECK((header.is_compressed ? inflated : answer) == message);
        }
      });
}

TEST_SUITE_BEGIN("http/autobahn");

SIM_TEST_CASE_WITH(
    "a WebSocket server sends the expected replies in cases 12 and 13 of the Autobahn suite",
    {.workers = {1}, .options = {.seeds = 1}}) {
  if (!http::can_deflate()) return;
  using enum http::DeflateContext;
  Suite suite({.compress_bytes = 1, .compress_context = true});
  const std::string hints = "; client_no_context_takeover; client_max_window_bits";
  const Compression plain = {"permessage-deflate", "permessage-deflate", kept, kept};
  for (std::size_t kind = 1; kind <= 5; ++kind) {
    run_compression(suite, number("12", kind), make_data(kind), kind <= 3, plain);
  }
  const std::string resets = "; server_no_context_takeover";
  const std::string both =
      "permessage-deflate; server_no_context_takeover; "
      "client_no_context_takeover";
  const auto bits = [](int size) { return "; server_max_window_bits=" + std::to_string(size); };
  const std::string data = make_data(4);
  for_each_numbered<Compression>(
      {{"permessage-deflate" + hints, "permessage-deflate; client_no_context_takeover", kept,
        dropped},
       {"permessage-deflate" + resets + hints, both, dropped, dropped},
       {"permessage-deflate" + bits(9), "permessage-deflate" + bits(9), kept, kept},
       {"permessage-deflate" + bits(15), "permessage-deflate" + bits(15), kept, kept},
       {"permessage-deflate" + resets + bits(9) + hints, both + bits(9), dropped, dropped},
       {"permessage-deflate" + resets + bits(15) + hints, both + bits(15), dropped, dropped},
       {"permessage-deflate" + resets + bits(8) + hints + ", permessage-deflate" + resets + hints +
            ", permessage-deflate" + hints,
        both, dropped, dropped}},
      [&](std::size_t i, const Compression& one) {
        run_compression(suite, number("13", i), data, false, one);
      });
  CHECK(suite.count() == 216);
}

TEST_SUITE_END();

}  // namespace
