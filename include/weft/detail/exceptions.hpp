// Exceptions, for programs that are compiled with and without them.
//
// Without them (-fno-exceptions) nothing is caught here: what the library, which is compiled with
// them, throws out of a call ends the process, and so does what these headers would throw.
#pragma once

#if defined(__cpp_exceptions)
#define WEFT_TRY try
#define WEFT_CATCH_ALL catch (...)
#define WEFT_RETHROW throw
#define WEFT_THROW(exception) throw exception
#else
#include <cstdlib>
#define WEFT_TRY if constexpr (true)
#define WEFT_CATCH_ALL else
#define WEFT_RETHROW std::abort()
#define WEFT_THROW(exception) (static_cast<void>(exception), std::abort())
#endif
