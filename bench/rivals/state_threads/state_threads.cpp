// The State Threads side of the comparison: one workload per process, one JSON line of results.
//
// All its threads share one kernel thread and need no atomic operation, so its times are a lower
// bound for a switch and a queue. It maps each stack separately, with guard pages on either side.
// So the kernel's limit of 65 530 mappings ends every row with more than some 20 000 live threads.
// It has neither channels nor yield; the channels here are made of condition variables.

#include <st.h>

#include <vector>

#include "bench/rivals/program.hpp"

namespace {

using namespace rivals;

constexpr std::int64_t kBatch = 100;

// `body` must outlive the thread.
template <class Body>
void spawn(const Body& body) {
  const auto start = [](void* argument) -> void* {
    (*static_cast<const Body*>(argument))();
    return nullptr;
  };
  if (st_thread_create(start, const_cast<Body*>(&body), 0, 0) == nullptr)
    throw std::runtime_error("No more threads.");
}

class WaitGroup {
 public:
  void add(std::int64_t count) { left_ += count; }
  void done() {
    if (--left_ == 0) st_cond_signal(all_done_);
  }
  void wait() {
    while (left_ > 0) st_cond_wait(all_done_);
  }

 private:
  std::int64_t left_ = 0;
  st_cond_t all_done_ = st_cond_new();
};

// Is a channel. With one place, it is the closest to a rendezvous that condition variables allow.
class Channel {
 public:
  explicit Channel(std::size_t capacity) : buffer_(capacity) {}
  void send(std::int64_t value) {
    while (count_ == buffer_.size()) st_cond_wait(not_full_);
    buffer_[(head_ + count_++) % buffer_.size()] = value;
    st_cond_signal(not_empty_);
  }
  std::int64_t receive() {
    while (count_ == 0) st_cond_wait(not_empty_);
    const std::int64_t value = buffer_[head_];
    head_ = (head_ + 1) % buffer_.size();
    --count_;
    st_cond_signal(not_full_);
    return value;
  }

 private:
  std::vector<std::int64_t> buffer_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
  st_cond_t not_empty_ = st_cond_new();
  st_cond_t not_full_ = st_cond_new();
};

Metrics spawn_batches(const Request& request) {
  WaitGroup group;
  const auto body = [&group] { group.done(); };
  const auto run = [&](std::int64_t batches) {
    for (std::int64_t batch = 0; batch < batches; ++batch) {
      group.add(kBatch);
      for (std::int64_t i = 0; i < kBatch; ++i) spawn(body);
      group.wait();
    }
  };
  const std::int64_t batches = std::max<std::int64_t>(1, request.count(2'000'000) / kBatch);
  return {{"ns_per_fiber", per_unit(batches, run) / kBatch}};
}

Metrics ping_pong(const Request& request) {
  Channel ping(1);
  Channel pong(1);
  const auto partner = [&] {
    for (;;) pong.send(ping.receive());
  };
  spawn(partner);
  const auto run = [&](std::int64_t trips) {
    for (std::int64_t trip = 0; trip < trips; ++trip) {
      ping.send(trip);
      expect("reply", pong.receive(), trip);
    }
  };
  return {{"ns_per_round_trip", per_unit(request.count(1'000'000), run)}};
}

Metrics buffered_items(const Request& request) {
  const auto run = [&](std::int64_t items) {
    Channel channel(128);
    WaitGroup group;
    std::int64_t sum = 0;
    const auto consumer = [&] {
      for (std::int64_t i = 0; i < items; ++i) sum += channel.receive();
      group.done();
    };
    group.add(1);
    spawn(consumer);
    for (std::int64_t i = 0; i < items; ++i) channel.send(i);
    group.wait();
    expect("sum", sum, items * (items - 1) / 2);
  };
  return {{"ns_per_item", per_unit(request.count(5'000'000), run)}};
}

Metrics contended_mutex(const Request& request) {
  constexpr std::int64_t kThreads = 8;
  st_mutex_t mutex = st_mutex_new();
  const auto run = [&](std::int64_t each) {
    WaitGroup group;
    std::int64_t counter = 0;
    const auto body = [&] {
      for (std::int64_t i = 0; i < each; ++i) {
        st_mutex_lock(mutex);
        ++counter;
        st_mutex_unlock(mutex);
      }
      group.done();
    };
    group.add(kThreads);
    for (std::int64_t i = 0; i < kThreads; ++i) spawn(body);
    group.wait();
    expect("counter", counter, each * kThreads);
  };
  return {{"ns_per_op", per_unit(request.count(500'000), run) / kThreads}};
}

template <class Run>
auto on_one_thread(Run run) {
  return [run](const Request& request) {
    if (request.workers > 1) throw Refusal("State Threads run on one thread.");
    if (st_init() != 0) throw std::runtime_error("st_init failed.");
    return run(request);
  };
}

}  // namespace

int main(int argc, char** argv) {
  const Program program{"state_threads",
                        "State Threads",
                        {{"W1", on_one_thread(spawn_batches)},
                         {"W3_pingpong", on_one_thread(ping_pong)},
                         {"W3_buffered", on_one_thread(buffered_items)},
                         {"W4", on_one_thread(contended_mutex)}}};
  return exit_code_of(program, argc, argv);
}
