// Stack overflows are reported by name; other faults go where they went before.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/death_test.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

void write_text(const char* text) { (void)!write(STDERR_FILENO, text, std::strlen(text)); }

// Not endless in the compiler's eyes, and no tail call.
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

// Hidden from the compiler, which warns of what it can see.
void touch(std::uintptr_t address) {
  asm volatile("" : "+r"(address));
  *reinterpret_cast<volatile char*>(address) = 1;
}

TEST_SUITE_BEGIN("death/overflow");

DEATH_TEST_CASE("an overflow names the fiber and the size of its stack",
                "'deep one' overflowed its 64 KiB stack") {
  weft::run({.workers = 1}, [] { weft::go({.name = "deep one"}, [] { use_up_the_stack(0); }); });
}

DEATH_TEST_CASE("an overflow gives the fiber's id", "weft: fiber 1 'main' overflowed") {
  weft::run({.workers = 1}, [] { use_up_the_stack(0); });
}

DEATH_TEST_CASE("an overflow of a child names it, not its parent",
                "weft: fiber 2 'child' overflowed") {
  weft::run({.workers = 1},
            [] { weft::spawn({.name = "child"}, [] { use_up_the_stack(0); }).join(); });
}

DEATH_TEST_CASE("an overflow of a stack of another size says that size",
                "'large' overflowed its 1024 KiB stack") {
  weft::run({.workers = 2}, [] {
    weft::go({.stack_size = 1 << 20, .name = "large"}, [] { use_up_the_stack(0); });
  });
}

DEATH_TEST_CASE("an overflow in the second of two runtimes is reported too",
                "'inner' overflowed its 16 KiB stack") {
  weft::Runtime outer({.workers = 1});
  weft::run({.workers = 1},
            [] { weft::go({.stack_size = 1, .name = "inner"}, [] { use_up_the_stack(0); }); });
}

DEATH_TEST_CASE("a fault elsewhere in a fiber goes to the handler that was there before",
                "the old handler was called") {
  install_old_handler();
  weft::run([] { touch(8); });
}

DEATH_TEST_CASE("a fault on a plain thread goes to the handler that was there before",
                "the old handler was called") {
  install_old_handler();
  weft::run([] {});
  touch(8);
}

// Stacks come from one large reservation: an address in it need not belong to any stack.
DEATH_TEST_CASE("a fault far above the stacks in use goes to the handler that was there before",
                "the old handler was called") {
  install_old_handler();
  weft::run([] {
    char here = 0;
    const auto far = reinterpret_cast<std::uintptr_t>(&here) + (std::uintptr_t{1} << 32);
    touch(far);
  });
}

DEATH_TEST_CASE("without a report an overflow is a plain fault", "the old handler was called") {
  install_old_handler();
  weft::run({.workers = 1, .report_overflow = false}, [] { use_up_the_stack(0); });
}

void count_sent(int) { write_text("the old handler was called\n"); }

DEATH_TEST_CASE("a SIGSEGV that is sent ends the process, though no instruction is repeated",
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

DEATH_TEST_CASE("overflows are reported after a signal was sent that an old handler took",
                "'deep one' overflowed its 64 KiB stack") {
  signal(SIGSEGV, &count_sent);
  weft::run({.workers = 1}, [] {
    (void)raise(SIGSEGV);
    weft::spawn({.name = "deep one"}, [] { use_up_the_stack(0); }).join();
  });
}

DEATH_TEST_CASE("overflows are reported after a signal was sent that was ignored",
                "'deep one' overflowed its 64 KiB stack") {
  signal(SIGSEGV, SIG_IGN);
  weft::run({.workers = 1}, [] {
    (void)raise(SIGSEGV);
    weft::spawn({.name = "deep one"}, [] { use_up_the_stack(0); }).join();
  });
}

TEST_CASE("a handler that mends a fault lets the fiber go on") {
  if (weft::test::kSanitized) return;  // A sanitizer has handlers of its own.
  static char* page = nullptr;
  page = static_cast<char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(page != MAP_FAILED);
  CHECK(weft::run([] {
          // The library's handler is installed by now and chains to what was there at its start;
          // so the mending one is put in front and the page mended directly.
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
