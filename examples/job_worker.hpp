// Contains what programs that take jobs from a broker share: a FiberPool as the cap, and permits. A
// job holds a permit until it is acknowledged, so the program takes no more jobs than it has
// permits.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <weft/go.hpp>
#include <weft/io.hpp>
#include <weft/pool.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>

#include "command_line.hpp"

struct WorkerOptions {
  std::string broker, output, name = "worker";
  std::size_t capacity = 20, tries = 5;
  int job_ms = 20, abandoned_ms = 3000, enqueue = 0;
  bool report = false;

  void add_to(examples::CommandLine& line) {
    line.add("--broker", broker, "where it listens");
    line.require("--broker");
    line.add("--output", output, "file to which each job adds a line");
    line.add("--name", name, "of this worker, which no other has");
    line.add("--capacity", capacity, "jobs that are taken and not acknowledged, at most");
    line.add("--tries", tries, "after which a job that fails goes to the dead letters");
    line.add("--job-ms", job_ms, "how long a job takes");
    line.add("--abandoned-ms", abandoned_ms, "after which others may take a job");
    line.add("--enqueue", enqueue, "adds so many jobs, and one that fails, and ends");
    line.add_flag("--report", report, "says what is left, and ends");
  }
};

// Does a job: sleeps for a while, then adds its line to the output. The job "poison" fails.
class Work {
 public:
  explicit Work(const WorkerOptions& options)
      : time_(options.job_ms),
        file_(::open(options.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    if (file_ < 0) throw std::runtime_error("cannot write to '" + options.output + "'");
  }
  ~Work() { ::close(file_); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  void operator()(const std::string& job) const {
    weft::this_fiber::sleep_for(time_);
    if (job == "poison") throw std::runtime_error("this job cannot be done");
    const std::string line = job + "\n";
    if (::write(file_, line.data(), line.size()) < 0) throw std::runtime_error("cannot write");
  }

 private:
  std::chrono::milliseconds time_;
  int file_;
};

class JobWorker {
 public:
  explicit JobWorker(std::size_t capacity) : capacity_(capacity), pool_({.capacity = capacity}) {}

  // Until SIGTERM, calls `fetch(most)`, which passes up to `most` jobs to start(). `fetch` may wait
  // for jobs, but not for long. Returns when all started jobs have ended; 0 means success.
  int run(const std::function<void(std::size_t most)>& fetch) {
    auto signals = weft::io::SignalSet::watch({SIGTERM, SIGINT}).value;
    auto waiting = weft::spawn([&] {
      (void)signals.wait(stop_.get_token());
      stop_.request_stop();
    });
    int status = 0;
    while (!stop_.stop_requested() && free_.try_acquire_until(stop_.get_token())) {
      for (unused_ = 1; unused_ < capacity_ && free_.try_acquire();) ++unused_;
      try {
        fetch(unused_);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "job_worker: %s\n", error.what());
        stop_.request_stop();
        status = 1;
      }
      if (unused_ > 0) free_.release(unused_);
    }
    waiting.join();
    pool_.close(weft::Close::drain);
    pool_.join();
    std::printf("%zu jobs, %zu at once at most\n", jobs_.load(), most_at_once_.load());
    return status;
  }

  // Only `fetch` calls start(). A fiber of the pool does the job, and acknowledges it after a
  // success.
  template <class F>
  void start(F job) {
    --unused_;
    const weft::Accepted submitted = pool_.submit([this, job = std::move(job)]() mutable {
      const std::size_t now = ++at_once_;
      for (std::size_t most = most_at_once_; most < now;) {
        if (most_at_once_.compare_exchange_weak(most, now)) break;
      }
      job();
      --at_once_;
      ++jobs_;
      free_.release();
    });
    if (!submitted) throw std::runtime_error("the pool refused a job");
  }

 private:
  const std::size_t capacity_;
  weft::Semaphore free_{capacity_};
  weft::FiberPool pool_;
  std::stop_source stop_;
  std::size_t unused_ = 0;  // Permits that the current fetch has not used.
  std::atomic<std::size_t> at_once_{0}, most_at_once_{0}, jobs_{0};
};
