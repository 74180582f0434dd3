#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <weft/go.hpp>
#include <weft/io.hpp>
#include <weft/net/buffered.hpp>
#include <weft/runtime.hpp>
#include <weft/stop_on_signal.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/deadlock.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"

using namespace weft;
using weft::test::await_parked;
using namespace std::chrono_literals;

namespace {

// Sends a signal to the process, so any of its threads may take it. The thread sanitizer delays a
// signal for a thread that waits in the kernel; in its builds, the caller takes the signal.
void send_signal(int number) {
#ifdef WEFT_TEST_TSAN
  (void)::raise(number);
#else
  (void)::kill(::getpid(), number);
#endif
}

}  // namespace

TEST_SUITE_BEGIN("io/process");

FIBER_TEST_CASE("a watched signal ends a wait for that signal and does not end the process") {
  auto [set, error] = io::SignalSet::watch({SIGUSR1, SIGUSR2});
  REQUIRE(error == std::error_code{});
  CHECK(set.wait(Deadline::past()).error == Errc::timed_out);
  for (const int number : {SIGUSR1, SIGUSR2}) {
    auto waiter = spawn([&waited = set] { return waited.wait(); });
    await_parked(runtime, "readable");
    send_signal(number);
    CHECK(waiter.join().value == number);
  }
  // Both signals come before any fiber waits.
  send_signal(SIGUSR2);
  send_signal(SIGUSR1);
  CHECK(set.wait().value + set.wait().value == SIGUSR1 + SIGUSR2);
  std::stop_source stop;
  auto waiter = spawn([&waited = set, &stop] { return waited.wait(stop.get_token()); });
  await_parked(runtime, "readable");
  (void)stop.request_stop();
  CHECK(waiter.join().error == Errc::cancelled);
}

// The kernel chooses the thread, and prefers the main thread.
FIBER_TEST_CASE("a signal to the process ends a wait while all threads of the process are asleep") {
  auto [set, error] = io::SignalSet::watch({SIGUSR1});
  CHECK(error == std::error_code{});
  auto waiter = weft::spawn([&set = set] { return set.wait().value; });
  std::thread sender([] { ::kill(::getpid(), SIGUSR1); });
  CHECK(waiter.join() == SIGUSR1);
  sender.join();
}

FIBER_TEST_CASE("only one SignalSet can watch a signal, and its destructor restores the handler") {
  struct sigaction before {};
  ::sigaction(SIGUSR1, nullptr, &before);
  {
    auto [set, error] = io::SignalSet::watch({SIGUSR1});
    CHECK(error == std::error_code{});
    const std::error_code second = io::wait_signal({SIGUSR1}).error;
    CHECK(second == Errc::signal_in_use);
    CHECK(second.message().find("signal") != std::string::npos);
    CHECK(second.message().find("descriptor") == std::string::npos);
    // The handler needs no room on the stack of the fiber that it interrupts.
    struct sigaction during {};
    ::sigaction(SIGUSR1, nullptr, &during);
    CHECK((during.sa_flags & SA_ONSTACK) != 0);
  }
  CHECK(io::wait_signal({SIGKILL}, Deadline::past()).error == std::errc::invalid_argument);
  CHECK(io::wait_signal({SIGUSR1}, Deadline::after(1ms)).error == Errc::timed_out);
  struct sigaction after {};
  ::sigaction(SIGUSR1, nullptr, &after);
  const bool same = after.sa_handler == before.sa_handler;
  CHECK(same);
}

FIBER_TEST_CASE("StopOnSignal requests one stop, and then restores the signal's default effect") {
  const auto handler_of = [](int number) {
    struct sigaction now {};
    ::sigaction(number, nullptr, &now);
    return now.sa_handler;
  };
  const auto before = handler_of(SIGUSR1);
  StopOnSignal stop({SIGUSR1, SIGUSR2});
  CHECK_THROWS_AS(StopOnSignal({SIGUSR2}), std::system_error);
  await_parked(runtime, "readable");
  CHECK(stop.signal() == 0);
  CHECK_FALSE(stop.get_token().stop_requested());
  send_signal(SIGUSR2);
  CHECK_FALSE(this_fiber::sleep_until(Deadline::never(), stop.get_token()));
  CHECK(stop.signal() == SIGUSR2);
  const bool same = handler_of(SIGUSR1) == before;
  CHECK(same);
  { const StopOnSignal unused({SIGUSR1}); }
}

