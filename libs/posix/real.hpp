// The C library's own functions, which come after this library's in the order of symbols.
#pragma once

#include <dlfcn.h>

#include <weft/detail/atomic.hpp>

namespace weft::posix {

// Ends the process with a sentence where there is none, as in a program that is linked statically.
// If the C library has several versions of a function, `version` names the one of today: a look-up
// by name alone finds the oldest in glibc before 2.36. Null: there is one only.
[[nodiscard]] void* next_function(const char* name, const char* version) noexcept;

// One of them, looked up at its first call, which may come before main(). Calls are cancellation
// points where the function is one, so they are not noexcept.
template <class F>
class Real {
 public:
  constexpr explicit Real(const char* name, const char* version = nullptr) noexcept
      : name_(name), version_(version) {}

  template <class... Arguments>
  auto operator()(Arguments... arguments) {
    return get()(arguments...);
  }
  // Looks it up now, if it is there: for functions that handlers of signals may call.
  void find() noexcept {
    if (::dlsym(RTLD_NEXT, name_) != nullptr) (void)get();
  }

 private:
  F* get() noexcept {
    // Relaxed: each look-up finds the same.
    void* found = found_.load(detail::relaxed);
    if (found == nullptr) {
      found = next_function(name_, version_);
      found_.store(found, detail::relaxed);
    }
    return reinterpret_cast<F*>(found);
  }

  const char* const name_;
  const char* const version_;
  detail::Atomic<void*> found_{nullptr};
};

// A function in front of the C library's: its name, and where it is in this library.
struct Hook {
  const char* name;
  const void* address;
};

}  // namespace weft::posix

// In the source that defines `name`: its address here, whatever other symbols have that name.
#define WEFT_POSIX_HOOK(name)                                                                   \
  extern "C" decltype(::name) weft_posix_##name __attribute__((alias(#name), visibility("hidde" \
                                                                                        "n")))
#define WEFT_POSIX_ENTRY(name) \
  ::weft::posix::Hook { #name, reinterpret_cast < const void*>(&weft_posix_##name) }
#define WEFT_POSIX_EXPORT __attribute__((visibility("default")))
