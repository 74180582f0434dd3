#include "io/ring.hpp"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <weft/detail/bounded_park.hpp>
#include <weft/detail/invariant.hpp>
#include <weft/detail/simulated.hpp>

#include "base/thread.hpp"
#include "io/attempt.hpp"

namespace weft::io {

using detail::acquire;
using detail::OneShotEnd;
using detail::relaxed;
using detail::release;
using detail::seq_cst;

namespace {

// Relaxed: only tests change it.
constinit detail::Atomic<bool> one_shots_allowed{true};

}  // namespace

#if WEFT_HAS_RING

namespace {

// More requests may be under way; the kernel keeps completions that have no place here.
constexpr std::uint32_t kCompletions = 1024;

// The kernel's part of [mute] is a locked instruction only on x86. Elsewhere all signals pass, and
// each call that ends requests wakes a leader once more.
#ifdef __x86_64__
constexpr bool kMutes = true;
#else
constexpr bool kMutes = false;
#endif

std::byte* map_memory(int ring, std::size_t size, std::uint64_t offset) noexcept {
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
                        static_cast<off_t>(offset));
  if (memory == MAP_FAILED) return nullptr;
  (void)::madvise(memory, size, MADV_DONTFORK);  // A child would write to its parent's ring.
  return static_cast<std::byte*>(memory);
}

OneShotEnd end_of(const Until& until) noexcept {
  return until.reason() == Errc::timed_out ? OneShotEnd::timed_out : OneShotEnd::stopped;
}

}  // namespace

// One request and its result.
struct Ring::Request {
  Operation* operation = nullptr;
  int result = -ECANCELED;
  bool is_under_way = false;
  bool is_cancelled = false;
};

// The requests of one fiber, on its stack.
struct Ring::Operation {
  Operation(std::span<Request> all, detail::WaitReason why) noexcept
      : requests(all), reason(why), under_way(static_cast<unsigned>(all.size())) {
    for (Request& request : all) request = {.operation = this, .is_under_way = true};
  }

  const std::span<Request> requests;
  const detail::WaitReason reason;
  bool is_done = false;    // One of the requests has ended.
  bool is_parked = false;  // True in park(). The function that clears it wakes the fiber.
  unsigned under_way;      // Requests that have not ended.
  detail::Waker waker;
  detail::Claim* claim = nullptr;  // Null: only the ring ends the park.
  Operation* next = nullptr;
  Operation** place = nullptr;  // The pointer in the list that refers to this request.
};

// Trivial, so that it outlives the holder: fibers may run on the thread later, in exit().
constinit thread_local bool has_ended = false;

// The thread's ring, or a mark that the system refused to make a ring.
struct Ring::Holder {
  std::unique_ptr<Ring> ring;
  bool is_refused = false;

  ~Holder() {
    has_ended = true;
    // A forked child has the parent's poller. A process that exits may have requests under way.
    if (ring != nullptr && (base::is_forked_fiber() || ring->first_ != nullptr))
      (void)ring.release();
  }
};

[[gnu::noinline]] Ring* Ring::here() noexcept {
  if (has_ended) return nullptr;
  static thread_local Holder holder;
  if (!one_shots_allowed.load(relaxed) || holder.is_refused) return nullptr;
  if (holder.ring != nullptr) return base::is_forked_fiber() ? nullptr : holder.ring.get();
  if (detail::current().is_thread() || detail::simulated() != nullptr || base::is_forked_fiber())
    return nullptr;
  if (const auto [poller, error] = find_poller(); !error) {
    std::unique_ptr<Ring> made(new (std::nothrow) Ring(*poller));
    if (made != nullptr && made->open()) holder.ring = std::move(made);
  }
  holder.is_refused = holder.ring == nullptr;
  return holder.ring.get();
}

Ring::~Ring() {
  if (handle_ != nullptr) {
    (void)poller_.begin_watch();  // remove() ends it.
    poller_.remove(*handle_);
  }
  if (words_ != nullptr) ::munmap(words_, words_size_);
  if (requests_ != nullptr) ::munmap(static_cast<void*>(requests_), requests_size_);
  if (ring_ >= 0) ::close(ring_);
}

bool Ring::open() noexcept {
  io_uring_params parameters{};
  parameters.cq_entries = kCompletions;
  parameters.flags = IORING_SETUP_CQSIZE | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SINGLE_ISSUER |
                     IORING_SETUP_DEFER_TASKRUN;
  ring_ = static_cast<int>(::syscall(SYS_io_uring_setup, kMostTogether, &parameters));
  return ring_ >= 0 && map(&parameters) && watch();
}

