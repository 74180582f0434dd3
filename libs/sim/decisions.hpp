// The decisions of a run, for comparisons of two runs of one seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft::sim {

// One decision.
struct Decision {
  std::uint64_t actor;  // The fiber's number; all ones for a random number.
  std::uint64_t value;
  friend bool operator==(const Decision&, const Decision&) = default;
};

// Keeps the decisions of a run, compares them with the decisions of another run, or ignores them.
class DecisionLog {
 public:
  void keep() noexcept { keeps_ = true; }
  [[nodiscard]] std::vector<Decision> take() noexcept { return std::move(decisions_); }
  // Compares all later decisions with `decisions`, which must outlive the log.
  void expect(const std::vector<Decision>& decisions) noexcept { expected_ = &decisions; }
  // Adds the next decision. Returns in words how the decision differs from the expected decision.
  [[nodiscard]] std::optional<std::string> add(Decision decision) {
    if (keeps_) decisions_.push_back(decision);
    if (expected_ == nullptr) return std::nullopt;
    const std::size_t number = compared_++;
    if (number < expected_->size() && (*expected_)[number] == decision) return std::nullopt;
    return "decision " + std::to_string(number + 1) + " differs between two runs of one seed: " +
           (number < expected_->size() ? words((*expected_)[number]) : "there was none") +
           ", and then " + words(decision);
  }

 private:
  static std::string words(const Decision& decision) {
    if (decision.actor == ~std::uint64_t{0}) return "a random number was drawn";
    return "fiber " + std::to_string(decision.actor) + " was chosen of " +
           std::to_string(decision.value) + " that were ready";
  }

  bool keeps_ = false;
  std::vector<Decision> decisions_;
  const std::vector<Decision>* expected_ = nullptr;
  std::size_t compared_ = 0;
};

}  // namespace weft::sim
