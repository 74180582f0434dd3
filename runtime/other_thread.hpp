// Makes a call on a separate thread.
#pragma once

#include <exception>
#include <stop_token>
#include <thread>
#include <utility>

namespace weft::runtime {

// Makes a call with a stop token and keeps its result. The destructor requests a stop and joins the
// thread. Replaces std::async, which adds several kilobytes to every program.
template <class R>
class OtherThread {
 public:
  // Throws std::system_error if the system refuses the thread.
  template <class Call>
  explicit OtherThread(Call call)
      : thread_([this, call](const std::stop_token& end) noexcept { run(call, end); }) {}
  OtherThread(const OtherThread&) = delete;
  OtherThread& operator=(const OtherThread&) = delete;

  // Waits for the call. Throws its exception.
  R result() {
    thread_.join();
    if (error_) std::rethrow_exception(error_);
    return std::move(result_);
  }
  void request_stop() noexcept { thread_.request_stop(); }

 private:
  template <class Call>
  void run(const Call& call, const std::stop_token& end) noexcept {
    try {
      result_ = call(end);
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  R result_;
  std::exception_ptr error_;
  std::jthread thread_;  // The last member: the thread writes the other members.
};

}  // namespace weft::runtime
