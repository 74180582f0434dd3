// Tests frames and handshakes of WebSockets: the cases of Autobahn's groups, with the required
// answers.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/http/websocket/deflate.hpp"
#include "libs/http/websocket/handshake.hpp"
#include "libs/http/websocket/message_reader.hpp"
#include "tests/http/websocket_frames.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::string_literals;

// Returns the events that the bytes cause, one word each, up to the first close or refusal.
std::string events_of(std::string_view bytes, std::size_t piece, bool may_compress = false) {
  using Event = http::MessageReader::Event;
  const auto context = may_compress ? std::optional(http::DeflateContext::dropped) : std::nullopt;
  http::MessageReader reader(http::Role::server, 1000, 8, context);
  std::string events;
  while (!bytes.empty()) {
    std::string rest(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    std::string_view input = rest;
    for (;;) {
      const Event event = reader.next(input);
      if (event == Event::nothing) break;
      if (event == Event::text) events += "text=" + reader.message() + " ";
      if (event == Event::binary) events += "binary=" + reader.message() + " ";
      if (event == Event::ping) events += "ping=" + reader.control() + " ";
      if (event == Event::pong) events += "pong=" + reader.control() + " ";
      const std::string code = std::to_string(reader.code());
      if (event == Event::close) return events + "close=" + code + reader.control();
      if (event == Event::refused) return events + "refused=" + code;
    }
    // If a header is incomplete, the reader waits for the rest of it.
    bytes = std::string_view(bytes.data() - input.size(), bytes.size() + input.size());
    if (!input.empty()) piece = std::max(piece, input.size() + 1);
    if (bytes.size() == input.size()) break;
  }
  return events;
}

struct Case {
  const char* name;
  std::string bytes;
  std::string events;
};

void check(const std::vector<Case>& cases, bool may_compress = false) {
  for (const Case& one : cases) {
    CAPTURE(one.name);
    CHECK(events_of(one.bytes, one.bytes.size(), may_compress) == one.events);
    CHECK(events_of(one.bytes, 1, may_compress) == one.events);
  }
}

TEST_SUITE_BEGIN("http/frames");

TEST_CASE("WebSocket frames, pings, reserved bits and opcodes are parsed as RFC 6455 requires") {
  const std::string k126(126, 'a');
  const std::string k125(125, 'b');
  check({
      {"1.1.1", frame(0x81, ""), "text= "},
      {"1.1.2", frame(0x81, k125), "text=" + k125 + " "},
      {"1.1.3", frame(0x81, k126), "text=" + k126 + " "},
      {"1.2.2", frame(0x82, "\xff\0"s), "binary=\xff\0 "s},
      {"unmasked", "\x81\x01x"s, "refused=1002"},
      {"longer length than needed", "\x82\xfe\0\x7d"s + std::string(130, 'a'), "refused=1002"},
      {"64-bit length below 65536", "\x82\xff\0\0\0\0\0\0\x01\0"s + std::string(8, 'a'),
       "refused=1002"},
      {"length of 64 bits", "\x82\xff\xff\0\0\0\0\0\0\0"s + std::string(8, 'a'), "refused=1002"},
      {"2.1", frame(0x89, ""), "ping= "},
      {"2.4", frame(0x89, k125), "ping=" + k125 + " "},
      {"2.5", frame(0x89, k126), "refused=1002"},
      {"2.7", frame(0x8a, ""), "pong= "},
      {"2.10", frame(0x89, "1") + frame(0x89, "2"), "ping=1 ping=2 "},
      {"3.1 RSV3", frame(0x91, "x"), "refused=1002"},
      {"3.2 RSV2", frame(0x81, "x") + frame(0xa1, "y") + frame(0x89, ""), "text=x refused=1002"},
      {"3.4 RSV1", frame(0xc1, "x"), "refused=1002"},
      {"3.5 RSV on a ping", frame(0xc9, "x"), "refused=1002"},
      {"4.1.1", frame(0x83, ""), "refused=1002"},
      {"4.1.5", frame(0x87, "x"), "refused=1002"},
      {"4.2.1", frame(0x8b, ""), "refused=1002"},
      {"4.2.5", frame(0x81, "x") + frame(0x8f, ""), "text=x refused=1002"},
  });
}

TEST_CASE(
    "WebSocket fragments are joined even if control frames come between them, and fragments out of "
    "order are refused") {
  check({
      {"5.1", frame(0x09, "x"), "refused=1002"},
      {"5.2", frame(0x0a, "x"), "refused=1002"},
      {"5.3", frame(0x01, "a") + frame(0x80, "b"), "text=ab "},
      {"5.6", frame(0x01, "a") + frame(0x89, "p") + frame(0x80, "b"), "ping=p text=ab "},
      {"5.9", frame(0x80, "x") + frame(0x81, "y"), "refused=1002"},
      {"5.11", frame(0x00, "x") + frame(0x81, "y"), "refused=1002"},
      {"5.15", frame(0x01, "a") + frame(0x80, "b") + frame(0x00, "c"), "text=ab refused=1002"},
      {"5.18", frame(0x01, "a") + frame(0x81, "b"), "refused=1002"},
      {"5.19", frame(0x01, "a") + frame(0x00, "") + frame(0x89, "") + frame(0x80, "b"),
       "ping= text=ab "},
      {"fragments at the limit",
       frame(0x02, "a") + frame(0, "") + frame(0, "") + frame(0, "") + frame(0, "") + frame(0, "") +
           frame(0, "") + frame(0x80, "b"),
       "binary=ab "},
      {"fragments above the limit",
       frame(0x02, "a") + frame(0, "") + frame(0, "") + frame(0, "") + frame(0, "") + frame(0, "") +
           frame(0, "") + frame(0, "") + frame(0x80, "b"),
       "refused=1008"},
      {"9: at the limit", frame(0x82, std::string(1000, 'a')),
       "binary=" + std::string(1000, 'a') + " "},
      {"9: above the limit", frame(0x82, std::string(1001, 'a')), "refused=1009"},
      {"9: above the limit in fragments", frame(0x02, std::string(999, 'a')) + frame(0x80, "bc"),
       "refused=1009"},
  });
}

TEST_CASE(
    "a WebSocket text message is refused with code 1007 as soon as it is known to be invalid "
    "UTF-8") {
  check({
      {"6.1.1", frame(0x01, "") + frame(0x00, "") + frame(0x80, ""), "text= "},
      {"6.2.3: a character in two frames", frame(0x01, "\xce") + frame(0x80, "\xba"),
       "text=\xce\xba "},
      {"6.3.1: a surrogate", frame(0x81, "\xed\xa0\x80"), "refused=1007"},
      {"6.4.1: before the message's end", frame(0x01, "a\xf4\x90"), "refused=1007"},
      {"6.6.2: an incomplete character", frame(0x81, "\xce"), "refused=1007"},
      {"6.8.1: five bytes", frame(0x81, "\xf8\x88\x80\x80\x80"), "refused=1007"},
      {"6.9.4: U+10FFFF", frame(0x81, "\xf4\x8f\xbf\xbf"), "text=\xf4\x8f\xbf\xbf "},
      {"6.10.2: above U+10FFFF", frame(0x81, "\xf4\x90\x80\x80"), "refused=1007"},
      {"6.11.1: U+D7FF", frame(0x81, "\xed\x9f\xbf"), "text=\xed\x9f\xbf "},
      {"6.12.1: a continuation byte", frame(0x81, "\x80"), "refused=1007"},
      {"6.14.1: one without the other", frame(0x81, "\xc0 "), "refused=1007"},
      {"6.17.1: an overlong form", frame(0x81, "\xe0\x80\xaf"), "refused=1007"},
      {"6.18.1: an overlong NUL", frame(0x81, "\xc0\x80"), "refused=1007"},
      {"6.22: U+FFFE", frame(0x81, "\xef\xbf\xbe"), "text=\xef\xbf\xbe "},
      {"binary is not checked", frame(0x82, "\xff\xfe"), "binary=\xff\xfe "},
  });
}

TEST_CASE("a WebSocket close frame with an invalid code or reason is refused") {
  check({
      {"7.1.3", close_frame(1000) + frame(0x89, ""), "close=1000"},
      {"7.3.1", frame(0x88, ""), "close=1005"},
      {"7.3.2", frame(0x88, "a"), "refused=1002"},
      {"7.3.4", close_frame(1000, "Hello"), "close=1000Hello"},
      {"7.3.6", close_frame(1000, std::string(124, 'a')), "refused=1002"},
      {"7.5.1", close_frame(1000, "\xce\xba\xed\xa0\x80"), "refused=1007"},
  });
  for (const unsigned code : {1000U, 1001U, 1002U, 1003U, 1007U, 1011U, 3000U, 3999U, 4999U}) {
    CHECK(events_of(close_frame(code), 200) == "close=" + std::to_string(code));
  }
  for (const unsigned code : {0U, 999U, 1004U, 1006U, 1015U, 1016U, 2000U, 2999U, 5000U, 65535U}) {
    CHECK(events_of(close_frame(code), 200) == "refused=1002");
  }
}

TEST_CASE(
    "a server accepts a permessage-deflate offer in one of four forms and ignores any other "
    "offer") {
  if (!http::can_deflate()) return;
  const std::string plain =
      "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
  struct Offer {
    std::string text;
    std::string answer;
  };
  const std::vector<Offer> offers = {
      {"permessage-deflate", plain},
      {"permessage-deflate; client_max_window_bits", plain},
      {"x, permessage-deflate;client_max_window_bits=10;server_no_context_takeover", plain},
      {"permessage-deflate; server_max_window_bits=\"9\"", plain + "; server_max_window_bits=9"},
      {"permessage-deflate; server_max_window_bits=8, permessage-deflate", plain},
      {"permessage-deflate; server_max_window_bits=16", ""},
      {"permessage-deflate; server_max_window_bits", ""},
      {"permessage-deflate; unknown", ""},
      {"permessage-deflate; client_max_window_bits; client_max_window_bits", ""},
      {"x-webkit-deflate-frame", ""},
      {"", ""},
  };
  for (const Offer& offer : offers) {
    CAPTURE(offer.text);
    const auto terms = http::select_deflate(offer.text, http::DeflateContext::dropped);
    CHECK((terms ? terms->answer : "") == offer.answer);
  }
}

TEST_CASE(
    "a WebSocket endpoint keeps its compression context unless either endpoint forbids context "
    "takeover") {
  if (!http::can_deflate()) return;
  using enum http::DeflateContext;
  const auto server = [](std::string_view offer) { return *http::select_deflate(offer, kept); };
  CHECK(server("permessage-deflate").answer == "permessage-deflate");
  CHECK(server("permessage-deflate").send == kept);
  CHECK(server("permessage-deflate").receive == kept);
  const auto resetting = server("permessage-deflate; server_no_context_takeover");
  CHECK(resetting.answer == "permessage-deflate; server_no_context_takeover");
  CHECK(resetting.send == dropped);
  CHECK(resetting.receive == kept);
  CHECK(server("permessage-deflate; client_no_context_takeover").receive == dropped);

  CHECK(http::deflate_offer(kept) == "permessage-deflate");
  const auto terms = http::accept_deflate("permessage-deflate; client_no_context_takeover", kept);
  CHECK((terms && terms->send == dropped && terms->receive == kept));
  CHECK_FALSE(http::accept_deflate("permessage-deflate", dropped));
  CHECK_FALSE(http::accept_deflate("permessage-deflate; client_max_window_bits=10", kept));
  CHECK(http::accept_deflate(http::deflate_offer(dropped), dropped));
}

TEST_CASE(
    "a retained compression context shrinks repeated messages and stays valid when a message is "
    "not sent") {
  if (!http::can_deflate()) return;
  using enum http::DeflateContext;
  const std::string text = R"({"name":"a rather long name","value":[1,2,3,4,5,6,7,8,9]})";
  http::MessageDeflater deflater(15, kept);
  http::MessageInflater inflater(kept);
  const auto deflated = [&] {
    std::string bytes;
    CHECK(deflater.deflate(text, bytes));
    return bytes;
  };
  const auto inflated = [&](std::string_view bytes) {
    std::string out;
    CHECK(inflater.inflate(bytes, 1000, out) == http::Inflated::well);
    return out;
  };
  const std::string first = deflated();
  CHECK(inflated(first) == text);
  const std::string second = deflated();
  CHECK(second.size() < first.size() / 4);
  CHECK(inflated(second) == text);
  (void)deflated();
  deflater.forget();
  CHECK(inflated(deflated()) == text);
  // A final block does not end the context (RFC 7692, 7.2.3.4).
  const std::string last = "\xf3\x48\xcd\xc9\xc9\x07\x00\x00"s;
  CHECK(inflated(last) == "Hello");
  std::string same;
  CHECK(deflater.deflate("Hello", same));
  CHECK(inflated(deflated()) == text);
  std::string refused;
  CHECK(http::MessageInflater(kept).inflate(second, 1000, refused) == http::Inflated::corrupt);
}

TEST_CASE("a compressed WebSocket message is refused if it is corrupt or exceeds the size limit") {
  if (!http::can_deflate()) return;
  const auto deflated = [](std::string_view text, int bits = 15) {
    std::string out;
    CHECK(http::MessageDeflater(bits, http::DeflateContext::dropped).deflate(text, out));
    return out;
  };
  const std::string hello = "\xf2\x48\xcd\xc9\xc9\x07\x00"s;  // RFC 7692, 7.2.3.1.
  const std::string k1000(1000, 'a');
  CHECK(deflated("Hello") == hello);
  check(
      {
          {"12.1", frame(0xc1, hello), "text=Hello "},
          {"in fragments", frame(0x41, hello.substr(0, 3)) + frame(0x80, hello.substr(3)),
           "text=Hello "},
          {"a final block", frame(0xc1, "\xf3\x48\xcd\xc9\xc9\x07\x00\x00"s), "text=Hello "},
          {"an uncompressed block", frame(0xc1, "\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"s),
           "text=Hello "},
          {"an empty message", frame(0xc1, deflated("")), "text= "},
          {"13: a window of 9 bits", frame(0xc2, deflated(k1000, 9)), "binary=" + k1000 + " "},
          {"too large", frame(0xc2, deflated(k1000 + "a")), "refused=1009"},
          {"a bomb", frame(0xc2, deflated(std::string(1000 * 900, 'a'))), "refused=1009"},
          {"not UTF-8", frame(0xc1, deflated("\xff")), "refused=1007"},
          {"no deflate", frame(0xc1, "\xff\xff\xff"), "refused=1007"},
          {"cut off", frame(0xc1, hello.substr(0, 3)), "refused=1007"},
          {"RSV1 on a further frame", frame(0x41, hello) + frame(0xc0, ""), "refused=1002"},
      },
      true);
}

TEST_CASE("accept_key() refuses a Sec-WebSocket-Key that is not 16 bytes in base64") {
  CHECK(http::accept_key("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  for (const std::string_view key : {"", "dGhlIHNhbXBsZSBub25j", "dGhlIHNhbXBsZSBub25jZQ",
                                     "dGhlIHNhbXBsZSBub25jZWE=", "dGhlIHNhbXBsZSBub-5jZQ=="}) {
    CHECK_FALSE(http::accept_key(key));
  }
}

TEST_SUITE_END();

}  // namespace
