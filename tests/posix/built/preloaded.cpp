// Is a library for LD_PRELOAD. It intercepts functions that weft-posix also intercepts.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

namespace {

std::size_t received = 0;

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

[[gnu::destructor]] void tell() { std::printf("preloaded: %zu receives\n", received); }

}  // namespace

extern "C" {

ssize_t recv(int descriptor, void* buffer, size_t size, int flags) {
  static auto* const real = next<decltype(::recv)>("recv");
  ++received;
  return real(descriptor, buffer, size, flags);
}
int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static auto* const real = next<decltype(::pthread_mutex_lock)>("pthread_mutex_lock");
  return real(mutex);
}

}  // extern "C"
