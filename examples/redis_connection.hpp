// One connection to Redis, by hiredis, that many fibers use at the same time: what they ask goes
// out together, and each gets the answer to its own question.
#pragma once

#include <hiredis/hiredis.h>

#include <deque>
#include <memory>
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
    if (context_ == nullptr || context_->err != 0) throw RedisError("no connection to " + place);
    auto [watch, error] = weft::io::Watch::borrow(context_->fd);
    if (error) throw RedisError(error.message());
    watch_ = std::move(watch);
    reader_ = weft::spawn([this] { read_answers(); });
  }
  ~RedisConnection() {
    watch_.close();  // Ends the reader's wait.
    reader_.join();
    watch_ = {};
    redisFree(context_);
  }
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  // Throws RedisError; when `until` ends the wait, too, and the answer is dropped when it comes.
  Reply ask(const std::vector<std::string>& words, const weft::Until& until = {}) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const std::string& word : words) {
      texts.push_back(word.data());
      sizes.push_back(word.size());
    }
    const auto question = std::make_shared<Question>();
    {
      const std::lock_guard lock(mutex_);
      if (broken_) throw RedisError("the connection is lost");
      redisAppendCommandArgv(context_, static_cast<int>(words.size()), texts.data(), sizes.data());
      questions_.push_back(question);
    }
    flush();
    if (!question->answered.wait_until(until)) throw RedisError("no answer in time");
    if (question->reply == nullptr) throw RedisError("the connection is lost");
    if (question->reply->type == REDIS_REPLY_ERROR) throw RedisError(question->reply->str);
    return std::move(question->reply);
  }

 private:
  struct Question {
    weft::Event answered;
    Reply reply;  // Empty: there will be none.
  };

  void flush() {
    const std::lock_guard one_writer(writing_);
    for (int done = 0; done == 0;) {
      {
        const std::lock_guard lock(mutex_);
        if (broken_ || redisBufferWrite(context_, &done) != REDIS_OK) return;  // The reader tells.
      }
      if (done == 0 && watch_.wait(weft::io::Ready::write).error) return;
    }
  }

  void read_answers() {
    while (!watch_.wait(weft::io::Ready::read).error) {
      const std::lock_guard lock(mutex_);
      void* reply = nullptr;
      if (redisBufferRead(context_) != REDIS_OK) break;
      while (redisGetReplyFromReader(context_, &reply) == REDIS_OK && reply != nullptr) {
        questions_.front()->reply.reset(static_cast<redisReply*>(reply));
        questions_.front()->answered.set();
        questions_.pop_front();
      }
    }
    const std::lock_guard lock(mutex_);
    broken_ = true;
    for (const auto& question : questions_) question->answered.set();
    questions_.clear();
  }

  redisContext* context_;  // Used with mutex_ held; never while something is waited for.
  weft::io::Watch watch_;
  weft::Mutex mutex_;
  weft::Mutex writing_;
  std::deque<std::shared_ptr<Question>> questions_;  // In the order of their answers.
  bool broken_ = false;
  weft::JoinHandle<void> reader_;
};
