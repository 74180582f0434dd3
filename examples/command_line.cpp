#include "command_line.hpp"

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>

namespace examples {

CommandLine::CommandLine(const char* program, const char* what)
    : app_(std::make_unique<CLI::App>(what, program)) {}

CommandLine::~CommandLine() = default;

template <class Value>
void CommandLine::add(const char* name, Value& value, const char* help) {
  app_->add_option(name, value, help)->capture_default_str();
}

template <class Number>
void CommandLine::add(const char* name, Number& value, std::type_identity_t<Number> least,
                      std::type_identity_t<Number> most, const char* help) {
  app_->add_option(name, value, help)->check(CLI::Range(least, most))->capture_default_str();
}

template <class Number>
void CommandLine::add_choice(const char* name, Number& value, const std::vector<Number>& choices,
                             const char* help) {
  app_->add_option(name, value, help)->check(CLI::IsMember(choices))->capture_default_str();
}

template void CommandLine::add(const char*, std::string&, const char*);
template void CommandLine::add(const char*, std::vector<std::string>&, const char*);
template void CommandLine::add(const char*, int&, const char*);
template void CommandLine::add(const char*, std::size_t&, const char*);
template void CommandLine::add(const char*, double&, const char*);
template void CommandLine::add(const char*, int&, int, int, const char*);
template void CommandLine::add(const char*, unsigned&, unsigned, unsigned, const char*);
template void CommandLine::add(const char*, std::size_t&, std::size_t, std::size_t, const char*);
template void CommandLine::add(const char*, double&, double, double, const char*);
template void CommandLine::add_choice(const char*, std::size_t&, const std::vector<std::size_t>&,
                                      const char*);

void CommandLine::add_flag(const char* name, bool& value, const char* help) {
  app_->add_flag(name, value, help);
}

void CommandLine::require(const char* name) { app_->get_option(name)->required(); }

void CommandLine::expect_file(const char* name) {
  app_->get_option(name)->check(CLI::ExistingFile);
}

void CommandLine::exclude(const char* name, const char* other) {
  app_->get_option(name)->excludes(app_->get_option(other));
}

void CommandLine::add_note(const char* text) { app_->footer(text); }

int CommandLine::run(int argc, char** argv, const std::function<int()>& program) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app_->exit(error) == 0 ? 0 : kBadArguments;  // --help also arrives here as an "error".
  }
  try {
    return program();
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "%s: %s\n", app_->get_name().c_str(), error.what());
    return kFailed;
  }
}

}  // namespace examples
