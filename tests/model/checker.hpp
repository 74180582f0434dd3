// The checker as the models see it. It is compiled once, in checker.cpp, and for each number of
// threads, not for each test of each model.
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

// Explores a test by the search that the parameters name. Returns false if an interleaving fails;
// if `shows`, that one is run once more with its trace.
[[nodiscard]] bool simulate(const Test& test, rl::test_params& parameters, bool shows);

}  // namespace weft::model
