// A server for Redis clients, which stores texts that may expire. Each client has a fiber, a
// buffered reader for its commands, and a writer that answers a batch of commands with one system
// call.
//
//   redis_server 127.0.0.1:6400 & redis-benchmark -p 6400 -t ping,set,get,incr -P 16 -q
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>
#include <weft/mutex.hpp>
#include <weft/net/buffered.hpp>
#include <weft/net/serve.hpp>
#include <weft/runtime.hpp>
#include <weft/stop_on_signal.hpp>

namespace {
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

constexpr std::size_t kLongest = 1 << 20;        // A word or a line, in bytes.
constexpr std::size_t kLargest = 4 << 20;        // A command, in bytes.
constexpr std::int64_t kMostWords = 1024;        // In a command.
constexpr std::int64_t kMostSeconds = 1U << 31;  // Until a key expires.
constexpr auto kNoInteger = "value is not an integer or out of range";

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

std::string upper(std::string text) {
  for (char& c : text) c = 'a' <= c && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

std::string header(char kind, std::int64_t number) {
  return (std::string(1, kind) += std::to_string(number)) += "\r\n";
}
std::string integer(std::int64_t number) { return header(':', number); }
std::string bulk(const std::string* text) {
  return text == nullptr ? header('$', -1) : (header('$', std::ssize(*text)) += *text) += "\r\n";
}
std::string failure(const std::string& text) { return "-ERR " + text + "\r\n"; }

// Stores keys and their values. A lookup removes an expired key.
class Store {
 public:
  std::string set(const Words& words) {
    std::optional<Clock::time_point> end;
    bool only_new = false;
    for (std::size_t i = 3; i < words.size(); ++i) {
      const std::string option = upper(words[i]);
      if (option == "NX") {
        only_new = true;
      } else if (option == "EX" && i + 1 < words.size()) {
        const auto seconds = number_in(words[++i]);
        if (!seconds) return failure(kNoInteger);
        if (*seconds <= 0 || *seconds > kMostSeconds) return failure("invalid expire time");
        end = Clock::now() + std::chrono::seconds(*seconds);
      } else {
        return failure("syntax error");
      }
    }
    const std::lock_guard lock(mutex_);
    if (only_new && find(words[1]) != nullptr) return bulk(nullptr);
    entries_[words[1]] = {words[2], end};
    return "+OK\r\n";
  }
  std::string get(const Words& words) {
    const std::lock_guard lock(mutex_);
    return value_of(words[1]);
  }
  std::string get_many(const Words& words) {
    const std::lock_guard lock(mutex_);
    std::string answer = header('*', std::ssize(words) - 1);
    for (std::size_t i = 1; i < words.size(); ++i) answer += value_of(words[i]);
    return answer;
  }
  std::string remove(const Words& words) {
    const std::lock_guard lock(mutex_);
    std::int64_t count = 0;
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (find(words[i]) != nullptr && entries_.erase(words[i]) > 0) ++count;
    }
    return integer(count);
  }
  std::string exists(const Words& words) {
    const std::lock_guard lock(mutex_);
    return integer(std::count_if(words.begin() + 1, words.end(),
                                 [this](const std::string& key) { return find(key) != nullptr; }));
  }
  std::string increment(const Words& words) {
    const std::lock_guard lock(mutex_);
    Entry* entry = find(words[1]);
    if (entry == nullptr) entry = &(entries_[words[1]] = {"0", {}});
    const auto number = number_in(entry->value);
    if (!number || *number == INT64_MAX) return failure(kNoInteger);
    entry->value = std::to_string(*number + 1);
    return integer(*number + 1);
  }
  std::string expire(const Words& words) {
    const auto seconds = number_in(words[2]);
    if (!seconds || *seconds > kMostSeconds) return failure(kNoInteger);
    const std::lock_guard lock(mutex_);
    Entry* entry = find(words[1]);
    if (entry == nullptr) return integer(0);
    entry->end = Clock::now() + std::chrono::seconds(std::max<std::int64_t>(*seconds, 0));
    return integer(1);
  }
  std::string time_left(const Words& words) {
    const std::lock_guard lock(mutex_);
    const Entry* entry = find(words[1]);
    if (entry == nullptr || !entry->end) return integer(entry == nullptr ? -2 : -1);
    return integer(std::chrono::round<std::chrono::seconds>(*entry->end - Clock::now()).count());
  }

 private:
  struct Entry {
    std::string value;
    std::optional<Clock::time_point> end;
  };

  // Returns null if there is no such key, or the key has expired. The caller holds the lock, as for
  // the next function.
  Entry* find(const std::string& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    if (!found->second.end || Clock::now() < *found->second.end) return &found->second;
    return entries_.erase(found), nullptr;
  }
  std::string value_of(const std::string& key) {
    const Entry* entry = find(key);
    return bulk(entry == nullptr ? nullptr : &entry->value);
  }

  weft::Mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;
};

struct Command {
  std::size_t least, most;  // The number of words, including the name.
  std::string (*run)(Store& store, const Words& words);
};

const std::unordered_map<std::string, Command>& commands() {
  static const std::unordered_map<std::string, Command> all = {
      {"PING",
       {1, 2,
        [](Store& /*store*/, const Words& words) {
          return words.size() == 1 ? "+PONG\r\n" : bulk(&words[1]);
        }}},
      {"ECHO", {2, 2, [](Store& /*store*/, const Words& words) { return bulk(&words[1]); }}},
      {"SET", {3, 6, [](Store& store, const Words& words) { return store.set(words); }}},
      {"GET", {2, 2, [](Store& store, const Words& words) { return store.get(words); }}},
      {"MGET",
       {2, kMostWords, [](Store& store, const Words& words) { return store.get_many(words); }}},
      {"DEL",
       {2, kMostWords, [](Store& store, const Words& words) { return store.remove(words); }}},
      {"EXISTS",
       {2, kMostWords, [](Store& store, const Words& words) { return store.exists(words); }}},
      {"INCR", {2, 2, [](Store& store, const Words& words) { return store.increment(words); }}},
      {"EXPIRE", {3, 3, [](Store& store, const Words& words) { return store.expire(words); }}},
      {"TTL", {2, 2, [](Store& store, const Words& words) { return store.time_left(words); }}},
  };
  return all;
}

std::string answer_to(Store& store, const Words& words) {
  const auto found = commands().find(upper(words[0]));
  if (found == commands().end()) return failure("unknown command '" + words[0].substr(0, 64) + "'");
  const Command& command = found->second;
  if (words.size() < command.least || words.size() > command.most) {
    return failure("wrong number of arguments for '" + words[0] + "' command");
  }
  return command.run(store, words);
}

// Reads the next command; an empty line gives no words. Without a command, returns the reason: ""
// at the end of the connection, otherwise the client's error.
std::optional<std::string> read_command(weft::net::BufferedReader& reader, Words& words) {
  words.clear();
  const auto [line, error] = reader.read_line();
  if (error == weft::net::ReadErrc::too_long) return "Protocol error: too big inline request";
  if (error) return "";
  if (!line.starts_with('*')) {  // An inline command.
    for (std::size_t at = 0; (at = line.find_first_not_of(' ', at)) != line.npos;) {
      if (words.size() == kMostWords) return "Protocol error: too many words";
      const std::size_t end = std::min(line.find(' ', at), line.size());
      words.emplace_back(line.substr(at, end - at));
      at = end;
    }
    return {};
  }
  const auto count = number_in(line.substr(1));
  if (!count || *count > kMostWords) return "Protocol error: invalid multibulk length";
  std::size_t size = 0;
  for (std::int64_t i = 0; i < *count; ++i) {
    const auto head = reader.read_line();
    if (head.error) return "";
    if (!head.value.starts_with('$')) return "Protocol error: expected '$'";
    const auto length = number_in(head.value.substr(1));
    const bool fits = length && *length >= 0 && *length <= std::int64_t{kLongest};
    if (!fits || (size += static_cast<std::size_t>(*length)) > kLargest) {
      return "Protocol error: invalid bulk length";
    }
    const auto word = reader.read_exactly(static_cast<std::size_t>(*length) + 2);
    if (word.error) return "";
    words.emplace_back(word.value.substr(0, word.value.size() - 2));
  }
  return {};
}

void talk(weft::net::ByteStream& stream, Store& store) {
  weft::net::BufferedReader reader(stream, {.capacity = 16'384, .longest = kLongest + 2});
  weft::net::BufferedWriter writer(stream, 16'384);
  for (Words words;;) {
    if (const auto ended = read_command(reader, words)) {
      if (!ended->empty()) (void)writer.write(failure(*ended));
      (void)writer.flush();
      return;
    }
    if (!words.empty() && writer.write(answer_to(store, words)).error) return;
    // Sends the answers only when no further command is buffered.
    if (reader.buffered().empty() && !writer.flush()) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  return weft::run([&] {
    const weft::StopOnSignal stop;
    const auto where = weft::net::Address::parse(argc > 1 ? argv[1] : "127.0.0.1:0");
    auto [listener, error] = weft::net::TcpListener::listen(where.value);
    if (error) return 1;
    std::cout << "listening on " << listener.local_address().value.to_string() << std::endl;
    Store store;
    const auto serve = [&](weft::net::ByteStream& stream) { talk(stream, store); };
    return weft::net::serve(listener, {.stop = stop.get_token()}, serve) ? 0 : 1;
  });
}
