// Gives one interface to every place in this folder where a caller may wait and a stop request may
// end the wait.
//
// Each place has an item that is not available at first. wait() waits for the item, gives it back
// if other callers need it, and returns false if `until` ended the wait. open() makes the item
// available, once. is_whole() returns whether nothing was lost or duplicated. kReason is the reason
// for the wait in a dump; kMostWaiters is how many callers may wait at a time.
#pragma once

#include <mutex>
#include <shared_mutex>
#include <weft/barrier.hpp>
#include <weft/broadcast.hpp>
#include <weft/condition_variable.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/latch.hpp>
#include <weft/latest_value.hpp>
#include <weft/mutex.hpp>
#include <weft/semaphore.hpp>
#include <weft/shared_mutex.hpp>
#include <weft/this_fiber.hpp>
#include <weft/until.hpp>
#include <weft/wait_group.hpp>

namespace weft::test {

struct OfMutex {
  static constexpr auto kReason = "mutex";
  static constexpr int kMostWaiters = 4;
  Mutex mutex;

  OfMutex() { mutex.lock(); }
  bool wait(const Until& until) {
    const bool is_mine = mutex.try_lock_until(until);
    if (is_mine) mutex.unlock();
    return is_mine;
  }
  void open() { mutex.unlock(); }
  bool is_whole() {
    const std::unique_lock lock(mutex, std::try_to_lock);
    return lock.owns_lock();
  }
};

struct OfWriter {
  static constexpr auto kReason = "shared mutex, to write";
  static constexpr int kMostWaiters = 4;
  SharedMutex mutex;

  OfWriter() { mutex.lock_shared(); }
  bool wait(const Until& until) {
    const bool is_mine = mutex.try_lock_until(until);
    if (is_mine) mutex.unlock();
    return is_mine;
  }
  void open() { mutex.unlock_shared(); }
  bool is_whole() {
    const std::unique_lock lock(mutex, std::try_to_lock);
    return lock.owns_lock();
  }
};

struct OfReader {
  static constexpr auto kReason = "shared mutex, to read";
  static constexpr int kMostWaiters = 4;
  SharedMutex mutex;

  OfReader() { mutex.lock(); }
  bool wait(const Until& until) {
    const bool is_mine = mutex.try_lock_shared_until(until);
    if (is_mine) mutex.unlock_shared();
    return is_mine;
  }
  void open() { mutex.unlock(); }
  bool is_whole() {
    const std::unique_lock lock(mutex, std::try_to_lock);
    return lock.owns_lock();
  }
};

struct OfCondition {
  static constexpr auto kReason = "condition variable";
  static constexpr int kMostWaiters = 4;
  Mutex mutex;
  ConditionVariable condition;
  bool ready = false;

  bool wait(const Until& until) {
    std::unique_lock lock(mutex);
    const bool holds = condition.wait_until(lock, until, [this] { return ready; });
    return lock.owns_lock() && holds;
  }
  void open() {
    {
      const std::lock_guard lock(mutex);
      ready = true;
    }
    condition.notify_all();
  }
  bool is_whole() { return wait(Deadline::past()); }
};

struct OfSemaphore {
  static constexpr auto kReason = "semaphore";
  static constexpr int kMostWaiters = 4;
  Semaphore semaphore{0};

  bool wait(const Until& until) {
    const bool is_mine = semaphore.try_acquire_until(until);
    if (is_mine) semaphore.release();
    return is_mine;
  }
  void open() { semaphore.release(); }
  bool is_whole() { return semaphore.available_hint() == 1; }
};

struct OfWaitGroup {
  static constexpr auto kReason = "wait group";
  static constexpr int kMostWaiters = 4;
  WaitGroup group;

  OfWaitGroup() { group.add(); }
  bool wait(const Until& until) { return group.wait_until(until); }
  void open() { group.done(); }
  bool is_whole() { return group.wait_until(Deadline::past()); }
};

struct OfLatch {
  static constexpr auto kReason = "latch";
  static constexpr int kMostWaiters = 4;
  Latch latch{1};

  bool wait(const Until& until) { return latch.wait_until(until); }
  void open() { latch.count_down(); }
  bool is_whole() { return latch.try_wait(); }
};

struct OfBarrier {
  static constexpr auto kReason = "barrier";
  static constexpr int kMostWaiters = 4;
  Barrier<> barrier{2};
  Barrier<>::arrival_token token = barrier.arrive();

  bool wait(const Until& until) { return barrier.wait_until(token, until); }
  void open() { (void)barrier.arrive(); }
  bool is_whole() { return wait(Deadline::past()); }
};

struct OfEvent {
  static constexpr auto kReason = "event";
  static constexpr int kMostWaiters = 4;
  Event event;

  bool wait(const Until& until) { return event.wait_until(until); }
  void open() { event.set(); }
  bool is_whole() { return event.is_set_hint(); }
};

struct OfLatestValue {
  static constexpr auto kReason = "event";
  static constexpr int kMostWaiters = 4;
  LatestValue<int> value{1};

  bool wait(const Until& until) {
    std::uint64_t seen = 1;
    return value.wait_changed_until(seen, until) == 2;
  }
  void open() { value.set(2); }
  bool is_whole() { return value.get() == 2; }
};

// Waits for a full broadcast, which a close opens.
struct OfBroadcast {
  static constexpr auto kReason = "channel send";
  static constexpr int kMostWaiters = 4;
  Broadcast<int> broadcast{1};
  Subscription<int> holder = broadcast.subscribe(OnLag::hold_senders);

  OfBroadcast() { (void)broadcast.send(1); }
  bool wait(const Until& until) { return broadcast.send_until(2, until) == ChannelStatus::closed; }
  void open() { broadcast.close(); }
  bool is_whole() { return holder.receive() == 1 && !holder.receive(); }
};

struct OfSubscription {
  static constexpr auto kReason = "channel receive";
  static constexpr int kMostWaiters = 1;
  Broadcast<int> broadcast{1};
  Subscription<int> subscription = broadcast.subscribe();

  bool wait(const Until& until) {
    std::optional<int> value;
    return subscription.receive_until(value, until) == ChannelStatus::closed;
  }
  void open() { broadcast.close(); }
  bool is_whole() { return !subscription.receive(); }
};

// Its destructor opens it, if that has not happened.
struct OfJoin {
  static constexpr auto kReason = "join";
  static constexpr int kMostWaiters = 1;
  Event gate;
  JoinHandle<void> handle = spawn([this] { gate.wait(); });

  ~OfJoin() { gate.set(); }
  bool wait(const Until& until) { return handle.wait_until(until); }
  void open() {
    gate.set();
    while (!handle.done()) this_fiber::yield();
  }
  bool is_whole() { return handle.done(); }
};

}  // namespace weft::test
