#include "contest.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <system_error>

namespace examples {

namespace {

using Clock = std::chrono::steady_clock;

// Runs a program, with a pipe from its standard output. If the program has not ended by itself, it
// ends with this object or with this process.
class Child {
 public:
  explicit Child(const std::vector<std::string>& command) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe");
    std::vector<char*> arguments;
    for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], STDOUT_FILENO);
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
    const int fork_error = errno;
    ::close(ends[1]);
    output_ = ends[0];
    if (process_ < 0) {
      ::close(output_);
      errno = fork_error;
      fail("fork");
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::close(output_);
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
  }

  // Returns all that the program prints until it closes its output; throws if `end` passes first.
  std::string read_all(Clock::time_point end) {
    std::string text;
    std::array<char, 4096> buffer{};
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
      pollfd readable{.fd = output_, .events = POLLIN, .revents = 0};
      const int ready = ::poll(&readable, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
      if (ready == 0) throw std::runtime_error("it took too long");
      const ssize_t count = ready < 0 ? -1 : ::read(output_, buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("reading its output");
      if (count == 0) return text;
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
  }

  // Waits for the program's end. Throws if the program failed.
  void finish() {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    if (WIFSIGNALED(status)) {
      throw std::runtime_error(fmt::format("signal {} ended it", WTERMSIG(status)));
    }
    if (WEXITSTATUS(status) != 0) {
      throw std::runtime_error(fmt::format("exit status {}", WEXITSTATUS(status)));
    }
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    throw std::system_error(errno, std::system_category(), what);
  }

  pid_t process_ = -1;
  int output_ = -1;
};

void measure(Contender& contender, std::chrono::seconds limit) {
  try {
    Child child(contender.command);
    const std::string line = child.read_all(Clock::now() + limit);
    child.finish();
    auto metrics = nlohmann::json::parse(line).at("metrics");
    (void)metrics.at(contender.metric).get<double>();
    contender.runs.push_back(std::move(metrics));
  } catch (const nlohmann::json::exception&) {
    contender.failure = "it printed no result";
  } catch (const std::exception& error) {
    contender.failure = error.what();
  }
}

}  // namespace

Spread spread_of(const Contender& contender, const std::string& metric, double factor) {
  std::vector<double> values;
  for (const auto& run : contender.runs) values.push_back(run.at(metric).get<double>() * factor);
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {.median = median, .least = values.front(), .most = values.back()};
}

void run_contest(std::vector<Workload>& workloads, const ContestRules& rules,
                 const std::function<void(const std::string& what)>& progress) {
  for (Workload& workload : workloads) {
    const auto start = Clock::now();
    for (unsigned round = 1; round <= rules.repetitions; ++round) {
      if (Clock::now() - start > rules.budget) break;
      for (Contender& contender : workload.contenders) {
        if (!contender.failure.empty()) continue;
        progress(fmt::format("{}, round {} of {}: {}", workload.name, round, rules.repetitions,
                             contender.name));
        measure(contender, rules.limit);
      }
    }
  }
}

}  // namespace examples
