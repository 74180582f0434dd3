#include <pthread.h>

#include <system_error>
#include <weft/detail/atomic.hpp>
#include <weft/detail/fork.hpp>

namespace weft::detail {

namespace {

constinit Atomic<std::uint32_t> fork_count{0};  // Relaxed: the child of a fork has one thread.

}  // namespace

std::uint32_t forks() noexcept { return fork_count.load(relaxed); }

constinit ForkHandlers* ForkHandlers::first_ = nullptr;

ForkHandlers::ForkHandlers(Locks locks, Function before, Function in_parent, Function in_child)
    : before_(before), in_parent_(in_parent), in_child_(in_child) {
  if (first_ == nullptr) {
    const int error = pthread_atfork([] { run_all(&ForkHandlers::before_); },
                                     [] { run_all(&ForkHandlers::in_parent_); },
                                     [] {
                                       fork_count.fetch_add(1, relaxed);
                                       run_all(&ForkHandlers::in_child_);
                                     });
    if (error != 0)
      throw std::system_error(error, std::generic_category(),
                              "weft: the handlers of forks cannot be registered");
  }
  ForkHandlers** place = &first_;
  while (locks == Locks::inner && *place != nullptr) place = &(*place)->next_;
  next_ = *place;
  *place = this;
}

void ForkHandlers::run_all(const Function ForkHandlers::*function) noexcept {
  for (const ForkHandlers* each = first_; each != nullptr; each = each->next_) (each->*function)();
}

}  // namespace weft::detail
