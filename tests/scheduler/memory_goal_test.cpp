#include "scheduler/upkeep/memory_goal.hpp"

#include <doctest/doctest.h>

#include "scheduler/tuning.hpp"

namespace {

using weft::scheduler::MemoryGoal;

std::size_t bytes_in_use = 0;

// Holds a goal of 800 bytes. Each look() checks the goal a period later.
struct Looks {
  MemoryGoal goal{800, true, []() noexcept { return bytes_in_use; }};
  std::int64_t now = 0;

  bool look(std::size_t bytes) {
    bytes_in_use = bytes;
    now += weft::scheduler::tuning::kMemoryLook;
    return goal.look(now);
  }
};

TEST_SUITE_BEGIN("scheduler/memory_goal");

TEST_CASE("cached memory is released when the process uses seven eighths of the memory goal") {
  Looks looks;
  CHECK_FALSE(looks.look(699));
  CHECK(looks.look(700));
  CHECK_FALSE(looks.goal.is_reached());
  CHECK(looks.look(900));
  CHECK_FALSE(looks.look(100));
}

TEST_CASE(
    "a memory goal counts as reached until the process uses less than fifteen sixteenths of the "
    "goal") {
  Looks looks;
  (void)looks.look(800);
  CHECK(looks.goal.is_reached());
  (void)looks.look(750);
  CHECK(looks.goal.is_reached());
  (void)looks.look(749);
  CHECK_FALSE(looks.goal.is_reached());
  (void)looks.look(799);
  CHECK_FALSE(looks.goal.is_reached());
  CHECK(looks.goal.times() == 1);
}

TEST_CASE(
    "spawns are refused at the default memory goal only if fibers hold an eighth of the goal") {
  MemoryGoal goal(800, false, []() noexcept { return bytes_in_use; });
  bytes_in_use = 900;
  CHECK(goal.look(1));
  CHECK(goal.is_reached());
  CHECK(goal.times() == 1);
  goal.judge(99);
  CHECK_FALSE(goal.is_refusing());
  CHECK(goal.may_grow(99));
  goal.judge(100);
  CHECK(goal.is_refusing());
  goal.judge(99);
  CHECK_FALSE(goal.is_refusing());
  CHECK_FALSE(goal.may_grow(100));
  CHECK(goal.is_refusing());
  CHECK(goal.times() == 1);
}

TEST_CASE(
    "spawns are refused at a memory goal set by the program even if fibers hold little memory") {
  Looks looks;
  (void)looks.look(799);
  looks.goal.judge(0);
  CHECK_FALSE(looks.goal.is_refusing());
  (void)looks.look(800);
  looks.goal.judge(0);
  CHECK(looks.goal.is_refusing());
  (void)looks.look(749);
  looks.goal.judge(0);
  CHECK_FALSE(looks.goal.is_refusing());
}

TEST_CASE(
    "no further fiber records are allocated when the process uses as much memory as the memory "
    "goal") {
  Looks looks;
  bytes_in_use = 799;
  CHECK(looks.goal.may_grow(0));
  bytes_in_use = 800;
  CHECK_FALSE(looks.goal.may_grow(0));
  CHECK(looks.goal.is_refusing());
  CHECK(looks.goal.times() == 1);
}

TEST_CASE("the memory goal is checked often while memory grows fast, and rarely otherwise") {
  Looks looks;
  (void)looks.look(700);
  CHECK(looks.goal.is_close());
  (void)looks.look(700);
  CHECK_FALSE(looks.goal.is_close());
  (void)looks.look(705);
  CHECK_FALSE(looks.goal.is_close());
  (void)looks.look(720);
  CHECK(looks.goal.is_close());
}

TEST_CASE(
    "the process's memory is measured only if there is a memory goal, and at most once per "
    "period") {
  MemoryGoal none(0, true, []() noexcept -> std::size_t { return bytes_in_use; });
  bytes_in_use = 1000;
  CHECK_FALSE(none.look(1));
  CHECK_FALSE(none.is_reached());
  Looks looks;
  (void)looks.look(100);
  (void)looks.look(100);
  bytes_in_use = 1000;
  CHECK_FALSE(looks.goal.look(looks.now + 1));
  CHECK_FALSE(looks.goal.is_reached());
}

TEST_SUITE_END();

}  // namespace
