// Waits for descriptors of other libraries, pipes, signals and processes.
// Context: fibers and plain threads; waits, reads, writes and run_command() park.
// Throws: std::bad_alloc.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/detail/io_case.hpp>
#include <weft/result.hpp>
#include <weft/until.hpp>

namespace weft::io {

// Readiness of a descriptor. `either` stands for read or write.
enum class Ready : std::uint8_t { none = 0, read = 1, write = 2, either = 3 };

// A descriptor that the caller's runtime watches, move-only. It may belong to another library and
// need not be non-blocking. Each wait checks the present state (level-triggered); it reads and
// writes nothing. One caller may wait to read and one to write at a time. Descriptors that are
// always ready (regular files, directories, /dev/null) are also ready here.
class Watch {
 public:
  Watch() noexcept = default;
  // Takes the watch of `other`, which is then empty. No caller may be waiting with it.
  Watch(Watch&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)),
        descriptor_(std::exchange(other.descriptor_, -1)) {}
  // Ends the former watch and takes that of `other`, which is then empty.
  Watch& operator=(Watch&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, nullptr);
      descriptor_ = std::exchange(other.descriptor_, -1);
    }
    return *this;
  }
  // Ends the watch, and closes an adopted descriptor. No caller may be waiting.
  ~Watch() { reset(); }

  // Watches a descriptor that its owner keeps, and closes only after the watch ends. A runtime has
  // one watch per descriptor; a dup() of it may have another watch.
  // Errors: Errc::no_runtime, already_watched; the system's.
  static Result<Watch> borrow(int descriptor);
  // Does the same as borrow(), but the watch closes the descriptor. After an error the caller owns
  // it.
  static Result<Watch> adopt(int descriptor);

  // Parks until the descriptor is ready for `what`; with Deadline::past() it only polls. Returns
  // the readiness. An error or a hang-up counts as ready, and the next call reports it.
  // Errors: Errc::timed_out, cancelled, closed.
  Result<Ready> wait(Ready what, const Until& until = Until::ambient());

  // Parks until the descriptor has become ready for reading or writing since the watch began or the
  // last such wait; makes no system call. The caller then tries its own call, because the wake may
  // be a false alarm. Ready::either means the same as in wait().
  // Errors: Errc::timed_out, cancelled, closed.
  Result<Ready> wait_for_edge(Ready what, const Until& until = Until::ambient());

  // Ends all waits with Errc::closed, at any time; it closes an adopted descriptor.
  void close() noexcept;
  // Ends the watch and returns the open descriptor; -1 if there is none. No caller may be waiting.
  [[nodiscard]] int release() noexcept;
  // Returns the watched descriptor; -1 if there is none.
  [[nodiscard]] int native_handle() const noexcept { return descriptor_; }
  // Returns the handle for select cases; null if nothing is watched.
  [[nodiscard]] IoHandle* handle() const noexcept { return handle_; }

 private:
  static Result<Watch> start(int descriptor, bool owns);
  void reset() noexcept;

  IoHandle* handle_ = nullptr;
  int descriptor_ = -1;
};

// A select case that is ready when the watched descriptor is; see weft/net/select.hpp.
// Context, Throws: as on_stop().
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_readable(const Watch& watch, Handler handler = {}) {
  return detail::ReadinessCase<Handler>(watch.handle(), detail::IoCase::Direction::read,
                                        std::move(handler));
}
// Does the same for writing.
// Context, Throws: as on_stop().
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_writable(const Watch& watch, Handler handler = {}) {
  return detail::ReadinessCase<Handler>(watch.handle(), detail::IoCase::Direction::write,
                                        std::move(handler));
}

// A set of descriptors that one caller waits for, as libraries with their own sockets do (curl's
// multi interface, c-ares): a level-triggered epoll. Owners remove descriptors before they close
// them. With Ready::none only errors and hang-ups are events. Calls except wait() may come from any
// caller at any time.
class WatchSet {
 public:
  struct Event {
    std::uint64_t key = 0;
    Ready ready = Ready::none;
  };

  // Makes an empty set.
  // Errors: Errc::no_runtime; the system's.
  static Result<WatchSet> create();

