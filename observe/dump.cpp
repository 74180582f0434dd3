#include <weft/dump.hpp>

#include <map>
#include <ostream>
#include <string>

#include "observe/fiber_list.hpp"
#include "observe/json.hpp"
#include "observe/stack_photo.hpp"
#include "runtime/call_names.hpp"
#include "runtime/dump.hpp"

namespace weft::dump {

namespace {

using observe::FiberEntry;
using observe::JsonWriter;

void write_fiber(JsonWriter& json, const FiberEntry& fiber) {
  json.begin_object();
  if (fiber.has_started) json.field("id", fiber.id).field("name", fiber.name);
  json.field("runtime", fiber.runtime).field("state", fiber.state);
  if (fiber.reason[0] != '\0') json.field("reason", fiber.reason);
  if (fiber.age.count() > 0) {
    json.key("age_seconds").thousandths(fiber.age / std::chrono::milliseconds(1));
  }
  if (!fiber.request.empty()) json.field("request", fiber.request);
  if (fiber.type != nullptr) json.field("runs", describe_task(fiber));
  if (fiber.site != nullptr) json.field("spawned_at", describe_site(fiber));
  json.end_object();
}

}  // namespace

void write_json(std::ostream& out) {
  observe::call_with_enough_stack([&out] {
    JsonWriter json(out);
    json.begin_object().key("fibers").begin_array();
    for (const FiberEntry& fiber : observe::list_fibers()) write_fiber(json, fiber);
    json.end_array().end_object().flush();
  });
}

void write_folded(std::ostream& out) {
  observe::call_with_enough_stack([&out] {
    runtime::CallNames names;
    std::map<std::string, std::uint64_t> stacks;
    for (const observe::ParkedStack& stack : observe::photograph_stacks()) {
      std::string line;
      for (std::size_t i = stack.returns.size(); i-- > 0;) {
        line.append(names.of(stack.returns[i])).append(";");
      }
      ++stacks[line.append("[").append(stack.reason).append("]")];
    }
    for (const auto& [stack, count] : stacks) out << stack << ' ' << count << '\n';
  });
}

void write_deadlocks(std::ostream& out) {
  observe::call_with_enough_stack([&out] { out << runtime::describe_cycles(); });
}

}  // namespace weft::dump
