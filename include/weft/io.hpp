// Waits for signals, processes, pipes, and descriptors of other libraries.
// Context: fibers and plain threads; calls that wait, read, write, run or kill programs park.
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

// The readiness of a descriptor. `either` means read or write.
enum class Ready : std::uint8_t { none = 0, read = 1, write = 2, either = 3 };

// A descriptor that the caller's runtime watches; move-only. The descriptor may belong to another
// library and need not be non-blocking. Each wait() checks the descriptor's current state
// (level-triggered), and neither reads nor writes. One caller may wait to read while another caller
// waits to write. A Watch of a regular file, a directory or /dev/null is always ready.
class Watch {
 public:
  Watch() noexcept = default;
  // Takes the watch of `other`, which is then empty. No caller may be waiting with `other`.
  Watch(Watch&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)),
        descriptor_(std::exchange(other.descriptor_, -1)) {}
  // Ends the current watch and takes the watch of `other`, which is then empty.
  Watch& operator=(Watch&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, nullptr);
      descriptor_ = std::exchange(other.descriptor_, -1);
    }
    return *this;
  }
  // Ends the watch, and closes an adopted descriptor. No caller may be waiting with this watch.
  ~Watch() { reset(); }

  // Watches a descriptor, which its owner must not close before the watch ends. A runtime allows
  // one watch per descriptor; a second watch requires a duplicate (dup()) of the descriptor.
  // Errors: Errc::no_runtime, already_watched; system errors.
  static Result<Watch> borrow(int descriptor);
  // Does the same as borrow(), but the watch owns and closes the descriptor. After an error, the
  // caller still owns the descriptor.
  static Result<Watch> adopt(int descriptor);

  // Parks until the descriptor is ready for `what`; with Deadline::past() it only polls. Returns
  // the readiness. An error or a hang-up counts as readiness; the next read or write reports it.
  // Errors: Errc::timed_out, cancelled, closed.
  Result<Ready> wait(Ready what, const Until& until = Until::ambient());

  // Parks until the descriptor becomes ready. Returns at once if it has become ready since the last
  // wait, or since the watch began if there was no wait. For Ready::either, works like wait();
  // otherwise, makes no system call. A wakeup may be spurious: callers must try to read or write.
  // Errors: Errc::timed_out, cancelled, closed.
  Result<Ready> wait_for_edge(Ready what, const Until& until = Until::ambient());

  // Ends all waits with Errc::closed, and closes an adopted descriptor. May be called at any time.
  void close() noexcept;
  // Ends the watch and returns the open descriptor; -1 if there is none. No caller may be waiting.
  [[nodiscard]] int release() noexcept;
  // Returns the descriptor's number, even after close(); -1 if the watch is empty.
  [[nodiscard]] int native_handle() const noexcept { return descriptor_; }
  // Returns the handle for select cases; null if the watch is empty.
  [[nodiscard]] IoHandle* handle() const noexcept { return handle_; }

 private:
  static Result<Watch> start(int descriptor, bool owns);
  void reset() noexcept;

  IoHandle* handle_ = nullptr;
  int descriptor_ = -1;
};

// Returns a select case that is ready when the descriptor is readable; see weft/net/select.hpp.
// Context, Throws: the same as for on_stop().
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_readable(const Watch& watch, Handler handler = {}) {
  return detail::ReadinessCase<Handler>(watch.handle(), detail::IoCase::Direction::read,
                                        std::move(handler));
}
// Returns a select case that is ready when the descriptor is writable.
// Context, Throws: the same as for on_stop().
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_writable(const Watch& watch, Handler handler = {}) {
  return detail::ReadinessCase<Handler>(watch.handle(), detail::IoCase::Direction::write,
                                        std::move(handler));
}

// A set of descriptors that one caller waits for; a level-triggered epoll. It is intended for
// libraries that own their sockets (such as libcurl). Owners must remove descriptors before they
// close them. With Ready::none, the set reports only errors and hang-ups, each of them once. Any
// caller may call any function except wait() at any time.
class WatchSet {
 public:
  struct Event {
    std::uint64_t key = 0;
    Ready ready = Ready::none;
  };

  // Makes an empty set.
  // Errors: Errc::no_runtime; system errors.
  static Result<WatchSet> create();

