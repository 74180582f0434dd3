#include "bench/model/policy.hpp"

#include <functional>
#include <map>
#include <stdexcept>

namespace weft::bench::model {

namespace {

VictimOrder order_called(const std::string& name) {
  if (name == "random_start") return VictimOrder::random_start;
  if (name == "ring") return VictimOrder::ring;
  if (name == "last_first") return VictimOrder::last_first;
  if (name == "random") return VictimOrder::random;
  throw std::invalid_argument("there is no order called " + name);
}

Time microseconds(const std::string& value) { return from_nanoseconds(std::stod(value) * 1e3); }

using Setter = std::function<void(Policy&, const std::string&)>;

const std::map<std::string, Setter>& setters() {
  static const std::map<std::string, Setter> all = {
      {"search_us", [](auto& p, auto& v) { p.search_time = microseconds(v); }},
      {"worth_us", [](auto& p, auto& v) { p.worth_stealing = microseconds(v); }},
      {"searching_share", [](auto& p, auto& v) { p.searching_share = std::stod(v); }},
      {"order", [](auto& p, auto& v) { p.order = order_called(v); }},
      {"wake_share", [](auto& p, auto& v) { p.wake_share = std::stod(v); }},
      {"thief_wakes",
       [](auto& p, auto& v) { p.wakes_of_a_thief = static_cast<unsigned>(std::stoul(v)); }},
      {"steals", [](auto& p, auto& v) { p.steals_half = v == "half"; }},
      {"hint_line", [](auto& p, auto& v) { p.has_hint_line = v == "yes"; }},
      {"retries", [](auto& p, auto& v) { p.retries = v == "yes"; }},
      {"most_searching",
       [](auto& p, auto& v) { p.most_searching = static_cast<unsigned>(std::stoul(v)); }},
      {"nap_us", [](auto& p, auto& v) { p.longest_nap = microseconds(v); }},
      {"push_ends_nap",
       [](auto& p, auto& v) { p.push_ends_nap = static_cast<unsigned>(std::stoul(v)); }},
      {"surely_waiting",
       [](auto& p, auto& v) { p.surely_waiting = static_cast<unsigned>(std::stoul(v)); }},
  };
  return all;
}

}  // namespace

void set_choice(Policy& policy, const std::string& name, const std::string& value) {
  const auto found = setters().find(name);
  if (found == setters().end()) throw std::invalid_argument("there is no choice called " + name);
  found->second(policy, value);
}

}  // namespace weft::bench::model
