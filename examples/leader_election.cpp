// Five hosts elect a leader, and a simulation checks that a term never has two leaders.
//
//   leader_election                    finds the seed at which nodes that forget their vote fail,
//                                      then runs all seeds with nodes that remember it
//   leader_election --story            also shows what happened before the failure
//   WEFT_SIM_SEED=17 leader_election   one seed alone
//
// A node that hears of no leader for a while asks all nodes for their votes in a new term. With a
// majority it becomes the leader of that term, and announces this repeatedly. Datagrams are lost,
// duplicated and delayed; hosts are cut off, pause, crash and restart. A vote must survive a crash
// of its node, or that node could vote twice in one term.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <vector>
#include <weft/net/datagram_socket.hpp>
#include <weft/net/dial.hpp>
#include <weft/sim.hpp>

#include "command_line.hpp"

namespace {

using namespace std::chrono_literals;
using weft::net::Address;

constexpr int kNodes = 5;
constexpr std::uint16_t kPort = 7000;

// The data of a node that must survive a crash; a real node would store them in a file.
struct Ballot {
  std::uint64_t term = 0;
  int voted_for = -1;
};

// All leaders so far, by term. The simulation records them for its check.
using Leaders = std::map<std::uint64_t, int>;

struct Message {
  enum Kind : std::uint32_t { vote_for_me, yes, i_lead };
  Kind kind;
  int from;
  std::uint64_t term;
};

std::string name_of(int node) { return "node" + std::to_string(node); }

class Node {
 public:
  Node(int id, Ballot& ballot, Leaders& leaders) : id_(id), ballot_(ballot), leaders_(leaders) {}

  void run() {
    socket_ = weft::net::UdpSocket::bind(Address::any_v4(kPort)).value;
    for (weft::Deadline due = next_election();;) {
      Message message{};
      const auto got =
          socket_.receive(std::as_writable_bytes(std::span(&message, 1)), weft::Until(due));
      if (got.error) {
        is_leader_ ? tell_all(Message::i_lead) : ask_for_votes();
        due = is_leader_ ? weft::Deadline::after(50ms) : next_election();
      } else if (hear(message)) {
        due = next_election();
      }
    }
  }

 private:
  static weft::Deadline next_election() {
    return weft::Deadline::after(150ms + std::chrono::milliseconds(weft::sim::random(150)));
  }

  void send(Message::Kind kind, int to) {
    const Message message{kind, id_, ballot_.term};
    const auto address = weft::net::resolve(name_of(to), kPort).value.at(0);
    (void)socket_.send_to(std::as_bytes(std::span(&message, 1)), address);
  }
  void tell_all(Message::Kind kind) {
    for (int node = 0; node < kNodes; ++node) {
      if (node != id_) send(kind, node);
    }
  }
  void ask_for_votes() {
    ballot_ = {ballot_.term + 1, id_};
    votes_ = {};
    votes_.at(static_cast<std::size_t>(id_)) = true;
    tell_all(Message::vote_for_me);
  }

  // Handles a message; returns whether it postpones the node's next request for votes.
  bool hear(const Message& message) {
    if (message.term < ballot_.term) return false;
    if (message.term > ballot_.term) {
      ballot_ = {message.term, -1};
      is_leader_ = false;
    }
    switch (message.kind) {
      case Message::vote_for_me:
        if (ballot_.voted_for != -1 && ballot_.voted_for != message.from) return false;
        ballot_.voted_for = message.from;
        send(Message::yes, message.from);
        return true;
      case Message::yes:
        votes_.at(static_cast<std::size_t>(message.from)) = true;
        if (!is_leader_ && std::ranges::count(votes_, true) > kNodes / 2) lead();
        return is_leader_;
      case Message::i_lead:
        return true;
    }
    return false;
  }
  void lead() {
    is_leader_ = true;
    weft::sim::note("leads in term " + std::to_string(ballot_.term));
    const auto [leader, is_first] = leaders_.try_emplace(ballot_.term, id_);
    weft::sim::check(is_first || leader->second == id_,
                     "no term has two leaders: term " + std::to_string(ballot_.term));
    tell_all(Message::i_lead);
  }

  const int id_;
  Ballot& ballot_;
  Leaders& leaders_;
  weft::net::UdpSocket socket_;
  std::array<bool, kNodes> votes_{};
  bool is_leader_ = false;
};

// Simulates five nodes and their faults for half a minute.
void elect(weft::sim::World& world, bool remembers) {
  std::array<Ballot, kNodes> disks;
  Leaders leaders;
  world.network().latency(1ms, 60ms).loss(0.05).duplication(0.05);
  for (int node = 0; node < kNodes; ++node) {
    world.host(name_of(node), [&, node] {
      Ballot forgotten;
      Node(node, remembers ? disks.at(static_cast<std::size_t>(node)) : forgotten, leaders).run();
    });
  }
  world.disturb({.restarts = 60, .within = 20s, .shortest = 1ms, .longest = 300ms});
  world.disturb({.partitions = 10, .stops = 10, .within = 20s, .longest = 3s});
  world.run_for(25s);
  world.heal();
  world.run_for(5s);
  weft::sim::check(!leaders.empty(), "somebody has led");
}

int run(std::uint64_t seeds, bool shows_story) {
  try {
    (void)weft::sim::explore({.seeds = seeds}, [](auto& world) { elect(world, false); });
    std::printf("Nodes that forget their vote: no failure in %llu seeds.\n",
                static_cast<unsigned long long>(seeds));
  } catch (const weft::sim::Failure& failure) {
    std::printf("Nodes that forget their vote fail with seed %llu:\n%s\n",
                static_cast<unsigned long long>(failure.seed()), failure.reason().c_str());
    if (shows_story) std::printf("%s\n", failure.story().c_str());
  }
  const auto report = weft::sim::explore({.seeds = seeds}, [](auto& world) { elect(world, true); });
  std::printf("Nodes that remember it: no failure in %llu seeds, %lld virtual minutes.\n",
              static_cast<unsigned long long>(report.runs),
              static_cast<long long>(report.simulated / 1min));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("leader_election", "Five hosts elect a leader, in a simulation.");
  std::uint64_t seeds = 200;
  bool shows_story = false;
  line.add("--seeds", seeds, 1, 1'000'000, "runs, each with other faults");
  line.add_flag("--story", shows_story, "show what happened before a failure");
  return line.run(argc, argv, [&] { return run(seeds, shows_story); });
}
