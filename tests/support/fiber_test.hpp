// The fixture of tests that need a runtime.
//
//   FIBER_TEST_CASE("a sentence") { ... }   The body is the main fiber of a new runtime.
//   THREAD_TEST_CASE("a sentence") { ... }  The body runs on a plain thread next to a new runtime.
//
// Each body runs four times, with 1, 2, 3 and 8 workers, and has `runtime` in scope. In an
// emulator, which is many times slower, it runs once, with 2 workers. Afterwards no fiber, thread
// or descriptor may remain, and the test must end before a deadline.
//
//   FIBER_TEST_CASE_WITH("a sentence", {.workers = {1}, .options = {.max_fibers = 10}}) { ... }
//   THREAD_TEST_CASE_WITH(...)
//
// These forms take a Setup. A test that makes its own runtimes is a TEST_CASE with a TestGuard.
//
// In fibers other than the main fiber, use only CHECK, because REQUIRE throws. No switch may happen
// while an INFO or CAPTURE is in scope, nor in the condition of a CHECK_MESSAGE: doctest keeps the
// text by OS thread. (CHECK(channel.receive() == 1) is fine.)
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <weft/runtime.hpp>

namespace weft::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

// Is true in builds for another processor, which run in an emulator.
#ifdef WEFT_EMULATED
inline constexpr bool kEmulated = true;
#else
inline constexpr bool kEmulated = false;
#endif

// The approximate factor by which work takes longer. Tests multiply deadlines by it, and divide
// repetitions by it.
extern const unsigned kSlowdown;

struct Setup {
  std::vector<unsigned> workers =
      kEmulated ? std::vector<unsigned>{2} : std::vector<unsigned>{1, 2, 3, 8};
  RuntimeOptions options = {};  // Its `workers` is set from the list.
  // A case for exactly one worker has a monitor only if this is set. Without a monitor, the order
  // in which fibers run depends only on the case: a busy machine makes no fiber yield, and starts
  // no spare worker.
  bool monitored = false;
};

using Body = void (*)(Runtime& runtime);
void run_fiber_test(const char* sentence, Body body, const Setup& setup);
void run_thread_test(const char* sentence, Body body, const Setup& setup);

// While this object lives, a plain thread watches the clock: after WEFT_TEST_DEADLINE seconds (60
// unless set, times kSlowdown; 0 for never) it writes the watched runtime's fibers to stderr and
// aborts with the test's name. It does so at once if a sleeping worker misses an event that it
// should handle (sleep_check.hpp). The destructor checks that the numbers of threads and
// descriptors are as they were in the constructor.
class TestGuard {
 public:
  explicit TestGuard(const char* sentence);
  ~TestGuard();
  TestGuard(const TestGuard&) = delete;
  TestGuard& operator=(const TestGuard&) = delete;

  // Sets the runtime to dump, until the next call. Pass nullptr before that runtime is destroyed.
  void watch(const Runtime* runtime) noexcept;

  [[nodiscard]] static std::size_t count_threads();

 private:
  using Descriptors = std::map<int, std::string>;  // The target of each open descriptor.

  void keep_watch();
  [[nodiscard]] std::string watch_sleepers(std::unique_lock<std::mutex>& lock);
  [[noreturn]] void give_up(const std::string& reason) noexcept;
  static Descriptors open_descriptors();
  // Returns a line that names the open descriptors, or an empty text.
  [[nodiscard]] std::string descriptors_left_open() const;

  const char* const sentence_;
  const std::chrono::seconds deadline_;
  std::mutex mutex_;  // Guards the next two members.
  const Runtime* runtime_ = nullptr;
  bool ended_ = false;
  std::condition_variable end_;
  std::thread watchdog_;
  // Counted after the watchdog has started, so that both counts include it.
  std::size_t threads_before_;
  Descriptors descriptors_before_;
};

}  // namespace weft::test

#define WEFT_TEST_CASE_IMPL(run, name, sentence, ...)                    \
  static void name(::weft::Runtime& runtime);                            \
  DOCTEST_TEST_CASE(sentence) {                                          \
    ::weft::test::run(sentence, &name, ::weft::test::Setup __VA_ARGS__); \
  }                                                                      \
  static void name([[maybe_unused]] ::weft::Runtime& runtime)

#define FIBER_TEST_CASE_WITH(sentence, ...) \
  WEFT_TEST_CASE_IMPL(run_fiber_test, DOCTEST_ANONYMOUS(weft_fiber_test_), sentence, __VA_ARGS__)
#define THREAD_TEST_CASE_WITH(sentence, ...) \
  WEFT_TEST_CASE_IMPL(run_thread_test, DOCTEST_ANONYMOUS(weft_thread_test_), sentence, __VA_ARGS__)
#define FIBER_TEST_CASE(sentence) FIBER_TEST_CASE_WITH(sentence, {})
#define THREAD_TEST_CASE(sentence) THREAD_TEST_CASE_WITH(sentence, {})
