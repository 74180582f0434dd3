// In the diagnostic mode (WEFT_POSIX_SYSTEM_CALLS=1), calls that bypass weft-posix are in the
// report, and the calls that act on stacks, signal masks and processes have their usual effect.
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <weft/go.hpp>
#include <weft/posix.hpp>
#include <weft/runtime.hpp>

namespace {

int failures = 0;
void expect(bool is_right, const char* what) {
  if (is_right) return;
  std::printf("wrong: %s\n", what);
  ++failures;
}

volatile sig_atomic_t handled = 0;

void use_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { handled = handled + (::getppid() > 0 ? 1 : 0); };
  ::sigfillset(&action.sa_mask);
  expect(::sigaction(SIGUSR1, &action, nullptr) == 0, "sigaction");
  for (int i = 0; i < 3; ++i) (void)::raise(SIGUSR1);
  expect(handled == 3, "a handler that blocks all signals");
  sigset_t all;
  sigset_t former;
  sigset_t now;
  ::sigfillset(&all);
  expect(::pthread_sigmask(SIG_BLOCK, &all, &former) == 0, "pthread_sigmask");
  (void)::raise(SIGUSR1);
  expect(handled == 3, "a blocked signal");
  ::pthread_sigmask(SIG_SETMASK, &former, nullptr);
  expect(handled == 4, "a signal that is let in");
  ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
  expect(::sigismember(&now, SIGUSR1) == 0, "the former mask");
  std::thread sender([self = ::pthread_self()] { ::pthread_kill(self, SIGUSR1); });
  while (handled < 5) continue;  // The handler interrupts code between system calls.
  sender.join();
}

void use_processes() {
  expect(std::system("exit 3") == 3 << 8, "system()");
  const pid_t child = ::fork();
  if (child == 0) ::_exit(4);
  int status = 0;
  expect(::waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 4, "fork()");
  std::FILE* pipe = ::popen("echo said", "r");
  std::array<char, 16> line{};
  expect(pipe != nullptr && std::fgets(line.data(), line.size(), pipe) != nullptr &&
             std::strcmp(line.data(), "said\n") == 0 && ::pclose(pipe) == 0,
         "popen()");
}

// Waits for another thread, which writes when the calling thread sleeps in the kernel.
void wait_in(const char* call) {
  std::array<int, 2> ends{};
  expect(::pipe(ends.data()) == 0, "pipe()");
  std::FILE* file = ::fdopen(ends[0], "r");
  const long self = ::syscall(SYS_gettid);
  std::thread writer([&] {
    const std::string path = "/proc/self/task/" + std::to_string(self) + "/syscall";
    std::array<char, 32> begin{};
    do {  // Compares the number of the call and its first argument: read() of the pipe.
      std::FILE* stat = std::fopen(path.c_str(), "r");
      (void)std::fgets(begin.data(), begin.size(), stat);
      (void)std::fclose(stat);
    } while (std::strncmp(begin.data(), "0 0x", 4) != 0);
    expect(::write(ends[1], "x\n", 2) == 2, "write()");
  });
  std::array<char, 8> line{};
  if (*call == 'f') {
    expect(std::fgets(line.data(), line.size(), file) != nullptr, "fgets()");
  } else {
    expect(::syscall(SYS_read, ends[0], line.data(), 1) == 1, "read");
  }
  writer.join();
  (void)std::fclose(file);
  ::close(ends[1]);
  for (const auto& row : weft::posix::report()) {
    if (row.call == call && row.reason == weft::posix::kNotIntercepted && row.from != "unknown")
      return;
  }
  expect(false, call);
}

}  // namespace

int main() {
  weft::RuntimeOptions options;
  options.workers = 1;
  options.monitor = false;  // Only the mode finds calls.
  return weft::run(options, [] {
    const weft::posix::Scope scope;
    use_signals();
    use_processes();
    wait_in("fgets");
    wait_in("syscall");
    weft::spawn(weft::posix::in_scope([] { ::usleep(1); })).join();
    weft::spawn([] { expect(::syscall(SYS_getppid) > 0, "a fiber without a scope"); }).join();
    if (failures == 0) std::puts("seen");
    return failures == 0 ? 0 : 1;
  });
}
