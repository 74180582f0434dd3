// The functions below replace functions of the C and C++ library in this program, libraries
// included. They call the originals, unless the call must fail.
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <new>

#include "tests/faults/interpose.hpp"
#include "tests/support/random.hpp"

namespace weft::test {
namespace {

std::atomic<bool> armed{false};
std::atomic<bool> came{false};
std::atomic<std::uint64_t> calls{0};
Fault fault{};
// As with `fault`, arm() writes it before `armed`.
std::uint64_t first = 0;
std::uint64_t chances = 0;  // One call in `chances` fails; 0: call number `first` fails.

std::atomic<std::int64_t> blocks{0};
std::atomic<std::int64_t> blocks_below{0};
std::atomic<std::int64_t> answers{0};
std::atomic<std::int64_t> mapped{0};

struct Registration {
  std::atomic<int> epoll{-1};
  epoll_event event{};
};
std::array<Registration, 4096> registrations;

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (fails(Call::allocate)) return nullptr;
  void* memory = alignment == 0 ? std::malloc(std::max<std::size_t>(bytes, 1))
                                : std::aligned_alloc(
                                      alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory != nullptr) blocks.fetch_add(1);
  return memory;
}
void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void* memory = allocate(bytes, alignment)) return memory;
  throw std::bad_alloc();
}
void release(void* memory) noexcept {
  if (memory != nullptr) blocks.fetch_sub(1);
  std::free(memory);
}

}  // namespace

void* allocate_below(Call call, std::size_t bytes) noexcept {
  if (bytes == 0 || fails(call)) return nullptr;
  void* memory = std::malloc(bytes);
  if (memory != nullptr) blocks_below.fetch_add(1);
  return memory;
}
void* resize_below(Call call, void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) return allocate_below(call, bytes);
  if (bytes > 0) return fails(call) ? nullptr : std::realloc(memory, bytes);
  release_below(memory);
  return nullptr;
}
void release_below(void* memory) noexcept {
  if (memory != nullptr) blocks_below.fetch_sub(1);
  std::free(memory);
}
void count_answers(int difference) noexcept { answers.fetch_add(difference); }

int fault_of(Call call) noexcept {
  if (!armed.load() || (chances == 0 && fault.call != call)) return 0;
  const std::uint64_t number = calls.fetch_add(1) + 1;
  if (chances != 0) {
    const int error = error_by_chance(call, number, chances);
    if (error != 0) came.store(true);
    return error;
  }
  if (number < first || number >= first + fault.times) return 0;
  came.store(true);
  return fault.error;
}

bool fails(Call call) noexcept {
  const int error = fault_of(call);
  if (error > 0) errno = error;
  return error > 0;
}

std::size_t allowance(Call call, std::size_t wanted) noexcept {
  const int error = fault_of(call);
  // A write of eight bytes to an eventfd is never partial.
  if (error == kShort) return std::min<std::size_t>(wanted, call == Call::write_file ? 8 : 1);
  if (error > 0) errno = error;
  return error > 0 ? 0 : wanted;
}

void follow_up(int descriptor, long moved) noexcept {
  if (chances != 0 && moved < 0 && (errno == EPIPE || errno == ECONNRESET)) {
    const int error = errno;
    (void)real<decltype(shutdown)>("shutdown")(descriptor, SHUT_RDWR);
    errno = error;
    return;
  }
  const bool is_wanted = chances != 0 || fault.error == EAGAIN || fault.error == kShort;
  if (!is_wanted || descriptor < 0) return;
  Registration& known = registrations.at(static_cast<std::size_t>(descriptor) % 4096);
  const int epoll = known.epoll.load();
  if (epoll < 0) return;
  const int saved = errno;
  (void)real<decltype(epoll_ctl)>("epoll_ctl")(epoll, EPOLL_CTL_MOD, descriptor, &known.event);
  errno = saved;
}

void arm(const Fault& wanted, std::uint64_t number) noexcept {
  fault = wanted;
  first = number;
  chances = 0;
  calls.store(0);
  came.store(false);
  armed.store(true);
}

// The count of calls continues after the last pause, so that different calls fail each time.
void arm_by_chance(std::uint64_t one_in) noexcept {
  (void)test_seed();  // Reads the seed now, because that makes calls.
  chances = one_in;
  came.store(false);
  armed.store(true);
}

bool disarm() noexcept {
  armed.store(false);
  return came.load();
}

Held held() noexcept { return {blocks.load(), blocks_below.load(), answers.load(), mapped.load()}; }

const char* to_string(Call call) noexcept {
  constexpr std::array kNames = {"operator new",
                                 "malloc in OpenSSL",
                                 "malloc in c-ares",
                                 "mmap",
                                 "munmap",
                                 "madvise",
                                 "process_madvise",
                                 "mprotect",
                                 "pthread_create",
                                 "futex",
                                 "sigaltstack",
                                 "sigaction",
                                 "epoll_create1",
                                 "epoll_ctl",
                                 "epoll_wait",
                                 "eventfd",
                                 "open",
                                 "read",
                                 "write",
                                 "close",
                                 "pread",
                                 "pwrite",
                                 "stat",
                                 "fdatasync",
                                 "rename",
                                 "unlink",
                                 "mkdir",
                                 "opendir",
                                 "readdir",
                                 "fcntl",
                                 "pipe2",
                                 "posix_spawnp",
                                 "pidfd_open",
                                 "waitid",
                                 "kill",
                                 "getaddrinfo",
                                 "socket",
                                 "socketpair",
                                 "bind",
                                 "listen",
                                 "accept4",
                                 "connect",
                                 "setsockopt",
                                 "getsockopt",
                                 "getsockname",
                                 "recv",
                                 "send",
                                 "recvmsg",
                                 "sendmsg",
                                 "sendfile",
                                 "shutdown",
                                 "poll",
                                 "sched_getaffinity"};
  return kNames.at(static_cast<std::size_t>(call));
}

}  // namespace weft::test

