#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/descriptor.hpp>
#include <weft/detail/first_use.hpp>
#include <weft/detail/thread_mutex.hpp>
#include <weft/io.hpp>

#include "io/attempt.hpp"

namespace weft::io {

namespace {

[[gnu::noinline]] CallResult open_process(int process) noexcept {
  return result_of([=] { return ::syscall(SYS_pidfd_open, process, 0); });
}

// Returns EAGAIN while the process has not ended.
[[gnu::noinline]] CallResult reap(int process, siginfo_t& end) noexcept {
  end = {};
  CallResult result = result_of(
      [&] { return ::waitid(P_PID, static_cast<id_t>(process), &end, WEXITED | WNOHANG); });
  if (result.error == 0 && end.si_pid == 0) result.error = EAGAIN;
  return result;
}

constexpr ExitStatus kUnknown{.code = -1};

ExitStatus status_of(const siginfo_t& end) noexcept {
  if (end.si_code == CLD_EXITED) return {.code = end.si_status};
  return {.signal = end.si_status};
}

// Blocks until the process has ended. The caller has killed the program, or has no descriptor for a
// wait that parks.
[[gnu::noinline]] ExitStatus reap_killed(int process) noexcept {
  siginfo_t end{};
  const CallResult reaped =
      result_of([&] { return ::waitid(P_PID, static_cast<id_t>(process), &end, WEXITED); });
  return reaped.error == 0 ? status_of(end) : kUnknown;
}

// Returns whether the number of a process may belong to another process by now. Other code, or a
// program that ignores SIGCHLD, may have reaped the first process.
bool is_reaped(int process) noexcept {
  siginfo_t end;
  const CallResult seen = result_of([&] {
    return ::waitid(P_PID, static_cast<id_t>(process), &end, WEXITED | WNOHANG | WNOWAIT);
  });
  return seen.error == ECHILD;
}

// Programs that could not be killed; each stays here until it ends by itself. Each node is made
// before its program, so that adding it cannot fail.
class Strays {
 public:
  void add(std::list<int>& process) noexcept {
    const detail::Guard guard(lock_);
    processes_.splice(processes_.end(), process);
  }
  // Reaps the processes that have ended.
  void reap_ended() noexcept {
    std::list<int> all;
    {
      const detail::Guard guard(lock_);
      all.swap(processes_);
    }
    all.remove_if([](int process) {
      siginfo_t end;
      return reap(process, end).error != EAGAIN;
    });
    const detail::Guard guard(lock_);
    processes_.splice(processes_.end(), all);
  }

 private:
  detail::ThreadMutex lock_;
  std::list<int> processes_ WEFT_GUARDED_BY(lock_);
};

// Never destroyed, because fibers may run while the process exits.
constinit detail::FirstUse<Strays> all_strays;
Strays& strays() {
  return all_strays.get([] { return std::make_unique<Strays>(); });
}

// Converts texts for C functions. The texts must outlive the result.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Returns the process's environment with changes, of which the last change of a name counts.
std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::map<std::string, std::string> values;
  const auto add = [&values](const std::string& text) {
    values.insert_or_assign(text.substr(0, text.find('=')), text);
  };
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) add(*at);
  for (const std::string& text : changes) add(text);
  std::vector<std::string> all;
  for (auto& [name, text] : values) all.push_back(std::move(text));
  return all;
}

