// Tests stack overflows, whose report has a name, and other faults, which the previous handler
// gets.
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/death_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/skip.hpp"

// Under a sanitizer the report has no calls.
#if defined(__has_feature)
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
#define WEFT_TEST_READS_CALLS
#endif
#elif !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WEFT_TEST_READS_CALLS
#endif

namespace {

void write_text(const char* text) { (void)!write(STDERR_FILENO, text, std::strlen(text)); }

// The depth is volatile, so that the compiler sees neither an endless recursion nor a tail call.
volatile int most_depth = 1'000'000'000;
[[gnu::noinline]] int use_up_the_stack(int depth) {
  volatile char room[512];
  room[0] = static_cast<char>(depth);
  if (depth == most_depth) return 0;
  return use_up_the_stack(depth + 1) + room[0];
}

void old_handler(int, siginfo_t*, void*) {
  write_text("the old handler was called\n");
  signal(SIGSEGV, SIG_DFL);
}

void install_old_handler() {
  struct sigaction action {};
  action.sa_sigaction = &old_handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

// A separate function hides the access from the compiler, which would warn.
void touch(std::uintptr_t address) {
  asm volatile("" : "+r"(address));
  *reinterpret_cast<volatile char*>(address) = 1;
}

TEST_SUITE_BEGIN("death/overflow");

DEATH_TEST_CASE("the stack overflow report names the fiber and the size of its stack",
                "'deep one' overflowed its 64 KiB stack") {
  weft::run({.workers = 1}, [] { weft::go({.name = "deep one"}, [] { use_up_the_stack(0); }); });
}

DEATH_TEST_CASE("the stack overflow report of a named fiber shows where the fiber was spawned",
                "\n  spawned at ") {
  weft::run({.workers = 1}, [] { weft::go({.name = "deep one"}, [] { use_up_the_stack(0); }); });
}

DEATH_TEST_CASE("the stack overflow report contains the fiber's id",
                "weft: fiber 1 'main' overflowed") {
  weft::run({.workers = 1}, [] { use_up_the_stack(0); });
}

DEATH_TEST_CASE("the stack overflow report of a child names the child, not its parent",
                "weft: fiber 2 'child' overflowed") {
  weft::run({.workers = 1},
            [] { weft::spawn({.name = "child"}, [] { use_up_the_stack(0); }).join(); });
}

DEATH_TEST_CASE("the stack overflow report shows the stack size that the fiber's spawn requested",
                "'large' overflowed its 1024 KiB stack") {
  weft::run({.workers = 2}, [] {
    weft::go({.stack_size = 1 << 20, .name = "large"}, [] { use_up_the_stack(0); });
  });
}

DEATH_TEST_CASE("a stack overflow in the second of two runtimes is reported",
                "'inner' overflowed its 16 KiB stack") {
  weft::Runtime outer({.workers = 1});
  weft::run({.workers = 1},
            [] { weft::go({.stack_size = 1, .name = "inner"}, [] { use_up_the_stack(0); }); });
}

// The type has a name, so that the report can be compared with it.
struct DeepCallable {
  void operator()() const { use_up_the_stack(0); }
};

DEATH_TEST_CASE("the stack overflow report names the type of the fiber's callable",
                "runs _ZTSN12_GLOBAL__N_112DeepCallableE; spawned at ") {
  weft::run({.workers = 1}, [] { weft::go(DeepCallable()); });
}

DEATH_TEST_CASE(
    "the stack overflow report of a child that runs in place names the type of the child's "
    "callable",
    "runs _ZTSN12_GLOBAL__N_112DeepCallableE") {
  weft::run({.workers = 1}, [] { weft::spawn(DeepCallable()).join(); });
}

DEATH_TEST_CASE("a stack overflow is passed to the signal handler that was installed earlier",
                "the old handler was called") {
  install_old_handler();
  weft::run({.workers = 1}, [] { use_up_the_stack(0); });
}

DEATH_TEST_CASE("a stack overflow ends the process when the earlier signal handler ignores it",
                "the old handler was called") {
  signal(SIGSEGV, [](int) { write_text("the old handler was called\n"); });
  signal(SIGBUS, SIG_DFL);
  weft::run({.workers = 1}, [] { use_up_the_stack(0); });
}

struct sigaction replaced {};
DEATH_TEST_CASE(
    "a stack overflow is reported if a later signal handler calls the handler it replaced",
    "'main' overflowed its 64 KiB stack") {
  weft::run({.workers = 1}, [] {
    struct sigaction later {};
    later.sa_sigaction = [](int number, siginfo_t* info, void* context) {
      signal(number, SIG_DFL);
      replaced.sa_sigaction(number, info, context);
    };
    later.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &later, &replaced);
    use_up_the_stack(0);
  });
}

#ifdef WEFT_TEST_READS_CALLS
// The handler that is called after the report reads the report from a pipe.
int report_ends[2];
int real_stderr = -1;
std::uintptr_t inner_call = 0;

[[gnu::noinline]] int note_the_call(int depth) {
  volatile char room[512];
  room[0] = static_cast<char>(depth);
  // The return address of the recursive call below.
  if (depth == 3) inner_call = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  if (depth == most_depth) return 0;
  return note_the_call(depth + 1) + room[0];
}

void judge_report(int number, siginfo_t*, void*) {
  static char text[65536];
  const ssize_t length = read(report_ends[0], text, sizeof text - 1);
  text[length < 0 ? 0 : length] = '\0';
  int calls = 0;
  int recursive_calls = 0;
  Dl_info module{};
  (void)dladdr(reinterpret_cast<const void*>(inner_call), &module);
  const auto base = reinterpret_cast<std::uintptr_t>(module.dli_fbase);
  for (const char* at = std::strstr(text, "    at "); at != nullptr;
       at = std::strstr(at + 1, "    at ")) {
    ++calls;
    const char* offset = std::strstr(at, "+0x");
    const std::uintptr_t place = offset == nullptr ? 0 : std::strtoull(offset + 1, nullptr, 16);
    // In a program at a fixed address, offsets are addresses.
    if (place + 1 == inner_call || base + place + 1 == inner_call) ++recursive_calls;
  }
  char line[64];
  (void)std::snprintf(line, sizeof line, "%d calls, %d of them recursive\n", calls,
                      recursive_calls);
  (void)!write(real_stderr, line, std::strlen(line));
  signal(number, SIG_DFL);
}

void overflow_with_report_judged(int (*function)(int)) {
  if (pipe(report_ends) != 0) return;
  real_stderr = dup(STDERR_FILENO);
  dup2(report_ends[1], STDERR_FILENO);
  struct sigaction action {};
  action.sa_sigaction = &judge_report;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
  weft::run({.workers = 1}, [function] { function(0); });
}

DEATH_TEST_CASE("the stack overflow report lists the innermost 20 calls",
                "20 calls, 19 of them recursive") {
  overflow_with_report_judged(&note_the_call);
}
#endif

DEATH_TEST_CASE(
    "a fiber's fault that is not a stack overflow is passed to the earlier signal handler",
    "the old handler was called") {
  install_old_handler();
  weft::run([] { touch(8); });
}

DEATH_TEST_CASE("a fault on a plain thread is passed to the earlier signal handler",
                "the old handler was called") {
  install_old_handler();
  weft::run([] {});
  touch(8);
}

// Stacks come from one large reservation: an address in it need not belong to any stack.
DEATH_TEST_CASE("a fault far above all stacks in use is passed to the program's own signal handler",
                "the old handler was called") {
  install_old_handler();
  weft::run([] {
    char here = 0;
    const auto far = reinterpret_cast<std::uintptr_t>(&here) + (std::uintptr_t{1} << 32);
    touch(far);
  });
}

DEATH_TEST_CASE(
    "a stack overflow is passed to the earlier signal handler without a report if reports are "
    "disabled",
    "the old handler was called") {
  install_old_handler();
  weft::run({.workers = 1, .report_overflow = false}, [] { use_up_the_stack(0); });
}

void count_sent(int) { write_text("the old handler was called\n"); }

DEATH_TEST_CASE("a SIGSEGV that kill() sends to the process ends the process",
                "about to be ended") {
  weft::Runtime runtime({.workers = 1});
  runtime.run([] {});
  write_text("about to be ended\n");
  kill(getpid(), SIGSEGV);
  for (;;) pause();
}

DEATH_TEST_CASE("a SIGBUS that a fiber raises ends the process", "about to be ended") {
  weft::run({.workers = 1}, [] {
    write_text("about to be ended\n");
    (void)raise(SIGBUS);
  });
  write_text("it is still alive\n");
  _exit(0);
}

DEATH_TEST_CASE(
    "a stack overflow is reported after the program's handler has handled a SIGSEGV from raise()",
    "'deep one' overflowed its 64 KiB stack") {
  signal(SIGSEGV, &count_sent);
  weft::run({.workers = 1}, [] {
    (void)raise(SIGSEGV);
    weft::spawn({.name = "deep one"}, [] { use_up_the_stack(0); }).join();
  });
}

DEATH_TEST_CASE("a stack overflow is reported after the program has ignored a SIGSEGV from raise()",
                "'deep one' overflowed its 64 KiB stack") {
  signal(SIGSEGV, SIG_IGN);
  weft::run({.workers = 1}, [] {
    (void)raise(SIGSEGV);
    weft::spawn({.name = "deep one"}, [] { use_up_the_stack(0); }).join();
  });
}

TEST_CASE("a fiber continues after a signal handler has repaired the cause of the fiber's fault") {
  if (weft::test::kSanitized) return weft::test::skip("a sanitizer installs its own handlers");
  static char* page = nullptr;
  page = static_cast<char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(page != MAP_FAILED);
  CHECK(weft::run([] {
          // The library's handler is installed by now and calls the handler that was there at its
          // start. So the test installs its own handler in front, which makes the page accessible.
          struct sigaction mending {};
          mending.sa_handler = [](int) { mprotect(page, 4096, PROT_READ | PROT_WRITE); };
          mending.sa_flags = SA_ONSTACK;
          struct sigaction before {};
          sigaction(SIGSEGV, &mending, &before);
          *static_cast<volatile char*>(page) = 5;
          sigaction(SIGSEGV, &before, nullptr);
          return page[0];
        }) == 5);
  munmap(page, 4096);
}

TEST_SUITE_END();

}  // namespace
