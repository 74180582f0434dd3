#include "tests/faults/sweep.hpp"

#include <dirent.h>
#include <doctest/doctest.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <sstream>
#include <weft/runtime.hpp>

#include "tests/support/fiber_test.hpp"

namespace weft::test {
namespace {

// The time limit, in seconds, for the three runs of one process.
constexpr unsigned kPatience = 120;
// If a scenario makes more calls of a kind, a run for each call would take too long.
constexpr std::uint64_t kMostCalls = 3000;

// A scenario to run, with all permitted effects of a fault.
struct Play {
  Scenario scenario;
  bool in_runtime;
  const Documented& documented;

  // Calls `begin` first, which starts the faults.
  template <class Begin>
  void run(Begin begin) const {
    if (!in_runtime) {
      begin();
      return scenario();
    }
    Runtime runtime({.workers = 1});
    runtime.run([&] {
      begin();
      scenario();
    });
  }
  void run() const {
    run([] {});
  }
};

enum Ending : int { kPassed = 0, kNoFault = 10, kFailed = 11 };

// Reports what went wrong, and ends the process.
[[noreturn]] void fail(const std::string& sentence) {
  (void)disarm();
  std::cerr << sentence << std::endl;
  _exit(kFailed);
}

void on_alarm(int) {
  (void)disarm();
  alarm(3);  // Printing the list may wait for a lock forever.
  signal(SIGALRM, SIG_DFL);
  std::cerr << "it hangs; its fibers:" << std::endl;
  dump_fibers(std::cerr);
  _exit(kFailed);
}

[[noreturn]] void on_terminate() {
  (void)disarm();
  std::cerr << "std::terminate";
  try {
    if (std::current_exception()) throw;
  } catch (const std::exception& error) {
    std::cerr << ": " << error.what();
  } catch (...) {
    std::cerr << ": some exception";
  }
  std::cerr << std::endl;
  std::array<void*, 64> calls;
  backtrace_symbols_fd(calls.data(), backtrace(calls.data(), calls.size()), STDERR_FILENO);
  std::abort();
}

// The counts that a scenario must leave unchanged.
struct Books {
  Held memory;
  std::size_t descriptors;
  std::size_t threads;
};

Books read_books() {
  // The kernel still counts a joined thread for a moment.
  std::size_t threads = TestGuard::count_threads();
  for (int tries = 0; threads > 1 && tries < 2000; ++tries) {
    usleep(1000);
    threads = TestGuard::count_threads();
  }
  return {held(), count_descriptors(), threads};
}

// Lists only the counts that grew. Memory that is kept forever may have been allocated for the
// first time.
std::string growth(const Books& before, const Books& after, const Fault* fault) {
  std::ostringstream text;
  const auto compare = [&text](const char* what, auto earlier, auto later) {
    if (later > earlier) text << what << ": " << earlier << " before, " << later << " after; ";
  };
  compare("blocks of operator new", before.memory.blocks, after.memory.blocks);
  // OpenSSL 3.0 itself leaks a block if an allocation fails, for example in SSL_CTX_new.
  if (fault == nullptr || fault->call != Call::allocate_in_tls) {
    compare("blocks of OpenSSL and c-ares", before.memory.blocks_below, after.memory.blocks_below);
  }
  compare("answers of getaddrinfo", before.memory.answers, after.memory.answers);
  compare("descriptors", before.descriptors, after.descriptors);
  compare("threads", before.threads, after.threads);
  // Memory that the system refuses to take back is no leak.
  if (fault == nullptr || fault->call != Call::unmap) {
    compare("mapped bytes", before.memory.mapped_bytes, after.memory.mapped_bytes);
  }
  return text.str();
}

// `when` describes the moment of the check for the message.
void demand_nothing_left(const Books& before, const Fault* fault, const char* when = "") {
  if (const std::string left = growth(before, read_books(), fault); !left.empty()) {
    fail("left behind" + std::string(when) + ": " + left);
  }
}

bool is_documented(const std::error_code& code, const Fault& fault, const Documented& documented) {
  if (code == std::error_code(fault.error, std::system_category())) return true;
  if (code == std::error_code(fault.error, std::generic_category())) return true;
  return std::find(documented.begin(), documented.end(), code) != documented.end();
}

bool is_lack_of_memory(Call call) noexcept {
  return call == Call::allocate || call == Call::allocate_in_tls || call == Call::allocate_in_dns ||
         call == Call::map;
}

void run_with_fault(const Play& play, const Fault& fault, std::uint64_t number, bool& came) {
  try {
    play.run([&] { arm(fault, number); });
    came = disarm();
  } catch (const std::bad_alloc&) {
    came = disarm();
    if (!is_lack_of_memory(fault.call)) fail("std::bad_alloc");
  } catch (const std::system_error& error) {
    came = disarm();
    if (!is_documented(error.code(), fault, play.documented)) {
      fail(std::string("an error that is not documented: ") + error.what());
    }
  } catch (const std::exception& error) {
    fail(std::string("an exception that is not documented: ") + error.what());
  }
}

// It is noexcept, so that an exception ends the process; the framework would continue otherwise.
void play_with_fault(const Play& play, const Fault& fault, std::uint64_t number) noexcept {
  play.run();
  const Books before = read_books();
  bool came = false;
  run_with_fault(play, fault, number, came);
  demand_nothing_left(before, &fault);
  play.run();
  demand_nothing_left(before, &fault, " by the run after it");
  _exit(came ? kPassed : kNoFault);
}

// Starts a process that runs a scenario and then ends.
class Child {
 public:
  template <class Body>
  explicit Child(Body body) : output_(std::tmpfile()) {
    // Otherwise buffered text would be written twice.
    std::cout.flush();
    (void)std::fflush(nullptr);
    process_ = fork();
    if (process_ == 0) {
      dup2(fileno(output_), STDERR_FILENO);
      dup2(fileno(output_), STDOUT_FILENO);
      signal(SIGALRM, &on_alarm);
      signal(SIGABRT, SIG_DFL);
      signal(SIGSEGV, SIG_DFL);
      std::set_terminate(&on_terminate);
      alarm(kPatience);
      body();
    }
  }
  // Waits for the end of the process; call it once.
  [[nodiscard]] int status() const {
    int status = 0;
    waitpid(process_, &status, 0);
    return status;
  }
  // Returns the output of the process; call it once, after the process has ended.
  [[nodiscard]] std::string output() const {
    std::string text;
    std::rewind(output_);
    char buffer[4096];
    while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, output_)) {
      text.append(buffer, count);
    }
    (void)std::fclose(output_);
    return text;
  }

