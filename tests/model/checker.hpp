// The interface of the checker for models. The checker is compiled only in checker.cpp, once for
// each number of threads, and not for each test.
#pragma once

#include <weft/detail/atomic.hpp>

#include <cstddef>
#include <new>

namespace weft::model {

// The functions of a test.
struct Test {
  int threads;
  std::size_t size;
  void (*make)(void* place);
  void (*destroy)(void* test);
  void (*before)(void* test);
  void (*thread)(void* test, unsigned index);
  void (*after)(void* test);
};

template <class T>
inline constexpr Test kTestOf = {
    .threads = T::params::thread_count,
    .size = sizeof(T),
    .make = [](void* place) { ::new (place) T(); },
    .destroy = [](void* test) { static_cast<T*>(test)->~T(); },
    .before = [](void* test) { static_cast<T*>(test)->before(); },
    .thread = [](void* test, unsigned index) { static_cast<T*>(test)->thread(index); },
    .after = [](void* test) { static_cast<T*>(test)->after(); },
};

// Explores the interleavings of a test with the search that the parameters select. Returns false if
// an interleaving fails; if `shows` is set, runs that interleaving again with its trace.
[[nodiscard]] bool simulate(const Test& test, rl::test_params& parameters, bool shows);

}  // namespace weft::model
