// scheduler/stack_trimmer.cpp, with fibers/gate and fibers/switch.hpp: nobody is on a stack, or on
// the way there, while pages below its calls are given back, and nobody waits for ever at a gate.
//
// A runner that switches goes on at once in the name of the stack that it has switched to: what
// matters of a stack is who touches it when.
#include "tests/model/model.hpp"

#define jump jump_of_the_processor
#include "fibers/context.hpp"
#undef jump
#include <sys/mman.h>

namespace weft::fibers {
[[nodiscard]] Arrival jump(Context to, void* message) noexcept;
}

namespace weft::model {
int give_back_pages(void* address, std::size_t bytes, int advice) noexcept;
int tell_resident(void* address, std::size_t bytes, unsigned char* pages) noexcept;
void* map_pages(void*, std::size_t bytes, int, int, int, long) noexcept;
int unmap_pages(void* address, std::size_t bytes) noexcept;
}  // namespace weft::model

#define madvise weft::model::give_back_pages
#define mincore weft::model::tell_resident
#define mmap weft::model::map_pages
#define munmap weft::model::unmap_pages
#include "scheduler/stack_trimmer.cpp"
#undef madvise
#undef mincore
#undef mmap
#undef munmap

#include "fibers/gate.cpp"
#include "fibers/switch.hpp"

namespace {

using weft::detail::acquire;
using weft::detail::relaxed;
using weft::detail::release;
using weft::detail::seq_cst;
using weft::fibers::Arrival;
using weft::fibers::Context;
using weft::fibers::Departure;
using weft::fibers::Fiber;
using weft::fibers::FiberState;
using weft::fibers::Gate;
using weft::fibers::SavedContext;
using weft::fibers::Stack;
using weft::model::Aligned;
using weft::model::Atomic;
using weft::model::Data;
using weft::model::expect;
using weft::model::fault;
using weft::model::let_others_run;
using weft::model::perhaps;
using weft::scheduler::Scheduler;
using weft::scheduler::StackTrimmer;

enum Fault {
  kNone,
  kBarrierDoesNothing,
  kSwitchesCountTwice,
  kSleepsTooEarly,
  kWalksThroughClosedGates,
  kNoGrace,
};

constexpr unsigned kWorkers = 2;
constexpr unsigned kFibers = 2;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 8;

// A stack of which each access counts, at the upper end of its memory.
struct TracedStack : Stack {
  Data<int> calls{0};
  Context newest = nullptr;  // Bookkeeping that is not part of the modelled program.
};
struct StackMemory {
  alignas(kPage) char bytes[kPages * kPage];
};
StackMemory memory[kFibers];
// For gates and lobbies.
alignas(kPage) char mapped[std::size_t{9} << 20];

// The shared state of workers and trimmer: the part of Scheduler and StackPool that concerns
// stacks.
class World {
 public:
  World();
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] TracedStack& stack(unsigned index) {
    return *reinterpret_cast<TracedStack*>(memory[index].bytes + (kPages - 1) * kPage);
  }
  // The stack whose memory `address` is in; null for the idle stacks.
  [[nodiscard]] TracedStack* stack_at(const void* address) {
    for (unsigned i = 0; i < kFibers; ++i) {
      const auto* first = memory[i].bytes;
      if (address >= first && address < first + sizeof(StackMemory::bytes)) return &stack(i);
    }
    return nullptr;
  }
  // The context that a jump leaves behind, at one of two places: calls may be as deep as the time
  // before.
  [[nodiscard]] static Context save_in(TracedStack& stack) {
    const auto place =
        reinterpret_cast<Context>(stack.lowest + (kPages - 2) * kPage + (perhaps() ? 64 : 0));
    *place = {place, nullptr, nullptr};
    return stack.newest = place;
  }

  // The runner that takes a parked fiber wakes it.
  void hand_over(unsigned fiber) { parked_[fiber].store(1, release); }
  [[nodiscard]] Fiber* take_ready() {
    const unsigned first = perhaps() ? 0 : 1;
    for (unsigned j = 0; j < kFibers; ++j) {
      const unsigned i = (first + j) % kFibers;
      std::uint32_t one = 1;
      if (!parked_[i].compare_exchange_strong(one, 0, acquire, relaxed)) continue;
      fibers[i].state.store(FiberState::ready, relaxed);
      return &fibers[i];
    }
    return nullptr;
  }
  // Time goes by in the midst of a switch, enough for some steps of the trimmer.
  void linger() {
    if (rl::rand(5) != 0) return;
    for (int i = 0; i < 80; ++i) (void)step_.load(relaxed);
  }
  void begin_thread(unsigned index) {
    threads_[index] = rl::ctx().threadx_;
    weft::detail::full_fence();  // It has seen what it would have seen at earlier barriers.
  }
  // As the kernel does it: a fence on each, one after the other.
  void barrier_all_threads() {
    weft::detail::full_fence();
    for (rl::thread_info_base* thread : threads_) {
      (void)step_.load(relaxed);  // Others may go on in between.
      if (thread == nullptr) continue;
      static_cast<rl::thread_info<kWorkers + 1>*>(thread)->atomic_thread_fence_seq_cst(
          rl::ctx().seq_cst_fence_order_);
    }
    weft::detail::full_fence();
  }