bool Ring::map(const void* parameters) noexcept {
  const auto& made = *static_cast<const io_uring_params*>(parameters);
  words_size_ = std::max<std::size_t>(made.sq_off.array + made.sq_entries * sizeof(std::uint32_t),
                                      made.cq_off.cqes + made.cq_entries * sizeof(io_uring_cqe));
  requests_size_ = made.sq_entries * sizeof(io_uring_sqe);
  words_ = map_memory(ring_, words_size_, IORING_OFF_SQ_RING);
  std::byte* requests = map_memory(ring_, requests_size_, IORING_OFF_SQES);
  requests_ = reinterpret_cast<io_uring_sqe*>(requests);
  if (words_ == nullptr || requests_ == nullptr) return false;
  completions_ = reinterpret_cast<const io_uring_cqe*>(words_ + made.cq_off.cqes);
  at_ = {made.sq_off.head, made.sq_off.tail, made.sq_off.ring_mask, made.sq_off.flags,
         made.cq_off.head, made.cq_off.tail, made.cq_off.ring_mask, made.cq_off.flags};
  auto* order = reinterpret_cast<std::uint32_t*>(words_ + made.sq_off.array);
  for (std::uint32_t i = 0; i < made.sq_entries; ++i) order[i] = i;
  return true;
}

bool Ring::watch() noexcept {
  const int event = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (event < 0) return false;
  if (::syscall(SYS_io_uring_register, ring_, IORING_REGISTER_EVENTFD, &event, 1) != 0 ||
      poller_.add(event, handle_)) {
    ::close(event);
    return false;
  }
  // Only requests count as watched: see perform().
  poller_.end_watch();
  return true;
}

OneShotEnd Ring::perform(std::span<const io_uring_sqe> requests, std::span<int> results,
                         detail::WaitReason reason, const Until& until) noexcept {
  std::array<Request, kMostTogether> made;
  const auto count = static_cast<unsigned>(requests.size());
  Operation self(std::span<Request>(made).first(count), reason);
  if (poller_.begin_watch()) poller_.announce_watch();
  enter_list(self);
  for (unsigned i = 0; i < count; ++i) {
    io_uring_sqe& place = next_place(i);
    place = requests[i];
    place.user_data = reinterpret_cast<std::uintptr_t>(&made[i]);
  }
  const unsigned taken = submit(count, self);
  for (Request& request : self.requests.subspan(taken)) request.is_under_way = false;
  self.under_way -= count - taken;
  OneShotEnd end = taken == count ? OneShotEnd::done : OneShotEnd::refused;
  while (end == OneShotEnd::done && !self.is_done) end = wait(self, until);
  if (self.under_way > 0) cancel(self);
  leave_list(self);
  poller_.end_watch();
  // Results that have arrived by now count, although the deadline has passed.
  bool has_result = end == OneShotEnd::done;
  for (unsigned i = 0; i < count; ++i) {
    results[i] = made[i].result;
    has_result = has_result || (results[i] != -ECANCELED && results[i] != -EINTR);
  }
  return has_result && end != OneShotEnd::refused ? OneShotEnd::done : end;
}

io_uring_sqe& Ring::next_place(std::uint32_t index) noexcept {
  // Relaxed: only this thread stores it.
  const std::uint32_t tail = word(at_.submit_tail).load(relaxed);
  WEFT_INVARIANT(word(at_.submit_head).load(acquire) == tail,  // [requests]
                 "Ring I3: the kernel has taken all requests before");
  return requests_[(tail + index) & word(at_.submit_mask).load(relaxed)];
}

// Submits the requests in the next places. Returns the number that the kernel has taken.
unsigned Ring::submit(unsigned count, const Operation& self) noexcept {
  const std::uint32_t tail = word(at_.submit_tail).load(relaxed);
  word(at_.submit_tail).store(tail + count, release);  // [requests]
  const auto taken = static_cast<unsigned>(std::max(call_kernel(count, self), 0));
  // [requests] The kernel has not taken the others.
  if (taken < count) word(at_.submit_tail).store(tail + taken, release);
  return taken;
}