FIBER_TEST_CASE("a SignalSet starts without signals that an earlier set received") {
  {
    auto [set, error] = io::SignalSet::watch({SIGUSR1});
    REQUIRE(error == std::error_code{});
    (void)::raise(SIGUSR1);
  }
  auto [set, error] = io::SignalSet::watch({SIGUSR1, SIGUSR2});
  REQUIRE(error == std::error_code{});
  (void)::raise(SIGUSR2);
  CHECK(set.wait().value == SIGUSR2);
  CHECK(set.wait(Deadline::past()).error == Errc::timed_out);
}

FIBER_TEST_CASE("a SignalSet accepts only numbers from the smallest to the largest signal number") {
  for (const int number : {1, 64}) {
    auto [set, error] = io::SignalSet::watch({number});
    REQUIRE(error == std::error_code{});
    (void)::raise(number);
    CHECK(set.wait().value == number);
  }
  for (const int number : {0, 65}) {
    CHECK(io::SignalSet::watch({number}).error == std::errc::invalid_argument);
  }
}

FIBER_TEST_CASE("a wait for a child process returns the child's exit code or signal") {
  const pid_t returns = ::fork();
  if (returns == 0) ::_exit(7);
  const auto end = io::wait_process(returns);
  CHECK(end.error == std::error_code{});
  CHECK(end.value.code == 7);
  const pid_t sleeps = ::fork();
  if (sleeps == 0) {
    ::pause();
    ::_exit(0);
  }
  CHECK(io::wait_process(sleeps, Deadline::after(1ms)).error == Errc::timed_out);
  std::stop_source stop;
  auto stopped = spawn([&] { return io::wait_process(sleeps, stop.get_token()).error; });
  await_parked(runtime, "readable");
  (void)stop.request_stop();
  CHECK(stopped.join() == Errc::cancelled);
  auto waiter = spawn([&] { return io::wait_process(sleeps); });
  await_parked(runtime, "readable");
  ::kill(sleeps, SIGKILL);
  CHECK(waiter.join().value.signal == SIGKILL);
  CHECK(io::wait_process(sleeps).error == std::errc::no_child_process);
}

FIBER_TEST_CASE("run_command() returns a command's output and exit status") {
  const auto simple = io::run_command({"sh", "-c", "echo out; echo err >&2; exit 3"});
  CHECK(simple.error == std::error_code{});
  CHECK(simple.value.output == "out\n");
  CHECK(simple.value.errors == "err\n");
  CHECK(simple.value.status.code == 3);
  io::CommandOptions options;
  options.input.assign(1'000'000, 'i');
  const auto much = io::run_command({"cat"}, options);
  CHECK(much.value.status.success());
  CHECK(much.value.output == options.input);
  CHECK(io::run_command({"weft-has-no-such-program"}).error ==
        std::errc::no_such_file_or_directory);
}

FIBER_TEST_CASE("a command runs with the given environment and in the given folder") {
  ::setenv("WEFT_TEST_OLD", "old", 1);
  const auto told = io::run_command(
      {"sh", "-c", "pwd; echo $WEFT_TEST_OLD $WEFT_TEST_NEW $HOME"},
      {.environment = {"WEFT_TEST_NEW=1", "HOME=/a=b", "WEFT_TEST_NEW=2"}, .folder = "/proc"});
  CHECK(told.value.output == "/proc\nold 2 /a=b\n");
  CHECK(io::run_command({"sh", "-c", "pwd"}, {.folder = "/no/such"}).error ==
        std::errc::no_such_file_or_directory);
}

FIBER_TEST_CASE("a command's output can be read while the command is running") {
  // The command ends only after its first line has been received.
  auto [gate, refused] = io::make_pipe();
  REQUIRE(refused == std::error_code{});
  const std::string wait = "read line < /proc/" + std::to_string(::getpid()) + "/fd/" +
                           std::to_string(gate.read.native_handle());
  std::string output;
  std::string errors;
  io::CommandOptions options;
  options.on_output = [&, &opened = gate](std::string_view text) {
    if (output.empty()) CHECK(io::write_all(opened.write, "go\n").value == 3);
    output += text;
  };
  options.on_errors = [&](std::string_view text) { errors += text; };
  options.most_output = 1;
  const auto done =
      io::run_command({"sh", "-c", "echo first; " + wait + "; echo second; echo bad >&2"}, options);
  CHECK(done.error == std::error_code{});
  CHECK(done.value.status.success());
  CHECK(output == "first\nsecond\n");
  CHECK(errors == "bad\n");
  CHECK(done.value.output.empty());
  options.on_output = [](std::string_view) { throw std::runtime_error("enough"); };
  CHECK_THROWS_AS((void)io::run_command({"yes"}, options), std::runtime_error);
}

