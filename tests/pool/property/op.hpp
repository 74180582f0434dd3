// The operations of the property test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>
#include <weft/submit_options.hpp>

namespace weft::test {

// The operations run one after the other.
enum class Act : std::uint8_t {
  // These operations submit a new task. `target` selects the stop that ends the wait: see kStopNow,
  // kNoStop.
  submit,
  try_submit,
  submit_past,      // With a deadline that has passed.
  submit_stopping,  // Until a `stop` of this call.
  async,
  run,
  bulk,  // `number` plain tasks that end at once, in one call.
  // These operations concern the task or call `target`.
  open,    // Lets a task continue that waits at its gate.
  cancel,  // A task of async().
  stop,    // The wait of submit_stopping.
  // These operations concern the pool.
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
  stoppable,  // Has a gate, and ends by a stop.
};

// Mirrors the fields of SubmitOptions.
struct TaskOptions {
  bool are_set = false;  // If not, the task is submitted without options.
  Priority priority = Priority::normal;
  int key = 0;  // No key.
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
  bool settles = true;  // All effects come before the next operation.

  [[nodiscard]] bool has_task() const { return act <= Act::run; }
  // Returns the number of a task in a bulk.
  [[nodiscard]] int id_of_part(std::size_t part) const {
    return -100 * id - static_cast<int>(part);
  }
};

// Records every caller's answers, by the number of the call, and the tasks in the order of their
// starts.
struct Behaviour {
  std::map<int, std::string> answers;
  std::vector<int> started;
  std::uint64_t handled = 0;  // Exceptions that on_exception got.
};

}  // namespace weft::test
