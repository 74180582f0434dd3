// Helpers of the examples' main functions.
#pragma once

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <utility>

namespace examples {

inline constexpr int kFailed = 1;
inline constexpr int kBadArguments = 2;

// Reads the arguments, then returns what `run` returns. Bad arguments and exceptions become one
// line on stderr and an exit status.
template <class Run>
int parse_and_run(CLI::App& app, int argc, char** argv, Run&& run) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadArguments;  // --help is such an "error", too.
  }
  try {
    return std::forward<Run>(run)();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), error.what());
    return kFailed;
  }
}

}  // namespace examples
