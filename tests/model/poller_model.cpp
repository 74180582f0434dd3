// io/poller.cpp and io/attempt.hpp: no byte stays unread while a reader sleeps. Closing and
// deadlines end every wait. No thread touches a waiter that has left.
#include "tests/model/model_stop.hpp"

#include <weft/detail/waiter.hpp>

#include "io/io_direction.cpp"
#include "io/poller.cpp"

#include "io/attempt.hpp"
#include "tests/model/model_waist.hpp"

#include "base/error.cpp"
#include "base/refusal.cpp"

namespace weft::detail {
void yield() noexcept { model::let_others_run(); }
}  // namespace weft::detail

namespace weft::io {
void close_descriptor(int descriptor) noexcept { (void)::close(descriptor); }
}  // namespace weft::io

namespace weft::scheduler {
void EventSource::announce_watch() noexcept {}
EventSource& current_events() { std::abort(); }
}  // namespace weft::scheduler

namespace {

using weft::Deadline;
using weft::Errc;
using weft::Result;
using weft::detail::acq_rel;
using weft::detail::acquire;
using weft::io::CallResult;
using weft::io::IoDirection;
using weft::model::Atomic;
using weft::model::call_on_own_stack;
using weft::model::Data;
using weft::model::expect;
using weft::model::fault;
using weft::model::kSoon;
using weft::model::perhaps;
using weft::model::World;

enum Fault { kNone, kForgetsToFetch, kDrainedTooEarly, kWatchesOnce, kLeavesDrained };

// Imitates a socket in the kernel and the epoll instance that watches it. Each access represents a
// section under the socket's lock, which every call on a socket takes.
class Kernel {
 public:
  // Adds a byte that has arrived, and causes an edge.
  void feed() {
    bytes_.fetch_add(1, acq_rel);
    edges_.fetch_add(1, acq_rel);
  }
  // Returns whether there was an event to fetch.
  [[nodiscard]] bool fetch() { return edges_.exchange(0, acq_rel) != 0; }
  // Does the same as poll().
  [[nodiscard]] bool is_readable() { return bytes_.fetch_add(0, acq_rel) != 0; }
  // Does the same as recv() with room for `most` bytes.
  [[nodiscard]] CallResult receive(std::uint32_t most) {
    std::uint32_t bytes = bytes_.fetch_add(0, acq_rel);
    while (bytes != 0) {
      const std::uint32_t taken = std::min(bytes, most);
      if (bytes_.compare_exchange_strong(bytes, bytes - taken, acq_rel, acquire)) {
        return {taken, 0};
      }
    }
    return {0, EAGAIN};
  }

 private:
  Atomic<std::uint32_t> bytes_{0};
  Atomic<std::uint32_t> edges_{0};
};

// Imitates a socket that one caller reads.
struct Stream {
  Kernel kernel;
  IoDirection direction;

  // Imitates Poller::wait for this descriptor.
  void poll() {
    if (fault == kForgetsToFetch || !kernel.fetch()) return;
    (void)direction.notify();
  }
  // Does the same as read_once() in net/tcp_stream.cpp.
  Result<std::uint32_t> read(std::uint32_t most, Deadline deadline) {
    Result<std::int64_t> result;
    call_on_own_stack([&] {
      result = weft::io::attempt_until(direction, weft::detail::WaitReason::readable, deadline,
                                       direction.worth_trying(),
                                       [&]() noexcept { return kernel.receive(most); });
    });
    if (result.error) return {.error = result.error};
    const auto count = static_cast<std::uint32_t>(result.value);
    direction.set_drained(fault == kDrainedTooEarly || count < most);
    return {.value = count};
  }
};

enum Kind { kPatient, kThread, kTimed };

// One caller reads `kBytes` bytes. The same number of other threads each bring one byte and then
// poll.
template <unsigned kBytes, Kind kKind>
struct Reads
    : rl::test_suite<Reads<kBytes, kKind>, static_cast<int>(2 + kBytes + (kKind == kTimed))> {
  World world{1, kKind == kTimed};
  Stream stream;

  void before() {
    if (kKind == kThread) world.make_thread(0);
  }
  void thread(unsigned index) {
    if (index < 2) {
      world.run(index, [&](unsigned) { read_all(); });
    } else if (index < 2 + kBytes) {
      if (perhaps()) world.await_parked(1);
      stream.kernel.feed();
      stream.poll();
    } else {
      world.run_clock();
    }
  }
  void read_all() {
    const auto soon = Deadline::at_nanoseconds(kSoon);
    unsigned read = 0;
    for (int timeouts = 0; read < kBytes;) {
      const bool waits_shortly = kKind == kTimed && timeouts < 2;
      const auto result = stream.read(2, waits_shortly ? soon : Deadline::never());
      if (result.error) {
        expect(waits_shortly && result.error == Errc::timed_out, "a read failed");
        ++timeouts;
      }
      read += result.value;
    }
  }
};

// Waits like a select with one socket: a watch notes edges and notifies a list, and a system call
// checks if the socket is readable. It works like IoCase in io/io_case.cpp, with only one case.
class Watcher : weft::detail::IoWatch {
 public:
  explicit Watcher(Stream& stream) : IoWatch{&Watcher::note_edge}, stream_(stream) {}

