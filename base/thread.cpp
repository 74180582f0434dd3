#include "base/thread.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string_view>
#include <weft/detail/atomic.hpp>

#include "base/cgroups.hpp"

namespace weft::base {

__attribute__((noinline, no_sanitize("thread"))) int last_error() noexcept { return errno; }

namespace {

unsigned affinity_count() noexcept {
  // A machine may have more processors than a cpu_set_t has bits, so the set grows.
  for (int capacity = CPU_SETSIZE; capacity <= (1 << 20); capacity *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(static_cast<std::size_t>(capacity)), [](cpu_set_t* held) { CPU_FREE(held); });
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(capacity));
    if (sched_getaffinity(0, bytes, set.get()) == 0) {
      return static_cast<unsigned>(CPU_COUNT_S(bytes, set.get()));
    }
  }
  return 1;
}

constexpr std::size_t kLongestStat = 1024;

// Under qemu-user, a process has one thread more than the program has started.
#ifdef WEFT_EMULATED
constexpr unsigned long kThreadsOfEmulator = 1;
#else
constexpr unsigned long kThreadsOfEmulator = 0;
#endif

// Reads a file like /proc/self/stat into `text`. Returns the closing bracket of the second field,
// which is a name with any characters; null if the system does not provide the file.
const char* read_stat(const char* path, char (&text)[kLongestStat]) noexcept {
  const int descriptor = ::open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  const ssize_t length = ::read(descriptor, text, sizeof text - 1);
  (void)::close(descriptor);
  text[length > 0 ? length : 0] = '\0';
  return std::strrchr(text, ')');
}

}  // namespace

unsigned count_threads() noexcept {
  char text[kLongestStat];
  // Emulators provide their own /proc/self/stat without this field, but provide the kernel's
  // version of the file below.
  const char* at = read_stat("/proc/thread-self/stat", text);
  // Finds the 20th field, which follows 18 blanks after the name.
  for (int blanks = 0; at != nullptr && blanks < 18; ++blanks) at = std::strchr(at + 1, ' ');
  const unsigned long count = at == nullptr ? 0 : std::strtoul(at, nullptr, 10);
  return static_cast<unsigned>(count - std::min(count, kThreadsOfEmulator));
}

bool is_runnable(int thread) noexcept {
  char path[64];
  (void)std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  char text[kLongestStat];
  const char* at = read_stat(path, text);
  return at != nullptr && at[1] == ' ' && at[2] == 'R';
}

std::uint64_t count_preemptions() noexcept {
  rusage used{};
  return ::getrusage(RUSAGE_THREAD, &used) == 0 ? static_cast<std::uint64_t>(used.ru_nivcsw) : 0;
}

std::int64_t thread_processor_time() noexcept {
  timespec used{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

unsigned usable_processors() noexcept {
  const unsigned processors = std::max(affinity_count(), 1U);
  try {
    const unsigned quota = Cgroups().processors();
    return quota == 0 ? processors : std::min(processors, quota);
  } catch (const std::exception&) {
    return processors;  // No memory for the limit: only the mask counts.
  }
}

unsigned usable_processors_hint() noexcept {
  const int descriptor = ::open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 && (errno == EMFILE || errno == ENFILE)) return 0;
  if (descriptor >= 0) (void)::close(descriptor);
  return usable_processors();
}

unsigned online_processors() noexcept {
  return static_cast<unsigned>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
}

void set_thread_name(const char* name) noexcept {
  char shortened[16] = {};
  (void)std::string_view(name).copy(shortened, sizeof shortened - 1);
  // The thread also works without a name.
  (void)pthread_setname_np(pthread_self(), shortened);
}

void yield_processor() noexcept { (void)sched_yield(); }

namespace {
// After a fork by a fiber, the kernel's number of the only thread; 0 if there was no such fork.
// Relaxed: only that thread finds its own number here.
detail::Atomic<int> forked_fiber{0};
}  // namespace

void note_forked_fiber() noexcept { forked_fiber.store(::gettid(), detail::relaxed); }

bool is_forked_fiber() noexcept {
  const int thread = forked_fiber.load(detail::relaxed);
  return thread != 0 && thread == ::gettid();
}

void sleep_thread(long nanoseconds) noexcept {
  const int saved = errno;
  const timespec pause{0, nanoseconds};
  (void)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, nullptr);
  errno = saved;
}

}  // namespace weft::base