  // Adds a descriptor; its events carry `key`.
  // Errors: std::errc::file_exists; operation_not_permitted for a descriptor that cannot be polled,
  // such as a regular file's; Errc::closed; the system's.
  [[nodiscard]] Result<void> add(int descriptor, Ready what, std::uint64_t key) noexcept;
  // Changes the readiness and the key of a descriptor.
  // Errors: std::errc::no_such_file_or_directory if it was not added; Errc::closed; the system's.
  [[nodiscard]] Result<void> change(int descriptor, Ready what, std::uint64_t key) noexcept;
  // Removes a descriptor, before it is closed.
  // Errors: as change().
  [[nodiscard]] Result<void> remove(int descriptor) noexcept;

  // Parks until a descriptor is ready; fills the beginning of `events`, and returns their number.
  // Errors: Errc::timed_out, cancelled, closed.
  Result<std::size_t> wait(std::span<Event> events, const Until& until = Until::ambient());
  // Ends a wait with Errc::closed.
  void close() noexcept { epoll_.close(); }

 private:
  Result<void> control(int operation, int descriptor, Ready what, std::uint64_t key) noexcept;

  Watch epoll_;
};

// Signals that end waits instead of processes. While the object lives, each signal is recorded and
// has no other effect. A signal belongs to one object at a time. It uses handlers, so at least one
// thread must not block the signal; workers inherit the mask of the thread that makes the runtime.
class SignalSet {
 public:
  SignalSet() noexcept = default;
  // Takes the signals of `other`, which is then empty. No caller may be waiting with it.
  SignalSet(SignalSet&& other) noexcept;
  // Restores its own signals as the destructor does, and takes the signals of `other`, which is
  // then empty.
  SignalSet& operator=(SignalSet&& other) noexcept;
  // Restores the previous effect of the signals. No caller may be waiting.
  ~SignalSet();

  // Begins to record these signals.
  // Errors: Errc::no_runtime; Errc::signal_in_use if another set has one of the signals;
  // invalid_argument for a signal that cannot have a handler (SIGKILL); the system's.
  static Result<SignalSet> watch(std::initializer_list<int> signals);
  // Parks until a signal has arrived since the last wait, and returns it: the smallest if there are
  // several. One caller at a time.
  // Errors: Errc::timed_out, cancelled.
  Result<int> wait(const Until& until = Until::ambient());

 private:
  void restore() noexcept;

  Watch wake_;
  std::uint64_t mask_ = 0;
};

// Waits for one of `signals` by a SignalSet, so that they do not end the process meanwhile. A
// second concurrent call for the same signal is refused.
// Errors: as SignalSet::watch() and SignalSet::wait().
Result<int> wait_signal(std::initializer_list<int> signals, const Until& until = Until::ambient());

// The exit status of a process.
// Context: plain value.
struct ExitStatus {
  int code = 0;    // Its exit code if no signal ended it; -1 if unknown.
  int signal = 0;  // 0: none.
  // Returns whether it exited with code 0.
  [[nodiscard]] bool success() const noexcept { return code == 0 && signal == 0; }
};

// Parks until a child process ends, and reaps it. After a timeout the process continues, and may be
// waited for again.
// Errors: no_child_process if it is not a child or has been reaped; the system itself reaps it if
// SIGCHLD is ignored; Errc::timed_out, cancelled, no_runtime; the system's.
Result<ExitStatus> wait_process(int process, const Until& until = Until::ambient());

struct CommandOptions {
  std::string input = {};                // The bytes of its standard input.
  std::size_t most_output = 64UL << 20;  // In bytes; more output is an error.
  // Variables, "NAME=value", added to the process's environment; an equal name is replaced.
  std::vector<std::string> environment = {};
  // Its working directory, to which a relative path of the program also refers. Empty: the
  // process's.
  std::string folder = {};
  // Receive its output as it comes, in the calling fiber, which may park; an exception of these
  // calls ends the program. Empty: the result has the output.
  std::function<void(std::string_view)> on_output = {};
  std::function<void(std::string_view)> on_errors = {};
};
struct CommandResult {
  ExitStatus status;
  std::string output;  // The bytes of its standard output.
  std::string errors;  // The bytes of its standard error.
};