  void wait_readable() {
    stream_.direction.add_watch(*this);
    while (!attempt()) {
      lock_.lock();
      if (told_.get()) {
        lock_.unlock();
      } else {
        call_on_own_stack([&] {
          weft::detail::Waiter self;
          weft::detail::wait_in(list_, lock_, self, weft::detail::WaitReason::select_socket);
        });
      }
    }
    stream_.direction.remove_watch(*this);
    if (take_note()) stream_.direction.set_drained(false);
  }

 private:
  bool attempt() {
    if (take_note() && fault != kWatchesOnce) {
      stream_.direction.remove_watch(*this);
      stream_.direction.add_watch(*this);
    }
    const bool ready = stream_.kernel.is_readable();
    if (ready && fault != kLeavesDrained) stream_.direction.set_drained(false);
    return ready;
  }
  bool take_note() {
    lock_.lock();
    const bool told = told_.get();
    told_.set(false);
    lock_.unlock();
    return told;
  }
  static weft::detail::Waker note_edge(IoWatch& watch) noexcept {
    auto& self = static_cast<Watcher&>(watch);
    self.lock_.lock();
    self.told_.set(true);
    const weft::detail::Waiter* waiter = self.list_.claim_front();
    const auto waker = waiter == nullptr ? weft::detail::Waker() : waiter->waker;
    self.lock_.unlock();
    return waker;
  }

  Stream& stream_;
  weft::detail::SpinLock lock_;
  weft::detail::WaitList list_;
  Data<bool> told_{false};
};

// One caller watches for every second byte, which a read then finds without a separate edge, and
// waits for the other bytes in a read. Each watcher is destroyed after its wait.
template <unsigned kBytes>
struct Watches : rl::test_suite<Watches<kBytes>, static_cast<int>(2 + kBytes)> {
  World world{1, false};
  Stream stream;

  void thread(unsigned index) {
    if (index < 2) {
      world.run(index, [&](unsigned) {
        for (unsigned read = 0; read < kBytes;) {
          if (read % 2 == 0) Watcher(stream).wait_readable();
          const auto result = stream.read(2, Deadline::never());
          expect(!result.error, "a read failed");
          read += result.value;
        }
      });
    } else {
      if (perhaps()) world.await_parked(1);
      stream.kernel.feed();
      stream.poll();
    }
  }
};

// One caller reads until the direction is closed, while a byte comes.
template <bool kIsTimed>
struct Closes : rl::test_suite<Closes<kIsTimed>, 4 + kIsTimed> {
  World world{1, kIsTimed};
  Stream stream;

  void thread(unsigned index) {
    if (index < 2) {
      world.run(index, [&](unsigned) { read_until_closed(); });
    } else if (index == 2) {
      if (perhaps()) world.await_parked(1);
      stream.kernel.feed();
      stream.poll();
    } else if (index == 3) {
      if (perhaps()) world.await_parked(1);
      stream.direction.close();
    } else {
      world.run_clock();
    }
  }
  void read_until_closed() {
    for (int timeouts = 0;;) {
      const bool waits_shortly = kIsTimed && timeouts < 2;
      const auto deadline = waits_shortly ? Deadline::at_nanoseconds(kSoon) : Deadline::never();
      const auto result = stream.read(2, deadline);
      if (result.error == Errc::closed) return;
      if (result.error) {
        expect(waits_shortly && result.error == Errc::timed_out, "a read failed");
        ++timeouts;
      }
    }
  }
};

// A deadline that is set during a wait ends that wait, even if an edge comes at the same time.
struct SetsDeadline : rl::test_suite<SetsDeadline, 4> {
  World world{1, false};
  Stream stream;

  void thread(unsigned index) {
    if (index < 2) {
      world.run(index, [&](unsigned) {
        for (unsigned read = 0;;) {
          const auto result = stream.read(2, Deadline::never());
          read += result.value;
          expect(read <= 1, "more was read than came");
          if (!result.error) continue;
          expect(result.error == Errc::timed_out, "a read failed");
          return;
        }
      });
    } else if (index == 2) {
      if (perhaps()) world.await_parked(1);
      stream.kernel.feed();
      stream.poll();
    } else {
      if (perhaps()) world.await_parked(1);
      stream.direction.set_deadline(Deadline::past());
    }
  }
};

}  // namespace

int main(int count, char** arguments) {
  using weft::model::bounded_search;
  using weft::model::broken_by;
  using weft::model::random_search;
  return weft::model::Program(
             "poller",
             {random_search<Reads<1, kPatient>>("one byte", 60'000),
              random_search<Reads<2, kPatient>>("two bytes", 60'000),
              random_search<Reads<3, kPatient>>("three bytes", 60'000),
              random_search<Reads<2, kThread>>("a plain thread reads", 60'000),
              random_search<Reads<1, kTimed>>("a byte and deadlines", 60'000),
              random_search<Reads<2, kTimed>>("two bytes and deadlines", 60'000),
              random_search<Closes<false>>("closing", 60'000),
              random_search<Closes<true>>("closing and deadlines", 60'000),
              random_search<Watches<1>>("a watch and a byte", 60'000),
              random_search<Watches<3>>("watches and reads", 60'000),
              random_search<SetsDeadline>("a deadline set by another", 60'000)},
             {weft::model::relaxed_orders(), broken_by(kForgetsToFetch, "nobody polls"),
              broken_by(kDrainedTooEarly, "a full read counts as short"),
              broken_by(kWatchesOnce, "a watch is told once for all"),
              broken_by(kLeavesDrained, "a watch takes the edge and tells nobody")})
      .run(count, arguments);
}
