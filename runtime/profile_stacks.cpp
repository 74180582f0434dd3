#include "runtime/profile_stacks.hpp"

#include <utility>

#include "runtime/call_names.hpp"
#include "runtime/symbols.hpp"

namespace weft::runtime {

void Profile::add(ProfileStack stack, Values values) {
  constexpr std::size_t kMostStacks = 50'000;
  if (stacks.size() >= kMostStacks && !stacks.contains(stack)) {
    stack.calls.clear();
    stack.fiber = "(further stacks)";
    stack.type = nullptr;
  }
  Values& sum = stacks[std::move(stack)];
  sum.count += values.count;
  sum.nanoseconds += values.nanoseconds;
}

std::string as_folded(const Profile& profile) {
  CallNames names;
  std::map<std::string, std::int64_t>
      lines;  // Two calls within one function may have the same name.
  for (const auto& [stack, values] : profile.stacks) {
    std::string line;
    const auto append = [&line](std::string_view element) {
      if (!line.empty()) line.append(";");
      line.append(element);
    };
    if (!stack.fiber.empty()) append(as_element(stack.fiber));
    if (stack.type != nullptr) append(as_element(runtime::describe_type(*stack.type)));
    for (std::size_t i = stack.calls.size(); i-- > 0;) append(names.of(stack.calls[i]));
    if (!stack.reason.empty()) append(std::string("[").append(stack.reason).append("]"));
    lines[std::move(line)] += values.nanoseconds;
  }
  std::string text;
  for (const auto& [line, nanoseconds] : lines) {
    text.append(line).append(" ").append(std::to_string(nanoseconds)).append("\n");
  }
  return text;
}

}  // namespace weft::runtime