  // Adds a descriptor; its events carry `key`.
  // Errors: std::errc::file_exists; operation_not_permitted for a descriptor that cannot be polled,
  // such as a regular file; Errc::closed; system errors.
  [[nodiscard]] Result<void> add(int descriptor, Ready what, std::uint64_t key) noexcept;
  // For a descriptor that was added before, changes its key and the readiness to wait for.
  // Errors: std::errc::no_such_file_or_directory if it was not added; Errc::closed; system errors.
  [[nodiscard]] Result<void> change(int descriptor, Ready what, std::uint64_t key) noexcept;
  // Removes a descriptor, which must still be open.
  // Errors: the same as for change().
  [[nodiscard]] Result<void> remove(int descriptor) noexcept;

  // Parks until a descriptor is ready; writes up to 64 events to `events` and returns their number.
  // Errors: Errc::timed_out, cancelled, closed.
  Result<std::size_t> wait(std::span<Event> events, const Until& until = Until::ambient());
  // Ends a current wait() with Errc::closed.
  void close() noexcept { epoll_.close(); }

 private:
  Result<void> control(int operation, int descriptor, Ready what, std::uint64_t key) noexcept;

  Watch epoll_;
};

// Receives signals, which then end a wait() instead of terminating the process. While the set
// exists, its signals are only recorded. A signal can be in only one set, and must be unblocked in
// at least one thread. Workers inherit the signal mask of the thread that created the runtime.
class SignalSet {
 public:
  SignalSet() noexcept = default;
  // Takes the signals of `other`, which is then empty. No caller may be waiting with `other`.
  SignalSet(SignalSet&& other) noexcept;
  // Restores the previous handling of this set's signals, as the destructor does. Then takes the
  // signals of `other` and leaves `other` empty.
  SignalSet& operator=(SignalSet&& other) noexcept;
  // Restores the previous handling of the signals. No caller may be waiting.
  ~SignalSet();

  // Begins to record `signals`.
  // Errors: Errc::no_runtime; signal_in_use if another set has one of `signals` or the list repeats
  // one; invalid_argument for a number that can have no handler (0, SIGKILL); system errors.
  static Result<SignalSet> watch(std::initializer_list<int> signals);
  // Parks until there is a signal that no wait has returned yet, and returns the one with
  // the lowest number. Only one caller may wait at a time.
  // Errors: Errc::timed_out, cancelled; closed for an empty set.
  Result<int> wait(const Until& until = Until::ambient());

 private:
  void restore() noexcept;

  Watch wake_;
  std::uint64_t mask_ = 0;
};

// Waits for one of `signals` with a SignalSet, so the signals do not end the process meanwhile. A
// second concurrent call for the same signal fails.
// Errors: the same as for SignalSet::watch() and SignalSet::wait().
Result<int> wait_signal(std::initializer_list<int> signals, const Until& until = Until::ambient());

// The exit status of a process.
// Context: plain value.
struct ExitStatus {
  int code = 0;    // The exit code if no signal ended the process; -1 if unknown.
  int signal = 0;  // The signal that ended the process; 0: none.
  // Returns whether the process exited with code 0.
  [[nodiscard]] bool success() const noexcept { return code == 0 && signal == 0; }
};

// Parks until a child process ends, and reaps it. After a timeout, the process continues, and the
// caller may wait for it again.
// Errors: no_child_process if `process` is not a child, or was already reaped (by the system if
// SIGCHLD is ignored); Errc::timed_out, cancelled, no_runtime; system errors.
Result<ExitStatus> wait_process(int process, const Until& until = Until::ambient());

struct CommandOptions {
  std::string input = {};                // The bytes of the program's standard input.
  std::size_t most_output = 64UL << 20;  // The limit of `output` and of `errors`, in bytes.
  // Variables in the form NAME=value that are added to the environment, or replaced in it.
  std::vector<std::string> environment = {};
  // The program's working directory; also the base of a relative program path. If it is empty,
  // the program inherits this process's working directory.
  std::string folder = {};
  // These functions receive the output as it arrives, and may park. If one throws, run_command()
  // kills the program and rethrows. If one is empty, its output goes to the result.
  std::function<void(std::string_view)> on_output = {};
  std::function<void(std::string_view)> on_errors = {};
};
struct CommandResult {
  ExitStatus status;
  std::string output;  // The bytes of the program's standard output.
  std::string errors;  // The bytes of the program's standard error.
};

