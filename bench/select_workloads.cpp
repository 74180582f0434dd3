// W7b and W12: deadlines that do not expire, and waits for one of several channels.
#include <array>
#include <chrono>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/select.hpp>
#include <weft/wait_group.hpp>

#include "bench/workload.hpp"

namespace weft::bench {

namespace {

constexpr std::size_t kChannels = 4;
using Channels = std::array<Channel<std::int64_t>, kChannels>;

Channels make_channels(std::size_t capacity) {
  return {Channel<std::int64_t>(capacity), Channel<std::int64_t>(capacity),
          Channel<std::int64_t>(capacity), Channel<std::int64_t>(capacity)};
}

}  // namespace

// Selects over four channels that each have a value, and puts back each received value.
Metrics select_ready(const Request& request) {
  const double per_select = per_unit(request.count(2'000'000), [](std::size_t count) {
    Channels channels = make_channels(1);
    for (Channel<std::int64_t>& channel : channels) (void)channel.send(1);
    std::int64_t sum = 0;
    const auto add = [&sum](std::optional<std::int64_t> value) { sum += *value; };
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t chosen = select(on_receive(channels[0], add), on_receive(channels[1], add),
                                        on_receive(channels[2], add), on_receive(channels[3], add));
      (void)channels[chosen].send(1);
    }
    expect("the sum", sum, static_cast<std::int64_t>(count));
  });
  return {{"ns_per_select", per_select}};
}

// Selects over four unbuffered channels, to which another fiber sends in turn.
Metrics select_becomes_ready(const Request& request) {
  const double per_select = per_unit(request.count(1'000'000), [](std::size_t count) {
    Channels channels = make_channels(0);
    auto sender = spawn([&channels, count] {
      for (std::size_t i = 0; i < count; ++i) (void)channels[i % kChannels].send(1);
    });
    std::int64_t sum = 0;
    const auto add = [&sum](std::optional<std::int64_t> value) { sum += *value; };
    for (std::size_t i = 0; i < count; ++i) {
      select(on_receive(channels[0], add), on_receive(channels[1], add),
             on_receive(channels[2], add), on_receive(channels[3], add));
    }
    expect("the sum", sum, static_cast<std::int64_t>(count));
    sender.join();
  });
  return {{"ns_per_select", per_select}};
}

// Two fibers pass a value back and forth; each receive sets a deadline and cancels it when the
// value arrives. Other fibers wait meanwhile, with deadlines that are spread over 1000 s. All of
// these fibers have started before the measurement, which would otherwise include their starts.
Metrics deadlines_met(const Request& request) {
  const std::size_t pending = request.count(100'000);
  Channel<std::int64_t> gate;
  WaitGroup waiting;
  waiting.add(pending);
  WaitGroup begun;
  begun.add(pending);
  for (std::size_t i = 0; i < pending; ++i) {
    go([&gate, &waiting, &begun, i] {
      begun.done();
      std::optional<std::int64_t> value;
      (void)gate.receive_for(value, std::chrono::seconds(1000 + i % 1000));
      waiting.done();
    });
  }
  begun.wait();
  const double per_trip = per_unit(request.count(1'000'000) / 2, [](std::size_t count) {
    Channel<std::int64_t> ping;
    Channel<std::int64_t> pong;
    const auto patience = std::chrono::seconds(100);
    auto partner = spawn([&] {
      std::optional<std::int64_t> value;
      while (ping.receive_for(value, patience) == ChannelStatus::ok) (void)pong.send(*value);
    });
    std::optional<std::int64_t> reply;
    for (std::size_t i = 0; i < count; ++i) {
      (void)ping.send(static_cast<std::int64_t>(i));
      (void)pong.receive_for(reply, patience);
      expect("the reply", reply.value_or(-1), static_cast<std::int64_t>(i));
    }
    ping.close();
    partner.join();
  });
  gate.close();
  waiting.wait();
  return {{"ns_per_deadline", per_trip / 2}};
}

}  // namespace weft::bench
