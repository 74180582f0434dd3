#include "tests/model/checker.hpp"

#include <cstdio>
#include <cstdlib>

namespace weft::model {

namespace {

// The explored test, and its storage.
const Test* explored = nullptr;
void* place = nullptr;

// Adapts a test with this number of threads to the suite type of the checker.
template <rl::thread_id_t kThreads>
struct AnyTest : rl::test_suite<AnyTest<kThreads>, kThreads> {
  AnyTest() { explored->make(place); }
  ~AnyTest() { explored->destroy(place); }
  void before() { explored->before(place); }
  void thread(unsigned index) { explored->thread(place, index); }
  void after() { explored->after(place); }
};

template <rl::thread_id_t kThreads, template <rl::thread_id_t> class Search>
bool simulate_threads(rl::test_params& parameters, bool shows) {
  using Any = AnyTest<kThreads>;
  rl::ostringstream failure;
  if (rl::run_test<Any, Search<kThreads>>(parameters, failure, false) == rl::test_result_success) {
    return true;
  }
  if (shows) {
    rl::ostringstream again;
    parameters.initial_state = failure.str();
    parameters.collect_history = true;
    (void)rl::run_test<Any, Search<kThreads>>(parameters, again, true);
  }
  return false;
}

// Calls the function for the number of threads, which is from kLeast to kMost.
template <rl::thread_id_t kLeast, rl::thread_id_t kMost, template <rl::thread_id_t> class Search>
bool simulate_by(rl::test_params& parameters, bool shows) {
  if (explored->threads == kLeast) return simulate_threads<kLeast, Search>(parameters, shows);
  if constexpr (kLeast < kMost) {
    return simulate_by<kLeast + 1, kMost, Search>(parameters, shows);
  } else {
    std::fprintf(stderr, "checker.cpp has no test of %d threads\n", explored->threads);
    std::abort();
  }
}

}  // namespace

bool simulate(const Test& test, rl::test_params& parameters, bool shows) {
  explored = &test;
  place = std::malloc(test.size);
  const bool passed = parameters.search_type == rl::sched_bound
                          ? simulate_by<2, 4, rl::context_bound_scheduler>(parameters, shows)
                          : simulate_by<2, 10, rl::random_scheduler>(parameters, shows);
  std::free(place);
  return passed;
}

}  // namespace weft::model