// Runs a program, and collects its output until no process has the pipes open any more. The first
// of `arguments` is the program's name, which is looked up in PATH, as in a shell. If `until` or an
// error ends the wait, the program and its process group are killed; the result has the output so
// far. A program that this process may not kill (such as sudo) continues; its status is then -1.
// Errors: Errc::timed_out, cancelled, no_runtime; std::errc::file_too_large beyond `most_output`;
// invalid_argument if `arguments` is empty or a string has a NUL; system errors; no_child_process,
// with the complete output and status -1, if SIGCHLD is ignored or other code reaped the program.
Result<CommandResult> run_command(const std::vector<std::string>& arguments,
                                  const CommandOptions& options = {},
                                  const Until& until = Until::ambient());

struct StartOptions {
  // These fields have the same meaning as in CommandOptions.
  std::vector<std::string> environment = {};
  std::string folder = {};
};

// Represents a running program and this process's ends of the pipes to it, for interactive or
// streamed input and output. The program blocks while an output pipe is full. One fiber may write
// while other fibers read. Only one caller at a time may make other calls.
class Command {
 public:
  // Makes a Command without a program.
  Command() noexcept = default;
  // Takes the program of `other`, which then has no program.
  Command(Command&& other) noexcept = default;
  // Kills the current program as the destructor does, and takes the program of `other`.
  Command& operator=(Command&& other) noexcept;
  // Kills the program as kill() does, unless wait() has returned its status.
  ~Command();

  // Starts a program as run_command() does, and connects it to three new pipes. The caller parks
  // for a few milliseconds, while a thread starts the program.
  // Errors: Errc::no_runtime; std::errc::invalid_argument and system errors as for run_command().
  static Result<Command> start(const std::vector<std::string>& arguments,
                               const StartOptions& options = {});

  // Returns the pipe to the program's standard input, for write_all(). After input().close(), the
  // program reads EOF.
  [[nodiscard]] Watch& input() noexcept { return input_; }
  // Returns the pipe from the program's standard output, for read_some() and net::BufferedReader.
  [[nodiscard]] Watch& output() noexcept { return output_; }
  // Returns the pipe from the program's standard error, for the same uses as output().
  [[nodiscard]] Watch& errors() noexcept { return errors_; }

  // Parks until the program has ended, without killing it, and returns its status. If `until` ends
  // the wait, the program continues.
  // Errors: the same as for wait_process(); also no_child_process if there is no program.
  Result<ExitStatus> wait(const Until& until = Until::ambient());
  // Kills the program and its process group, and parks until the program has ended. If the kernel
  // forbids the kill, the program continues; the destructor closes its pipes. Sends no signal if
  // the program has already been reaped, because another process may have its id by now.
  // Returns: the program's status, with code -1 if it is unknown or if there is no program.
  ExitStatus kill() noexcept;
  // Sends a signal, such as SIGTERM, to the program but not to its process group.
  // Errors: no_child_process if there is no program or it has been reaped; system errors.
  [[nodiscard]] Result<void> signal(int number) noexcept;
  // Returns the process's id, or -1 if there is no program.
  [[nodiscard]] int process() const noexcept { return process_.empty() ? -1 : process_.front(); }

 private:
  // The process's id; empty if there is no program, or after wait() or kill() removed it. It is a
  // list, so that kill() can move the id of a surviving program to another list without allocating.
  std::list<int> process_;
  Watch input_;
  Watch output_;
  Watch errors_;
};

// The two ends of a pipe: bytes written to `write` can be read from `read`.
struct Pipe {
  Watch read;
  Watch write;
};
// Makes a pipe. Does not park.
// Errors: Errc::no_runtime; system errors.
Result<Pipe> make_pipe();
// Reads as TcpStream::read_some() does, from a pipe or a similar descriptor. The descriptor must be
// non-blocking, or always ready like a regular file. A regular file is read at its current
// position, which blocks the thread; the functions of weft/files.hpp do not block workers.
// Errors: Errc::end_of_stream; system errors and the errors of Watch::wait().
Result<std::size_t> read_some(Watch& watch, std::span<std::byte> buffer,
                              const Until& until = Until::ambient());
// Writes all of `data`. After an error, `value` bytes have been written. If a pipe has no reader,
// the error is broken_pipe, and no signal is raised.
// Errors: system errors and the errors of Watch::wait().
Result<std::size_t> write_all(Watch& watch, std::span<const std::byte> data,
                              const Until& until = Until::ambient());
// Writes all of `text`. Otherwise does the same as the overload for bytes.
inline Result<std::size_t> write_all(Watch& watch, std::string_view text,
                                     const Until& until = Until::ambient()) {
  return write_all(watch, std::as_bytes(std::span(text)), until);
}

}  // namespace weft::io
