// Tools of all models: data that the checker examines for races, and the main program.
//
// A model is a program. Without arguments it explores the healthy protocol, which must pass, and
// then each way of breaking it, which must be found:
//   --healthy   the first only        --broken   the second only
//   --mutate    relaxes each ordered place separately, and reports places that the model misses
//   --trace     also shows the checker's trace of failures in broken runs
#pragma once

#include <weft/detail/atomic.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

#include "tests/model/checker.hpp"

namespace weft::model {

// Holds a plain variable. The checker reports accesses that no synchronization orders, and accesses
// after its destruction.
template <class T>
class Data {
 public:
  explicit Data(T initial) : value_(initial) {}
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;
  [[nodiscard]] T get(Where where = Where::current()) const { return value_.value(info_of(where)); }
  void set(T value, Where where = Where::current()) { value_.value(info_of(where)) = value; }

 private:
  Mortal<rl::var<T>> value_;
};

// The checker does not align test suites, so this class aligns a value.
template <class T>
class Aligned {
 public:
  template <class... Arguments>
  explicit Aligned(Arguments&&... arguments) {
    void* place = bytes_;
    std::size_t space = sizeof bytes_;
    value_ = ::new (std::align(alignof(T), sizeof(T), place, space))
        T(std::forward<Arguments>(arguments)...);
  }
  ~Aligned() { value_->~T(); }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  T& operator*() noexcept { return *value_; }
  T* operator->() noexcept { return value_; }

 private:
  unsigned char bytes_[sizeof(T) + alignof(T)];
  T* value_;
};

// If `condition` is false, ends the interleaving as failed. Code that is noexcept may call it.
inline void expect(bool condition, const char* sentence, Where where = Where::current()) {
  if (!condition) {
    rl::ctx().fail_test(sentence, rl::test_result_user_assert_failed, info_of(where));
  }
}

inline void let_others_run(Where where = Where::current()) { rl::yield(1, info_of(where)); }
// Returns a choice that explorations vary.
[[nodiscard]] inline bool perhaps() { return rl::rand(2) == 0; }

// The number of a bug that broken runs put into the model's replacements and sequences; 0: no bug.
inline int fault = 0;

// --- Time ----------------------------------------------------------------------------------------

// The time is first kEarly, and kLate from a moment that explorations vary. kSoon is in between.
inline constexpr std::int64_t kEarly = std::int64_t{1} << 30;
inline constexpr std::int64_t kSoon = std::int64_t{1} << 31;
inline constexpr std::int64_t kLate = std::int64_t{1} << 32;
inline bool time_passes = false;  // Set by a test with a clock.
inline bool is_late = false;

[[nodiscard]] inline std::int64_t now() {
  if (time_passes && !is_late && rl::rand(4) == 0) is_late = true;
  return is_late ? kLate : kEarly;
}

inline void reset_time(bool passes) {
  time_passes = passes;
  is_late = false;
}

// --- The program ---------------------------------------------------------------------------------

struct Exploration {
  std::string name;
  const Test& test;
  rl::scheduler_type_e search = rl::sched_random;
  unsigned count = 0;  // Interleavings of a random search, or the bound on context switches.
};

template <class T>
[[nodiscard]] Exploration random_search(const char* name, unsigned interleavings) {
  return {name, kTestOf<T>, rl::sched_random, interleavings};
}
// Explores all interleavings with at most `bound` preemptions.
template <class T>
[[nodiscard]] Exploration bounded_search(const char* name, unsigned bound) {
  return {name, kTestOf<T>, rl::sched_bound, bound};
}

struct Break {
  std::string name;
  Weakening weakening;
  int fault = 0;
};
[[nodiscard]] inline Break relaxed_orders() { return {"all orders relaxed", {.orders = true}}; }
[[nodiscard]] inline Break no_fences() { return {"no fences", {.fences = true}}; }
[[nodiscard]] inline Break broken_by(int fault, const char* name) { return {name, {}, fault}; }

// Writes the checker's output to stderr, or drops it. Allocates nothing, because the checker tracks
// allocations.
class Output : public std::streambuf {
 public:
  bool is_shown = false;

 protected:
  int overflow(int character) override {
    if (is_shown) std::fputc(character, stderr);
    return character == EOF ? 0 : character;
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    if (is_shown) std::fwrite(text, 1, static_cast<std::size_t>(size), stderr);
    return size;
  }
};

class Program {
 public:
  Program(const char* name, std::vector<Exploration> explorations, std::vector<Break> breaks)
      : name_(name), explorations_(std::move(explorations)), breaks_(std::move(breaks)) {}