FIBER_TEST_CASE("a running command answers each line of its input until the input is closed") {
  auto [command, refused] = io::Command::start(
      {"sh", "-c", "while read line; do echo \"$line $NUMBER\"; done; pwd >&2; exit 3"},
      {.environment = {"NUMBER=7"}, .folder = "/proc"});
  REQUIRE(refused == std::error_code{});
  net::BufferedReader output(command.output());
  for (const std::string_view text : {"one", "two"}) {
    CHECK(io::write_all(command.input(), std::string(text) + "\n").error == std::error_code{});
    CHECK(output.read_line().value == std::string(text) + " 7");
  }
  CHECK(command.wait(Deadline::past()).error == Errc::timed_out);
  command.input().close();
  CHECK(output.read_line().error == Errc::end_of_stream);
  CHECK(net::BufferedReader(command.errors()).read_line().value == "/proc");
  CHECK(command.wait().value.code == 3);
  CHECK(command.process() == -1);
  CHECK(command.wait().error == std::errc::no_child_process);
  CHECK(command.signal(SIGTERM) == std::errc::no_child_process);
  CHECK(command.kill().code == -1);
  CHECK(io::Command::start({"weft-has-no-such-program"}).error ==
        std::errc::no_such_file_or_directory);
  CHECK(io::Command::start({}).error == std::errc::invalid_argument);
}

FIBER_TEST_CASE("one fiber writes to a command while another fiber reads from the command") {
  auto [command, refused] = io::Command::start({"cat"});
  REQUIRE(refused == std::error_code{});
  const std::string text(1'000'000, 'i');  // More than the pipes can hold.
  auto writer = spawn([&text, &input = command.input()] {
    CHECK(io::write_all(input, text).value == text.size());
    input.close();
  });
  std::string copy(text.size(), '.');
  net::BufferedReader output(command.output());
  CHECK(output.read_exactly(std::as_writable_bytes(std::span(copy))).value == text.size());
  const bool same = copy == text;
  CHECK(same);
  writer.join();
  CHECK(command.wait().value.success());
}

FIBER_TEST_CASE("a running command is killed when its Command is destroyed or assigned to") {
  const auto is_gone = [](int process) { return ::kill(process, 0) != 0 && errno == ESRCH; };
  int process = 0;
  {
    io::Command command = io::Command::start({"sleep", "1000"}).value;
    process = command.process();
    CHECK_FALSE(is_gone(process));
    // An assignment ends the former program.
    command = io::Command::start({"sleep", "1000"}).value;
    CHECK(is_gone(process));
    process = command.process();
    io::Command taken = std::move(command);
    CHECK(taken.process() == process);
  }
  CHECK(is_gone(process));
  io::Command command = io::Command::start({"sleep", "1000"}).value;
  CHECK(command.wait(Deadline::after(1ms)).error == Errc::timed_out);
  std::stop_source stop;
  auto waiter = spawn([&] { return command.wait(stop.get_token()).error; });
  await_parked(runtime, "readable");
  (void)stop.request_stop();
  CHECK(waiter.join() == Errc::cancelled);
  CHECK(command.signal(SIGTERM));
  CHECK(command.wait().value.signal == SIGTERM);
}

FIBER_TEST_CASE("a command that exceeds its time limit or its output limit is killed") {
  // On a busy machine, the time may pass before the shell has begun; a retry has more time.
  std::string output;
  for (auto patience = 100ms; output.empty(); patience *= 2) {
    const auto slow =
        io::run_command({"sh", "-c", "echo begun; sleep 1000"}, {}, Deadline::after(patience));
    CHECK(slow.error == Errc::timed_out);
    CHECK(slow.value.status.signal == SIGKILL);
    output = slow.value.output;
  }
  CHECK(output == "begun\n");
  io::CommandOptions options;
  options.most_output = 1000;
  CHECK(io::run_command({"yes"}, options).error == std::errc::file_too_large);
}