  Fiber fibers[kFibers];
  Atomic<std::uint32_t> asleep[kWorkers];
  unsigned running = kWorkers;  // Bookkeeping that is not part of the modelled program.
  std::uint64_t last_id = 0;
  Scheduler scheduler{kWorkers, {&fibers[0], &fibers[1]}};
  StackTrimmer trimmer{scheduler, 1};

 private:
  Atomic<std::uint32_t> parked_[kFibers];
  Atomic<std::uint32_t> step_{0};
  rl::thread_info_base* threads_[kWorkers + 1] = {};
};

// Of the interleaving that is explored.
World* world = nullptr;

World::World() {
  world = this;
  for (unsigned i = 0; i < kFibers; ++i) {
    auto& made = *::new (&stack(i)) TracedStack;
    made.lowest = memory[i].bytes;
    made.fiber = &fibers[i];
    made.fiber_id.store(++last_id, relaxed);
    made.context.store(save_in(made), relaxed);
    fibers[i].stack.store(&made, relaxed);
    fibers[i].state.store(FiberState::parked, relaxed);
    hand_over(i);
  }
}

World::~World() {
  for (unsigned i = 0; i < kFibers; ++i) stack(i).~TracedStack();
}

// A worker, with the steps of Worker.
class Runner {
 public:
  void run(unsigned index) {
    index_ = index;
    for (rounds_ = 8; rounds_ > 0; --rounds_) {
      if (Fiber* fiber = rl::rand(3) == 0 ? nullptr : world->take_ready()) {
        enter(*fiber);
        while (current_ != nullptr) run_fiber();
      } else {
        world->asleep[index_].store(1, seq_cst);
        let_others_run();
        world->asleep[index_].store(0, seq_cst);
      }
    }
    world->asleep[index_].store(1, seq_cst);
    --world->running;
  }

  [[nodiscard]] Context save_idle() noexcept { return &idle_context_; }
  [[nodiscard]] TracedStack* destination() const noexcept { return destination_; }

 private:
  // By the fiber's owner.
  static TracedStack& stack_of(const Fiber& fiber) {
    Stack* const stack = fiber.stack.load(relaxed);
    expect(stack != nullptr, "the fiber's record says what its stack is");
    return static_cast<TracedStack&>(*stack);
  }
  // Runs a fiber until it parks.
  void run_fiber() {
    Fiber& fiber = *current_;
    TracedStack& stack = stack_of(fiber);
    stack.calls.set(1);
    if (perhaps()) end_and_begin(fiber, stack);
    park(fiber);
  }
  // Worker::end_fiber, which has found a new fiber, and that has the record of the old one.
  void end_and_begin(Fiber& fiber, Stack& here) {
    fiber.stack.store(nullptr, relaxed);
    fiber.state.store(FiberState::free, relaxed);
    here.fiber_id.store(++world->last_id, relaxed);
    fiber.stack.store(&here, release);
    fiber.state.store(FiberState::running, relaxed);
    count_switch();
  }
  // Worker::park; a waiter is woken at once.
  void park(Fiber& fiber) {
    fiber.state.store(FiberState::parked, relaxed);
    world->linger();
    Stack& from = stack_of(fiber);
    Fiber* next = --rounds_ > 0 && perhaps() ? world->take_ready() : nullptr;
    leave(
        from, next,
        [](void* parked) noexcept {
          auto* fiber = static_cast<Fiber*>(parked);
          world->hand_over(static_cast<unsigned>(fiber - world->fibers));
        },
        &fiber);
  }
  void leave(Stack& from, Fiber* next, void (*after)(void*) noexcept, void* argument) {
    count_switch();
    current_ = next;
    destination_ = nullptr;
    if (next == nullptr) {
      if (fault == kSleepsTooEarly) world->asleep[index_].store(1, seq_cst);
      return go(from, idle_stack_, after, argument);
    }
    next->state.store(FiberState::running, relaxed);
    go(from, stack_of(*next), after, argument);
  }
  void enter(Fiber& fiber) {
    current_ = &fiber;
    fiber.state.store(FiberState::running, relaxed);
    count_switch();
    go(
        idle_stack_, stack_of(fiber), [](void*) noexcept {}, nullptr);
  }
  void go(Stack& from, Stack& to, void (*after)(void*) noexcept, void* argument);
  void count_switch() { world->scheduler.workers()[index_]->counters().switches.add_one(); }

  unsigned index_ = 0;
  int rounds_ = 0;
  Fiber* current_ = nullptr;
  TracedStack* destination_ = nullptr;
  Stack idle_stack_;
  SavedContext idle_context_{};
  weft::fibers::ExceptionState exceptions_;
  int error_ = 0;
};