  int run(int count, char** arguments) {
    bool healthy = true;
    bool broken = true;
    for (int i = 1; i < count; ++i) {
      const std::string argument = arguments[i];
      if (argument == "--trace") {
        traces_ = true;
      } else if (argument == "--healthy") {
        broken = false;
      } else if (argument == "--broken") {
        healthy = false;
      } else if (argument == "--mutate") {
        return mutate();
      } else {
        std::fprintf(stderr, "usage: %s [--healthy | --broken | --mutate] [--trace]\n", name_);
        return 2;
      }
    }
    if (healthy && !explore_healthy()) return 1;
    return broken && !explore_broken() ? 1 : 0;
  }

 private:
  static constexpr unsigned kBeginning = 1'000;  // Interleavings of a random search.
  static constexpr unsigned kAll = ~0U;

  // Returns the number of explored interleavings: negative if the last one failed, otherwise
  // positive. A random search explores at most `most`.
  long explore(const Exploration& exploration, bool shows, unsigned most = kAll) {
    Output output;
    output.is_shown = shows;
    std::ostream stream(&output);
    Output nowhere;
    std::ostream progress(&nowhere);
    rl::test_params parameters;
    parameters.output_stream = &stream;
    parameters.progress_stream = &progress;
    parameters.search_type = exploration.search;
    parameters.execution_depth_limit = 20'000;
    if (exploration.search == rl::sched_random)
      parameters.iteration_count = std::min(exploration.count, most);
    if (exploration.search == rl::sched_bound) parameters.context_bound = exploration.count;
    const bool passed = simulate(exploration.test, parameters, shows);
    const long interleavings = static_cast<long>(parameters.stop_iteration);
    return passed ? interleavings : -interleavings;
  }

  bool explore_healthy() {
    long sum = 0;
    for (const Exploration& exploration : explorations_) {
      const long interleavings = explore(exploration, true);
      if (interleavings < 0) {
        std::printf("model %s: FAILED in '%s' at interleaving %ld\n", name_,
                    exploration.name.c_str(), -interleavings);
        return false;
      }
      sum += interleavings;
      std::fprintf(stderr, "  %-40s %9ld\n", exploration.name.c_str(), interleavings);
    }
    std::printf("model %s: %ld interleavings, ok\n", name_, sum);
    return true;
  }

  // Returns whether an exploration fails, and stores its name in `where`. Most bugs are found soon
  // by one of the explorations, so each random search begins before any search continues.
  bool is_found(std::string& where) {
    for (const unsigned most : {kBeginning, kAll}) {
      for (const Exploration& exploration : explorations_) {
        if (most != kAll && exploration.search != rl::sched_random) continue;
        const long interleavings = explore(exploration, traces_, most);
        if (interleavings >= 0) continue;
        where = "'" + exploration.name + "', interleaving " + std::to_string(-interleavings);
        return true;
      }
    }
    return false;
  }

  bool explore_broken() {
    std::size_t missed = 0;
    for (const Break& broken : breaks_) {
      weakening = broken.weakening;
      fault = broken.fault;
      std::string where;
      const bool found = is_found(where);
      missed += found ? 0 : 1;
      std::printf("model %s, broken (%s): %s\n", name_, broken.name.c_str(),
                  found ? ("found by " + where).c_str() : "NOT FOUND");
    }
    weakening = {};
    fault = 0;
    return missed == 0;
  }

  int mutate() {
    weakening.records_sites = true;
    if (!explore_healthy()) return 1;
    std::string where;
    for (std::size_t i = 0; i < site_count; ++i) {
      if (std::strstr(sites[i].file, "tests/model/") != nullptr) continue;
      weakening = {.site = sites[i]};
      const bool found = is_found(where);
      std::printf("model %s: %s:%u:%u relaxed: %s\n", name_, sites[i].file, sites[i].line,
                  sites[i].column, found ? ("found by " + where).c_str() : "not found");
    }
    return 0;
  }

  const char* name_;
  std::vector<Exploration> explorations_;
  std::vector<Break> breaks_;
  bool traces_ = false;
};

}  // namespace weft::model

// Deadlines read the clock of the model.
std::chrono::steady_clock::time_point std::chrono::steady_clock::now() noexcept {
  return time_point(duration(weft::model::now()));
}

// The checker replaces the other forms of delete, to find leaks, but not this form.
void operator delete(void* memory, std::size_t) noexcept { ::operator delete(memory); }
void operator delete[](void* memory, std::size_t) noexcept { ::operator delete[](memory); }
