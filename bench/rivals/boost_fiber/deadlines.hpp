// W7b: deadlines that are set and cancelled.
#pragma once

#include <algorithm>
#include <boost/fiber/all.hpp>
#include <chrono>
#include <cstdint>

#include "bench/rivals/measure.hpp"
#include "fiber_parts.hpp"

namespace rivals {

// Two fibers pass a value back and forth, with deadlines that are set and cancelled, while other
// fibers also wait with deadlines.
inline Metrics deadlines_met(const Request& request) {
  using Channel = fibers::unbuffered_channel<std::int64_t>;
  const std::int64_t pending = request.count(100'000);
  refuse_if_short_of_memory(pending);
  Channel gate;
  WaitGroup waiting;
  waiting.add(pending);
  for (std::int64_t i = 0; i < pending; ++i) {
    spawn(fibers::launch::post, [&gate, &waiting, i] {
      std::int64_t ignored = 0;
      gate.pop_wait_for(ignored, std::chrono::seconds(1000 + i % 1000));
      waiting.done();
    }).detach();
  }
  boost::this_fiber::yield();
  const auto run = [](std::int64_t trips) {
    const auto patience = std::chrono::seconds(100);
    Channel ping;
    Channel pong;
    fibers::fiber echo = spawn(fibers::launch::post, [&] {
      std::int64_t value = 0;
      while (ping.pop_wait_for(value, patience) == fibers::channel_op_status::success) {
        pong.push(value);
      }
    });
    for (std::int64_t trip = 0; trip < trips; ++trip) {
      ping.push(trip);
      std::int64_t value = -1;
      pong.pop_wait_for(value, patience);
      expect("reply", value, trip);
    }
    ping.close();
    echo.join();
  };
  const double ns = per_unit(std::max<std::int64_t>(1, request.count(1'000'000) / 2), run) / 2;
  gate.close();
  waiting.wait();
  return {{"ns_per_deadline", ns}};
}

}  // namespace rivals
