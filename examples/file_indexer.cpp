// Keeps an index of the words in all files below a folder, follows changes as they happen, and
// reports which files contain all words of a query.
//
//   file_indexer --listen 127.0.0.1:8080 --index /var/tmp/index ~/notes
//   curl 'http://127.0.0.1:8080/?q=weft+fiber'
//
// The index is stored as a whole or not at all, and the next start reads only changed files.
#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/file_changes.hpp>
#include <weft/files.hpp>
#include <weft/go.hpp>
#include <weft/http/router.hpp>
#include <weft/http/server.hpp>
#include <weft/mutex.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/parallel.hpp>
#include <weft/runtime.hpp>
#include <weft/stop_on_signal.hpp>
#include <weft/temporary_files.hpp>

#include "command_line.hpp"

namespace {

namespace files = weft::files;
using weft::http::Request;
using weft::http::Response;
using Words = std::set<std::string>;

constexpr std::size_t kLargest = 16 << 20;  // Bytes; larger files are skipped.

struct Options {
  std::string folder, index, listen = "127.0.0.1:8080";
  std::size_t fibers = 32;
};

Words read_words(std::istream& in) {
  return {std::istream_iterator<std::string>(in), std::istream_iterator<std::string>()};
}

Words words_in(std::string text) {
  for (char& each : text) {
    const auto byte = static_cast<unsigned char>(each);
    each = std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : ' ';
  }
  std::istringstream in(std::move(text));
  return read_words(in);
}

class Index {
 public:
  explicit Index(const Options& options) : options_(options) {}

  // Reads the stored index. If its file cannot be read, the index is empty.
  void load() {
    std::istringstream lines(files::read_file(options_.index).value);
    for (std::string path, facts; std::getline(lines, path) && std::getline(lines, facts);) {
      std::istringstream in(facts);
      Document document;
      in >> document.modified;
      document.words = read_words(in);
      put(path, std::move(document));
    }
  }

  // Stores the index. The file gets its final name only when all of it is on the disk.
  weft::Result<void> store() {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const auto& [path, document] : documents_) {
      (text += path) += '\n' + std::to_string(document.modified);
      for (const std::string& word : document.words) (text += ' ') += word;
      text += '\n';
    }
    const std::size_t name = options_.index.rfind('/') + 1;
    auto [file, error] = files::TemporaryFile::create(
        {.folder = name == 0 ? "." : options_.index.substr(0, name), .prefix = ".index-"});
    if (error) return error;
    if (const auto failed = file.file().write_all(text, 0).error) return failed;
    if (const auto synced = file.file().sync(); !synced) return synced;
    return file.keep_as(options_.index);
  }

