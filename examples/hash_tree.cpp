// Prints the SHA-256 digests of all regular files below some folders, as `sha256sum` does, with a
// bounded number of fibers. The program reports and counts files that it cannot read, and
// continues.
//
//   hash_tree /usr/include > digests && sha256sum --check --quiet digests
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>

#include "command_line.hpp"
#include "digest.hpp"
#include "folder.hpp"

namespace {

using examples::Entry;
using examples::Kind;
using examples::Links;

struct Options {
  std::vector<std::string> paths{"/usr/include"};
  // Reading a file blocks a worker thread, because the kernel has no "ready" for files. More fibers
  // than workers do not read faster, but a worker always finds one that can run.
  std::size_t fibers = std::size_t{4} * std::max(1U, std::thread::hardware_concurrency());
  unsigned workers = 0;
  std::string json;
};

struct Counts {
  std::atomic<std::uint64_t> files{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> unreadable{0};   // Files, folders and paths given.
  std::atomic<std::uint64_t> passed_over{0};  // Symbolic links, sockets, devices and pipes.
};

class TreeHasher {
 public:
  explicit TreeHasher(const Options& options)
      : pool_({.capacity = options.fibers,
               .queue_capacity = kQueue,
               .on_exception = [this](std::exception_ptr reason) { report(std::move(reason)); },
               .name = "hash"}) {}

  // Walks in the calling plain thread, which blocks while the pool's queue is full, so that the
  // walk is never far ahead of the hashing. It follows links only if the user named them.
  void add(const std::string& path) {
    const auto [kind, error] = examples::kind_of(path, Links::follow);
    if (error) {
      report(path, error);
    } else if (kind == Kind::folder) {
      walk(path);
    } else {
      take({path, kind}, Links::follow);
    }
  }

  void wait() { pool_.wait_idle(); }
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  static constexpr std::size_t kQueue = 256;

  void walk(const std::string& root) {
    std::vector<std::string> folders{root};  // No recursion, because trees may be deep.
    while (!folders.empty()) {
      const std::string folder = std::move(folders.back());
      folders.pop_back();
      const auto [entries, error] = examples::entries_of(folder);
      if (error) report(folder, error);
      for (const Entry& entry : entries) {
        if (entry.kind == Kind::folder) {
          folders.push_back(entry.path);
        } else {
          take(entry, Links::refuse);
        }
      }
    }
  }

  void take(const Entry& entry, Links links) {
    if (entry.kind != Kind::file) {
      ++counts_.passed_over;
      return;
    }
    const std::error_code refused =
        pool_.submit([this, path = entry.path, links] { hash(path, links); });
    if (refused) throw std::system_error(refused, "the pool");
  }

  // Runs in a fiber of the pool.
  void hash(const std::string& path, Links links) {
    const auto [digest, error] = examples::digest_of_file(path, links);
    if (error) return report(path, error);
    const std::string line = examples::checksum_line(digest.hex, path);
    // One call writes a whole line, so stdio does not mix the lines of several threads.
    std::fwrite(line.data(), 1, line.size(), stdout);
    ++counts_.files;
    counts_.bytes += digest.bytes;
  }

  void report(const std::string& path, std::error_code error) {
    ++counts_.unreadable;
    fmt::print(stderr, "hash_tree: {}: {}\n", examples::escaped(path), error.message());
  }

  // Reports the exception of a task. The file then has no digest, like an unreadable file.
  void report(std::exception_ptr reason) try {
    ++counts_.unreadable;
    std::rethrow_exception(std::move(reason));
  } catch (const std::exception& error) {
    fmt::print(stderr, "hash_tree: a file was not hashed: {}\n", error.what());
  }

  Counts counts_;
  weft::FiberPool pool_;  // Last, because its tasks use all other members.
};

// Each fiber has a file open; the usual soft limit is 1024.
void check_descriptors(std::size_t fibers) {
  const std::size_t limit = examples::raise_descriptor_limit();
  if (fibers + 32 > limit) {
    throw std::invalid_argument(fmt::format(
        "--fibers {}: the system lets this process open {} files (ulimit -n)", fibers, limit));
  }
}

void write_json(const Options& options, const Counts& counts, double seconds) {
  std::ofstream out(options.json);
  out << nlohmann::json{{"files", counts.files.load()},
                        {"bytes", counts.bytes.load()},
                        {"unreadable", counts.unreadable.load()},
                        {"passed_over", counts.passed_over.load()},
                        {"seconds", seconds},
                        {"fibers", options.fibers}}
             .dump(2)
      << '\n';
  if (!out.flush()) throw std::runtime_error(fmt::format("--json: cannot write {}", options.json));
}

int hash_trees(const Options& options) {
  check_descriptors(options.fibers);
  weft::Runtime runtime({.workers = options.workers});
  const auto start = std::chrono::steady_clock::now();
  TreeHasher hasher(options);
  for (const std::string& path : options.paths) hasher.add(path);
  hasher.wait();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw std::runtime_error("cannot write the digests to the standard output");
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;

  const Counts& counts = hasher.counts();
  fmt::print(stderr,
             "{} files, {:.1f} MB in {:.3f} s; {} unreadable; {} links and special files "
             "passed over\n",
             counts.files.load(), static_cast<double>(counts.bytes.load()) / 1e6, elapsed.count(),
             counts.unreadable.load(), counts.passed_over.load());
  if (!options.json.empty()) write_json(options, counts, elapsed.count());
  return counts.unreadable == 0 ? 0 : examples::kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  examples::CommandLine line(
      "hash_tree", "Prints the SHA-256 digests of all files below the paths given, unsorted.");
  line.add_note("Exit status: 0, 1 if something could not be read, 2 for bad arguments.");
  line.add("paths", options.paths, "folders and files");
  line.add("--fibers", options.fibers, 1, 100'000, "the most files that are hashed at once");
  line.add("--workers", options.workers, 0, 1024, "worker threads; 0: one per processor");
  line.add("--json", options.json, "a file for counts and time");
  return line.run(argc, argv, [&] { return hash_trees(options); });
}
