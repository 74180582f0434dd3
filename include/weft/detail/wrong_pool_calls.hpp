// Shortens compiler messages about a callable of the wrong form that is passed to a pool.
#pragma once

#include <chrono>
#include <type_traits>
#include <weft/accepted.hpp>
#include <weft/detail/pool_job.hpp>
#include <weft/detail/wrong_callable.hpp>
#include <weft/pool_task.hpp>
#include <weft/result.hpp>
#include <weft/submit_options.hpp>
#include <weft/until.hpp>

namespace weft::detail {

// Each function has its own assertion, because a shared one would make clang's message three lines
// longer.
#define WEFT_FOR_A_POOL "weft: a callable for a pool must take no arguments, or a std::stop_token"

template <class F>
concept WrongForPool = !PoolCallable<F>;

// Has an overload for each function of FiberPool and PoolSet that takes a callable. Both classes
// add the overloads of their own functions through using-declarations.
class WrongPoolCalls {
 public:
  template <WrongForPool F>
  Accepted submit(F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_POOL);
    return {};
  }
  template <WrongForPool F>
  Accepted submit(const SubmitOptions&, F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_POOL);
    return {};
  }
  template <WrongForPool F>
  Accepted try_submit(F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_POOL);
    return {};
  }
  template <WrongForPool F>
  Accepted try_submit(const SubmitOptions&, F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_POOL);
    return {};
  }
  template <WrongForPool F>
  Accepted submit_until(const Until&, F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_POOL);
    return {};
  }
  template <WrongForPool F>
  Accepted submit_until(const SubmitOptions&, const Until&, F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_POOL);
    return {};
  }
  template <WrongForPool F>
  void go(F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_POOL);
  }
  template <WrongForPool F>
  void go(const SubmitOptions&, F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_POOL);
  }
  template <WrongForPool F>
  PoolTask<void> async(F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_POOL);
    return {};
  }
  template <WrongForPool F>
  PoolTask<void> async(const SubmitOptions&, F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_POOL);
    return {};
  }
  template <WrongForPool F>
  PoolTask<void> async_until(const Until&, F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_POOL);
    return {};
  }
  template <WrongForPool F>
  PoolTask<void> async_until(const SubmitOptions&, const Until&, F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_POOL);
    return {};
  }
  template <WrongForPool F>
  Result<PoolTask<void>> try_async(F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_POOL);
    return {};
  }
  template <WrongForPool F>
  Result<PoolTask<void>> try_async(const SubmitOptions&, F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_POOL);
    return {};
  }
  template <WrongForPool F>
  void run(F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_POOL);
  }
  template <WrongForPool F>
  void run(const SubmitOptions&, F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_POOL);
  }
  template <WrongForPool F>
  bool run_until(const Until&, F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_POOL);
    return false;
  }
  template <WrongForPool F>
  bool run_until(const SubmitOptions&, const Until&, F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_POOL);
    return false;
  }
};

#undef WEFT_FOR_A_POOL

}  // namespace weft::detail
