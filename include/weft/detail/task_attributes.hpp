// Stores the attributes of a task that was submitted with SubmitOptions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <weft/deadline.hpp>
#include <weft/detail/alarm.hpp>
#include <weft/detail/stop_registration.hpp>
#include <weft/submit_options.hpp>

namespace weft::detail {

class PoolJob;

// Belongs to a job. The attributes are constant once the job is submitted. The pointers to other
// TaskAttributes belong to the pool's backlog; the pool's lock guards them. One caller at a time
// accesses the other members: first the submitter, then the thread that runs or drops the job.
struct TaskAttributes {
  struct CancelJob {
    PoolJob* job;
    void operator()() const noexcept;
  };

  explicit TaskAttributes(PoolJob& its_job) noexcept : job(&its_job) {}
  TaskAttributes(const TaskAttributes&) = delete;
  TaskAttributes& operator=(const TaskAttributes&) = delete;

  // Sets the attributes. Throws std::invalid_argument if a field is invalid.
  void set(const SubmitOptions& options, bool takes_stop);
  // Registers `token`: a stop request then drops the job, or stops the job if it is running.
  void listen(const std::stop_token& token) noexcept {
    if (token.stop_possible()) stop.add(token, CancelJob{job});
  }
  // Called by the submitter, or by the thread that runs or drops the job; the alarm's callback must
  // not call it.
  void disarm() noexcept;

  PoolJob* const job;
  Priority priority = Priority::normal;
  TaskKey key;
  std::size_t weight = 1;
  Deadline deadline = Deadline::never();
  std::chrono::nanoseconds timeout = kNever;

  std::int64_t submitted_at = 0;  // PoolItem::submitted_at of the queued job.
  std::uint64_t number = 0;       // Its number in order of acceptance, among tasks with attributes.
  // The number of tasks without attributes that were accepted before this task.
  std::uint64_t plain_before = 0;
  TaskAttributes* next = nullptr;         // The next task in a list; the left child in a heap.
  TaskAttributes* previous = nullptr;     // The previous task, or the right child.
  TaskAttributes* next_of_key = nullptr;  // The next task that waits for the same key.
  // The last task that waits for the key. Only the task that holds the key uses this member.
  TaskAttributes* last_of_key = nullptr;
  unsigned rank = 0;  // The length of the right spine in a heap of late tasks; see PriorityLevel.
  TaskAttributes* next_in_bucket = nullptr;

  StopRegistration<CancelJob> stop;
  AlarmHandle alarm;  // Set first for the deadline, later for the timeout.
};

}  // namespace weft::detail
