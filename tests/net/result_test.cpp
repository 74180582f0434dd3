// Tests the interface of results.
#include <weft/result.hpp>

#include <array>
#include <cstddef>
#include <system_error>

#include "tests/net/loopback.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

using weft::Deadline;
using weft::Errc;
using weft::test::connected_pair;
namespace net = weft::net;

TEST_SUITE_BEGIN("net/result");

FIBER_TEST_CASE("a result of a stream operation converts to true only after success") {
  auto [client, server] = connected_pair();
  std::array<std::byte, 1> byte{};
  CHECK_FALSE(client.wait_readable(Deadline::past()));
  CHECK_FALSE(client.read_some(byte, Deadline::past()));
  CHECK(server.write_all("x"));
  CHECK(client.wait_readable());
  CHECK(client.read_some(byte));
  CHECK(client.set_no_delay(true));
  CHECK(client.shutdown(net::Shutdown::write));
  client.close();
  CHECK_FALSE(client.set_no_delay(true));
  CHECK_FALSE(client.shutdown(net::Shutdown::write));
  CHECK(client.wait_readable(Deadline::past()) == Errc::closed);
  const std::error_code code = client.wait_readable(Deadline::past());
  CHECK(code == Errc::closed);
}

TEST_SUITE_END();

}  // namespace
