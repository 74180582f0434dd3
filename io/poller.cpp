#include "io/poller.hpp"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <ctime>
#include <memory>
#include <new>
#include <span>
#include <weft/detail/invariant.hpp>
#include <weft/error.hpp>

#include "base/panic.hpp"
#include "base/refusal.hpp"
#include "base/thread.hpp"
#include "io/attempt.hpp"

namespace weft::io {

using detail::acq_rel;
using detail::acquire;
using detail::relaxed;
using detail::release;

namespace {

// The key that the eventfd's events carry; no record has this index.
constexpr std::uint64_t kInterruptKey = ~std::uint64_t{0};

constexpr std::uint32_t kReadEvents = EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR;
constexpr std::uint32_t kWriteEvents = EPOLLOUT | EPOLLHUP | EPOLLERR;
// With these events, a short read or write does not show that the next one would wait. The peer has
// closed the connection or its sending side, or TCP's urgent data (EPOLLPRI) is among the bytes,
// where the system ends a read early. Urgent data alone cannot be read, and wakes no caller.
constexpr std::uint32_t kAlwaysTryEvents = EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR;

std::error_code last_error() noexcept { return {base::last_error(), std::system_category()}; }

}  // namespace

bool IoHandle::end(std::uint32_t flags) noexcept {
  // A close counts as a call, so that the record keeps its descriptor until the reader and the
  // writer are woken.
  if (!begin(flags)) return false;
  read_.close();
  write_.close();
  leave();
  return true;
}

void IoHandle::finish_close() noexcept {
  WEFT_INVARIANT((state_.load(relaxed) & (kClosing | kGone)) == kClosing && is_unused(),
                 "IoHandle I2: the last call to end after kClosing closes, once");
  poller_->deregister(descriptor_);
  // Relaxed: [use] orders the store that set the flag.
  if ((state_.load(relaxed) & kBorrowed) == 0) close_descriptor(descriptor_);
  const std::uint32_t before = state_.fetch_or(kGone, acq_rel);  // [owner]
  if ((before & kOwned) == 0) poller_->give_record(*this);
}

void IoHandle::disown() noexcept {
  const std::uint32_t before = state_.fetch_and(~kOwned, acq_rel);  // [owner]
  if ((before & kGone) != 0) poller_->give_record(*this);
}

std::size_t IoHandle::deliver(std::uint32_t events, std::uint32_t generation) noexcept {
  if (generation_.load(relaxed) != generation) return 0;  // The event is for an earlier descriptor.
  if ((events & kAlwaysTryEvents) != 0) {
    read_.set_always_worth_trying();
    write_.set_always_worth_trying();
  }
  std::size_t woken = 0;
  if ((events & kReadEvents) != 0 && read_.notify()) ++woken;
  if ((events & kWriteEvents) != 0 && write_.notify()) ++woken;
  return woken;
}

[[gnu::cold]] Poller::Poller() {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) throw base::refusal(last_error(), "a Runtime cannot create an epoll instance");
  interrupt_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  // Level-triggered: an interrupt that only a polling worker has seen remains for sleepers.
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kInterruptKey;
  if (interrupt_ < 0 || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, interrupt_, &event) != 0) {
    const std::error_code error = last_error();
    if (interrupt_ >= 0) ::close(interrupt_);
    ::close(epoll_);
    throw base::refusal(error, "a Runtime cannot create an eventfd for its epoll instance");
  }
}

[[gnu::cold]] Poller::~Poller() {
  WEFT_CHECK(!watches_anything(),
             "a socket outlives the runtime that it belongs to: destroy or release() streams, "
             "listeners and watches before it");
  ::close(interrupt_);
  ::close(epoll_);
  for (auto& slab : slabs_) delete[] slab.load(acquire);  // [slab]
}

std::size_t Poller::wait(Deadline deadline) noexcept {
  const bool looks_only = deadline == Deadline::past();
  if (looks_only && !watches_anything()) return 0;
  Events buffer;  // Not initialized: the kernel fills the part that is read.
  return deliver(std::span(buffer).first(fetch(deadline, buffer)), looks_only);
}

