// Waiting for descriptors of others: libraries with sockets of their own, pipes, signals,
// processes.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/detail/io_case.hpp>
#include <weft/result.hpp>
#include <weft/until.hpp>

namespace weft::io {

// Readiness of a descriptor; either: one of both is asked for.
enum class Ready : std::uint8_t { none = 0, read = 1, write = 2, either = 3 };

// A descriptor that the caller's runtime watches. Another library may have made it, and it need not
// be non-blocking. Move-only; it must not outlive its runtime.
// Each wait looks at what is so now (level-triggered), whatever happened before; it reads and
// writes nothing. One caller waits to read and one to write at a time, which may be the same.
// Descriptors that always are ready (regular files, directories, /dev/null) are so here, too. Call
// it from fibers and plain threads. Calls park, throw and synchronize where they say so.
class Watch {
 public:
  Watch() noexcept = default;
  // `other` is empty then. No caller may be waiting by it.
  Watch(Watch&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)),
        descriptor_(std::exchange(other.descriptor_, -1)) {}
  // Ends the former watch, as the destructor does; `other` is empty then.
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

  // The descriptor remains its owner's, which closes it only after the watch has ended: its number
  // might be another descriptor's before the watch is taken off it. Errors: Errc::no_runtime;
  // Errc::already_watched, as there can be one watch of a descriptor in a runtime (a dup() of it
  // may have another one); the system's. Never parks.
  static Result<Watch> borrow(int descriptor);
  // As borrow(), but the watch closes it from now on. After an error it remains the caller's.
  static Result<Watch> adopt(int descriptor);

  // Parks until the descriptor is ready for `what`, and returns for which of that. An error or a
  // hang-up counts as ready, as the next call tells. Errors: Errc::timed_out, cancelled; closed.
  // With Deadline::past() it only looks.
  Result<Ready> wait(Ready what, const Until& until = {});

  // Ends all waits with Errc::closed; an adopted descriptor is closed. Call it from anywhere, at
  // any time; never parks.
  void close() noexcept;
  // Ends the watch without closing the descriptor, which it returns; -1 for one that has ended. No
  // caller may be waiting.
  int release() noexcept;
  // The descriptor that is watched; -1 if none is.
  [[nodiscard]] int native_handle() const noexcept { return descriptor_; }
  // For select()'s cases; null if nothing is watched.
  [[nodiscard]] IoHandle* handle() const noexcept { return handle_; }

 private:
  static Result<Watch> start(int descriptor, bool owns);
  void reset() noexcept;

  IoHandle* handle_ = nullptr;
  int descriptor_ = -1;
};

// Cases of a select(), made by its caller, which alone parks and synchronizes; see
// weft/net/select.hpp for what holds. Making one throws what moving its handler throws.
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_readable(const Watch& watch, Handler handler = {}) {
  return detail::ReadinessCase<Handler>(watch.handle(), detail::IoCase::Direction::read,
                                        std::move(handler));
}
// Works as on_readable() does, for writing.
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_writable(const Watch& watch, Handler handler = {}) {
  return detail::ReadinessCase<Handler>(watch.handle(), detail::IoCase::Direction::write,
                                        std::move(handler));
}

// Many descriptors that one caller waits for, as libraries with sockets of their own need it
// (curl's multi interface, c-ares). It is an epoll of its own, so that an event costs the same
// however many there are. Descriptors remain their owners', which remove them before they close
// them. Level-triggered; but where nothing is asked for (Ready::none), an error or a hang-up, which
// the system reports all the same, is an event once. add, change and remove come from any caller at
// any time, wait from one caller at a time. Calls park, throw and synchronize where they say so.
class WatchSet {
 public:
  struct Event {
    std::uint64_t key = 0;
    Ready ready = Ready::none;
  };

  // Errors: Errc::no_runtime, or the system's. Never parks.
  static Result<WatchSet> create();

  // `key` comes back with its events. Errors: std::errc::file_exists; operation_not_permitted for
  // what cannot be polled, a regular file, say; Errc::closed; the system's. Never parks.
  [[nodiscard]] std::error_code add(int descriptor, Ready what, std::uint64_t key) noexcept;
  // Waits for something else, with another key, from now on. Errors:
  // std::errc::no_such_file_or_directory for what has not been added; Errc::closed; the system's.
  // Never parks.
  [[nodiscard]] std::error_code change(int descriptor, Ready what, std::uint64_t key) noexcept;
  // It has to be removed before it is closed. Errors: as change(). Never parks.
  [[nodiscard]] std::error_code remove(int descriptor) noexcept;

  // Parks until one of them is ready; fills the beginning of `events`, and returns how many.
  // Errors: Errc::timed_out, cancelled, closed.
  Result<std::size_t> wait(std::span<Event> events, const Until& until = {});
  // Ends a wait with Errc::closed. Never parks.
  void close() noexcept { epoll_.close(); }

