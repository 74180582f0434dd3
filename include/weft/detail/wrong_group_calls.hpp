// Shortens compiler messages about a callable of the wrong form that is passed to a group.
#pragma once

#include <chrono>
#include <weft/accepted.hpp>
#include <weft/detail/group_stop.hpp>
#include <weft/detail/wrong_callable.hpp>
#include <weft/submit_options.hpp>
#include <weft/until.hpp>

namespace weft::detail {

#define WEFT_FOR_A_GROUP \
  "weft: a task of a group must take no arguments, a Context& or a std::stop_token"

template <class F>
concept WrongForGroup = !GroupTask<F>;

// Has an overload for each function of TaskGroup that takes a callable; see WrongPoolCalls.
class WrongGroupCalls {
 public:
  template <WrongForGroup F>
  void spawn(F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_GROUP);
  }
  template <WrongForGroup F>
  void spawn(const SubmitOptions&, F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_GROUP);
  }
  template <WrongForGroup F>
  Accepted spawn_or_refuse(F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_GROUP);
    return {};
  }
  template <WrongForGroup F>
  Accepted spawn_or_refuse(const SubmitOptions&, F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_GROUP);
    return {};
  }
  template <WrongForGroup F>
  Accepted try_spawn(F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_GROUP);
    return {};
  }
  template <WrongForGroup F>
  Accepted try_spawn(const SubmitOptions&, F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_GROUP);
    return {};
  }
  template <WrongForGroup F>
  Accepted spawn_until(const Until&, F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_GROUP);
    return {};
  }
  template <WrongForGroup F>
  Accepted spawn_until(const SubmitOptions&, const Until&, F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_GROUP);
    return {};
  }
  template <class Rep, class Period, WrongForGroup F>
  void spawn_after(std::chrono::duration<Rep, Period>, F&&, Unlike = {}) {
    static_assert(kFits<F>, WEFT_FOR_A_GROUP);
  }
};

#undef WEFT_FOR_A_GROUP

}  // namespace weft::detail
