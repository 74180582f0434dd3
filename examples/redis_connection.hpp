// Shares one connection to Redis, by hiredis, among many fibers: their questions are sent together,
// and each fiber gets the answer to its question.
#pragma once

#include <hiredis/hiredis.h>

#include <chrono>
#include <csignal>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/io.hpp>
#include <weft/mutex.hpp>

struct RedisError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class RedisConnection {
 public:
  struct Free {
    void operator()(void* reply) const { freeReplyObject(reply); }
  };
  using Reply = std::unique_ptr<redisReply, Free>;

  // `place` is the path of a Unix socket.
  explicit RedisConnection(const std::string& place)
      : context_(redisConnectUnixNonBlock(place.c_str())) {
    // hiredis calls write(), whose SIGPIPE would end the process if the server has closed the
    // connection.
    std::signal(SIGPIPE, SIG_IGN);
    if (context_ == nullptr || context_->err != 0) throw RedisError("no connection to " + place);
    auto [watch, error] = weft::io::Watch::borrow(context_->fd);
    if (error) throw RedisError(error.message());
    watch_ = std::move(watch);
    reader_ = weft::spawn([this] { read_answers(); });
    writer_ = weft::spawn([this] { write_questions(); });
  }
  ~RedisConnection() {
    lose("the connection is closed");
    reader_.join();
    writer_.join();
    watch_ = {};
    redisFree(context_);
  }
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  // Throws RedisError, also if `until` ends the wait; the late answer is then dropped.
  Reply ask(const std::vector<std::string>& words,
            const weft::Until& until = std::chrono::seconds(5)) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const std::string& word : words) {
      texts.push_back(word.data());
      sizes.push_back(word.size());
    }
    const auto question = std::make_shared<Question>();
    {
      const std::lock_guard lock(mutex_);
      if (!lost_.empty()) throw RedisError(lost_);
      redisAppendCommandArgv(context_, static_cast<int>(words.size()), texts.data(), sizes.data());
      questions_.push_back(question);
    }
    unsent_.set();
    if (!question->answered.wait_until(until)) throw RedisError("no answer in time");
    if (question->reply == nullptr) throw RedisError(lost_);
    if (question->reply->type == REDIS_REPLY_ERROR) throw RedisError(question->reply->str);
    return std::move(question->reply);
  }

 private:
  struct Question {
    weft::Event answered;
    Reply reply;  // Empty: no answer will come.
  };

  // Runs in a separate fiber, so that a caller waits only for its answer, and no longer than its
  // deadline.
  void write_questions() {
    for (;;) {
      unsent_.wait();
      unsent_.reset();
      for (int done = 0; done == 0;) {
        if (const std::string error = write_some(done); !error.empty()) {
          // A server that refuses a client sends the reason before it closes the connection.
          const std::string reason = read_some();
          return lose(reason.empty() ? error : reason);
        }
        if (done == 0 && watch_.wait(weft::io::Ready::write).error) return;
      }
    }
  }
  void read_answers() {
    while (!watch_.wait(weft::io::Ready::read).error) {
      if (const std::string error = read_some(); !error.empty()) return lose(error);
    }
  }

  // Returns the error, or an empty text.
  std::string write_some(int& done) {
    const std::lock_guard lock(mutex_);
    if (!lost_.empty()) return lost_;
    if (redisBufferWrite(context_, &done) == REDIS_OK) return "";
    context_->err = 0;  // Otherwise hiredis refuses to read what has arrived.
    return context_->errstr;
  }
  // Returns the error, or an empty text.
  std::string read_some() {
    const std::lock_guard lock(mutex_);
    if (redisBufferRead(context_) != REDIS_OK) return context_->errstr;
    for (;;) {
      void* next = nullptr;
      if (redisGetReplyFromReader(context_, &next) != REDIS_OK) return context_->errstr;
      Reply reply(static_cast<redisReply*>(next));
      if (reply == nullptr) return "";
      if (questions_.empty()) {  // The server may have too many clients.
        return reply->type == REDIS_REPLY_ERROR ? reply->str : "an answer that nobody asked for";
      }
      questions_.front()->reply = std::move(reply);
      questions_.front()->answered.set();
      questions_.pop_front();
    }
  }

  // Ends all waits, now and later.
  void lose(const std::string& why) {
    {
      const std::lock_guard lock(mutex_);
      if (lost_.empty()) lost_ = why;
      for (const auto& question : questions_) question->answered.set();
      questions_.clear();
    }
    watch_.close();
    unsent_.set();
  }

  redisContext* context_;  // Used with mutex_ held, never during a wait.
  weft::io::Watch watch_;
  weft::Mutex mutex_;
  weft::Event unsent_;
  std::deque<std::shared_ptr<Question>> questions_;  // In the order of their answers.
  std::string lost_;                                 // The reason; empty: connected. Set once.
  weft::JoinHandle<void> reader_, writer_;
};
