#include "fibers/stack_pool.hpp"

#include <numeric>
#include <utility>

namespace weft::fibers {

namespace {

template <std::size_t... kClasses>
std::array<base::Magazine<Stack>, kStackSizes> make_magazines(std::index_sequence<kClasses...>) {
  return {base::Magazine<Stack>(stacks_per_chain(kClasses))...};
}

}  // namespace

Stack* StackDepot::take_chain(unsigned size_class) noexcept {
  if (Stack* chain = warm_[size_class].take()) return chain;
  return space_.take(size_class, stacks_per_chain(size_class));
}

void StackDepot::give_chain(Stack* chain) noexcept {
  if (!warm_[chain->size_class].give(chain)) space_.cool(chain);
}

[[gnu::cold]] bool StackDepot::trim(unsigned chains) noexcept {
  for (Depot<Stack>& warm : warm_) {
    while (Stack* chain = warm.take()) {
      space_.cool(chain);
      if (--chains == 0) return true;
    }
  }
  return space_.leave_out_of_cores() || space_.give_tables_back();
}

void StackDepot::begin_decay_period() noexcept {
  constexpr unsigned kPeriodsOfTables = 20;
  for (unsigned i = 0; i < kStackSizes; ++i) due_[i] = warm_[i].begin_period();
  if (++periods_ % kPeriodsOfTables == 0) are_tables_due_ = true;
}

[[gnu::cold]] bool StackDepot::decay(unsigned chains) noexcept {
  for (unsigned i = 0; i < kStackSizes; ++i) {
    for (; due_[i] > 0; --due_[i]) {
      if (chains == 0) return true;
      Stack* chain = warm_[i].take();
      if (chain == nullptr) {
        due_[i] = 0;
        break;
      }
      space_.cool(chain);
      --chains;
    }
  }
  are_tables_due_ = are_tables_due_ && (space_.leave_out_of_cores() || space_.give_tables_back());
  return are_tables_due_;
}

std::int64_t StackDepot::due() const noexcept {
  return std::accumulate(due_.begin(), due_.end(), std::int64_t{0});
}

bool StackDepot::has_surplus_hint() const noexcept {
  for (const Depot<Stack>& warm : warm_) {
    if (warm.count_hint() > 0) return true;
  }
  return space_.has_cold_blocks_hint() || space_.has_spare_tables_hint();
}

StackPool::StackPool(StackDepot& depot) noexcept
    : depot_(depot), magazines_(make_magazines(std::make_index_sequence<kStackSizes>())) {}

void StackPool::empty() noexcept {
  for (auto& magazine : magazines_) {
    magazine.drain([this](Stack* chain) { depot_.give_chain(chain); });
  }
}

Stack* StackPool::take(unsigned size_class) noexcept {
  if (Stack* stack = take_hot(size_class)) return stack;
  Stack* chain = depot_.take_chain(size_class);
  if (chain == nullptr) return nullptr;
  // The stacks of the chain must be counted, because a chain may be shorter if memory ran out.
  magazines_[size_class].refill(chain, base::chain_length(chain));
  return take_hot(size_class);
}

}  // namespace weft::fibers