using namespace weft::test;  // NOLINT(google-build-using-namespace): only names of these files.

void* operator new(std::size_t bytes) { return allocate_or_throw(bytes, 0); }
void* operator new[](std::size_t bytes) { return allocate_or_throw(bytes, 0); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 0); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, 0);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment,
                     const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }

extern "C" {

void* mmap(void* address, size_t bytes, int protection, int flags, int file,
           off_t offset) noexcept {
  if (fails(Call::map)) return MAP_FAILED;
  void* memory = real<decltype(mmap)>("mmap")(address, bytes, protection, flags, file, offset);
  if (memory != MAP_FAILED) mapped.fetch_add(static_cast<std::int64_t>(bytes));
  return memory;
}
int munmap(void* address, size_t bytes) noexcept {
  if (fails(Call::unmap)) return -1;
  const int result = real<decltype(munmap)>("munmap")(address, bytes);
  if (result == 0) mapped.fetch_sub(static_cast<std::int64_t>(bytes));
  return result;
}
int madvise(void* address, size_t bytes, int advice) noexcept {
  return fails(Call::advise) ? -1 : real<decltype(madvise)>("madvise")(address, bytes, advice);
}
int mprotect(void* address, size_t bytes, int protection) noexcept {
  return fails(Call::protect) ? -1
                              : real<decltype(mprotect)>("mprotect")(address, bytes, protection);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*main)(void*),
                   void* argument) noexcept {
  const int error = fault_of(Call::start_thread);
  return error > 0
             ? error
             : real<decltype(pthread_create)>("pthread_create")(thread, attributes, main, argument);
}
int sigaltstack(const stack_t* now, stack_t* before) noexcept {
  // The system cannot refuse to remove a signal stack.
  const bool takes = now != nullptr && (now->ss_flags & SS_DISABLE) == 0;
  return takes && fails(Call::set_signal_stack)
             ? -1
             : real<decltype(sigaltstack)>("sigaltstack")(now, before);
}
int sigaction(int number, const struct sigaction* now, struct sigaction* before) noexcept {
  if (fails(Call::set_handler)) return -1;
  using Function = int(int, const struct sigaction*, struct sigaction*);
  return real<Function>("sigaction")(number, now, before);
}
int epoll_create1(int flags) noexcept {
  return fails(Call::create_epoll) ? -1 : real<decltype(epoll_create1)>("epoll_create1")(flags);
}
int epoll_ctl(int epoll, int operation, int descriptor, epoll_event* event) noexcept {
  if (fails(Call::control_epoll)) return -1;
  const int result = real<decltype(epoll_ctl)>("epoll_ctl")(epoll, operation, descriptor, event);
  if (result == 0 && descriptor >= 0) {
    Registration& known = registrations.at(static_cast<std::size_t>(descriptor) % 4096);
    if (operation == EPOLL_CTL_DEL) {
      known.epoll.store(-1);
    } else {
      known.event = *event;
      known.epoll.store(epoll);
    }
  }
  return result;
}
int epoll_wait(int epoll, epoll_event* events, int most, int milliseconds) {
  return fails(Call::wait_epoll)
             ? -1
             : real<decltype(epoll_wait)>("epoll_wait")(epoll, events, most, milliseconds);
}
int eventfd(unsigned count, int flags) noexcept {
  using Function = int(unsigned, int);
  return fails(Call::create_event) ? -1 : real<Function>("eventfd")(count, flags);
}
int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t* set) noexcept {
  return fails(Call::get_affinity)
             ? -1
             : real<decltype(sched_getaffinity)>("sched_getaffinity")(process, bytes, set);
}

long syscall(long number, ...) noexcept {
  std::array<long, 6> a{};
  va_list rest;
  va_start(rest, number);
  for (long& argument : a) argument = va_arg(rest, long);
  va_end(rest);
  const int descriptor = static_cast<int>(a[0]);
  using Syscall = long(long, ...);
  switch (number) {
    case SYS_futex:
      // Only waits fail, because a wake cannot.
      if ((a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && fails(Call::futex_wait)) return -1;
      break;
#ifdef SYS_pidfd_open
    case SYS_pidfd_open:
      if (fails(Call::open_process)) return -1;
      break;
#endif
#ifdef SYS_openat2
    case SYS_openat2:
      if (fails(Call::open_file)) return -1;
      break;
#endif
    case SYS_process_madvise:
      if (fails(Call::advise_many)) return -1;
      break;
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
      if (fails(Call::wait_epoll)) return -1;
      break;
#endif
    case SYS_recvfrom:
    case SYS_sendto: {
      const auto wanted = static_cast<std::size_t>(a[2]);
      const std::size_t allowed =
          allowance(number == SYS_sendto ? Call::send : Call::receive, wanted);
      if (allowed == 0 && wanted > 0) {
        follow_up(descriptor, -1);
        return -1;
      }
      if (allowed == wanted) break;
      const long moved = real<Syscall>("syscall")(number, a[0], a[1], static_cast<long>(allowed),
                                                  a[3], a[4], a[5]);
      follow_up(descriptor, moved);
      return moved;
    }
    default:
      break;
  }
  return real<Syscall>("syscall")(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

}  // extern "C"
