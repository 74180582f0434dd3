// pool/queue/pool_job.cpp and the wait for a job: a job either runs once or is dropped, whatever
// callers request. A waiter is woken, sees the outcome, and may leave at once, even if the job is
// on the waiter's stack, or the waiter holds the last reference to it.
#include "pool/queue/pool_job.cpp"

#include <optional>

#include "base/error.cpp"
#include "tests/model/model_waist.hpp"

// Short replacements for functions that these sources call: no task of the model runs on a pool,
// and none has attributes.
namespace weft::detail {
Alarm* set_alarm(Deadline /*deadline*/, Task&& /*task*/) { return nullptr; }
// Does the same as nested/blocking_scope.cpp, without the scope.
bool PoolJob::wait_until(const Until& until) noexcept {
  lock_.lock();
  if (ready()) {
    lock_.unlock();
    return true;
  }
  Waiter self;
  return wait_in_until(waiters_, lock_, self, WaitReason::pool_wait, until) == Claim::kNotifier;
}
}  // namespace weft::detail

namespace {

using weft::Deadline;
using weft::detail::acq_rel;
using weft::detail::acquire;
using weft::detail::Atomic;
using weft::detail::PoolJob;
using weft::detail::release;
using weft::model::call_on_own_stack;
using weft::model::Data;
using weft::model::expect;
using weft::model::fault;
using weft::model::perhaps;
using weft::model::World;

enum Fault { kNone, kLooksInsteadOfWaiting, kDoesNotWait, kLeavesTwice, kRunsWithoutAsking };

// The pointer is never dereferenced.
alignas(std::max_align_t) unsigned char no_pool[1];

// Counts how often callables run and are dropped. Not part of the modelled program.
struct Count {
  int runs = 0;
  int drops = 0;
  int stops = 0;
};

class Job final : public PoolJob {
 public:
  Job(Kind kind, Count& count)
      : PoolJob(reinterpret_cast<weft::pool::PoolCore&>(no_pool), kind), count_(count) {}
  // The destructor accesses the job's data.
  ~Job() override { result_.set(0); }

  [[nodiscard]] int result() const { return result_.get(); }
  [[nodiscard]] bool is_dropped() const { return static_cast<bool>(reason_for_none()); }
  void run_without_asking() { (void)invoke(); }

 private:
  bool invoke() noexcept override {
    expect(callable_.get() == 1, "a callable was run after its end");
    result_.set(7);
    callable_.set(0);
    ++count_.runs;
    return true;
  }
  void drop_callable() noexcept override {
    expect(callable_.get() == 1, "a callable was dropped after its end");
    callable_.set(0);
    ++count_.drops;
  }
  void request_stop() noexcept override { ++count_.stops; }
  void fail(std::exception_ptr /*exception*/) noexcept override {}

  Count& count_;
  Data<int> callable_{1};
  Data<int> result_{0};
};

// Acts as a worker, or as a pool that drops queued jobs.
void end(Job& job) {
  if (perhaps()) return job.abandon();
  if (fault == kRunsWithoutAsking) job.run_without_asking();
  const PoolJob::Settled settled = job.settle(job.execute());
  weft::detail::wake_chain(settled.waiters);
  if (settled.is_last) job.release_reference();
}

// A caller waits for the end of `job`, in one or two attempts.
void wait_for(Job& job, bool is_timed) {
  if (fault == kDoesNotWait) return;
  if (fault == kLooksInsteadOfWaiting) {
    while (!job.ready()) weft::model::let_others_run();
    return;
  }
  if (is_timed && job.wait_until(Deadline::at_nanoseconds(weft::model::kSoon))) return;
  expect(job.wait_until({}), "a wait without a limit was given up");
}
void look_at(const Job& job, const Count& count) {
  if (job.is_dropped()) {
    expect(count.runs == 0 && count.drops == 1, "a job was dropped that has run");
  } else {
    expect(job.result() == 7, "the result was not there at the end of the wait");
  }
}

// FiberPool::run(): the job is on the stack of the caller that waits for it.
template <bool kIsThread>
struct OnStack : rl::test_suite<OnStack<kIsThread>, 3> {
  World world{1, false};
  Count count;
  Job* queued = nullptr;
  Atomic<std::uint32_t> is_queued{0};

