#include "observe/stack_photo.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <weft/detail/waist.hpp>

#include "base/thread.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/scheduler.hpp"

namespace weft::observe {

namespace {

using detail::relaxed;
using fibers::Fiber;
using fibers::FiberState;

// The message through the pipe, in its memory layout. Smaller than PIPE_BUF.
struct Shot {
  const void* record = nullptr;
  std::uint64_t reason = 0;
  std::uint64_t count = 0;
  std::array<const void*, fibers::Backtrace::kMostFrames> returns{};
};

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) {
      throw std::system_error(base::last_error(), std::system_category(),
                              "weft::dump: a snapshot of the stacks cannot create a pipe");
    }
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  [[nodiscard]] int end(std::size_t i) const noexcept { return ends_[i]; }
  void close_end(std::size_t i) noexcept {
    if (ends_[i] >= 0) (void)::close(ends_[i]);
    ends_[i] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

void write_all(int descriptor, const void* data, std::size_t size) noexcept {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor, next, size);
    if (written < 0 && base::last_error() == EINTR) continue;
    if (written <= 0) ::_exit(1);  // The reader no longer exists.
    next += written;
    size -= static_cast<std::size_t>(written);
  }
}

// Runs in the child, where no other thread exists. So parked fibers stay parked, and relaxed loads
// suffice.
void shoot(const Fiber& fiber, int descriptor) noexcept {
  if (fiber.state.load(relaxed) != FiberState::parked) return;
  Shot shot;
  shot.record = &fiber;
  shot.reason = fiber.reason();
  fibers::Stack* stack = fiber.stack.load(relaxed);
  // Another thread may have been in the middle of a switch.
  if (stack != nullptr && stack->context.load(relaxed) != nullptr) {
    const fibers::Backtrace trace = fibers::backtrace_of(*stack);
    shot.count = trace.count;
    shot.returns = trace.frames;
  }
  write_all(descriptor, &shot, sizeof shot);
}

// Forks while holding the lock of the records, so that the child finds them consistent. Returns in
// the parent only. It calls _Fork, which runs neither the program's handlers nor the registry's,
// whose lock is held, too. Therefore the child must not allocate.
pid_t fork_and_shoot(scheduler::Scheduler& scheduler, const Pipe& pipe) {
  pid_t child = 0;
  bool has_forked = false;
  (void)scheduler.shared().fibers().for_each_until(Deadline::never(), [&](const Fiber& fiber) {
    if (!has_forked) {
      child = ::_Fork();
      has_forked = true;
    }
    if (child != 0) return false;
    shoot(fiber, pipe.end(1));
    return true;
  });
  if (has_forked && child == 0) ::_exit(0);
  if (child < 0) {
    throw std::system_error(base::last_error(), std::system_category(),
                            "weft::dump: a snapshot of the stacks cannot fork");
  }
  return child;
}

// A child that has reported nothing for this long has failed.
constexpr int kPatience = 10'000;

void receive(std::vector<ParkedStack>& stacks, int descriptor) {
  Shot shot;
  std::size_t filled = 0;
  for (;;) {
    pollfd readable{descriptor, POLLIN, 0};
    const int ready = ::poll(&readable, 1, kPatience);
    if (ready < 0 && base::last_error() == EINTR) continue;
    if (ready <= 0) return;
    const ssize_t got =
        ::read(descriptor, reinterpret_cast<char*>(&shot) + filled, sizeof shot - filled);
    if (got < 0 && base::last_error() == EINTR) continue;
    if (got <= 0) return;
    filled += static_cast<std::size_t>(got);
    if (filled < sizeof shot) continue;
    filled = 0;
    ParkedStack& stack = stacks.emplace_back();
    stack.record = shot.record;
    stack.reason = to_string(static_cast<detail::WaitReason>(shot.reason));
    stack.returns.assign(shot.returns.begin(),
                         shot.returns.begin() + static_cast<std::ptrdiff_t>(shot.count));
  }
}

// The child has reported everything, or will report nothing more.
void end_child(pid_t child) noexcept {
  (void)::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && base::last_error() == EINTR) {
  }
}

// Lists the fibers without a child, and so without calls.
void list_reasons(scheduler::Scheduler& scheduler, std::vector<ParkedStack>& stacks) {
  (void)scheduler.shared().fibers().for_each_until(Deadline::never(), [&](const Fiber& fiber) {
    if (fiber.state.load(relaxed) == FiberState::parked) {
      const auto reason = static_cast<detail::WaitReason>(fiber.reason());
      stacks.push_back({&fiber, to_string(reason), {}});
    }
    return true;
  });
}

}  // namespace

std::vector<ParkedStack> photograph_stacks() {
  std::vector<ParkedStack> stacks;
  (void)scheduler::visit_registry(Deadline::never(), [&](scheduler::Scheduler& scheduler) {
    if (fibers::kSanitized) return list_reasons(scheduler, stacks);
    Pipe pipe;
    const pid_t child = fork_and_shoot(scheduler, pipe);
    if (child == 0) return;  // No fiber has ever existed.
    pipe.close_end(1);
    receive(stacks, pipe.end(0));
    end_child(child);
  });
  return stacks;
}

}  // namespace weft::observe
