// Compiles results as std::expected, which needs C++23; the tests use an older standard.
#include <weft/expected.hpp>

#include <cstdio>

#if defined(__cpp_lib_expected)
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace {

int failures = 0;

void check(bool condition, const char* sentence) {
  if (condition) return;
  std::printf("FAILED: %s\n", sentence);
  ++failures;
}

}  // namespace

int main() {
  using weft::Result;
  const auto refused = std::make_error_code(std::errc::permission_denied);
  auto value = weft::to_expected(Result<std::unique_ptr<int>>{.value = std::make_unique<int>(7)});
  check(value.has_value() && **value == 7, "a value that can only be moved becomes one");
  check(*weft::to_result(std::move(value)).value == 7, "and comes back");
  const auto failed = weft::to_expected(Result<std::string>{.value = "part", .error = refused});
  check(!failed && failed.error() == refused, "an error becomes one, without the progress");
  check(weft::to_result(failed).error == refused, "and comes back");
  check(weft::to_expected(Result<void>()).has_value(), "a success without a value becomes one");
  check(weft::to_expected(Result<void>(refused)).error() == refused, "so does a failure");
  check(weft::to_result(std::expected<void, std::error_code>()).operator bool(), "and back");
  return failures == 0 ? 0 : 1;
}
#else
int main() {
  std::puts("skipped: this compiler has no std::expected");
  return 77;
}
#endif
