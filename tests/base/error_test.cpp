#include <doctest/doctest.h>

#include <set>
#include <string>
#include <weft/error.hpp>

namespace {

using weft::Errc;

TEST_SUITE_BEGIN("base/error");

std::string message_of(Errc code) { return weft::make_error_code(code).message(); }

bool names(Errc code, const char* what) { return message_of(code).find(what) != std::string::npos; }

TEST_CASE("each error code has its own message") {
  std::set<std::string> messages;
  for (int code = 1; code <= static_cast<int>(Errc::signal_in_use); ++code) {
    const std::string message = message_of(static_cast<Errc>(code));
    CAPTURE(code);
    CHECK(message.find("unknown") == std::string::npos);
    CHECK(message.find(' ') != std::string::npos);
    CHECK(messages.insert(message).second);
  }
  CHECK(weft::error_category().message(0) == "unknown weft error");
  CHECK(weft::error_category().message(1'000) == "unknown weft error");
}

TEST_CASE("the message of an error about a limit names the option that sets the limit") {
  CHECK(names(Errc::too_many_fibers, "RuntimeOptions::max_fibers"));
  CHECK(names(Errc::invalid_stack_size, "SpawnOptions::stack_size"));
  CHECK(names(Errc::too_many_waiting, "PoolOptions::max_blocked"));
  CHECK(names(Errc::too_heavy, "SubmitOptions::weight"));
}

TEST_SUITE_END();

}  // namespace
