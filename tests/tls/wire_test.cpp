#include "libs/tls/wire.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string_view>

namespace {

using weft::tls::kKept;
using weft::tls::Wire;

TEST_SUITE_BEGIN("tls/wire");

void receive(Wire& wire, std::size_t count) { wire.in.insert(wire.in.end(), count, 'x'); }

TEST_CASE("a TLS wire frees its memory when OpenSSL has read a large record") {
  Wire wire;
  receive(wire, 16 * 1024);
  wire.in_begin = 16 * 1024;
  wire.drop_read();
  CHECK(wire.unread() == 0);
  CHECK(wire.in.capacity() == 0);
}

TEST_CASE("a TLS wire keeps its memory when OpenSSL has read a small record") {
  Wire wire;
  receive(wire, kKept);
  const std::size_t capacity = wire.in.capacity();
  wire.in_begin = kKept;
  wire.drop_read();
  CHECK(wire.unread() == 0);
  CHECK(wire.in.capacity() == capacity);
}

TEST_CASE("a TLS wire keeps the bytes that OpenSSL has not read, in order") {
  Wire wire;
  receive(wire, 16 * 1024);
  constexpr std::string_view kRest = "rest";
  wire.in.insert(wire.in.end(), kRest.begin(), kRest.end());
  wire.in_begin = 16 * 1024;
  wire.drop_read();
  CHECK(wire.unread() == kRest.size());
  CHECK(wire.in_begin == 0);
  CHECK(std::string_view(wire.in.data(), wire.in.size()) == kRest);
}

TEST_SUITE_END();

}  // namespace
