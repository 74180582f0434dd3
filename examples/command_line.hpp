// Parses the options of an example, and runs it.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

namespace CLI {
class App;
}

namespace examples {

inline constexpr int kFailed = 1;
inline constexpr int kBadArguments = 2;

// Holds options and positional arguments. The parser is in command_line.cpp, because it takes
// longer to compile than most examples.
class CommandLine {
 public:
  CommandLine(const char* program, const char* what);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // `value` is the default, which --help shows. Values are numbers, texts and lists of texts.
  template <class Value>
  void add(const char* name, Value& value, const char* help);
  // Adds an option whose value is a number from `least` to `most`.
  template <class Number>
  void add(const char* name, Number& value, std::type_identity_t<Number> least,
           std::type_identity_t<Number> most, const char* help);
  // Adds an option whose value is one of `choices`.
  template <class Number>
  void add_choice(const char* name, Number& value, const std::vector<Number>& choices,
                  const char* help);
  void add_flag(const char* name, bool& value, const char* help);
  // These functions make an option mandatory, require that its value names an existing file, or
  // forbid it together with another option.
  void require(const char* name);
  void expect_file(const char* name);
  void exclude(const char* name, const char* other);
  // Adds a text below the help.
  void add_note(const char* text);

  // Reads the arguments, then returns what `program` returns. For bad arguments and exceptions,
  // prints one line on stderr and returns an exit status.
  int run(int argc, char** argv, const std::function<int()>& program);

 private:
  const std::unique_ptr<CLI::App> app_;
};

}  // namespace examples
