// What groups ask of a pool.
#include <weft/detail/group_pool.hpp>

#include <utility>
#include <weft/detail/blocking_scope.hpp>
#include <weft/pool.hpp>

namespace weft {

detail::GroupPool detail::group_pool(FiberPool& of_tasks) noexcept {
  // A member of the group is a Task already, and goes into the pool's item as it is.
  static constexpr GroupPool::Calls kCalls{
      .submit = [](FiberPool& pool,
                   Task&& task) { return pool.enqueue(PoolItem(std::in_place, std::move(task))); },
      .try_submit =
          [](FiberPool& pool, Task&& task) {
            return pool.try_enqueue(PoolItem(std::in_place, std::move(task)));
          },
      .submit_until =
          [](FiberPool& pool, const Until& until, Task&& task) {
            return pool.enqueue_until(PoolItem(std::in_place, std::move(task)), until);
          },
      .wait_without_slot =
          [](FiberPool& pool, bool (*wait)(void*) noexcept, void* argument) noexcept {
            const BlockingScope scope(&pool);
            return wait(argument);
          },
  };
  return {of_tasks, kCalls};
}

}  // namespace weft
