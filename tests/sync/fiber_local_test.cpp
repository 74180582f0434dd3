#include <weft/fiber_local.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <weft/mutex.hpp>
#include <weft/semaphore.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"
#include "tests/sync/callers.hpp"

namespace {

using weft::FiberLocal;
using weft::test::run_mixed;

// Records its name when it is destroyed.
class Witness {
 public:
  Witness(std::vector<std::string>& log, std::string name) : log_(log), name_(std::move(name)) {}
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  ~Witness() { log_.push_back(name_); }

 private:
  std::vector<std::string>& log_;
  std::string name_;
};

TEST_SUITE_BEGIN("sync/fiber_local");

THREAD_TEST_CASE(
    "each fiber and each plain thread has its own FiberLocal value, whichever thread runs the "
    "fiber") {
  FiberLocal<int> number;
  FiberLocal<std::string> text([] { return std::string("new"); });
  FiberLocal<int> seven{[] { return 7; }};
  *number = -1;
  run_mixed(20, 3, [&](int caller) {
    if (*number != 0 || *text != "new" || *seven != 7) FAIL_CHECK("not what values begin with");
    *number = caller;
    *text += std::to_string(caller);
    int* const address = &*number;
    weft::test::Random random(static_cast<std::uint64_t>(caller));
    for (int i = 0; i < 100; ++i) {
      if (random.one_in(3)) weft::this_fiber::yield();
      if (random.one_in(2)) ++*seven;
      if (*number != caller || &number.get() != address) FAIL_CHECK("somebody else's number");
      if (*text != "new" + std::to_string(caller)) FAIL_CHECK("somebody else's text");
    }
    if (text->size() < 4) FAIL_CHECK("the text is too short");
  });
  CHECK(*number == -1);
}

THREAD_TEST_CASE(
    "FiberLocal values are destroyed in reverse order of construction when their fiber ends, "
    "before join() returns") {
  std::vector<std::string> log;  // Not atomic: the join orders it.
  FiberLocal<Witness> first([&] { return Witness(log, "first"); });
  FiberLocal<Witness> second([&] { return Witness(log, "second"); });
  FiberLocal<Witness> third([&] { return Witness(log, "third"); });
  const auto use = [&] {
    (void)*second;
    (void)*first;
    (void)*third;
    (void)*second;
    CHECK(log.empty());
  };
  const std::vector<std::string> expected{"third", "first", "second"};
  weft::spawn(use).join();
  CHECK(log == expected);
  log.clear();
  std::thread(use).join();
  CHECK(log == expected);
  log.clear();
  // Tests also a detached fiber, whose end the destruction of its last value shows.
  weft::WaitGroup end;
  end.add();
  struct Last {
    weft::WaitGroup* group;
    ~Last() {
      if (group != nullptr) group->done();
    }
  };
  FiberLocal<Last> last([] { return Last{nullptr}; });
  weft::go([&] {
    last->group = &end;
    use();
  });
  end.wait();
  CHECK(log == expected);
}

FIBER_TEST_CASE("a FiberLocal makes no value for a fiber that does not use the value") {
  std::atomic<int> made{0};
  FiberLocal<int> value([&] { return made.fetch_add(1); });
  for (int i = 0; i < 10; ++i) weft::spawn([] { weft::this_fiber::yield(); }).join();
  CHECK(made.load() == 0);
  // A later fiber on the same stack gets a new value.
  for (int i = 0; i < 10; ++i) CHECK(weft::spawn([&] { return *value; }).join() == i);
}

FIBER_TEST_CASE("a new FiberLocal never returns the values of a destroyed FiberLocal") {
  std::optional<FiberLocal<int>> local;
  for (int i = 0; i < 100; ++i) {
    local.emplace();  // At the same address each time.
    CHECK(**local == 0);
    **local = i + 1;
  }
}

THREAD_TEST_CASE(
    "FiberLocal values outlive their FiberLocal and are destroyed when their fibers end") {
  std::vector<std::string> log;
  const auto attempt = [&] {
    auto local = std::make_unique<FiberLocal<Witness>>([&] { return Witness(log, "value"); });
    (void)**local;
    local.reset();
    weft::this_fiber::yield();
    CHECK(log.empty());
  };
  weft::spawn(attempt).join();
  CHECK(log.size() == 1);
  log.clear();
  std::thread(attempt).join();
  CHECK(log.size() == 1);
}

// Each destructor parks, spawns, and uses another FiberLocal, whose value it creates if necessary.
FIBER_TEST_CASE("the destructor of a FiberLocal value may park, spawn and use other FiberLocals") {
  std::atomic<int> ended{0};
  std::atomic<int> spawned{0};
  FiberLocal<std::shared_ptr<int>> late([&] {
    return std::shared_ptr<int>(new int(5), [&](const int* number) {
      weft::this_fiber::yield();
      ended.fetch_add(1);
      delete number;
    });
  });
  struct Busy {
    FiberLocal<std::shared_ptr<int>>& other;
    std::atomic<int>& spawned;
    ~Busy() {
      weft::this_fiber::yield();
      weft::spawn([this] { spawned.fetch_add(1); }).join();
      CHECK(**other == 5);
    }
  };
  FiberLocal<Busy> busy([&] { return Busy{late, spawned}; });
  std::vector<weft::JoinHandle<void>> fibers;
  for (int i = 0; i < 20; ++i) fibers.push_back(weft::spawn([&] { (void)*busy; }));
  for (auto& fiber : fibers) fiber.join();
  CHECK(spawned.load() == 20);
  CHECK(ended.load() == 20);
}

THREAD_TEST_CASE("the initializer of a FiberLocal may park, use other FiberLocals and throw") {
  FiberLocal<int> base([] {
    weft::this_fiber::yield();
    return 3;
  });
  FiberLocal<int> attempts;
  FiberLocal<int> derived([&] {
    if (++*attempts < 3) throw std::runtime_error("not yet");
    return *base + 1;
  });
  run_mixed(6, 2, [&](int) {
    CHECK_THROWS_AS((void)*derived, std::runtime_error);
    CHECK_THROWS_AS((void)derived.get(), std::runtime_error);
    CHECK(*derived == 4);
    CHECK(*derived == 4);
    CHECK(*attempts == 3);
  });
}

FIBER_TEST_CASE("a FiberLocal value need not be movable") {
  FiberLocal<weft::Mutex> mutex;
  mutex->lock();
  CHECK(weft::spawn([&] { return mutex->try_lock(); }).join());
  CHECK(!mutex->try_lock());
  mutex->unlock();
}

THREAD_TEST_CASE_WITH("FiberLocal values are destroyed when an exception ends their fiber",
                      {.options = {.on_exception = [](const std::exception_ptr&) {}}}) {
  weft::Semaphore gone(0);
  struct Release {
    weft::Semaphore& semaphore;
    ~Release() { semaphore.release(); }
  };
  FiberLocal<Release> local([&] { return Release{gone}; });
  weft::go([&] {
    (void)*local;
    throw 7;
  });
  gone.acquire();
  CHECK_THROWS_AS(weft::spawn([&] {
                    (void)*local;
                    throw 7;
                  }).join(),
                  int);
  CHECK(gone.try_acquire());
}

TEST_SUITE_END();

}  // namespace
