#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/detail/task.hpp>

#include "tests/support/random.hpp"

namespace {

using weft::detail::Task;

// Counts the objects of one kind, so that a test can check that each is destroyed exactly once.
struct Census {
  int alive = 0;
  int made = 0;
};

// Stores its own address, to detect that its bytes were copied to another place.
template <std::size_t kPadding>
class Tracked {
 public:
  explicit Tracked(Census& census) : census_(&census), self_(this) { count(); }
  Tracked(Tracked&& other) noexcept : census_(other.census_), self_(this) {
    CHECK(other.self_ == &other);
    count();
  }
  Tracked(const Tracked&) = delete;
  Tracked& operator=(const Tracked&) = delete;
  ~Tracked() {
    CHECK(self_ == this);
    --census_->alive;
    self_ = nullptr;
  }
  void check() const { CHECK(self_ == this); }

 private:
  void count() {
    ++census_->alive;
    ++census_->made;
  }
  Census* census_;
  Tracked* self_;
  std::array<char, kPadding> padding_{};
};

template <std::size_t kPadding>
void check_every_fate() {
  Census census;
  int runs = 0;
  const auto make = [&] {
    return Task([tracked = Tracked<kPadding>(census), &runs] {
      tracked.check();
      ++runs;
    });
  };
  {
    Task task = make();
    CHECK(census.alive == 1);
    task.run();
    CHECK(census.alive == 0);
    CHECK(!task);
  }
  CHECK(runs == 1);
  { const Task never_run = make(); }
  CHECK(census.alive == 0);
  {
    Task task = make();
    task.reset();
    CHECK(census.alive == 0);
    task.reset();
  }
  {
    Task first = make();
    Task second(std::move(first));
    CHECK(!first);  // NOLINT(bugprone-use-after-move): the point of the test.
    CHECK(census.alive == 1);
    Task third = make();
    third = std::move(second);
    CHECK(census.alive == 1);
    auto& same = third;
    third = std::move(same);
    CHECK(census.alive == 1);
    third.run();
  }
  CHECK(runs == 2);
  CHECK(census.alive == 0);
}

template <std::size_t kPadding>
void check_throwing() {
  Census census;
  Task task([tracked = Tracked<kPadding>(census)] { throw std::runtime_error("thrown"); });
  CHECK_THROWS_AS(task.run(), std::runtime_error);
  CHECK(census.alive == 0);
  CHECK(!task);
}

TEST_SUITE_BEGIN("fibers/task");

static_assert(!std::is_copy_constructible_v<Task>);
static_assert(std::is_nothrow_move_constructible_v<Task>);
static_assert(!std::is_constructible_v<Task, int>);

TEST_CASE("a task that is empty, moved from or already run converts to false") {
  Task empty;
  CHECK(!empty);
  const Task moved(std::move(empty));
  CHECK(!moved);
  Task task([] {});
  CHECK(task);
  task.run();
  CHECK(!task);
}

TEST_CASE("a callable is destroyed exactly once, whether its task runs, is moved or is dropped") {
  SUBCASE("the callable fills the inline storage of the task") { check_every_fate<8>(); }
  SUBCASE("the callable is stored in a small block") { check_every_fate<40>(); }
  SUBCASE("the callable is stored in a box on the heap") { check_every_fate<200>(); }
}

TEST_CASE("a throwing callable is destroyed, and its exception propagates") {
  SUBCASE("the throwing callable is stored inline") { check_throwing<8>(); }
  SUBCASE("the throwing callable is stored in a box on the heap") { check_throwing<200>(); }
}

TEST_CASE("a small callable is stored inside its task without an allocation") {
  int marker = 0;
  Task task([&marker, address = static_cast<void*>(nullptr)]() mutable {
    address = &address;
    marker = 1;
  });
  task.run();
  CHECK(marker == 1);
  static_assert(sizeof(Task) == Task::kInlineSize + sizeof(void*));
}

TEST_CASE("a task runs a move-only callable") {
  int result = 0;
  Task task([value = std::make_unique<int>(42), &result] { result = *value; });
  Task moved = std::move(task);
  moved.run();
  CHECK(result == 42);
}

TEST_CASE("a task that contains another task runs and destroys the inner task") {
  Census census;
  int runs = 0;
  Task inner([tracked = Tracked<8>(census), &runs] { ++runs; });
  Task outer([inner = std::move(inner)]() mutable { inner.run(); });
  outer.run();
  CHECK(runs == 1);
  CHECK(census.alive == 0);
  Task unused_inner([tracked = Tracked<8>(census)] {});
  {
    const Task unused([inner = std::move(unused_inner)]() mutable { inner.run(); });
  }
  CHECK(census.alive == 0);
}

TEST_CASE("a callable may have a stricter alignment than the task") {
  struct alignas(64) Aligned {
    char bytes[64] = {};
  };
  bool aligned = false;
  Task task([wide = Aligned{}, &aligned] {
    aligned = reinterpret_cast<std::uintptr_t>(&wide) % alignof(Aligned) == 0;
  });
  std::vector<Task> tasks;
  tasks.emplace_back();
  tasks.push_back(std::move(task));
  tasks.back().run();
  CHECK(aligned);
}

TEST_CASE("a task can be made from a function pointer or an lvalue callable") {
  static int calls = 0;
  calls = 0;
  Task(+[] { ++calls; }).run();
  auto callable = [count = 0]() mutable { calls += ++count; };
  Task(callable).run();
  Task(callable).run();  // The first run used a copy.
  CHECK(calls == 3);
}

TEST_CASE("moving callables between tasks at random neither loses nor duplicates a callable") {
  weft::test::Random random(1);
  Census small_census;
  Census large_census;
  int runs = 0;
  int given = 0;
  int dropped = 0;
  {
    std::vector<Task> places(16);
    for (int step = 0; step < 20'000; ++step) {
      Task& place = places[random.below(places.size())];
      switch (random.below(5)) {
        case 0:
          dropped += place ? 1 : 0;
          ++given;
          place = Task([tracked = Tracked<8>(small_census), &runs] { ++runs; });
          break;
        case 1:
          dropped += place ? 1 : 0;
          ++given;
          place = Task([tracked = Tracked<100>(large_census), &runs] { ++runs; });
          break;
        case 2: {
          Task& other = places[random.below(places.size())];
          if (&other == &place) break;
          dropped += place ? 1 : 0;
          place = std::move(other);
          break;
        }
        case 3:
          std::swap(place, places[random.below(places.size())]);
          break;
        default:
          if (place) place.run();
      }
    }
    for (const Task& place : places) dropped += place ? 1 : 0;
  }
  CHECK(runs + dropped == given);
  CHECK(small_census.alive == 0);
  CHECK(large_census.alive == 0);
}

struct Wrapping {
  using Shown = int;
  char large[100];
  void operator()() const {}
};

struct Hiding {
  using Shown = void;
  void operator()() const {}
};

TEST_CASE("a task reports its callable's type even after the callable is destroyed") {
  struct Callable {
    const Task* task;
    bool* known;
    void operator()() const { *known = *task->type_hint() == typeid(Callable); }
  };
  Task task;
  CHECK(task.type_hint() == nullptr);
  bool known_while_running = false;
  task = Task(Callable{&task, &known_while_running});
  CHECK(*task.type_hint() == typeid(Callable));
  CHECK(task.image_hint() != nullptr);
  task.run();
  CHECK(known_while_running);
  CHECK(!task);
  CHECK(*task.type_hint() == typeid(Callable));
  // The test reuses the variable, and its former content is not destroyed a second time.
  task = Task(Wrapping{});
  CHECK(*task.type_hint() == typeid(int));
  task = Task(Hiding{});
  CHECK(task.type_hint() == nullptr);
}

TEST_SUITE_END();

}  // namespace
