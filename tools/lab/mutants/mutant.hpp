// The header that tools/lab/mutants/schemata.py puts into a copy of the source: each place does as
// before, unless it is the one that WEFT_MUTANT names.
#pragma once
#pragma GCC system_header  // The templates' comparisons cause warnings that the source does not.

#include <type_traits>

namespace weft_mutant {

constexpr unsigned kMost = 65536;  // Faults; and bytes of the file that schemata.py makes.

// Both are set before anything else runs, and never again.
extern unsigned chosen;         // The number of the fault; 0 for none.
extern unsigned char* reached;  // When it is found out what a test reaches: a byte for each fault.

// Whether the fault is to be. It is called where that would make a difference only.
constexpr bool is_chosen(unsigned number) noexcept {
  if (std::is_constant_evaluated()) return false;
  if (reached != nullptr) [[unlikely]]
    reached[number] = 1;
  return chosen == number;
}

// For the 1 of `x + 1` and `x - 1`.
constexpr int one(unsigned number) noexcept { return is_chosen(number) ? 0 : 1; }

// For the operator of a comparison, between two operators of the same precedence.
template <char kOperator>
struct Comparison {
  unsigned number;
};
template <class A, char kOperator>
struct Half {
  // As a built-in operator does, which reads its left side first.
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

// For the `!` of a condition, and in front of one without. `->*` binds less than calls, and more
// than what follows.
struct Condition {
  unsigned number;
  bool negates;
};
template <class A>
constexpr bool operator->*(Condition condition, const A& value) {
  return static_cast<bool>(value) != (condition.negates != is_chosen(condition.number));
}

}  // namespace weft_mutant
