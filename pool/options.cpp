#include "pool/options.hpp"

#include <stdexcept>
#include <string>

namespace weft::pool {
namespace {

constexpr std::size_t kMaxStackSize = std::size_t{16} << 20;
constexpr std::size_t kMaxPrealloc = std::size_t{1} << 20;

// Reports which option of which pool was refused, and what is required.
struct Requirements {
  const PoolOptions& options;

  void operator()(bool holds, const char* what) const {
    if (holds) return;
    std::string sentence("weft::PoolOptions");
    if (!options.name.empty()) sentence.append(" of '").append(options.name).append("'");
    throw std::invalid_argument(sentence.append(": ").append(what));
  }
  void at_least(std::size_t value, std::size_t least, const char* what) const {
    if (value < least) number(value, what, "; must be at least ", least);
  }
  void at_most(std::size_t value, std::size_t most, const char* what) const {
    if (value > most) number(value, what, "; must be at most ", most);
  }

 private:
  void number(std::size_t value, const char* what, const char* bound, std::size_t limit) const {
    std::string sentence(what);
    sentence.append(" = ").append(std::to_string(value)).append(bound);
    (*this)(false, sentence.append(std::to_string(limit)).c_str());
  }
};

// Rejects options that concern worker fibers, because a sub-pool has none.
void check_sub_pool(const PoolOptions& options) {
  const Requirements require{options};
  require(options.min_workers == 0, "min_workers must be 0 with a parent");
  require(options.stack_size == 0, "stack_size must be 0 with a parent");
  require(options.idle_timeout == PoolOptions{}.idle_timeout,
          "idle_timeout cannot be set with a parent");
  require(options.grow.kind() == GrowPolicy::Kind::on_demand,
          "grow must be on_demand with a parent");
  require(options.wake_order == WakeOrder::lifo, "wake_order cannot be set with a parent");
}

void check_growth(const PoolOptions& options) {
  const Requirements require{options};
  require(options.grow.kind() != GrowPolicy::Kind::eager || options.capacity != kUnlimited,
          "grow: eager needs a limited capacity");
  if (options.grow.kind() != GrowPolicy::Kind::load_factor) return;
  const GrowPolicy::LoadFactor& factor = options.grow.factor();
  // The condition is also false for NaN.
  require(factor.down > 0 && factor.down < factor.up, "grow: load_factor needs 0 < down < up");
  require(factor.step >= 1, "grow: the step of a load_factor must be at least 1");
  require(factor.interval.count() > 0, "grow: the interval of a load_factor must be above 0");
}

}  // namespace

void check(const PoolOptions& options) {
  const Requirements require{options};
  check_growth(options);
  require.at_least(options.capacity, 1, "capacity");
  require.at_most(options.min_workers, options.capacity, "min_workers");
  require(!options.prestart || options.min_workers >= 1,
          "prestart needs min_workers of at least 1");
  require(options.max_blocked >= 1, "max_blocked must be at least 1; on_full can reject instead");
  require(options.max_blocked == kUnlimited || options.on_full != OnFull::reject,
          "max_blocked cannot be set with OnFull::reject");
  require(options.on_full != OnFull::drop_oldest || options.queue_capacity >= 1,
          "queue_capacity must be at least 1 with OnFull::drop_oldest");
  require(options.idle_timeout.count() > 0, "idle_timeout must be above 0; kNever keeps workers");
  // This form of the condition cannot overflow.
  require(!options.prealloc || (options.capacity <= kMaxPrealloc &&
                                options.queue_capacity <= kMaxPrealloc - options.capacity),
          "prealloc is for capacity and queue_capacity of at most 1048576 together");
  require(options.on_tick.period.count() > 0, "on_tick's period must be above 0");
  require(options.on_tick.period == kNever || options.on_tick.call,
          "on_tick has a period and nothing to call");
  require.at_most(options.stack_size, kMaxStackSize, "stack_size");
  if (options.parent != nullptr) check_sub_pool(options);
}

}  // namespace weft::pool