FIBER_TEST_CASE("a stop request kills a running command") {
  std::stop_source stop;
  auto running = spawn([&] { return io::run_command({"sleep", "1000"}, {}, stop.get_token()); });
  await_parked(runtime, "select with sockets");
  (void)stop.request_stop();
  const auto ran = running.join();
  CHECK(ran.error == Errc::cancelled);
  CHECK(ran.value.status.signal == SIGKILL);
}

FIBER_TEST_CASE(
    "a command returns its output without an exit status when the system cannot report how the "
    "command ended") {
  const auto before = ::signal(SIGCHLD, SIG_IGN);  // The system reaps all children by itself.
  const auto ran = io::run_command({"sh", "-c", "echo out; exit 3"});
  ::signal(SIGCHLD, before);
  CHECK(ran.error == std::errc::no_child_process);
  CHECK(ran.value.output == "out\n");
  CHECK(ran.value.status.code == -1);
  CHECK(!ran.value.status.success());
}

THREAD_TEST_CASE("a plain thread can wait for a signal and for a child process") {
  auto [set, error] = io::SignalSet::watch({SIGUSR1});
  CHECK(error == std::error_code{});
  std::thread sender([] { send_signal(SIGUSR1); });
  CHECK(set.wait().value == SIGUSR1);
  sender.join();
  const pid_t sleeps = ::fork();
  if (sleeps == 0) {
    ::pause();
    ::_exit(0);
  }
  std::thread killer([=] { ::kill(sleeps, SIGKILL); });
  CHECK(io::wait_process(sleeps).value.signal == SIGKILL);
  killer.join();
}

THREAD_TEST_CASE("run_command() runs a command on a plain thread") {
  const auto result = io::run_command({"echo", "thread"});
  CHECK(result.error == std::error_code{});
  CHECK(result.value.output == "thread\n");
}

THREAD_TEST_CASE("a deadline or a stop request ends a plain thread's wait for a running command") {
  auto [command, refused] = io::Command::start({"cat"});
  CHECK(refused == std::error_code{});
  CHECK(io::write_all(command.input(), "thread\n").error == std::error_code{});
  CHECK(net::BufferedReader(command.output()).read_line().value == "thread");
  CHECK(command.wait(Deadline::after(1ms)).error == Errc::timed_out);
  std::stop_source stop;
  go([stop]() mutable { (void)stop.request_stop(); });
  CHECK(command.wait(stop.get_token()).error == Errc::cancelled);
  CHECK(command.kill().signal == SIGKILL);
}

THREAD_TEST_CASE("a plain thread loses no signal when a deadline ends its wait for the signal") {
  std::stop_source stop;
  go([stop]() mutable { (void)stop.request_stop(); });
  {
    auto [set, error] = io::SignalSet::watch({SIGUSR1});
    CHECK(error == std::error_code{});
    CHECK(set.wait(Deadline::after(1ms)).error == Errc::timed_out);
    CHECK(set.wait(stop.get_token()).error == Errc::cancelled);
    (void)::raise(SIGUSR1);
    CHECK(set.wait().value == SIGUSR1);
  }
  CHECK(io::wait_signal({SIGUSR1}, Deadline::after(1ms)).error == Errc::timed_out);
  CHECK(io::wait_signal({SIGUSR1}, stop.get_token()).error == Errc::cancelled);
}

THREAD_TEST_CASE("a plain thread's wait for a child process can be repeated after a deadline") {
  const pid_t sleeps = ::fork();
  if (sleeps == 0) {
    ::pause();
    ::_exit(0);
  }
  std::stop_source stop;
  go([stop]() mutable { (void)stop.request_stop(); });
  CHECK(io::wait_process(sleeps, Deadline::after(1ms)).error == Errc::timed_out);
  CHECK(io::wait_process(sleeps, stop.get_token()).error == Errc::cancelled);
  ::kill(sleeps, SIGKILL);
  CHECK(io::wait_process(sleeps).value.signal == SIGKILL);
}

THREAD_TEST_CASE("a deadline or a stop request kills a command that a plain thread runs") {
  const auto late = io::run_command({"sleep", "1000"}, {}, Deadline::after(20ms));
  CHECK(late.error == Errc::timed_out);
  CHECK(late.value.status.signal == SIGKILL);
  std::stop_source stop;
  go([stop]() mutable { (void)stop.request_stop(); });
  const auto stopped = io::run_command({"sleep", "1000"}, {}, stop.get_token());
  CHECK(stopped.error == Errc::cancelled);
  CHECK(stopped.value.status.signal == SIGKILL);
}

TEST_SUITE_END();