 private:
  std::FILE* output_;
  pid_t process_ = -1;
};

// Runs several processes at a time, because most of them wait for the ends of threads.
void sweep_one(const Play& play, const Fault& fault) {
  const char* only = std::getenv("WEFT_FAULT_NUMBER");
  std::uint64_t number = only != nullptr ? std::strtoull(only, nullptr, 10) : 1;
  int failures = 0;
  bool has_ended = false;
  std::uint64_t at_once = 1;
  const std::uint64_t most = kMostCalls * fault.stride;
  while (!has_ended && failures < 5 && number < most) {  // Further failures would be similar.
    std::vector<Child> children;
    for (std::uint64_t i = 0; i < at_once; ++i) {
      children.emplace_back(
          [&, mine = number + i * fault.stride] { play_with_fault(play, fault, mine); });
    }
    for (const Child& child : children) {
      const int status = child.status();
      const std::string output = child.output();
      const bool exited = WIFEXITED(status);
      has_ended = has_ended || (exited && WEXITSTATUS(status) == kNoFault) || only != nullptr;
      if (!exited || (WEXITSTATUS(status) != kPassed && WEXITSTATUS(status) != kNoFault)) {
        FAIL_CHECK(std::string(to_string(fault.call)), " number ", number, " failed with error ",
                   fault.error, ", wait status ", status, ":\n", output);
        ++failures;
      }
      number += fault.stride;
    }
    at_once = std::min<std::uint64_t>(2 * at_once, 8);
  }
  if (number >= most) {
    FAIL_CHECK(std::string(to_string(fault.call)), " is called more than ", most, " times");
  }
}

}  // namespace

std::size_t count_descriptors() {
  std::size_t count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

void sweep(Scenario scenario, std::initializer_list<Fault> faults, const Documented& documented) {
  for (const Fault& fault : faults) sweep_one({scenario, false, documented}, fault);
}

void sweep_in_runtime(Scenario scenario, std::initializer_list<Fault> faults,
                      const Documented& documented) {
  for (const Fault& fault : faults) sweep_one({scenario, true, documented}, fault);
}

void soak(void (*scenario)(bool with_faults)) {
  const Child child([scenario]() noexcept {
    scenario(false);
    const Books before = read_books();
    scenario(true);
    demand_nothing_left(before, nullptr);
    _exit(kPassed);
  });
  const int status = child.status();
  const std::string output = child.output();
  MESSAGE(output);
  CHECK(status == 0);
}

void still_alive(unsigned seconds) noexcept { alarm(seconds); }

void expect_none(std::error_code error) {
  if (error) throw std::system_error(error);
}

void demand(bool condition, const char* sentence) {
  if (!condition) fail(std::string("not so: ") + sentence);
}

}  // namespace weft::test
