// The C library's own functions, which follow this library's in symbol order.
#pragma once

#include <dlfcn.h>

#include <weft/detail/atomic.hpp>

#if defined(__SANITIZE_ADDRESS__)
#define WEFT_POSIX_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_POSIX_ADDRESS_SANITIZER
#endif
#endif

namespace weft::posix {

// Returns the C library's function. Ends the process with a message if there is none, as in a
// statically linked program. `version` names the current version if the function has several,
// because a lookup by name finds the oldest version in glibc before 2.36. Null: the function has
// one version.
[[nodiscard]] void* next_function(const char* name, const char* version) noexcept;

// A function of the C library, looked up at its first call, which may precede main(). Calls are not
// noexcept, because the function may be a cancellation point.
template <class F>
class Real {
 public:
  constexpr explicit Real(const char* name, const char* version = nullptr) noexcept
      : name_(name), version_(version) {}

  template <class... Arguments>
  auto operator()(Arguments... arguments) {
    return get()(arguments...);
  }
  // Looks the function up now, if it exists, so that signal handlers may call it.
  void find() noexcept {
    if (::dlsym(RTLD_NEXT, name_) != nullptr) (void)get();
  }

 private:
  F* get() noexcept {
    // Relaxed: each lookup finds the same function.
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

// An intercepted function: its name, and its address in this library.
struct Hook {
  const char* name;
  const void* address;
};

}  // namespace weft::posix

// Defines an alias of `name` in the source that defines it: its address here, even if another
// symbol has that name.
#define WEFT_POSIX_HOOK(name)                                                                   \
  extern "C" decltype(::name) weft_posix_##name __attribute__((alias(#name), visibility("hidde" \
                                                                                        "n")))
#define WEFT_POSIX_ENTRY(name) \
  ::weft::posix::Hook { #name, reinterpret_cast < const void*>(&weft_posix_##name) }
#define WEFT_POSIX_EXPORT __attribute__((visibility("default")))
// The address sanitizer's own functions are weak, and precede weak functions of this library.
#ifdef WEFT_POSIX_ADDRESS_SANITIZER
#define WEFT_POSIX_WEAK
#else
#define WEFT_POSIX_WEAK __attribute__((weak))
#endif
