// Counts the samples of a profile, stack by stack.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

namespace weft::runtime {

// Describes a fiber and its call stack.
struct ProfileStack {
  std::string fiber;                     // Its name; empty: none.
  const std::type_info* type = nullptr;  // The type of its callable; null: unknown.
  std::vector<const void*> calls;        // Return addresses, innermost first.
  std::string_view reason;               // Why it waits; empty: it does not wait. Static text.

  friend auto operator<=>(const ProfileStack&, const ProfileStack&) = default;
};

// Stacks, each with how often it was seen, and with a time in nanoseconds.
struct Profile {
  struct Values {
    std::uint64_t count = 0;
    std::int64_t nanoseconds = 0;
  };
  // The meaning of the values in pprof's terms: "samples" and "cpu", for example.
  std::string_view counts;
  std::string_view times;
  std::chrono::nanoseconds period{0};    // The time between samples; 0: it varies.
  std::int64_t begin = 0;                // Nanoseconds since 1970.
  std::chrono::nanoseconds duration{0};  // The length of the recording.
  std::uint64_t lost = 0;                // Samples that were lost.
  std::map<ProfileStack, Values> stacks;

  // Adds to a stack. Once there are 50 000 stacks, a new stack is counted without its calls. Throws
  // std::bad_alloc.
  void add(ProfileStack stack, Values values);
};

// Returns folded stacks, outermost call first: the fiber's name, its callable, its calls and the
// reason in brackets; then nanoseconds. Takes kilobytes of stack. Throws std::bad_alloc.
[[nodiscard]] std::string as_folded(const Profile& profile);

// Returns the uncompressed message of profile.proto, with both values of each stack. Names of
// fibers, of callables and of reasons appear as functions without an address; the label "fiber"
// also has the fiber's name. Takes as much stack as as_folded(), and throws the same exceptions.
[[nodiscard]] std::string as_pprof(const Profile& profile);

}  // namespace weft::runtime