  void before() {
    if (kIsThread) world.make_thread(0);
  }
  void thread(unsigned index) {
    if (index < 2) {
      world.run(index, [&](unsigned) {
        call_on_own_stack([&] {
          Job job(PoolJob::Kind::on_stack, count);
          queued = &job;
          is_queued.store(1, release);
          weft::model::wake_in_kernel(is_queued, 1);
          wait_for(job, false);
          look_at(job, count);
        });
      });
    } else {
      while (is_queued.exchange(0, acquire) == 0) {
        weft::model::wait_in_kernel(is_queued, 0, weft::model::WaitEnd::by_wake);
      }
      if (perhaps()) world.await_parked(1);
      end(*queued);
    }
  }
  void after() { expect(count.runs + count.drops == 1, "a job did not end, or twice"); }
};

// FiberPool::async(): one or two callers that wait and one that cancels share a handle, and the
// last of them to leave destroys it. The pool releases the job at any moment.
template <unsigned kWaiters, bool kIsTimed>
struct OnHeap : rl::test_suite<OnHeap<kWaiters, kIsTimed>,
                               static_cast<int>(2 * kWaiters + 2 + (kIsTimed ? 1 : 0))> {
  World world{kWaiters, kIsTimed};
  Count count;
  Job* job = nullptr;
  Atomic<std::uint32_t> users{kWaiters + 1};
  bool was_cancelled = false;  // Not part of the modelled program.

  void before() { job = new Job(PoolJob::Kind::on_heap, count); }
  void thread(unsigned index) {
    if (index < 2 * kWaiters) {
      world.run(index, [&](unsigned) {
        call_on_own_stack([&] { wait_for(*job, kIsTimed); });
        if (fault != kDoesNotWait) look_at(*job, count);
        leave();
      });
    } else if (index == 2 * kWaiters) {
      if (perhaps()) world.await_parked(kWaiters);
      end(*job);
    } else if (index == 2 * kWaiters + 1) {
      if (perhaps()) world.await_parked(kWaiters);
      was_cancelled = perhaps() && job->cancel();
      if (perhaps() && job->ready() && count.runs == 1) {
        expect(job->result() == 7, "the result of a job that is ready was not there");
      }
      leave();
    } else {
      world.run_clock();
    }
  }
  void leave() {
    if (users.fetch_sub(1, acq_rel) != 1) return;
    job->release_reference();
    if (fault == kLeavesTwice) job->release_reference();
  }
  void after() {
    expect(count.runs + count.drops == 1, "a job did not end, or twice");
    if (was_cancelled) expect(count.runs == 0, "a job ran that was cancelled");
    expect(count.stops <= count.runs, "a job was asked to stop that did not run");
  }
};

}  // namespace

int main(int count, char** arguments) {
  using weft::model::bounded_search;
  using weft::model::broken_by;
  using weft::model::random_search;
  return weft::model::Program(
             "pool_job",
             {random_search<OnHeap<0, false>>("nobody waits, one cancels", 10'000),
              random_search<OnHeap<1, false>>("one waits, one cancels", 30'000),
              random_search<OnHeap<2, false>>("two wait, one cancels", 30'000),
              random_search<OnHeap<1, true>>("one gives up and waits again", 30'000),
              bounded_search<OnStack<false>>("on a stack", 2),
              random_search<OnStack<false>>("on a stack, at random", 20'000),
              random_search<OnStack<true>>("on a plain thread's stack", 20'000)},
             {weft::model::relaxed_orders(),
              broken_by(kLooksInsteadOfWaiting, "who looks leaves without the lock"),
              broken_by(kDoesNotWait, "nobody waits"),
              broken_by(kLeavesTwice, "a handle let go of twice"),
              broken_by(kRunsWithoutAsking, "a worker that does not ask")})
      .run(count, arguments);
}
