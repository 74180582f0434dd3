#include "io/ring.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#if __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#endif

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <weft/detail/bounded_park.hpp>
#include <weft/detail/invariant.hpp>
#include <weft/detail/simulated.hpp>

#include "base/thread.hpp"
#include "io/attempt.hpp"

namespace weft::io {

using detail::acquire;
using detail::OneShot;
using detail::OneShotEnd;
using detail::relaxed;
using detail::release;
using detail::seq_cst;

namespace {

// Relaxed: a switch for tests.
constinit detail::Atomic<bool> one_shots_allowed{true};

}  // namespace

#if defined(IORING_SETUP_DEFER_TASKRUN) && defined(SYS_io_uring_setup) && \
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

namespace {

constexpr std::uint32_t kRequests = 4;  // The kernel takes each at once.
// More requests may be under way; the kernel keeps completions that have no place here.
constexpr std::uint32_t kCompletions = 1024;

// The kernel's part of [mute] is a locked instruction on x86 alone. Elsewhere all signals pass, and
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

// One request of one fiber, on its stack.
struct Ring::Operation {
  explicit Operation(detail::WaitReason why) noexcept : reason(why) {}

  const detail::WaitReason reason;
  bool is_done = false;
  bool is_parked = false;  // In park(). The function that clears it wakes the fiber.
  int result = 0;
  detail::Waker waker;
  detail::Claim* claim = nullptr;  // Null: only the ring ends the park.
  Operation* next = nullptr;
  Operation** place = nullptr;  // The pointer in the list that refers to this request.
};

// Trivial, so that it outlives the holder: fibers may run on the thread later, in exit().
constinit thread_local bool has_ended = false;

// The thread's ring, or a mark that the system refused one.
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
  ring_ = static_cast<int>(::syscall(SYS_io_uring_setup, kRequests, &parameters));
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

OneShot Ring::perform(io_uring_sqe& request, detail::WaitReason reason,
                      const Until& until) noexcept {
  Operation self(reason);
  request.user_data = reinterpret_cast<std::uintptr_t>(&self);
  if (poller_.begin_watch()) poller_.announce_watch();
  enter_list(self);
  OneShotEnd end = submit(request, self) ? OneShotEnd::done : OneShotEnd::refused;
  while (end == OneShotEnd::done && !self.is_done) end = wait(self, until);
  if (end != OneShotEnd::refused && !self.is_done) cancel(self);
  leave_list(self);
  poller_.end_watch();
  // Results that have arrived by now count, although the deadline has passed.
  if (self.is_done &&
      (end == OneShotEnd::done || (self.result != -ECANCELED && self.result != -EINTR)))
    return {OneShotEnd::done, self.result};
  return {end, 0};
}

bool Ring::submit(const io_uring_sqe& request, const Operation& self) noexcept {
  // Relaxed: only this thread stores it.
  const std::uint32_t tail = word(at_.submit_tail).load(relaxed);
  WEFT_INVARIANT(word(at_.submit_head).load(acquire) == tail,  // [requests]
                 "Ring I3: the kernel has taken all requests before");
  requests_[tail & word(at_.submit_mask).load(relaxed)] = request;
  word(at_.submit_tail).store(tail + 1, release);  // [requests]
  if (call_kernel(1, self) == 1) return true;
  word(at_.submit_tail).store(tail, release);  // [requests] It was not taken.
  return false;
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

// Submits, and ends what requests can end. Returns the number that the kernel has taken.
int Ring::call_kernel(unsigned submissions, const Operation& self) noexcept {
  mute();
  const int taken = enter(submissions);
  reap(self);
  for (;;) {
    unmute();
    if (!has_work()) return taken;
    // The kernel notes work a little late, so that it may have been done by then. This function
    // does not clear such a note, and records what enter() leaves. Relaxed: enter() looks at the
    // work itself.
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
    auto* ended = reinterpret_cast<Operation*>(completion.user_data);
    if (ended == nullptr) continue;  // The completion belongs to a cancellation.
    ended->result = completion.res;
    ended->is_done = true;
    if (ended != &self) rouse(*ended);
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

// Returns `done` when the caller should look again.
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
  io_uring_sqe request{};
  request.opcode = IORING_OP_ASYNC_CANCEL;
  request.fd = -1;
  request.addr = reinterpret_cast<std::uintptr_t>(&self);
  for (bool is_sent = false; !self.is_done;) {
    if (is_sent) {
      (void)call_kernel(0, self);
    } else {
      is_sent = submit(request, self);
    }
    if (!self.is_done) detail::yield();
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

#if defined(IORING_SETUP_DEFER_TASKRUN) && defined(SYS_io_uring_setup) && \
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

OneShot receive_once(int socket, ::msghdr& message, int flags, const Until& until) noexcept {
  io::Ring* ring = io::Ring::here();
  if (ring == nullptr) return {};
  io_uring_sqe request{};
  request.opcode = IORING_OP_RECVMSG;
  request.fd = socket;
  request.addr = reinterpret_cast<std::uintptr_t>(&message);
  request.len = 1;
  request.msg_flags = static_cast<std::uint32_t>(flags & ~MSG_DONTWAIT);
  return ring->perform(request, WaitReason::readable, until);
}

OneShot poll_once(int descriptor, short events, const Until& until) noexcept {
  // The kernel passes on all events of a socket's wake, also urgent ones that have not come, and
  // does not wake for urgent ones alone.
  constexpr int kAlways = POLLERR | POLLHUP | POLLNVAL;
  constexpr int kExact = POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM | POLLRDHUP | kAlways;
  if ((events & ~kExact) != 0) return {};
  io::Ring* ring = io::Ring::here();
  if (ring == nullptr) return {};
  io_uring_sqe request{};
  request.opcode = IORING_OP_POLL_ADD;
  request.fd = descriptor;
  request.poll32_events = static_cast<std::uint16_t>(events);
  const bool writes = (events & (POLLIN | POLLOUT)) == POLLOUT;
  OneShot ended =
      ring->perform(request, writes ? WaitReason::writable : WaitReason::readable, until);
  if (ended.end == OneShotEnd::done && ended.value > 0) {
    ended.value &= events | kAlways;  // Each request also ends by POLLRDHUP.
    if (ended.value == 0) return {};
  }
  return ended;
}

#else

OneShot receive_once(int, ::msghdr&, int, const Until&) noexcept { return {}; }
OneShot poll_once(int, short, const Until&) noexcept { return {}; }

#endif

}  // namespace weft::detail
