#include "io/kernel.hpp"

namespace weft::io {

namespace {

// Relaxed: installed before the worker that uses it starts, and removed after that worker's end.
constinit detail::Atomic<Kernel*> installed{nullptr};

}  // namespace

void Kernel::install(Kernel* kernel) noexcept { installed.store(kernel, detail::relaxed); }

Kernel* Kernel::here() noexcept {
  return detail::is_simulated() ? installed.load(detail::relaxed) : nullptr;
}

}  // namespace weft::io
