// Macros that throw and catch exceptions, for programs compiled with or without exceptions.
//
// In a program compiled with -fno-exceptions, these macros catch nothing. If the library itself
// throws in such a program, the process ends, as it does at WEFT_THROW.
#pragma once

#if defined(__cpp_exceptions)
#include <exception>
#if defined(__GLIBCXX__)
#include <bits/cxxabi_forced.h>  // The part of <cxxabi.h> that declares __forced_unwind.
#endif

namespace weft::detail {

// Ends the process with a message, because no handler can keep a terminating thread running.
[[noreturn]] void end_with_thread() noexcept;

}  // namespace weft::detail

#define WEFT_TRY try
#if defined(__GLIBCXX__)
// pthread_exit and cancellation unwind the stack with this exception; no handler may swallow it.
#define WEFT_CATCH_ALL                   \
  catch (__cxxabiv1::__forced_unwind&) { \
    ::weft::detail::end_with_thread();   \
  }                                      \
  catch (...)
#else
#define WEFT_CATCH_ALL catch (...)
#endif
#define WEFT_RETHROW throw
#define WEFT_THROW(exception) throw exception
#else
#include <cstdlib>
#define WEFT_TRY if constexpr (true)
#define WEFT_CATCH_ALL else
#define WEFT_RETHROW std::abort()
#define WEFT_THROW(exception) (static_cast<void>(exception), std::abort())
#endif
