#include "net/report.hpp"

#include <array>
#include <cstdio>
#include <span>
#include <string_view>

#include "base/printable.hpp"

namespace weft::net {

void report_exception(const std::function<void(std::exception_ptr)>& on_exception,
                      const std::exception_ptr& exception, const char* whose) noexcept {
  try {
    if (on_exception) return on_exception(exception);
    std::rethrow_exception(exception);
  } catch (const std::exception& failure) {
    // The text may quote what a client has sent, and writing it must not need memory.
    std::array<char, 512> text{};
    const std::string_view what(failure.what());
    base::make_printable(std::span(text).first(what.copy(text.data(), text.size() - 1)));
    std::fprintf(stderr, "%s: a handler has thrown: %s\n", whose, text.data());
  } catch (...) {
    std::fprintf(stderr, "%s: a handler has thrown\n", whose);
  }
}

}  // namespace weft::net