 private:
  std::error_code control(int operation, int descriptor, Ready what, std::uint64_t key) noexcept;

  Watch epoll_;
};

// Signals that end waits instead of processes. While the object lives, each of them is noted and
// has no other effect; before and after, they have the one that they had. A signal belongs to one
// object at a time. It is made of handlers rather than of signalfd, to which a signal comes only if
// every thread of the process blocks it, other libraries' included. So some thread must not block
// it: workers inherit the mask of the thread that makes the runtime, and a program that blocks a
// signal before that, as for sigwait, waits here in vain. Call it from fibers and plain threads;
// calls park, throw and synchronize where they say so.
class SignalSet {
 public:
  SignalSet() noexcept = default;
  // `other` is empty then. No caller may be waiting by it.
  SignalSet(SignalSet&& other) noexcept;
  // Ends what was noted before, as the destructor does; `other` is empty then.
  SignalSet& operator=(SignalSet&& other) noexcept;
  // The signals have the effect again that they had before. No caller may be waiting.
  ~SignalSet();

  // Errors: Errc::no_runtime; Errc::signal_in_use: another set has one of them; invalid_argument
  // for what cannot be handled (SIGKILL); the system's. Never parks.
  static Result<SignalSet> watch(std::initializer_list<int> signals);
  // Parks until one of them has come since the last wait, and returns which; the smallest, if there
  // are several. Errors: Errc::timed_out, cancelled. One caller at a time.
  Result<int> wait(const Until& until = {});

 private:
  void restore() noexcept;

  Watch wake_;
  std::uint64_t mask_ = 0;
};

// SignalSet in one call: waits for one of `signals`, which end nothing meanwhile. Call it from
// fibers and plain threads. Errors: as SignalSet::watch() and wait(); a second call for a signal
// that another one waits for is refused. Throws std::bad_alloc; synchronizes with nothing.
Result<int> wait_signal(std::initializer_list<int> signals, const Until& until = {});

// How a process has ended. A plain value.
struct ExitStatus {
  int code = 0;    // Its exit code, if it was not ended by a signal; -1: unknown.
  int signal = 0;  // 0: none.
  // Whether it has returned 0.
  [[nodiscard]] bool success() const noexcept { return code == 0 && signal == 0; }
};

// Parks until a child process ends, and reaps it. Errors: no_child_process for one that is not the
// caller's, or has been reaped, as the system does with all if SIGCHLD is ignored; Errc::timed_out,
// cancelled: it goes on, and may be waited for again. Call it from fibers and plain threads. Throws
// std::bad_alloc; synchronizes with nothing.
Result<ExitStatus> wait_process(int process, const Until& until = {});

struct CommandOptions {
  std::string input = {};                // The bytes of its standard input.
  std::size_t most_output = 64UL << 20;  // Bytes of output; more is an error.
};
struct CommandResult {
  ExitStatus status;
  std::string output;  // The bytes of its standard output, and
  std::string errors;  // of its standard error output.
};

// Runs a program (found as the shell finds it) with `arguments`, of which the first is its name,
// and collects its output. When `until` ends the wait, the program and the processes of its group
// are killed and what it wrote so far comes with the error: Errc::timed_out, cancelled. A program
// that may not be killed, as it is another user's by now (sudo), goes on without a peer at its
// pipes. Its status is -1, and a later call of run_command reaps it once it has ended. Further
// errors: the system's (no_such_file_or_directory, ...); no_child_process: all of the output is
// there, but the status, -1, has gone elsewhere, as the program ignores SIGCHLD or waits for any
// child; std::errc::file_too_large: too much output. Call it from fibers and plain threads. Throws
// std::bad_alloc; synchronizes with nothing.
Result<CommandResult> run_command(const std::vector<std::string>& arguments,
                                  const CommandOptions& options = {}, const Until& until = {});

// Two ends of a pipe: what is written to the one is read from the other.
struct Pipe {
  Watch read;
  Watch write;
};
// Errors: Errc::no_runtime, or the system's. Never parks. Call it from fibers and plain threads.
// Throws std::bad_alloc; synchronizes with nothing.
Result<Pipe> make_pipe();
// Works as TcpStream's calls do, for pipes and the like. What is watched must be non-blocking, or
// always ready, as a regular file is. That is read and written from its position on, by the calling
// thread itself (weft/files.hpp has what keeps no worker waiting). At the end of a pipe or a file:
// Errc::end_of_stream; without a reader: broken_pipe, and no signal. Call it from fibers and plain
// threads. Throws std::bad_alloc; synchronizes with nothing.
Result<std::size_t> read_some(Watch& watch, std::span<std::byte> buffer, const Until& until = {});
// Writes all of it; after an error `value` bytes have been written. Parks while there is no room.
// Call it from fibers and plain threads. Throws std::bad_alloc; synchronizes with nothing.
Result<std::size_t> write_all(Watch& watch, std::span<const std::byte> data,
                              const Until& until = {});

}  // namespace weft::io