// Runs a program (found as the shell finds it) and collects its output. The first argument is its
// name. If `until` ends the wait, the program and its process group are killed; its output so far
// comes with the error. A program of another user (sudo) continues, with a status of -1.
// Errors: Errc::timed_out, cancelled, no_runtime; std::errc::file_too_large for too much output;
// the system's (no_such_file_or_directory, ...). no_child_process: the output is complete, but the
// status is -1. This process then ignores SIGCHLD or waits for any child.
Result<CommandResult> run_command(const std::vector<std::string>& arguments,
                                  const CommandOptions& options = {},
                                  const Until& until = Until::ambient());

struct StartOptions {
  // See CommandOptions.
  std::vector<std::string> environment = {};
  std::string folder = {};
};

// A program that runs, and this process's ends of its pipes, for a conversation or streams of
// bytes. A program whose output is not read waits once its pipe is full. One fiber may write while
// others read; the other calls have one caller at a time.
class Command {
 public:
  // Has no program.
  Command() noexcept = default;
  // Takes the program of `other`, which then has none.
  Command(Command&& other) noexcept = default;
  // Kills the present program as the destructor does, and takes that of `other`.
  Command& operator=(Command&& other) noexcept;
  // Does the same as kill(), unless wait() has returned the program's status.
  ~Command();

  // Starts a program, as run_command() does, with three new pipes. The caller parks for some
  // milliseconds, while a thread starts it.
  // Errors: Errc::no_runtime; the system's (no_such_file_or_directory, ...).
  static Result<Command> start(const std::vector<std::string>& arguments,
                               const StartOptions& options = {});

  // Returns this process's end of a pipe, for write_all(), read_some() and net::BufferedReader. The
  // program sees the end of its input after input().close().
  [[nodiscard]] Watch& input() noexcept { return input_; }
  // Returns the pipe as input() does.
  [[nodiscard]] Watch& output() noexcept { return output_; }
  // Returns the pipe as input() does.
  [[nodiscard]] Watch& errors() noexcept { return errors_; }

  // Parks until the program has ended by itself, and returns its status. If `until` ends the wait,
  // the program continues.
  // Errors: as wait_process(); no_child_process also without a program.
  Result<ExitStatus> wait(const Until& until = Until::ambient());
  // Kills the program and its process group, and parks until it has ended. A program of another
  // user continues; its pipes close with this object. Nothing is killed if the program has been
  // reaped elsewhere, as with an ignored SIGCHLD: its number may belong to another program.
  // Returns: its status; a code of -1 if that is unknown, or if there is no program.
  ExitStatus kill() noexcept;
  // Sends a signal, such as SIGTERM, to the program itself.
  // Errors: no_child_process without a program; the system's.
  [[nodiscard]] Result<void> signal(int number) noexcept;
  // Returns the process's id, or -1 without a program.
  [[nodiscard]] int process() const noexcept { return process_.empty() ? -1 : process_.front(); }

 private:
  // Empty: no program, or no caller waits for it any more. It is a list, because giving the program
  // up then moves a node and allocates nothing.
  std::list<int> process_;
  Watch input_;
  Watch output_;
  Watch errors_;
};

// Two ends of a pipe: bytes written to one are read from the other.
struct Pipe {
  Watch read;
  Watch write;
};
// Makes a pipe. Does not park.
// Errors: Errc::no_runtime; the system's.
Result<Pipe> make_pipe();
// Reads like TcpStream's calls, from pipes and similar descriptors. The descriptor must be
// non-blocking or always ready, as a regular file is. The calling thread reads such a file itself,
// from its position (weft/files.hpp does not block workers). For a pipe without a reader,
// write_all() returns broken_pipe, and raises no signal.
// Errors: Errc::end_of_stream; the system's; as Watch::wait().
Result<std::size_t> read_some(Watch& watch, std::span<std::byte> buffer,
                              const Until& until = Until::ambient());
// Writes all of `data`; after an error `value` bytes have been written.
// Errors: the system's; as Watch::wait().
Result<std::size_t> write_all(Watch& watch, std::span<const std::byte> data,
                              const Until& until = Until::ambient());
// Does the same for text.
inline Result<std::size_t> write_all(Watch& watch, std::string_view text,
                                     const Until& until = Until::ambient()) {
  return write_all(watch, std::as_bytes(std::span(text)), until);
}

}  // namespace weft::io
