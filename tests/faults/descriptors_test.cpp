// Tests faults while fibers watch descriptors, use pipes, wait for signals and processes, and run
// programs.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string>
#include <system_error>
#include <vector>
#include <weft/go.hpp>
#include <weft/io.hpp>

#include "tests/faults/sweep.hpp"
#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("faults/descriptors");

namespace {

using namespace std::chrono_literals;
using weft::Deadline;
using weft::io::Ready;
using weft::test::Call;
using weft::test::demand;
using weft::test::expect_none;
using weft::test::kShort;
using weft::test::sweep_in_runtime;

void pipes() {
  auto [pipe, refused] = weft::io::make_pipe();
  expect_none(refused);
  auto [set, without_set] = weft::io::WatchSet::create();
  expect_none(without_set);
  const std::string sent(300, 'p');
  auto writer = weft::spawn([&pipe = pipe, &sent] {
    const auto error =
        weft::io::write_all(pipe.write, std::as_bytes(std::span(sent)), Deadline::after(20s)).error;
    pipe.write = {};
    expect_none(error);
  });
  std::string received;
  std::error_code error;
  for (;;) {
    std::array<std::byte, 64> buffer;
    const auto [count, failed] = weft::io::read_some(pipe.read, buffer, Deadline::after(20s));
    error = failed;
    if (failed) break;
    received.append(reinterpret_cast<const char*>(buffer.data()), count);
  }
  pipe.read = {};
  writer.join();
  if (error != weft::Errc::end_of_stream) expect_none(error);
  demand(received == sent, "a pipe gives what was put in");
}
TEST_CASE("a pipe carries its data or returns the error when a system call fails") {
  sweep_in_runtime(&pipes,
                   {{Call::make_pipe, EMFILE},
                    {Call::create_epoll, EMFILE},
                    {Call::control_epoll, ENOSPC},
                    {Call::control_file, EIO},
                    {Call::read_file, EINTR, 3},
                    {Call::read_file, kShort, 50},
                    {Call::write_file, EINTR, 3},
                    {Call::close_file, EINTR},
                    {Call::allocate, ENOMEM}},
                   {std::make_error_code(std::errc::not_enough_memory),
                    std::error_code(EPIPE, std::system_category())});
}

void watch_set() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::system_category());
  }
  struct CloseBoth {
    std::array<int, 2>& ends;
    ~CloseBoth() {
      for (const int end : ends) ::close(end);
    }
  };
  const CloseBoth close_both{ends};
  auto [set, refused] = weft::io::WatchSet::create();
  expect_none(refused);
  expect_none(set.add(ends[0], Ready::read, 7));
  expect_none(set.change(ends[0], Ready::read, 8));
  demand(::write(ends[1], "x", 1) == 1 || errno == EINTR, "a byte is written");
  std::array<weft::io::WatchSet::Event, 4> events;
  const auto [count, error] = set.wait(events, Deadline::after(50ms));
  if (error != weft::Errc::timed_out) {
    expect_none(error);
    demand(count == 1 && events[0].key == 8, "the event has its key");
  }
  expect_none(set.remove(ends[0]));
}
TEST_CASE("a WatchSet reports its events or returns the error when a system call fails") {
  sweep_in_runtime(&watch_set,
                   {{Call::make_pipe, EMFILE},
                    {Call::create_epoll, EMFILE},
                    {Call::control_epoll, ENOSPC},
                    {Call::wait_epoll, EINTR, 2},
                    {Call::allocate, ENOMEM}},
                   {std::make_error_code(std::errc::not_enough_memory)});
}

void signals() {
  auto [set, refused] = weft::io::SignalSet::watch({SIGUSR1, SIGUSR2});
  expect_none(refused);
  (void)::kill(::getpid(), SIGUSR2);
  const auto [number, error] = set.wait(Deadline::after(20s));
  expect_none(error);
  demand(number == SIGUSR2, "the signal that came is told");
}
TEST_CASE("a wait for signals succeeds or returns an error when a system call fails") {
  ::signal(SIGUSR1, SIG_IGN);  // An ignored signal ends no process.
  ::signal(SIGUSR2, SIG_IGN);
  sweep_in_runtime(&signals,
                   {{Call::create_event, EMFILE},
                    {Call::control_epoll, ENOSPC},
                    {Call::set_handler, EINVAL},
                    {Call::read_file, EINTR, 2},
                    {Call::allocate, ENOMEM}},
                   {std::make_error_code(std::errc::not_enough_memory)});
  ::signal(SIGUSR1, SIG_DFL);
  ::signal(SIGUSR2, SIG_DFL);
}