bool Ring::has_work() const noexcept {
  const std::uint32_t flags = word(at_.submit_flags).load(seq_cst);  // [mute]
  return (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
}

[[gnu::noinline]] int Ring::enter(unsigned submissions) noexcept {
  return static_cast<int>(::syscall(SYS_io_uring_enter, ring_, submissions, 0,
                                    IORING_ENTER_GETEVENTS, nullptr, std::size_t{0}));
}

void Ring::mute() noexcept {
  // Relaxed: a superfluous signal is harmless.
  if (kMutes) word(at_.done_flags).store(IORING_CQ_EVENTFD_DISABLED, relaxed);
}

void Ring::unmute() noexcept {
  if (kMutes) (void)word(at_.done_flags).exchange(0, seq_cst);  // [mute]
}

// Submits requests, and ends the requests that can end. Returns the number that the kernel has
// taken.
int Ring::call_kernel(unsigned submissions, const Operation& self) noexcept {
  mute();
  const int taken = enter(submissions);
  reap(self);
  for (;;) {
    unmute();
    if (!has_work()) return taken;
    // The kernel sets this flag a little late: the work may have been done by then, and enter()
    // would not clear the flag. Relaxed: enter() itself checks for work.
    (void)word(at_.submit_flags).fetch_and(~std::uint32_t{IORING_SQ_TASKRUN}, relaxed);
    mute();
    (void)enter(0);
    reap(self);
  }
}

void Ring::reap(const Operation& self) noexcept {
  std::uint32_t head = word(at_.done_head).load(relaxed);        // Only this thread stores it.
  const std::uint32_t tail = word(at_.done_tail).load(acquire);  // [completions]
  for (; head != tail; ++head) {
    const io_uring_cqe& completion = completions_[head & word(at_.done_mask).load(relaxed)];
    auto* ended = reinterpret_cast<Request*>(completion.user_data);
    if (ended == nullptr) continue;  // The completion belongs to a cancellation.
    Operation& operation = *ended->operation;
    ended->result = completion.res;
    ended->is_under_way = false;
    --operation.under_way;
    operation.is_done = true;
    if (&operation != &self) rouse(operation);
  }
  word(at_.done_head).store(head, release);  // [completions]
}

void Ring::rouse(Operation& operation) noexcept {
  if (&operation == leader_) {
    (void)handle_->read().notify();
    return;
  }
  if (!operation.is_parked) return;
  operation.is_parked = false;
  // Otherwise the deadline or a stop request has woken the fiber.
  if (operation.claim == nullptr || operation.claim->try_claim(detail::Claim::kNotifier))
    detail::wake(operation.waker);
}

// Returns `done` when the caller should check its requests again.
OneShotEnd Ring::wait(Operation& self, const Until& until) noexcept {
  if (leader_ == nullptr) leader_ = &self;
  if (leader_ != &self) return park(self, until);
  const WaitOutcome outcome = handle_->read().wait(until, self.reason);
  if (has_work()) (void)call_kernel(0, self);
  WEFT_INVARIANT(outcome != WaitOutcome::closed, "Ring I4: the eventfd stays open during requests");
  if (outcome == WaitOutcome::ready) return OneShotEnd::done;
  return outcome == WaitOutcome::stopped ? OneShotEnd::stopped : OneShotEnd::timed_out;
}

OneShotEnd Ring::park(Operation& self, const Until& until) noexcept {
  if (until.is_over()) return end_of(until);
  detail::BoundedPark bounded(until);
  WEFT_INVARIANT(leader_ != nullptr, "Ring I1: a fiber parks only beside a leader");
  self.waker = detail::current();
  self.claim = until.is_never() ? nullptr : &bounded.claim();
  const detail::After after{
      [](void* operation) noexcept { static_cast<Operation*>(operation)->is_parked = true; },
      &self};
  detail::Claim::Winner winner = detail::Claim::kNotifier;
  if (self.claim == nullptr) {
    detail::park(after, self.reason);
  } else {
    winner = bounded.park(after, self.reason);
  }
  self.is_parked = false;
  self.claim = nullptr;
  if (winner == detail::Claim::kNotifier) return OneShotEnd::done;
  return winner == detail::Claim::kStop ? OneShotEnd::stopped : OneShotEnd::timed_out;
}

// The kernel cancels at once, unless it is about to end the request anyway.
void Ring::cancel(Operation& self) noexcept {
  while (self.under_way > 0) {
    unsigned count = 0;
    for (Request& request : self.requests) {
      if (!request.is_under_way || std::exchange(request.is_cancelled, true)) continue;
      io_uring_sqe& place = next_place(count++);
      place = {};
      place.opcode = IORING_OP_ASYNC_CANCEL;
      place.fd = -1;
      place.addr = reinterpret_cast<std::uintptr_t>(&request);
    }
    if (count == 0) {
      (void)call_kernel(0, self);
    } else if (submit(count, self) < count) {
      // A second cancellation finds nothing.
      for (Request& request : self.requests) request.is_cancelled = false;
    }
    if (self.under_way > 0) detail::yield();
  }
}

void Ring::enter_list(Operation& self) noexcept {
  self.next = first_;
  self.place = &first_;
  if (first_ != nullptr) first_->place = &self.next;
  first_ = &self;
}

void Ring::leave_list(Operation& self) noexcept {
  WEFT_INVARIANT(self.is_done || leader_ != &self, "Ring I2: a leader leaves after its request");
  *self.place = self.next;
  if (self.next != nullptr) self.next->place = self.place;
  if (leader_ != &self) return;
  leader_ = nullptr;
  for (Operation* other = first_; other != nullptr && leader_ == nullptr; other = other->next) {
    if (!other->is_parked) continue;
    other->is_parked = false;
    if (other->claim != nullptr && !other->claim->try_claim(detail::Claim::kNotifier)) continue;
    leader_ = other;  // I1
    detail::wake(other->waker);
  }
}

#else

Ring::~Ring() = default;
Ring* Ring::here() noexcept { return nullptr; }

#endif

}  // namespace weft::io

namespace weft::detail {

void allow_one_shots(bool allowed) noexcept { io::one_shots_allowed.store(allowed, relaxed); }

}  // namespace weft::detail
