#include <doctest/doctest.h>
#include <netinet/in.h>

#include <ostream>

#include <string>
#include <weft/net/address.hpp>

using weft::net::Address;

TEST_SUITE_BEGIN("net/address");

TEST_CASE("Address::parse() parses the text that Address::to_string() returns") {
  for (const char* text : {"127.0.0.1:8080", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:80",
                           "[::]:0", "[2001:db8::7]:443", "[fe80::1%2]:80"}) {
    const auto [address, error] = Address::parse(text);
    CHECK(!error);
    CHECK(address.to_string() == text);
    CHECK(Address::parse(address.to_string()).value == address);
  }
}

TEST_CASE("Address::parse() accepts an interface name as an IPv6 scope") {
  const auto [address, error] = Address::parse("[fe80::1%lo]:80");
  CHECK(!error);
  CHECK(address.to_string() == "[fe80::1%1]:80");
}

TEST_CASE("Address::parse() returns invalid_argument for text that is not an address") {
  for (const char* text : {"",
                           ":",
                           ":80",
                           "127.0.0.1",
                           "127.0.0.1:",
                           "127.0.0.1:65536",
                           "127.0.0.1:-1",
                           "127.0.0.1:80x",
                           "127.0.0.1: 80",
                           "127.0.0:80",
                           "127.0.0.1.1:80",
                           "256.0.0.1:80",
                           "localhost:80",
                           "::1:80",
                           "[::1]",
                           "[]:80",
                           "[127.0.0.1]:80",
                           "[::1:80",
                           "::1]:80",
                           "[fe80::1%]:80",
                           "[fe80::1%no-such-interface]:80",
                           "127.0.0.1:+80",
                           "127.0.0.1:99999999999"}) {
    CHECK(Address::parse(text).error == std::errc::invalid_argument);
  }
}

TEST_CASE("the factory functions of net::Address return the loopback and wildcard addresses") {
  CHECK(Address().to_string() == "0.0.0.0:0");
  CHECK(Address::any_v4(1).to_string() == "0.0.0.0:1");
  CHECK(Address::any_v6(2).to_string() == "[::]:2");
  CHECK(Address::loopback_v4(3).to_string() == "127.0.0.1:3");
  CHECK(Address::loopback_v6(4).to_string() == "[::1]:4");
  CHECK(!Address::loopback_v4(3).is_v6());
  CHECK(Address::loopback_v6(4).is_v6());
}

TEST_CASE("addresses with different ports are not equal") {
  const Address first = Address::loopback_v6(80);
  const Address second = first.with_port(8080);
  CHECK(second.port() == 8080);
  CHECK(first.port() == 80);
  CHECK(!(first == second));
  CHECK(first == second.with_port(80));
}

TEST_CASE(
    "an address converts to a sockaddr and back unchanged, and other address families are "
    "refused") {
  const Address address = Address::loopback_v4(80);
  CHECK(address.system_size() == sizeof(sockaddr_in));
  CHECK(Address::from_system(address.system_data(), address.system_size()).value == address);
  CHECK(Address::from_system(address.system_data(), address.system_size() - 1).error ==
        std::errc::address_family_not_supported);
  sockaddr other{};
  other.sa_family = AF_UNIX;
  CHECK(Address::from_system(&other, sizeof other).error ==
        std::errc::address_family_not_supported);
}

TEST_CASE("padding in a sockaddr does not affect the equality of addresses") {
  sockaddr_in system{};
  system.sin_family = AF_INET;
  system.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  system.sin_port = htons(80);
  system.sin_zero[3] = 7;
  CHECK(Address::from_system(&system, sizeof system).value == Address::loopback_v4(80));
}

TEST_SUITE_END();