  // Watches the folders first, so that no change is missed, then reads new files. Also removes
  // files that no longer exist from the index.
  void scan(files::ChangeWatch& changes, const std::string& root) {
    std::set<std::string> found;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [path, document] : documents_) found.insert(path);
    }
    files::Walk walk(root);
    (void)changes.add(root);
    for (auto next = walk.next(); next.value; next = walk.next()) {
      if (next.value->kind == files::Kind::directory) (void)changes.add(next.value->path);
      if (next.value->kind == files::Kind::file) found.insert(next.value->path);
    }
    const std::vector<std::string> paths(found.begin(), found.end());
    const auto refresh_one = [this](const std::string& path) { refresh(path); };
    weft::for_each(paths, refresh_one, {.max_running = options_.fibers});
  }

  // Reads a file unless the index has its current version.
  void refresh(const std::string& path) {
    const auto [found, error] = files::link_status(path);
    {
      const std::lock_guard lock(mutex_);
      const auto known = documents_.find(path);
      const bool is_known = known != documents_.end();
      if (!error && is_known && known->second.modified == moment_of(found)) return;
    }
    read(path);
  }

  // Updates the index for one path.
  void read(const std::string& path) {
    const auto [found, error] = files::link_status(path);
    if (error || found.kind != files::Kind::file || path.find('\n') < path.size()) {
      return forget(path);
    }
    auto [text, unread] = files::read_file(path, kLargest);
    if (unread) return forget(path);
    ++read_;
    put(path, {moment_of(found), words_in(std::move(text))});
  }

  // Removes a path and everything below it from the index.
  void forget(const std::string& path) {
    const std::lock_guard lock(mutex_);
    for (auto at = documents_.lower_bound(path); at != documents_.end();) {
      if (!at->first.starts_with(path)) break;
      const bool is_below = at->first.size() == path.size() || at->first[path.size()] == '/';
      at = is_below ? remove(at) : std::next(at);
    }
  }

  // Returns the paths of files that contain all the words, one per line.
  std::string find(const Words& words) {
    const std::lock_guard lock(mutex_);
    const auto found = words.empty() ? paths_.end() : paths_.find(*words.begin());
    if (found == paths_.end()) return {};
    std::string text;
    for (const std::string& path : found->second) {
      if (std::ranges::includes(documents_.at(path).words, words)) (text += path) += '\n';
    }
    return text;
  }

  [[nodiscard]] std::size_t files_read() const { return read_; }

 private:
  struct Document {
    std::int64_t modified = 0;
    Words words;
  };
  using Documents = std::map<std::string, Document>;

  static std::int64_t moment_of(const files::Status& found) {
    return found.modified.time_since_epoch().count();
  }

  void put(const std::string& path, Document document) {
    const std::lock_guard lock(mutex_);
    if (const auto former = documents_.find(path); former != documents_.end()) remove(former);
    for (const std::string& word : document.words) paths_[word].insert(path);
    documents_.emplace(path, std::move(document));
  }

  // The caller holds the lock.
  Documents::iterator remove(Documents::iterator at) {
    for (const std::string& word : at->second.words) {
      const auto found = paths_.find(word);
      found->second.erase(at->first);
      if (found->second.empty()) paths_.erase(found);
    }
    return documents_.erase(at);
  }

  const Options& options_;
  weft::Mutex mutex_;
  Documents documents_;
  std::map<std::string, std::set<std::string>> paths_;  // The files that contain each word.
  std::atomic<std::size_t> read_ = 0;
};

// Follows changes until the watch is closed.
void follow(Index& index, files::ChangeWatch& changes, const std::string& root) {
  for (;;) {
    const auto [change, error] = changes.next();
    if (error) return;
    const bool is_lost = change.kind == files::ChangeKind::lost;
    const std::string& path = is_lost ? root : change.path;
    if (is_lost || files::link_status(path).value.kind == files::Kind::directory) {
      index.scan(changes, path);
    } else if (change.kind != files::ChangeKind::modified) {  // More changes follow `modified`.
      index.read(path);
    }
  }
}

int serve(const Options& options) {
  const weft::StopOnSignal stop;
  auto [changes, unwatched] = files::ChangeWatch::open();
  if (unwatched) throw std::system_error(unwatched, "changes of files");
  Index index(options);
  if (!options.index.empty()) index.load();
  weft::http::Server server(
      [&](Request& request, Response& response) {
        (void)response.send(index.find(words_in(request.query_value("q").value_or(""))));
      },
      {.stop = stop.get_token()});
  auto [listener, error] =
      weft::net::TcpListener::listen(weft::net::Address::parse(options.listen).value);
  if (error) throw std::system_error(error, options.listen);
  index.scan(changes, options.folder);
  auto following = weft::spawn([&, &watch = changes] { follow(index, watch, options.folder); });
  std::printf("read %zu files, listening on %s\n", index.files_read(),
              listener.local_address().value.to_string().c_str());
  std::fflush(stdout);
  const weft::Result<void> served = server.serve(listener);
  changes.close();
  following.join();
  return served && (options.index.empty() || index.store()) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("file_indexer", "Finds files by the words in them.");
  Options options;
  line.add("folder", options.folder, "the files below it are indexed");
  line.add("--index", options.index, "a file that keeps the index; empty: none");
  line.add("--listen", options.listen, "address and port; port 0 lets the system choose");
  line.add("--fibers", options.fibers, 1, 10'000, "files that are read at once");
  line.require("folder");
  return line.run(argc, argv, [&] { return weft::run([&] { return serve(options); }); });
}
