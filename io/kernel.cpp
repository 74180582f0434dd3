#include "io/kernel.hpp"

namespace weft::io {

namespace {

// Relaxed: installed before the worker is started that uses it, and taken away after its end.
constinit detail::Atomic<Kernel*> installed{nullptr};

}  // namespace

void Kernel::install(Kernel* kernel) noexcept { installed.store(kernel, detail::relaxed); }

Kernel* Kernel::here() noexcept {
  return detail::is_simulated() ? installed.load(detail::relaxed) : nullptr;
}

}  // namespace weft::io
