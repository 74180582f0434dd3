// The C library's socket(), for programs that link the simulation.
#pragma once

namespace weft::sim {

// Makes a call to socket() fail with ENOSYS if `refuses(family)` returns true. Null: no call
// fails. Other threads may call socket() at the same time.
void set_socket_hook(bool (*refuses)(int family) noexcept) noexcept;

}  // namespace weft::sim
