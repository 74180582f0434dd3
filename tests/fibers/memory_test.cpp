// Checks the numbers in docs/memory.md. If a field changes, the numbers in this file and in the
// document must change, too.
#include <doctest/doctest.h>

#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <weft/channel.hpp>
#include <weft/condition_variable.hpp>
#include <weft/detail/join_state.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/semaphore.hpp>
#include <weft/timer.hpp>
#include <weft/wait_group.hpp>

#include "fibers/fiber.hpp"
#include "fibers/fiber_store.hpp"
#include "tests/support/skip.hpp"

namespace {

using weft::fibers::Fiber;
using weft::fibers::Slab;
using weft::fibers::Stack;

// WEFT_MEMORY_DOCUMENT comes from tests/meson.build.
const std::string& document() {
  static const std::string text = [] {
    std::ifstream file(WEFT_MEMORY_DOCUMENT);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return text;
}

// Checks that the document has a row that begins with: | `name` | bytes |
void check_row(const std::string& name, std::size_t bytes) {
  CAPTURE(name);
  CAPTURE(bytes);
  const std::string row = "| `" + name + "` | " + std::to_string(bytes) + " |";
  CHECK(document().find(row) != std::string::npos);
}
#define CHECK_ROW(thing) check_row(#thing, sizeof(thing))

// Checks rows whose name is not an expression.
void check_sum(const char* name, std::size_t whole, std::size_t fields, std::size_t padding) {
  check_row(name, whole);
  CHECK(fields + padding == whole);
}

TEST_SUITE_BEGIN("fibers/memory");

TEST_CASE("the memory document lists the size of each field of a fiber's record") {
  CHECK_ROW(Fiber::next);
  CHECK_ROW(Fiber::stack);
  CHECK_ROW(Fiber::state);
  CHECK_ROW(Fiber::wait_reason);
  CHECK_ROW(Fiber::size_class);
  CHECK_ROW(Fiber::target_digest);
  CHECK_ROW(Fiber::site_or_time);
  CHECK_ROW(Fiber::task);
  check_sum("Fiber", sizeof(Fiber),
            sizeof(Fiber::next) + sizeof(Fiber::stack) + sizeof(Fiber::state) +
                sizeof(Fiber::wait_reason) + sizeof(Fiber::size_class) +
                sizeof(Fiber::target_digest) + sizeof(Fiber::site_or_time) + sizeof(Fiber::task),
            0);
  CHECK_ROW(Slab);
  check_row("Slab::kFibers", Slab::kFibers);
}

TEST_CASE("the memory document lists the size of each field of a stack's header") {
  if (weft::fibers::kSanitized) return weft::test::skip("sanitized builds have more such fields");
  CHECK_ROW(Stack::context);
  CHECK_ROW(Stack::fiber);
  CHECK_ROW(Stack::next);
  CHECK_ROW(Stack::lowest);
  CHECK_ROW(Stack::locals);
  CHECK_ROW(Stack::exceptions);
  CHECK_ROW(Stack::saved_errno);
  CHECK_ROW(Stack::index);
  CHECK_ROW(Stack::size_class);
  CHECK_ROW(Stack::no_switch);
  CHECK_ROW(Stack::home);
  CHECK_ROW(Stack::site);
  CHECK_ROW(Stack::fiber_id);
  CHECK_ROW(Stack::name);
  check_sum("Stack", sizeof(Stack),
            sizeof(Stack::context) + sizeof(Stack::fiber) + sizeof(Stack::next) +
                sizeof(Stack::lowest) + sizeof(Stack::locals) + sizeof(Stack::exceptions) +
                sizeof(Stack::saved_errno) + sizeof(Stack::index) + sizeof(Stack::size_class) +
                sizeof(Stack::no_switch) + sizeof(Stack::home) + sizeof(Stack::site) +
                sizeof(Stack::fiber_id) + sizeof(Stack::name),
            5);
}

TEST_CASE("the memory document lists the sizes of waiters and primitives") {
  CHECK_ROW(weft::detail::Waiter);
  CHECK_ROW(weft::detail::JoinState<void>);
  CHECK_ROW(weft::detail::JoinState<int>);
  CHECK_ROW(weft::JoinHandle<void>);
  CHECK_ROW(weft::Channel<int>);
  CHECK_ROW(weft::Mutex);
  CHECK_ROW(weft::ConditionVariable);
  CHECK_ROW(weft::Semaphore);
  CHECK_ROW(weft::WaitGroup);
  CHECK_ROW(weft::Event);
  CHECK_ROW(weft::Timer);
}

TEST_SUITE_END();

}  // namespace
