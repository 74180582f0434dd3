#include <weft/detail/late_wait.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stop_token>
#include <string_view>
#include <weft/context.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/this_fiber.hpp>

#include "base/printable.hpp"

namespace weft::detail {

namespace {

// Relaxed: only the number of lines depends on it. One bit per WaitReason.
Atomic<std::uint32_t> told{0};

}  // namespace

LateWait::LateWait(WaitReason reason) noexcept {
  const Context* const context = ContextNode::current();
  const std::uint32_t bit = 1U << static_cast<unsigned>(reason);
  if (context == nullptr || (told.load(relaxed) & bit) != 0) return;
  Caller caller{.reason = reason, .id = this_fiber::id(), .name = {}};
  const std::string_view name = this_fiber::name().substr(0, caller.name.size() - 1);
  std::copy(name.begin(), name.end(), caller.name.begin());
  (void)context->status();  // A deadline that has passed ends the context.
  try {
    registration_.add(context->token(), caller);
  } catch (const std::exception&) {
    // Without a runtime or memory there is no timer, so only a call that ends the context is
    // noticed.
    if (const std::stop_token* token = context->until().token()) registration_.add(*token, caller);
  }
}

void LateWait::Caller::operator()() const noexcept {
  const std::uint32_t bit = 1U << static_cast<unsigned>(reason);
  if ((told.fetch_or(bit, relaxed) & bit) != 0) return;
  std::array<char, 320> line{};
  const int size = std::snprintf(
      line.data(), line.size(),
      "weft: fiber %llu '%s' waits on (%s) beyond the end of its context, as the call has no "
      "limit; call the form that takes an Until, or wait in a NoCancel scope",
      static_cast<unsigned long long>(id), name.data(), to_string(reason));
  if (size < 0) return;
  const auto length = std::min(static_cast<std::size_t>(size), line.size() - 2);
  base::make_printable({line.data(), length});
  line[length] = '\n';
  (void)std::fwrite(line.data(), 1, length + 1, stderr);  // Unbuffered: one write.
}

}  // namespace weft::detail
