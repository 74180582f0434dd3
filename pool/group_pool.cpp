// Implements the calls that groups make to a pool.
#include <weft/detail/group_pool.hpp>

#include <stop_token>
#include <utility>
#include <weft/detail/blocking_scope.hpp>
#include <weft/detail/group_stop.hpp>
#include <weft/pool.hpp>

namespace weft {

namespace {

// Wraps a task that has options in a callable for the pool.
struct Member {
  detail::Task task;
  void operator()() { task.run(); }
};
// A member that accepts a stop request.
struct StoppableMember {
  detail::Task task;
  std::stop_source own;
  void operator()(std::stop_token of_job) {
    detail::StopRegistration<detail::RequestStop> registration;
    registration.add(of_job, {own});
    task.run();
  }
};

}  // namespace

detail::GroupPool detail::group_pool(FiberPool& of_tasks) noexcept {
  static constexpr GroupPool::Calls kCalls{
      // A member of the group is already a Task, and is moved into the pool's item unchanged.
      .submit = [](FiberPool& pool, Room room, const Until& until, Task& task) -> Accepted {
        PoolItem item(std::in_place, std::move(task));
        const Accepted accepted = pool.entry().hand_over(item, room, until);
        if (!accepted) task = std::move(item.task);
        return accepted;
      },
      .submit_with = [](FiberPool& pool, const SubmitOptions& options, std::stop_source own,
                        Room room, const Until& until, Task& task) -> Accepted {
        const auto hand_over = [&](auto member) {
          const Accepted accepted = pool.entry().hand_over(options, room, until, std::move(member));
          if (!accepted) task = std::move(member.task);
          return accepted;
        };
        if (!own.stop_possible()) return hand_over(Member{std::move(task)});
        return hand_over(StoppableMember{std::move(task), std::move(own)});
      },
      .capacity = [](const FiberPool& pool) noexcept { return pool.capacity(); },
      .stop_token = [](const FiberPool& pool) noexcept { return pool.stop_token(); },
      .wait_without_slot =
          [](FiberPool& pool, bool (*wait)(void*) noexcept, void* argument) noexcept {
            const BlockingScope scope(&pool);
            return wait(argument);
          },
  };
  return {of_tasks, kCalls};
}

}  // namespace weft
