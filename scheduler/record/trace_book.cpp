#include "scheduler/record/trace_book.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/detail/fork.hpp>
#include <weft/detail/never_destroyed.hpp>
#include <weft/detail/thread_mutex.hpp>

#include "fibers/fiber.hpp"

namespace weft::detail {

constinit Atomic<bool> tracing{false};

}  // namespace weft::detail

namespace weft::scheduler {

using detail::acquire;
using detail::relaxed;
using detail::release;

namespace {

constexpr std::size_t kFewestEvents = 64;
// The maximum size of a ring, in events; no computer has enough memory for a ring of this size.
constexpr std::size_t kMostEvents = std::numeric_limits<std::size_t>::max() / 2 + 1;

constinit detail::ThreadMutex book_mutex;  // Held only briefly.
const detail::HeldOverForks<book_mutex> hold_book_over_forks;

struct Book {
  // Counts recordings. Relaxed: a worker that sees a new number locks the mutex before it reads the
  // other fields.
  detail::Atomic<std::uint64_t> number{0};
  std::size_t size WEFT_GUARDED_BY(book_mutex) = 0;
  std::uint64_t start_ticks WEFT_GUARDED_BY(book_mutex) = 0;
  std::int64_t start_nanoseconds WEFT_GUARDED_BY(book_mutex) = 0;
  std::shared_ptr<TraceRing> outside WEFT_GUARDED_BY(book_mutex);
  std::vector<std::shared_ptr<TraceRing>> rings WEFT_GUARDED_BY(book_mutex);
};

// Never destroyed, because workers may record events until the process ends.
constinit detail::NeverDestroyed<Book> the_book;
Book& book() noexcept { return the_book.get(); }

std::array<std::uint64_t, TraceEvent::kWords> pack(std::string_view text) noexcept {
  std::array<std::uint64_t, TraceEvent::kWords> words{};
  std::memcpy(words.data(), text.data(), std::min(text.size(), TraceEvent::kText));
  return words;
}

}  // namespace

TraceRing::Kept TraceRing::read() const {
  const std::uint64_t end = head_.load(acquire);  // [head]
  const std::uint64_t begin = end > size_ ? end - size_ : 0;
  std::vector<TraceEvent> events;
  events.reserve(end - begin);
  for (std::uint64_t i = begin; i < end; ++i) {
    const Slot& slot = slots_[i & (size_ - 1)];
    TraceEvent& event = events.emplace_back();
    event.ticks = slot[0].load(acquire);               // [slot]
    const std::uint64_t what = slot[1].load(acquire);  // [slot]
    event.kind = static_cast<detail::TraceKind>(what & 0xFF);
    event.reason = static_cast<std::uint8_t>(what >> 8);
    event.extra = static_cast<std::uint32_t>(what >> 32);
    for (std::size_t word = 0; word < TraceEvent::kWords; ++word) {
      event.words[word] = slot[2 + word].load(acquire);  // [slot]
    }
  }
  // Drops the events that the owner may have overwritten while this function read them (see I2).
  const std::uint64_t head = head_.load(acquire);  // [head]
  const std::uint64_t valid = head + 1 > size_ ? head + 1 - size_ : 0;
  const std::uint64_t lost = std::min(valid > begin ? valid - begin : 0, end - begin);
  events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(lost));
  return {std::move(events), begin + lost};
}

// If no memory is available for the worker's ring, the trace contains no events of this worker.
void TraceWriter::look(unsigned runtime, unsigned worker) noexcept {
  is_on_ = detail::is_tracing();
  if (!is_on_ || recording_ == book().number.load(relaxed)) return;
  is_on_ = false;
  try {
    Book& all = book();
    const detail::Guard lock(book_mutex);
    auto ring = std::make_shared<TraceRing>(all.size, runtime, static_cast<int>(worker));
    all.rings.push_back(ring);
    ring_ = std::move(ring);
    recording_ = all.number.load(relaxed);
    is_on_ = true;
  } catch (const std::bad_alloc&) {
    return;
  }
}

void TraceWriter::put_text(detail::TraceKind kind, std::uint64_t fiber,
                           std::string_view text) noexcept {
  ring_->put({base::ticks(), kind, 0, static_cast<std::uint32_t>(fiber), pack(text)});
}

void start_tracing(std::size_t events_per_worker) {
  const std::size_t size = std::bit_ceil(std::clamp(events_per_worker, kFewestEvents, kMostEvents));
  Book& all = book();
  const detail::Guard lock(book_mutex);
  all.outside = std::make_shared<TraceRing>(size, 0, -1);
  all.rings.assign(1, all.outside);
  all.size = size;
  all.start_ticks = base::ticks();
  all.start_nanoseconds = Deadline::now_nanoseconds();
  all.number.fetch_add(1, relaxed);
  detail::tracing.store(true, relaxed);
}

void stop_tracing() noexcept { detail::tracing.store(false, relaxed); }

void trace_from_outside(const TraceEvent& event) noexcept {
  Book& all = book();
  const detail::Guard lock(book_mutex);
  if (all.outside == nullptr) return;
  TraceEvent now = event;
  now.ticks = base::ticks();
  all.outside->put(now);
}

void trace_fiber_from_outside(detail::TraceKind kind, const fibers::Fiber& fiber) noexcept {
  const auto number = [](const void* address) {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address));
  };
  TraceEvent event{.kind = kind, .reason = fiber.reason()};
  event.words = {number(&fiber), number(fiber.site_hint()), number(fiber.task.type_hint())};
  trace_from_outside(event);
}

void trace_text_from_outside(detail::TraceKind kind, std::string_view text) noexcept {
  trace_from_outside({0, kind, 0, 0, pack(text)});
}

Recording recording() {
  Book& all = book();
  const detail::Guard lock(book_mutex);
  return {{all.start_ticks, base::ticks()},
          {all.start_nanoseconds, Deadline::now_nanoseconds()},
          {all.rings.begin(), all.rings.end()}};
}

}  // namespace weft::scheduler
