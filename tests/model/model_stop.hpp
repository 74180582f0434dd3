// Replaces std::stop_token in models: it has the same calls, but uses the model checker's atomics.
//
// Include it before all headers of the library. The checker cannot see the real class. Besides,
// that class identifies callers by their thread, and a model has a single thread. So it would never
// wait for a running callback.
#pragma once

#include <stop_token>

#include <weft/detail/atomic.hpp>

#include "tests/model/model.hpp"

namespace weft::model {

// One registered callback; it lives on the stack of the caller that registered it.
// Order
//   [ended]  request stores ended_ (release), its last access -> removal reads it (acquire).
struct StopLink {
  explicit StopLink(void (*function)(StopLink*)) : call(function) {}
  void (*const call)(StopLink* self);
  StopLink* next = nullptr;
  bool linked = false;
  Atomic<bool> ended{false};
};

// State that a stop source and its tokens share.
// Order
//   [requested]  request stores requested_ (release) -> is_requested loads it (acquire).
//   [links]      unlock (release) -> the next lock (acquire).
class StopState {
 public:
  class Token {
   public:
    Token() = default;
    explicit Token(StopState* state) : state_(state) {}
    [[nodiscard]] bool stop_requested() const {
      return state_ != nullptr && state_->is_requested();
    }
    [[nodiscard]] bool stop_possible() const { return state_ != nullptr; }
    [[nodiscard]] StopState* state() const { return state_; }

   private:
    StopState* state_ = nullptr;
  };

  [[nodiscard]] Token token() { return Token(this); }
  [[nodiscard]] bool is_requested() const { return requested_.load(detail::acquire); }

  // Call it at most once. It runs the callbacks one after the other, without the lock.
  void request() {
    lock();
    requested_.store(true, detail::release);
    while (StopLink* link = first_) {
      first_ = link->next;
      link->linked = false;
      unlock();
      link->call(link);
      link->ended.store(true, detail::release);
      lock();
    }
    unlock();
  }
  // Returns false if a stop has been requested; the caller must then run the callback itself.
  [[nodiscard]] bool add(StopLink& link) {
    lock();
    const bool is_early = !is_requested();
    if (is_early) {
      link.next = first_;
      link.linked = true;
      first_ = &link;
    }
    unlock();
    return is_early;
  }
  void remove(StopLink& link) {
    lock();
    const bool was_linked = link.linked;
    StopLink** place = &first_;
    while (was_linked && *place != &link) place = &(*place)->next;
    if (was_linked) *place = link.next;
    unlock();
    while (!was_linked && !link.ended.load(detail::acquire)) let_others_run();
  }

 private:
  void lock() {
    while (locked_.exchange(true, detail::acquire)) let_others_run();
  }
  void unlock() { locked_.store(false, detail::release); }

  Atomic<bool> locked_{false};
  Atomic<bool> requested_{false};
  StopLink* first_ = nullptr;
};

template <class Callback>
class StopCallback {
 public:
  StopCallback(const StopState::Token& token, Callback callback)
      : callback_(callback), state_(token.state()) {
    if (state_ != nullptr && !state_->add(link_)) {
      state_ = nullptr;
      callback_();
    }
  }
  ~StopCallback() {
    if (state_ != nullptr) state_->remove(link_);
  }
  StopCallback(const StopCallback&) = delete;
  StopCallback& operator=(const StopCallback&) = delete;

 private:
  struct Link : StopLink {
    explicit Link(StopCallback* owner) : StopLink(&Link::run), callback(owner) {}
    static void run(StopLink* self) { static_cast<Link*>(self)->callback->callback_(); }
    StopCallback* callback;
  };

  Callback callback_;
  StopState* state_;
  Link link_{this};
};

}  // namespace weft::model

namespace std {  // The library's headers find these classes from here on.
using ModelStopToken = weft::model::StopState::Token;
template <class Callback>
using ModelStopCallback = weft::model::StopCallback<Callback>;
}  // namespace std
#define stop_token ModelStopToken
#define stop_callback ModelStopCallback
