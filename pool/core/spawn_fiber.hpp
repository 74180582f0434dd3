// Starting the fibers of a pool.
#pragma once

#include <new>
#include <system_error>
#include <utility>
#include <weft/detail/waist.hpp>
#include <weft/pool.hpp>

namespace weft::pool {

// Starts a fiber with the pool's stack size and name. Returns what kept it from starting: a pool
// answers with codes where weft::go() throws.
template <class F>
[[nodiscard]] std::error_code spawn_fiber(const PoolOptions& options, F&& body) noexcept {
  SpawnOptions spawn_options{.stack_size = options.stack_size, .name = options.name};
  if (options.name.empty()) spawn_options.name = "pool";
  try {
    detail::spawn(detail::Task(std::forward<F>(body)), spawn_options);
    return {};
  } catch (const std::system_error& refusal) {
    return refusal.code();
  } catch (const std::bad_alloc&) {
    return std::make_error_code(std::errc::not_enough_memory);
  }
}

}  // namespace weft::pool