// Starts the program; blocks for some milliseconds. `folder`: null for the process's.
int spawn_process(char* const* words, char* const* environment, const char* folder,
                  const std::array<Descriptor, 3>& ends, int& process) noexcept {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  int error = 0;
  for (int i = 0; i < 3 && error == 0; ++i) {
    error =
        ::posix_spawn_file_actions_adddup2(&actions, ends[static_cast<std::size_t>(i)].get(), i);
  }
  if (error == 0 && folder != nullptr)
    error = ::posix_spawn_file_actions_addchdir_np(&actions, folder);
  // The program gets a separate process group, so that the whole group can be killed, and default
  // signal handling.
  sigset_t none;
  sigset_t defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  if (error == 0)
    error = ::posix_spawnp(&process, words[0], &actions, &attributes, words, environment);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

// Takes the child's end of a pipe, and makes it blocking, because programs expect that.
[[gnu::noinline]] std::error_code take_end(Watch& watch, Descriptor& end) noexcept {
  end = Descriptor(watch.release());
  const CallResult flags = result_of([&] { return ::fcntl(end.get(), F_GETFL); });
  if (flags.error != 0) return flags.code();
  return result_of([&] {
           return ::fcntl(end.get(), F_SETFL, static_cast<int>(flags.value) & ~O_NONBLOCK);
         })
      .code();
}

bool has_zero(const std::string& text) { return text.find('\0') != text.npos; }

using Sink = std::function<void(std::string_view)>;

// Passes on the bytes in the pipe, or appends them, and ends the watch at the end of the pipe.
std::error_code collect(Watch& watch, std::string& text, std::size_t most, const Sink& sink) {
  std::array<char, 8192> buffer;
  const auto [count, error] =
      read_some(watch, std::as_writable_bytes(std::span(buffer)), Deadline::past());
  if (error == Errc::timed_out) return {};
  if (error) {
    watch = {};
    return error == Errc::end_of_stream ? std::error_code{} : error;
  }
  if (sink) {
    sink({buffer.data(), count});
    return {};
  }
  if (text.size() + count > most) return std::make_error_code(std::errc::file_too_large);
  text.append(buffer.data(), count);
  return {};
}

// Writes as much as the pipe takes, and ends the watch when all is written or the reader is gone.
void feed(Watch& watch, std::string_view& input) {
  const auto [count, error] = write_all(watch, std::as_bytes(std::span(input)), Deadline::past());
  input.remove_prefix(count);
  if (input.empty() || (error && error != Errc::timed_out)) watch = {};
}

std::error_code converse(Command& command, const CommandOptions& options, CommandResult& result,
                         const Until& until) {
  std::string_view input = options.input;
  if (input.empty()) command.input() = {};
  while (command.input().handle() != nullptr || command.output().handle() != nullptr ||
         command.errors().handle() != nullptr) {
    auto writes = on_writable(command.input());
    auto reads = on_readable(command.output());
    auto reads_errors = on_readable(command.errors());
    std::array<detail::SelectCase*, 3> cases{};
    std::size_t count = 0;
    if (command.input().handle() != nullptr) cases[count++] = &writes;
    if (command.output().handle() != nullptr) cases[count++] = &reads;
    if (command.errors().handle() != nullptr) cases[count++] = &reads_errors;
    const std::size_t chosen = detail::select_one(std::span(cases).first(count), until);
    if (chosen == detail::kNoCase) {
      return until.reason();
    }
    std::error_code error;
    if (cases[chosen] == &writes) feed(command.input(), input);
    const std::size_t most = options.most_output;
    if (cases[chosen] == &reads) {
      error = collect(command.output(), result.output, most, options.on_output);
    } else if (cases[chosen] == &reads_errors) {
      error = collect(command.errors(), result.errors, most, options.on_errors);
    }
    if (error) return error;
  }
  return {};
}

}  // namespace

Result<ExitStatus> wait_process(int process, const Until& until) {
  siginfo_t end;
  CallResult reaped = reap(process, end);
  if (reaped.error == 0) return {.value = status_of(end)};
  if (reaped.error != EAGAIN) return {.error = reaped.code()};
  const CallResult opened = open_process(process);
  // The process has already ended. The system has reaped it, because the program ignores SIGCHLD.
  if (opened.error == ESRCH) return {.error = std::make_error_code(std::errc::no_child_process)};
  if (opened.error != 0) return {.error = opened.code()};
  auto [watch, refused] = Watch::adopt(static_cast<int>(opened.value));
  if (refused) {
    close_descriptor(static_cast<int>(opened.value));
    return {.error = refused};
  }
  for (;;) {
    const auto [ready, error] = watch.wait(Ready::read, until);
    if (error) return {.error = error};
    reaped = reap(process, end);
    if (reaped.error == 0) return {.value = status_of(end)};
    if (reaped.error != EAGAIN) return {.error = reaped.code()};
  }
}