bool has_children() {
  siginfo_t end{};
  return ::waitid(P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

// Checks that a started program has ended when the call returns, whatever has failed.
void run(const std::vector<std::string>& arguments) {
  std::error_code error;
  weft::io::CommandResult result;
  // Injected faults must not reach this check.
  const auto demand_none_left = [] {
    (void)weft::test::disarm();
    demand(!has_children(), "no program is left behind");
  };
  try {
    const std::string input = "some words\n";
    auto ran = weft::io::run_command(arguments, {.input = input}, Deadline::after(10s));
    error = ran.error;
    result = std::move(ran.value);
  } catch (const std::exception&) {
    demand_none_left();
    throw;
  }
  demand_none_left();
  expect_none(error);
  demand(result.status.success(), "the program ends well");
  demand(result.output == "some words\n", "its output is collected");
}
void run_command() { run({"cat"}); }
TEST_CASE("run_command() returns the result or an error and leaves no process when a call fails") {
  sweep_in_runtime(&run_command,
                   {{Call::make_pipe, EMFILE},
                    {Call::control_epoll, ENOSPC},
                    {Call::control_file, EBADF},
                    {Call::start_process, EAGAIN},
                    {Call::start_process, ENOENT},
                    {Call::open_process, EMFILE},
                    {Call::open_process, EMFILE, 2},
                    {Call::open_process, ENOSYS, 2},
                    {Call::await_process, EINTR},
                    {Call::start_thread, EAGAIN},
                    {Call::read_file, EINTR, 2},
                    {Call::read_file, EIO},
                    {Call::write_file, EINTR, 2},
                    {Call::read_file, kShort, 50},
                    {Call::close_file, EINTR},
                    {Call::allocate, ENOMEM}},
                   {std::make_error_code(std::errc::not_enough_memory)});
}

// Runs a program that continues after its pipes are closed; the call waits for its end.
void run_daemon() { run({"sh", "-c", "cat; exec >&- 2>&-; sleep 0.1"}); }
TEST_CASE("a command is killed when run_command() cannot wait for the command to end") {
  sweep_in_runtime(&run_daemon,
                   {{Call::open_process, EMFILE},
                    {Call::open_process, EMFILE, 2},
                    {Call::open_process, ENOSYS, 2},
                    {Call::await_process, EINTR},
                    {Call::control_epoll, ENOSPC},
                    {Call::allocate, ENOMEM}},
                   {std::make_error_code(std::errc::not_enough_memory)});
}

// Simulates a program that has left its group.
FIBER_TEST_CASE("a command is killed even if its process group cannot be killed") {
  weft::test::arm({Call::kill_process, ESRCH}, 1);
  const auto ran = weft::io::run_command({"sleep", "1000"}, {}, Deadline::past());
  CHECK(weft::test::disarm());
  CHECK(ran.error == weft::Errc::timed_out);
  CHECK(ran.value.status.signal == SIGKILL);
  CHECK(!has_children());
}

// Simulates a program that has changed its user.
FIBER_TEST_CASE(
    "a command that the caller is not permitted to kill is reaped when it ends by itself") {
  std::array<int, 2> ends{};
  CHECK(::pipe(ends.data()) == 0);  // The program also has the pipe.
  const std::string report = "/dev/fd/" + std::to_string(ends[1]);
  const std::string script = "echo $$ > " + report + "; echo more; exec sleep 1000";
  weft::test::arm({Call::kill_process, EPERM, 2}, 1);
  const auto ran = weft::io::run_command({"sh", "-c", script}, {.most_output = 1});
  CHECK(weft::test::disarm());
  CHECK(ran.error == std::errc::file_too_large);
  CHECK(ran.value.status.code == -1);
  CHECK(has_children());
  std::array<char, 32> number{};
  CHECK(::read(ends[0], number.data(), number.size() - 1) > 0);
  const int process = std::atoi(number.data());
  CHECK(::kill(process, SIGKILL) == 0);
  siginfo_t end{};
  CHECK(::waitid(P_PID, static_cast<id_t>(process), &end, WEXITED | WNOWAIT) == 0);
  CHECK(weft::io::run_command({"true"}).value.status.success());
  CHECK(!has_children());
  for (const int each : ends) ::close(each);
}

}  // namespace

TEST_SUITE_END();
