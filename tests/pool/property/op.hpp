// The operations of the property test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>
#include <weft/submit_options.hpp>

namespace weft::test {

// One after the other.
enum class Act : std::uint8_t {
  // With a task of its own. `target` says whose stop ends the wait: see kStopNow, kNoStop.
  submit,
  try_submit,
  submit_past,      // With a deadline that has passed.
  submit_stopping,  // Until the stop of this call, which `stop` requests.
  async,
  run,
  bulk,  // `number` plain tasks that end at once, in one call.
  // With the task or call `target`.
  open,    // Lets a task that waits at its gate go on.
  cancel,  // A task of async().
  stop,    // The wait of submit_stopping.
  // With the pool.
  resize,  // To `number`.
  pause,
  resume,
  close_drain,
  close_discard,
  close_cancel,
  reopen,
  wait_idle,
  wait_idle_past,
  wait_paused,
  join,
};

enum class Course : std::uint8_t {
  at_once,
  gated,
  stoppable,  // Gated, and ends by a stop.
};

// The same fields as SubmitOptions has.
struct TaskOptions {
  bool are_set = false;  // If not, it is submitted without any.
  Priority priority = Priority::normal;
  int key = 0;  // None.
  std::size_t weight = 1;
};

struct Op {
  Act act = Act::submit;
  int id = 0;
  int target = 0;
  std::size_t number = 0;
  Course course = Course::at_once;
  bool throws = false;
  TaskOptions options = {};
  bool settles = true;  // Everything that can happen happens before the next one.

  [[nodiscard]] bool has_task() const { return act <= Act::run; }
  // The numbers by which the tasks of a bulk are known.
  [[nodiscard]] int id_of_part(std::size_t part) const {
    return -100 * id - static_cast<int>(part);
  }
};

// Every caller's answers, by the number of the call, and the tasks in the order of their starts.
struct Behaviour {
  std::map<int, std::string> answers;
  std::vector<int> started;
  std::uint64_t handled = 0;  // Exceptions that on_exception was given.
};

}  // namespace weft::test