// Of the checker's threads.
Runner* runners[kWorkers];

void Runner::go(Stack& from, Stack& to, void (*after)(void*) noexcept, void* argument) {
  destination_ = &to == &idle_stack_ ? nullptr : static_cast<TracedStack*>(&to);
  world->linger();
  if (destination_ == nullptr) idle_stack_.context.store(&idle_context_, relaxed);
  weft::fibers::switch_to({&exceptions_, &error_, {}}, from, to, after, argument);
}

// Two workers run two fibers, which park again and again, or end and begin anew on the same stack,
// while both stacks are trimmed.
struct Trimming : rl::test_suite<Trimming, kWorkers + 1> {
  Aligned<World> shared;
  Aligned<Runner> workers[kWorkers] = {Aligned<Runner>(), Aligned<Runner>()};

  void before() {
    for (unsigned i = 0; i < kWorkers; ++i) runners[i] = &*workers[i];
  }
  void thread(unsigned index) {
    shared->begin_thread(index);
    if (index < kWorkers) return workers[index]->run(index);
    // Some more steps when nobody runs any more, so that each begun sweep ends.
    for (std::int64_t i = 1, last = 4; last > 0; ++i) {
      shared->trimmer.step(i * 1'000'000'000'000);
      let_others_run();
      if (shared->running == 0) --last;
    }
  }
};

}  // namespace

namespace weft::fibers {

// Leaves the one stack and arrives on the other, whose thread the caller is from now on.
Arrival jump(Context to, void* message) noexcept {
  Stack& from = *static_cast<Departure*>(message)->from;
  auto* const left = ::world->stack_at(&from);
  Runner& runner = *runners[rl::thread_index()];
  if (left != nullptr) left->calls.set(2);
  const Context saved = left != nullptr ? World::save_in(*left) : runner.save_idle();
  // Reads through `to` depend on it, which orders as much as is needed here.
  rl::atomic_thread_fence(rl::mo_acquire, model::info_of(model::Where::current()));
  ::world->linger();
  if (behind_gate(to) != to) {
    auto& gate = *reinterpret_cast<Gate*>(to);
    while (fault != kWalksThroughClosedGates && !gate.try_pass()) detail::pause_cpu();
    to = gate.way_on();
  }
  TracedStack* const arrived = ::world->stack_at(to);
  expect(arrived == runner.destination(), "the way leads to another stack");
  if (arrived != nullptr) {
    expect(arrived->newest == to, "a fiber goes on where it left off the time before");
    arrived->calls.set(3);
  }
  return {saved, message};
}

}  // namespace weft::fibers

namespace weft::base {
bool prepare_barriers() noexcept { return true; }
bool barrier_all_threads() noexcept {
  if (fault != kBarrierDoesNothing) ::world->barrier_all_threads();
  return true;
}
}  // namespace weft::base

namespace weft::scheduler {
std::uint64_t Counter::get() const noexcept {
  return value_.load(acquire) * (fault == kSwitchesCountTwice ? 2 : 1);
}
bool Scheduler::is_asleep(const Worker& worker) const noexcept {
  const unsigned index = &worker == workers_[0].get() ? 0 : 1;
  return fault == kNoGrace || ::world->asleep[index].load(relaxed) != 0;
}
}  // namespace weft::scheduler

namespace weft::model {
int give_back_pages(void* address, std::size_t bytes, int /*advice*/) noexcept {
  TracedStack* const stack = ::world->stack_at(address);
  expect(bytes <= (kPages - 2) * kPage, "no page of what lies above is given back");
  stack->calls.set(0);
  return 0;
}
int tell_resident(void* /*address*/, std::size_t bytes, unsigned char* pages) noexcept {
  for (std::size_t i = 0; i < bytes / kPage; ++i) pages[i] = 1;
  return 0;
}
void* map_pages(void*, std::size_t bytes, int, int, int, long) noexcept {
  expect(bytes <= sizeof(mapped), "there is room for the gates");
  return mapped;
}
int unmap_pages(void* /*address*/, std::size_t /*bytes*/) noexcept { return 0; }
}  // namespace weft::model

int main(int count, char** arguments) {
  using weft::model::broken_by;
  using weft::model::random_search;
  return weft::model::Program(
             "gate", {random_search<Trimming>("two workers, two fibers", 40'000)},
             {weft::model::relaxed_orders(),
              broken_by(kBarrierDoesNothing, "threads execute no barrier"),
              broken_by(kSwitchesCountTwice, "a worker is waited for until its next switch"),
              broken_by(kSleepsTooEarly, "a worker sleeps before it has left the fiber"),
              broken_by(kWalksThroughClosedGates, "nobody waits at a closed gate"),
              broken_by(kNoGrace, "no worker is waited for")})
      .run(count, arguments);
}