std::size_t Poller::deliver(std::span<const epoll_event> events, bool looks_only) noexcept {
  // With many connections, the data of a quiet connection is in no cache. Records and waiters are
  // prefetched together, so that they arrive while other events are delivered.
  for (const epoll_event& event : events) {
    if (IoHandle* handle = find(event)) __builtin_prefetch(handle, 1);
  }
  for (const epoll_event& event : events) {
    if (IoHandle* handle = find(event)) handle->read_.prefetch_waiter();
  }
  std::size_t woken = 0;
  for (const epoll_event& event : events) {
    if (IoHandle* handle = find(event)) {
      woken += handle->deliver(event.events, static_cast<std::uint32_t>(event.data.u64 >> 32));
    } else if (!looks_only) {
      clear_interrupt();
    }
  }
  return woken;
}

// A separate function that is never inlined: a caller that continues on another thread must not
// keep the address of errno.
[[gnu::noinline]] std::size_t Poller::fetch(Deadline deadline, Events& buffer) noexcept {
  constexpr int kCapacity = static_cast<int>(kEvents);
  epoll_event* events = buffer.data();
  const std::int64_t left =
      deadline == Deadline::past()
          ? 0
          : std::max<std::int64_t>(0, deadline.nanoseconds() - Deadline::now_nanoseconds());
  // A raw system call: the C library's function is a thread cancellation point, which costs every
  // call two locked instructions.
#ifdef SYS_epoll_pwait2
  if (!milliseconds_only_.load(relaxed)) {
    const timespec timeout{static_cast<std::time_t>(left / 1'000'000'000), left % 1'000'000'000};
    const long count = ::syscall(SYS_epoll_pwait2, epoll_, events, kCapacity,
                                 deadline.is_never() ? nullptr : &timeout, nullptr, std::size_t{0});
    if (count >= 0) return static_cast<std::size_t>(count);
    // Old kernels lack the call; some sandboxes return EPERM for calls that they do not allow.
    const int error = base::last_error();
    if (error != ENOSYS && error != EPERM) return 0;
    milliseconds_only_.store(true, relaxed);
  }
#endif
  // Rounds up, because after an early wake the caller would call again at once.
  const std::int64_t milliseconds = std::min<std::int64_t>((left + 999'999) / 1'000'000, INT_MAX);
  const int count = ::epoll_wait(epoll_, events, kCapacity,
                                 deadline.is_never() ? -1 : static_cast<int>(milliseconds));
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

void Poller::interrupt() noexcept {
  if (interrupt_pending_.exchange(true, acq_rel)) return;  // [interrupt]
  const std::uint64_t one = 1;
  // Unless a signal interrupts it, the write can fail only if the counter is full. The eventfd is
  // readable in that case.
  while (::write(interrupt_, &one, sizeof one) < 0 && base::last_error() == EINTR) {
  }
}

void Poller::clear_interrupt() noexcept {
  // The read comes first. An interrupt in between finds the flag set, and writes nothing that this
  // read could consume; the exchange makes its caller's work visible.
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t taken = ::read(interrupt_, &count, sizeof count);
  interrupt_pending_.exchange(false, acq_rel);  // [interrupt]
}

[[gnu::noinline]] std::error_code Poller::enter(int descriptor, std::uint32_t flags,
                                                IoHandle*& handle) noexcept {
  IoHandle* taken = take_record();
  if (taken == nullptr) return std::make_error_code(std::errc::not_enough_memory);
  IoHandle& record = *taken;
  record.read_.reset();
  record.write_.reset();
  record.descriptor_ = descriptor;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 =
      std::uint64_t{record.generation_.load(relaxed)} << 32 | std::uint64_t{record.index_};
  const bool first = begin_watch();
  if (control(EPOLL_CTL_ADD, descriptor, event) != 0) {
    const std::error_code error = last_error();
    // With this error the kernel refuses descriptors that are always ready.
    const bool is_ready = error == std::errc::operation_not_permitted;
    if (!is_ready || (flags & IoHandle::kMayBeReady) == 0) {
      end_watch();
      give_record(record);
      if (error == std::errc::file_exists) return Errc::already_watched;
      return error;
    }
    (void)record.read_.notify();
    (void)record.write_.notify();
  }
  // Relaxed: the caller publishes the handle; events do not read the state.
  record.state_.store(IoHandle::kOwned | flags, relaxed);
  if (first) announce_watch();
  handle = &record;
  return {};
}

void Poller::remove(IoHandle& handle) noexcept {
  (void)handle.close();
  handle.disown();
}

int Poller::detach(IoHandle& handle) noexcept {
  const int descriptor = handle.descriptor_;
  const bool was_open = handle.end(IoHandle::kClosing | IoHandle::kBorrowed);
  handle.disown();
  return was_open ? descriptor : -1;
}

void Poller::deregister(int descriptor) noexcept {
  // Deregistered explicitly, because a forked child that also holds the descriptor would keep it
  // registered. It may fail for descriptors that are always ready.
  epoll_event unused{};
  (void)control(EPOLL_CTL_DEL, descriptor, unused);
  end_watch();
}

int Poller::control(int operation, int descriptor, epoll_event& event) noexcept {
  return ::epoll_ctl(epoll_, operation, descriptor, &event);
}

// Returns null for the eventfd.
IoHandle* Poller::find(const epoll_event& event) const noexcept {
  if (event.data.u64 == kInterruptKey) return nullptr;
  const auto index = static_cast<std::uint32_t>(event.data.u64);
  // Slab k holds 2^(k + kFirstSlabBits) records. If the first slab's size is added to an index, the
  // highest bit of the sum identifies the slab.
  const std::uint64_t shifted = std::uint64_t{index} + (std::uint64_t{1} << kFirstSlabBits);
  const auto bits = static_cast<std::uint32_t>(std::bit_width(shifted)) - 1;
  IoHandle* slab = slabs_[bits - kFirstSlabBits].load(acquire);  // [slab]
  return slab + (shifted - (std::uint64_t{1} << bits));
}

IoHandle* Poller::take_record() noexcept {
  for (;;) {
    free_lock_.lock();
    IoHandle* record = free_;
    if (record != nullptr) free_ = record->next_free_;
    const std::size_t slab = slab_count_;
    free_lock_.unlock();
    WEFT_INVARIANT(record == nullptr || (record->state_.load(relaxed) & IoHandle::kGone) != 0,
                   "Poller I2: no descriptor uses a record that was free");
    if (record != nullptr) return record;
    if (!grow(slab)) return nullptr;
  }
}

// Adds slab number `slab`, unless another thread has done so meanwhile. Returns false if there is
// no memory.
bool Poller::grow(std::size_t slab) noexcept {
  if (slab == kSlabs) return false;
  const std::size_t size = std::size_t{1} << (slab + kFirstSlabBits);
  std::unique_ptr<IoHandle[]> records(new (std::nothrow) IoHandle[size]);
  if (records == nullptr) return false;
  for (std::size_t i = 0; i < size; ++i) {
    records[i].poller_ = this;
    records[i].index_ = static_cast<std::uint32_t>(size - (std::size_t{1} << kFirstSlabBits) + i);
    records[i].next_free_ = i + 1 < size ? &records[i + 1] : nullptr;
  }
  free_lock_.lock();
  if (slab == slab_count_) {
    records[size - 1].next_free_ = free_;
    free_ = &records[0];
    slabs_[slab].store(records.release(), release);  // [slab]
    ++slab_count_;
  }
  free_lock_.unlock();
  return true;
}

void Poller::give_record(IoHandle& handle) noexcept {
  WEFT_INVARIANT(
      (handle.state_.load(relaxed) & (IoHandle::kGone | IoHandle::kOwned)) == IoHandle::kGone,
      "IoHandle I3: a record that returns is kGone and not kOwned");
  handle.generation_.fetch_add(1, relaxed);
  free_lock_.lock();
  handle.next_free_ = free_;
  free_ = &handle;
  free_lock_.unlock();
}

// The runtime gives each scheduler a poller.
Poller& current_poller() { return static_cast<Poller&>(scheduler::current_events()); }

Result<Poller*> find_poller() {
  try {
    return {.value = &current_poller()};
  } catch (const std::system_error& failure) {
    return {.error = failure.code()};
  }
}

}  // namespace weft::io
