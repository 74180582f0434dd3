// Exceptions, for programs compiled with or without them.
//
// In programs without exceptions (-fno-exceptions) nothing is caught here. A throw of the library,
// which is compiled with exceptions, ends the process; so would a throw in these headers.
#pragma once

#if defined(__cpp_exceptions)
#include <exception>
#if defined(__GLIBCXX__)
#include <bits/cxxabi_forced.h>  // The part of <cxxabi.h> that has the exception below.
#endif

namespace weft::detail {

// Ends the process with a message: the thread is being ended, but outer frames would continue.
[[noreturn]] void end_with_thread() noexcept;

}  // namespace weft::detail

#define WEFT_TRY try
#if defined(__GLIBCXX__)
// pthread_exit and cancellation unwind the stack by this exception; a handler must not swallow it.
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