Command::~Command() { (void)kill(); }

Command& Command::operator=(Command&& other) noexcept {
  if (this == &other) return *this;
  (void)kill();
  process_ = std::move(other.process_);
  input_ = std::move(other.input_);
  output_ = std::move(other.output_);
  errors_ = std::move(other.errors_);
  return *this;
}

Result<Command> Command::start(const std::vector<std::string>& arguments,
                               const StartOptions& options) {
  if (arguments.empty() || has_zero(options.folder) ||
      std::ranges::any_of(options.environment, has_zero) ||
      std::ranges::any_of(arguments, has_zero)) {
    return {.error = std::make_error_code(std::errc::invalid_argument)};
  }
  strays().reap_ended();
  std::array<Pipe, 3> pipes;
  for (Pipe& pipe : pipes) {
    auto [made, refused] = make_pipe();
    if (refused) return {.error = refused};
    pipe = std::move(made);
  }
  std::array<Descriptor, 3> ends;
  std::error_code error = take_end(pipes[0].read, ends[0]);
  if (!error) error = take_end(pipes[1].write, ends[1]);
  if (!error) error = take_end(pipes[2].write, ends[2]);
  if (error) return {.error = error};
  const std::vector<char*> words = pointers_to(arguments);
  std::vector<std::string> changed;
  if (!options.environment.empty()) changed = environment_with(options.environment);
  const std::vector<char*> own = pointers_to(changed);
  char* const* const environment = options.environment.empty() ? environ : own.data();
  const char* const folder = options.folder.empty() ? nullptr : options.folder.c_str();
  Result<Command> started;
  try {
    std::list<int> process{-1};
    const int failed = blocking(
        [&] { return spawn_process(words.data(), environment, folder, ends, process.front()); });
    if (failed != 0) return {.error = {failed, std::system_category()}};
    started.value.process_.swap(process);
  } catch (const std::system_error& no_thread) {
    return {.error = no_thread.code()};
  }
  started.value.input_ = std::move(pipes[0].write);
  started.value.output_ = std::move(pipes[1].read);
  started.value.errors_ = std::move(pipes[2].read);
  return started;
}

Result<ExitStatus> Command::wait(const Until& until) {
  if (process_.empty())
    return {.value = kUnknown, .error = std::make_error_code(std::errc::no_child_process)};
  const Result<ExitStatus> ended = wait_process(process_.front(), until);
  // If other code has reaped the process, it is gone, too: its number may belong to another
  // process.
  if (!ended.error || ended.error == std::errc::no_child_process) process_.clear();
  return ended;
}

ExitStatus Command::kill() noexcept {
  if (process_.empty()) return kUnknown;
  const int process = process_.front();
  if (is_reaped(process)) {
    process_.clear();
    return kUnknown;
  }
  (void)::kill(-process, SIGKILL);
  // The program may have left its group.
  const bool killed = ::kill(process, SIGKILL) == 0;
  const auto [status, error] = wait_process(process, killed ? Until() : Until(Deadline::past()));
  if (error && !killed && error != std::errc::no_child_process) {
    strays().add(process_);
    return kUnknown;
  }
  process_.clear();
  return error ? reap_killed(process) : status;
}

Result<void> Command::signal(int number) noexcept {
  if (process_.empty() || is_reaped(process_.front())) {
    return std::make_error_code(std::errc::no_child_process);
  }
  return result_of([&] { return ::kill(process_.front(), number); }).code();
}

Result<CommandResult> run_command(const std::vector<std::string>& arguments,
                                  const CommandOptions& options, const Until& until) {
  auto [command, refused] =
      Command::start(arguments, {.environment = options.environment, .folder = options.folder});
  Result<CommandResult> result{.error = refused};
  if (refused) return result;
  result.error = converse(command, options, result.value, until);
  if (!result.error) {
    const auto [status, error] = command.wait(until);
    result.value.status = status;
    result.error = error;
    if (!error) return result;
  }
  result.value.status = command.kill();
  return result;
}

}  // namespace weft::io
