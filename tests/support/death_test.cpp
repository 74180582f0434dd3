#include "tests/support/death_test.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>

#include "tests/support/fiber_test.hpp"

namespace weft::test {
namespace {

using Clock = std::chrono::steady_clock;

const std::chrono::seconds kDeadline{20 * kSlowdown};

DeathTest* first_death_test = nullptr;

struct Ending {
  int status = 0;      // The result of waitpid().
  bool late = false;   // Whether the test had to kill it.
  std::string output;  // stdout and stderr.
};

// Reads until the other side has closed, or the deadline has passed. Returns false if the deadline
// has passed.
bool read_all(int descriptor, std::string& output) {
  const Clock::time_point limit = Clock::now() + kDeadline;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit - Clock::now()).count();
    pollfd ready{descriptor, POLLIN, 0};
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left)) == 0) return false;
    char buffer[4096];
    const ssize_t count = read(descriptor, buffer, sizeof buffer);
    if (count <= 0) return true;
    output.append(buffer, static_cast<std::size_t>(count));
  }
}

Ending run_in_new_process(const char* place) {
  Ending ending;
  int ends[2] = {};
  if (pipe2(ends, O_CLOEXEC) != 0) return ending;
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  setenv(kDeathVariable, place, 1);
  std::string program = "/proc/self/exe";
  // Set if programs are emulated, and the kernel cannot start the emulator itself.
  const char* emulator = std::getenv(kEmulatorVariable);
  if (emulator != nullptr) program = std::filesystem::read_symlink(program).string();
  std::string first = emulator != nullptr ? emulator : program;
  char* arguments[] = {first.data(), emulator != nullptr ? program.data() : nullptr, nullptr};
  pid_t child = 0;
  const int error = posix_spawnp(&child, first.c_str(), &actions, nullptr, arguments, environ);
  unsetenv(kDeathVariable);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error == 0) {
    ending.late = !read_all(ends[0], ending.output);
    if (ending.late) kill(child, SIGKILL);
    waitpid(child, &ending.status, 0);
  } else {
    ending.output = std::string("posix_spawn: ") + std::strerror(error);
  }
  close(ends[0]);
  return ending;
}

}  // namespace

DeathTest::DeathTest(const char* its_place, Body its_body) noexcept
    : place(its_place), body(its_body), next(first_death_test) {
  first_death_test = this;
}

void expect_death(const char* place, const char* text) {
  const Ending ending = run_in_new_process(place);
  // A sanitizer turns a deadly signal into an exit with a report.
  const bool died = WIFSIGNALED(ending.status) ||
                    (kSanitized && WIFEXITED(ending.status) && WEXITSTATUS(ending.status) != 0);
  if (ending.late) FAIL_CHECK("the process was still alive after the deadline");
  if (!died) FAIL_CHECK("the process did not die by a signal; wait status ", ending.status);
  const bool said = ending.output.find(text) != std::string::npos;
  CHECK_MESSAGE(said, "expected: ", std::string(text), "\nits output:\n", ending.output);
}

int run_death_test(const char* place) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (const DeathTest* test = first_death_test; test != nullptr; test = test->next) {
    if (std::strcmp(test->place, place) != 0) continue;
    test->body();
    std::cerr << "the body returned" << std::endl;
    return 0;
  }
  std::cerr << "there is no death test at " << place << std::endl;
  return 0;
}

}  // namespace weft::test
