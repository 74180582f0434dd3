// tools/lab/mutants/schemata.py adds this header to a copy of the source. There, only the place
// whose number is WEFT_MUTANT has its fault.
#pragma once
#pragma GCC system_header  // The comparisons in these templates would cause warnings.

#include <type_traits>

namespace weft_mutant {

constexpr unsigned kMost = 65536;  // The maximum number of faults; bytes of schemata.py's file.

// choose() sets both variables before other constructors run. They never change later.
extern unsigned chosen;         // The number of the selected fault; 0: none.
extern unsigned char* reached;  // A byte per fault that a test reaches; null: not recorded.

// Returns true if the fault is selected. Called only where the fault makes a difference.
constexpr bool is_chosen(unsigned number) noexcept {
  if (std::is_constant_evaluated()) return false;
  if (reached != nullptr) [[unlikely]]
    reached[number] = 1;
  return chosen == number;
}

// Replaces the 1 in `x + 1` and `x - 1`.
constexpr int one(unsigned number) noexcept { return is_chosen(number) ? 0 : 1; }

// Replaces the operator of a comparison, between two operators of the same precedence.
template <char kOperator>
struct Comparison {
  unsigned number;
};
template <class A, char kOperator>
struct Half {
  // A scalar is copied, because a built-in operator reads its left side first.
  std::conditional_t<std::is_scalar_v<A>, A, const A&> left;
  unsigned number;
};

template <class A, char kOperator>
constexpr Half<A, kOperator> operator<(const A& left, Comparison<kOperator> comparison) noexcept {
  return {left, comparison.number};
}
template <class A, char kOperator>
constexpr Half<A, kOperator> operator==(const A& left, Comparison<kOperator> comparison) noexcept {
  return {left, comparison.number};
}

template <class A, class B, char kOperator>
constexpr bool compare(const Half<A, kOperator>& half, const B& right) {
  const auto& left = half.left;
  bool before, other;
  if constexpr (kOperator == '=') {
    before = static_cast<bool>(left == right);
    other = !before;
  } else if constexpr (kOperator == '!') {
    before = static_cast<bool>(left != right);
    other = !before;
  } else if constexpr (kOperator == 'l') {
    before = static_cast<bool>(left <= right);
    other = static_cast<bool>(left < right);
  } else if constexpr (kOperator == 'g') {
    before = static_cast<bool>(left >= right);
    other = static_cast<bool>(left > right);
  } else {
    before = static_cast<bool>(left < right);
    other = static_cast<bool>(left <= right);
  }
  return before != other && is_chosen(half.number) ? other : before;
}
template <class A, class B, char kOperator>
constexpr bool operator>(const Half<A, kOperator>& half, const B& right) {
  return compare(half, right);
}
template <class A, class B, char kOperator>
constexpr bool operator==(const Half<A, kOperator>& half, const B& right) {
  return compare(half, right);
}

// Replaces the `!` of a condition, or precedes a condition without one. `->*` binds weaker than
// calls, and stronger than the operators that may follow.
struct Condition {
  unsigned number;
  bool negates;
};
template <class A>
constexpr bool operator->*(Condition condition, const A& value) {
  return static_cast<bool>(value) != (condition.negates != is_chosen(condition.number));
}

}  // namespace weft_mutant
