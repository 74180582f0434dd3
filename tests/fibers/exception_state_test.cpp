// Tests four ways in which fibers that share threads could mix up their exceptions.
#include <doctest/doctest.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/fibers/stack_tools.hpp"
#include "tests/support/random.hpp"

namespace {

using weft::fibers::StackSpace;
using weft::test::Coroutine;

[[gnu::noinline]] int uncaught_now() {
  asm volatile("" : : : "memory");
  return std::uncaught_exceptions();
}

std::string current_text() {
  try {
    throw;
  } catch (const std::exception& caught) {
    return caught.what();
  }
}

// Resumes all coroutines in a random order, on this thread or on new ones, until they have ended.
void run_all(std::vector<std::unique_ptr<Coroutine>>& coroutines, bool other_threads) {
  weft::test::Random random(coroutines.size());
  for (bool left = true; left;) {
    left = false;
    for (std::size_t i = 0; i < coroutines.size(); ++i) {
      Coroutine& coroutine = *coroutines[random.below(coroutines.size())];
      if (coroutine.finished) continue;
      if (other_threads) {
        std::thread([&] { coroutine.resume(); }).join();
      } else {
        coroutine.resume();
      }
    }
    for (auto& coroutine : coroutines) left = left || !coroutine->finished;
  }
}

template <class Body>
void run_ten(Body body) {
  for (const bool other_threads : {false, true}) {
    StackSpace space(&Coroutine::entry);
    std::vector<std::unique_ptr<Coroutine>> coroutines;
    for (int i = 0; i < 10; ++i) {
      auto coroutine = std::make_unique<Coroutine>(space.take(2, 1));
      coroutine->body = [i, body](Coroutine& self) { body(self, std::to_string(i)); };
      coroutines.push_back(std::move(coroutine));
    }
    run_all(coroutines, other_threads);
    for (auto& coroutine : coroutines) space.cool(coroutine->stack);
  }
}

struct SuspendInDestructor {
  Coroutine& self;
  std::string& seen;
  ~SuspendInDestructor() {
    const int before = uncaught_now();
    self.suspend();
    seen = before == 1 && uncaught_now() == 1 ? "one uncaught" : "wrong count";
  }
};

TEST_SUITE_BEGIN("fibers/exception_state");

TEST_CASE("a stack suspended in a catch block rethrows its own exception") {
  run_ten([](Coroutine& self, const std::string& mine) {
    for (int round = 0; round < 3; ++round) {
      try {
        throw std::runtime_error(mine);
      } catch (...) {
        self.suspend();
        CHECK(current_text() == mine);
        self.suspend();
        CHECK(current_text() == mine);
      }
      CHECK(std::current_exception() == nullptr);
    }
  });
}

TEST_CASE("nested catch blocks on several suspended stacks each keep their own current exception") {
  run_ten([](Coroutine& self, const std::string& mine) {
    try {
      throw std::runtime_error("outer " + mine);
    } catch (...) {
      self.suspend();
      try {
        throw std::logic_error("inner " + mine);
      } catch (...) {
        self.suspend();
        CHECK(current_text() == "inner " + mine);
      }
      self.suspend();
      CHECK(current_text() == "outer " + mine);
    }
  });
}

TEST_CASE(
    "a stack suspended during unwinding reports one uncaught exception, and other stacks report "
    "none") {
  run_ten([](Coroutine& self, const std::string& mine) {
    std::string seen;
    CHECK(uncaught_now() == 0);
    try {
      const SuspendInDestructor during_unwinding{self, seen};
      throw std::runtime_error(mine);
    } catch (const std::runtime_error& caught) {
      CHECK(std::string(caught.what()) == mine);
    }
    CHECK(seen == "one uncaught");
    CHECK(uncaught_now() == 0);
    self.suspend();
    CHECK(uncaught_now() == 0);
  });
}

TEST_CASE("an exception_ptr outlives the catch block that made it") {
  run_ten([](Coroutine& self, const std::string& mine) {
    std::exception_ptr kept;
    try {
      throw std::runtime_error(mine);
    } catch (...) {
      self.suspend();
      kept = std::current_exception();
    }
    self.suspend();
    try {
      std::rethrow_exception(kept);
    } catch (const std::runtime_error& caught) {
      self.suspend();
      CHECK(std::string(caught.what()) == mine);
      CHECK(current_text() == mine);
    }
  });
}

TEST_CASE(
    "a thread keeps its current exception while it resumes a stack that catches another "
    "exception") {
  StackSpace space(&Coroutine::entry);
  Coroutine coroutine(space.take(2, 1));
  coroutine.body = [](Coroutine& self) {
    CHECK(std::current_exception() == nullptr);
    try {
      throw std::logic_error("theirs");
    } catch (...) {
      self.suspend();
    }
  };
  try {
    throw std::runtime_error("mine");
  } catch (...) {
    coroutine.resume();
    CHECK(current_text() == "mine");
    coroutine.resume();
    CHECK(current_text() == "mine");
  }
  CHECK(coroutine.finished);
  space.cool(coroutine.stack);
}

TEST_SUITE_END();

}  // namespace
