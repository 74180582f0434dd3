// The options of an example, and its run.
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

// Options and what stands alone. The parser is in command_line.cpp, as it takes longer to compile
// than most examples.
class CommandLine {
 public:
  CommandLine(const char* program, const char* what);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // `value` stands until another is given; --help shows it. Values are numbers and texts, and lists
  // of texts.
  template <class Value>
  void add(const char* name, Value& value, const char* help);
  // A number from `least` to `most`.
  template <class Number>
  void add(const char* name, Number& value, std::type_identity_t<Number> least,
           std::type_identity_t<Number> most, const char* help);
  // One of `choices`.
  template <class Number>
  void add_choice(const char* name, Number& value, const std::vector<Number>& choices,
                  const char* help);
  void add_flag(const char* name, bool& value, const char* help);
  // Such an option has to be given, is the name of a file that exists, or is not given together
  // with another.
  void require(const char* name);
  void expect_file(const char* name);
  void exclude(const char* name, const char* other);
  // Stands below the help.
  void add_note(const char* text);

  // Reads the arguments, then returns what `program` returns. Bad arguments and exceptions become
  // one line on stderr and an exit status.
  int run(int argc, char** argv, const std::function<int()>& program);

 private:
  const std::unique_ptr<CLI::App> app_;
};

}  // namespace examples
