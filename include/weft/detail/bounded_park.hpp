// Parks a caller until a wake, a deadline or a stop request.
#pragma once

#include <weft/detail/stop_registration.hpp>
#include <weft/detail/waist.hpp>
#include <weft/until.hpp>

namespace weft::detail {

// One park that a notifier, the clock or a stop request may end; a claim decides which of these
// ends the park. The object is on the stack of the parking caller.
//
// A stop request may arrive at any moment. Before the caller's registers are saved, a wake would be
// too early, so the stop request and the park synchronize through phase_. A request that precedes
// the park only stores kRequested. The code that runs after the switch reads kRequested and ends
// the park.
//
// The caller must not destroy this object before `after` is called, although the clock may end
// the park earlier. A caller that removes its waiter after the park obeys this rule, because the
// removal waits for the lock that `after` unlocks.
// Order
//   [phase]  start() stores kParked (release) -> request() loads kParked (acquire): request() may
//            wake the caller. Alternatively, request() stores kRequested (release) -> start() loads
//            kRequested (acquire): start() then ends the park.
class BoundedPark {
 public:
  explicit BoundedPark(const Until& until) noexcept : until_(until) {}
  BoundedPark(const BoundedPark&) = delete;
  BoundedPark& operator=(const BoundedPark&) = delete;

  // A thread that wakes the caller must win this claim first.
  [[nodiscard]] Claim& claim() noexcept { return claim_; }

  // Returns what to report after a stop request has ended a wait: kClock if the deadline has passed
  // too, otherwise kStop. See Until::reason().
  [[nodiscard]] static Claim::Winner stopped_by(const Until& until) noexcept {
    return until.deadline().passed() ? Claim::kClock : Claim::kStop;
  }

  // Parks the caller as park_until() does; may be called only once. Returns what ended the park.
  Claim::Winner park(After after, WaitReason reason) noexcept {
    if (!until_.can_be_stopped()) return park_until(after, reason, until_.deadline(), claim_);
    after_ = after;
    waker_ = current();
    // The destructor of `registration` runs after the park and waits for a request in progress.
    StopRegistration<Request> registration;
    registration.add(*until_.token(), Request{this});
    const Claim::Winner winner =
        park_until({&BoundedPark::start, this}, reason, until_.deadline(), claim_);
    return winner == Claim::kStop ? stopped_by(until_) : winner;
  }

  // Called at most once: by the requester or, if the stop was already requested, by the caller.
  void request() noexcept {
    std::uint32_t expected = kPreparing;
    if (phase_.compare_exchange_strong(expected, kRequested, release, acquire)) return;  // [phase]
    if (claim_.try_claim(Claim::kStop)) wake(waker_);
  }

  // park_until() calls start() after the switch, if a stop request can end the park.
  static void start(void* bounded_park) noexcept {
    auto* self = static_cast<BoundedPark*>(bounded_park);
    const After after = self->after_;
    const Waker waker = self->waker_;
    std::uint32_t expected = kPreparing;
    const bool requested = !self->phase_.compare_exchange_strong(expected, kParked, release,
                                                                 acquire);  // [phase]
    const bool stopped = requested && self->claim_.try_claim(Claim::kStop);
    // From here on the fiber may continue and destroy this object.
    after.call(after.argument);
    if (stopped) wake(waker);
  }

 private:
  enum Phase : std::uint32_t { kPreparing, kParked, kRequested };
  struct Request {
    BoundedPark* park;
    void operator()() const noexcept { park->request(); }
  };

  const Until until_;
  Claim claim_;
  After after_{};
  Waker waker_;
  Atomic<std::uint32_t> phase_{kPreparing};
};

}  // namespace weft::detail
