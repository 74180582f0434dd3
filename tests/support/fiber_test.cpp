#include "tests/support/fiber_test.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/shake.hpp"
#include "tests/support/sleep_check.hpp"

namespace weft::test {

constinit const unsigned kSlowdown = kSanitized || kEmulated ? 10 : base::shake::kOn ? 4 : 1;

namespace {

using Clock = std::chrono::steady_clock;

// How long a test waits for remaining threads and descriptors to disappear.
const std::chrono::seconds kPatience{10 * kSlowdown};

std::chrono::seconds deadline_from_environment() {
  const char* text = std::getenv("WEFT_TEST_DEADLINE");
  const long seconds = text != nullptr ? std::strtol(text, nullptr, 10) : 60;
  return std::chrono::seconds(seconds * static_cast<long>(kSlowdown));
}

// Calls `visit` with the name of each numbered entry of a folder of /proc.
void visit_numbers(const char* folder, const std::function<void(int)>& visit) {
  DIR* directory = opendir(folder);
  if (directory == nullptr) return;
  const int own_descriptor = dirfd(directory);
  while (const dirent* entry = readdir(directory)) {
    char* end = nullptr;
    const long number = std::strtol(entry->d_name, &end, 10);
    if (end != entry->d_name && number != own_descriptor) visit(static_cast<int>(number));
  }
  closedir(directory);
}

// The kernel reports a thread as joined a moment before the thread disappears from /proc. The count
// may therefore include threads of the previous case, but it is never too low.
std::size_t threads_without_cases() {
  static std::size_t fewest = SIZE_MAX;
  fewest = std::min(fewest, TestGuard::count_threads());
  return fewest;
}

// Runs the body with one number of workers.
void run_once(const char* sentence, const RuntimeOptions& options,
              const std::function<void(Runtime&)>& run_body) {
  TestGuard guard(sentence);
  std::exception_ptr failure;
  {
    Runtime runtime(options);
    guard.watch(&runtime);
    try {
      run_body(runtime);
    } catch (...) {
      failure = std::current_exception();
    }
    // The last fiber may not have ended: it counts as live until its worker has left its stack.
    CHECK_MESSAGE(runtime.wait_idle_for(kPatience), "fibers are left at the end of the test");
    CHECK(runtime.stats().live == 0);
  }
  guard.watch(nullptr);
  if (failure) std::rethrow_exception(failure);
}

void run_for_each_count(const char* sentence, const Setup& setup,
                        const std::function<void(Runtime&)>& run_body) {
  // A test for exactly one worker relies on the order in which that worker runs fibers.
  std::optional<base::shake::Still> still;
  if (setup.workers == std::vector<unsigned>{1}) still.emplace();
  for (const unsigned workers : setup.workers) {
    // Uses a subcase, because doctest prints its name with each failure, on any thread.
    const std::string name = std::to_string(workers) + (workers == 1 ? " worker" : " workers");
    SUBCASE(name.c_str()) {
      RuntimeOptions options = setup.options;
      options.workers = workers;
      if (setup.workers.size() == 1 && workers == 1 && !setup.monitored) options.monitor = false;
      run_once(sentence, options, run_body);
    }
  }
}

}  // namespace

void run_fiber_test(const char* sentence, Body body, const Setup& setup) {
  run_for_each_count(sentence, setup,
                     [body](Runtime& runtime) { runtime.run([&] { body(runtime); }); });
}

void run_thread_test(const char* sentence, Body body, const Setup& setup) {
  run_for_each_count(sentence, setup, body);
}

TestGuard::TestGuard(const char* sentence)
    : sentence_(sentence),
      deadline_(deadline_from_environment()),
      watchdog_([this] { keep_watch(); }),
      threads_before_(threads_without_cases()),
      descriptors_before_(open_descriptors()) {}

TestGuard::~TestGuard() {
  // Joined threads disappear slightly later, so the check repeats.
  const Clock::time_point limit = Clock::now() + kPatience;
  while (count_threads() > threads_before_ && Clock::now() < limit) std::this_thread::yield();
  // The message is inside the condition, because doctest also logs a message in scope when an
  // exception passes.
  const std::size_t threads = count_threads();
  if (threads > threads_before_) {
    FAIL_CHECK("threads at the end of the test: ", threads, ", before it: ", threads_before_);
  }
  // Threads of a sanitizer and of the C library briefly open descriptors.
  std::string left_open = descriptors_left_open();
  while (!left_open.empty() && Clock::now() < limit) {
    std::this_thread::yield();
    left_open = descriptors_left_open();
  }
  if (!left_open.empty()) FAIL_CHECK("left open:", left_open);
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_one();
  watchdog_.join();
}

void TestGuard::watch(const Runtime* runtime) noexcept {
  const std::lock_guard lock(mutex_);
  runtime_ = runtime;
}

void TestGuard::keep_watch() {
  std::unique_lock lock(mutex_);
  const std::string reason = watch_sleepers(lock);
  if (!reason.empty()) give_up(reason);
}

// Waits until the test ends, and then returns an empty text. Returns the reason early if the test
// must be aborted.
std::string TestGuard::watch_sleepers(std::unique_lock<std::mutex>& lock) {
  constexpr std::chrono::milliseconds kPause{SleepCheck::kMilliseconds};
  const Clock::time_point limit = Clock::now() + deadline_;
  SleepCheck check;
  while (!end_.wait_for(lock, kPause, [this] { return ended_; })) {
    // In an emulator, the system shows the state of the emulator's thread instead.
    if (const std::string fault = kEmulated ? "" : check.look(); !fault.empty())
      return ": " + fault;
    if (deadline_.count() != 0 && Clock::now() >= limit) {
      return " has not ended within " + std::to_string(deadline_.count()) +
             " s (WEFT_TEST_DEADLINE)";
    }
  }
  return {};
}

void TestGuard::give_up(const std::string& reason) noexcept {
  // The dump may hang for the same reason as the test; this alarm then ends the process.
  alarm(10);
  std::cerr << "\ntest '" << sentence_ << "'" << reason << std::endl;
  if (runtime_ != nullptr) runtime_->dump(std::cerr);
  std::cerr << "aborting" << std::endl;
  std::abort();
}

std::size_t TestGuard::count_threads() {
  // Does not count entries of /proc/self/task: a reader that lists them while one disappears may
  // miss another one.
  std::ifstream status("/proc/self/status");
  const std::string label = "Threads:";
  for (std::string line; std::getline(status, line);) {
    if (line.compare(0, label.size(), label) == 0) return std::stoul(line.substr(label.size()));
  }
  throw std::runtime_error("/proc/self/status does not say how many threads there are");
}

std::string TestGuard::descriptors_left_open() const {
  std::string text;
  for (const auto& [number, target] : open_descriptors()) {
    if (descriptors_before_.count(number) == 1) continue;
    // A sanitizer that reports or suppresses something starts its symbolizer with pipes.
    if (kSanitized && target.rfind("pipe:", 0) == 0) continue;
    text += " descriptor " + std::to_string(number) + ", " + target;
  }
  return text;
}

TestGuard::Descriptors TestGuard::open_descriptors() {
  Descriptors found;
  visit_numbers("/proc/self/fd", [&](int number) {
    char target[256];
    const std::string link = "/proc/self/fd/" + std::to_string(number);
    const ssize_t length = readlink(link.c_str(), target, sizeof target);
    found[number] = length > 0 ? std::string(target, static_cast<std::size_t>(length)) : "unknown";
  });
  return found;
}

}  // namespace weft::test
