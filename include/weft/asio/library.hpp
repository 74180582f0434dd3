// Selects the Asio library that these headers use: Boost's or, with WEFT_ASIO_STANDALONE,
// standalone Asio (asio.hpp). All names are in an inline namespace named after the choice, so
// different source files of one program may use different libraries.
#pragma once

#if defined(WEFT_ASIO_STANDALONE)
#define WEFT_ASIO_LIBRARY standalone
#include <asio/error.hpp>
#include <asio/error_code.hpp>
#include <asio/execution_context.hpp>
#include <asio/system_error.hpp>
#include <asio/version.hpp>
#else
#define WEFT_ASIO_LIBRARY of_boost
#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/version.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#endif

namespace weft::asio {
inline namespace WEFT_ASIO_LIBRARY {

#if defined(WEFT_ASIO_STANDALONE)
namespace lib = ::asio;
using ErrorCode = std::error_code;
using SystemError = std::system_error;
#define WEFT_ASIO_VERSION ASIO_VERSION
#else
namespace lib = ::boost::asio;
using ErrorCode = ::boost::system::error_code;
using SystemError = ::boost::system::system_error;
#define WEFT_ASIO_VERSION BOOST_ASIO_VERSION
#endif

}  // namespace WEFT_ASIO_LIBRARY
}  // namespace weft::asio

// Boost 1.77 introduced the cancellation of single operations.
#define WEFT_ASIO_HAS_CANCELLATION (WEFT_ASIO_VERSION >= 101900)
