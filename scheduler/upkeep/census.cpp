#include "scheduler/upkeep/census.hpp"

#include <new>
#include <optional>

#include "fibers/fiber_store.hpp"
#include "scheduler/shared.hpp"
#include "scheduler/upkeep/wait_cycles.hpp"

namespace weft::scheduler {

using detail::relaxed;
using fibers::Fiber;
using fibers::FiberState;
using fibers::Slab;

namespace {

// The steady clock starts when the machine boots, so 32 bits suffice for 13 years of uptime.
using Tenths = std::chrono::duration<std::uint32_t, std::deci>;

std::uint32_t in_tenths(std::int64_t nanoseconds) noexcept {
  return std::chrono::duration_cast<Tenths>(std::chrono::nanoseconds(nanoseconds)).count();
}

// Relaxed here and below: the state and the reason may be stale, because another thread may write
// them meanwhile. A mark's time is read and written under the store's mutex. The fiber may
// continue, end or park again at any moment. If it parks again, either the new park removes the
// mark, or a dump shows too early a start time for the new park.
void mark(Fiber& fiber, std::uint32_t moment) noexcept {
  std::uint8_t reason = fiber.wait_reason.load(relaxed);
  if (!is_waiting(fiber) || (reason & Fiber::kCounted) != 0) return;
  Slab& slab = Slab::of(fiber);
  if (slab.parked_since == nullptr) {
    slab.parked_since = new (std::nothrow) std::uint32_t[Slab::kFibers];
    if (slab.parked_since == nullptr) return;
  }
  slab.parked_since[slab.place_of(fiber)] = moment;
  const auto marked = static_cast<std::uint8_t>(reason | Fiber::kCounted);
  (void)fiber.wait_reason.compare_exchange_strong(reason, marked, relaxed, relaxed);
}

std::chrono::nanoseconds run_time(const Fiber& fiber, const Shared& shared,
                                  std::int64_t now) noexcept {
  for (const Desk* desk : shared.desks()) {
    if (desk->recorder.running() != &fiber) continue;
    const std::int64_t since = desk->runs_since();
    return std::chrono::nanoseconds(since == 0 ? 0 : now - since);
  }
  return {};
}

}  // namespace

bool is_waiting(const Fiber& fiber) noexcept {
  const FiberState state = fiber.state.load(relaxed);
  return state == FiberState::parked || state == FiberState::inlining;
}

bool is_marked(const Fiber& fiber) noexcept {
  return (fiber.wait_reason.load(relaxed) & Fiber::kCounted) != 0;
}

void mark_waiting(Fiber& fiber, std::int64_t now) noexcept { mark(fiber, in_tenths(now)); }

void Census::step(std::int64_t now) noexcept {
  if (!is_under_way_ && now - begun_ >= tuning::kCensusPeriod) begin(now);
  if (is_under_way_) visit_some(now);
}

bool Census::covers(std::int64_t moment, std::int64_t now) noexcept {
  if (!is_under_way_ && begun_ < moment) begin(now);
  if (is_under_way_) visit_some(now);
  return !is_under_way_ && begun_ >= moment;
}

void Census::begin(std::int64_t now) noexcept {
  begun_ = now;
  next_slab_ = 0;
  next_waits_ = 0;
  is_under_way_ = true;
}

void Census::visit_some(std::int64_t now) noexcept {
  const std::size_t last = next_slab_ + tuning::kCensusSlabs;
  // The order of the slabs may change when a slab is freed. This census may then miss a slab; the
  // next census marks the fibers of that slab.
  const std::optional<std::size_t> slabs =
      fibers_.for_each_of_slabs(next_slab_, last, [this, moment = in_tenths(now)](Fiber& fiber) {
        mark(fiber, moment);
        if (is_waiting(fiber) && may_be_in_cycle(fiber)) ++next_waits_;
      });
  if (!slabs) return;
  next_slab_ = last;
  is_under_way_ = last < *slabs;
  if (!is_under_way_) waits_ = next_waits_;
}

std::chrono::nanoseconds parked_time(const Fiber& fiber, std::int64_t now) noexcept {
  if ((fiber.wait_reason.load(relaxed) & Fiber::kCounted) == 0 || !is_waiting(fiber)) return {};
  Slab& slab = Slab::of(fiber);
  return Tenths(in_tenths(now) - slab.parked_since[slab.place_of(fiber)]);
}

std::chrono::nanoseconds age_of(const Fiber& fiber, const Shared& shared,
                                std::int64_t now) noexcept {
  return fiber.state.load(relaxed) == FiberState::running ? run_time(fiber, shared, now)
                                                          : parked_time(fiber, now);
}

}  // namespace weft::scheduler
