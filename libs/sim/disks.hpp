// The files of all hosts, and the effect of a power cut on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "io/file_kernel.hpp"
#include "libs/sim/chance.hpp"

namespace weft::sim {

class RunState;

// The size in bytes of a page, which a power cut keeps or loses as a whole.
inline constexpr std::size_t kPage = 4096;

// Holds a regular file, as processes see it and as the disk has it, or a directory that was made.
struct Inode {
  std::uint64_t number = 0;
  std::string bytes;
  std::string durable;
  std::set<std::size_t> dirty;  // The pages that were written since the last sync.
  mode_t mode = 0644;
  std::int64_t modified = 0;  // Nanoseconds since 1970.
  bool is_directory = false;
};

using Names = std::map<std::string, std::shared_ptr<Inode>>;

// A change of names or of a size. The journal writes changes to the disk in their order.
struct Change {
  enum class Kind : std::uint8_t { link, unlink, rename, move_directory, truncate };
  Kind kind;
  std::shared_ptr<Inode> inode;  // Null if the kind is move_directory.
  std::string path = {};         // The new name, if the kind is rename or move_directory.
  std::string former = {};
};

// The file system of one host. A directory exists as soon as it has an entry, and need not be made;
// a directory that was made also exists without an entry.
// Invariants
//   I1  `durable` with all changes of `journal` applied has the names of `now`. Not asserted,
//       because an assertion would have to replay the journal.
//   I2  A page that is not dirty is the same in Inode::bytes and Inode::durable, unless a change of
//       the size waits in the journal. Not asserted, because an assertion would have to compare all
//       pages.
struct Disk {
  Disk(std::uint64_t seed, std::uint64_t stream) : chance(seed, stream) {}

  // Makes the change visible now; commit() writes it to the disk later.
  void make(Change change);
  // Writes the first `count` changes of the journal to the disk.
  void commit(std::size_t count);
  // Writes the file to the disk, and all changes up to the last change of that file.
  void sync(Inode& inode);
  // Loses a random part of the unsynced data: the last changes of the journal, and some dirty pages
  // of each file. Returns how many changes were lost plus how many files lost pages.
  std::size_t lose_power();
  [[nodiscard]] std::uint64_t size() const;

  Chance chance;
  Names now;
  Names durable;
  std::deque<Change> journal;
  std::uint64_t most_bytes = ~std::uint64_t{0};
  std::uint64_t next_number = 1;

 private:
  static void apply(const Change& change, Names& names);
  // Returns whether the file has lost anything.
  bool lose_pages(Inode& inode);
};

// The file systems of a world, whose worker makes all calls. Descriptors are above the descriptors
// of sockets, and never used twice.
class Disks final : public io::FileKernel {
 public:
  explicit Disks(RunState& run) noexcept : run_(run) {}

  [[nodiscard]] static bool owns(int descriptor) noexcept { return descriptor >= kFirstDescriptor; }
  void close(int descriptor) noexcept { open_.erase(descriptor); }

  // --- For the world ---

  void put(std::uint32_t host, const std::string& path, std::string bytes);
  [[nodiscard]] std::optional<std::string> contents(std::uint32_t host, const std::string& path);
  void erase(std::uint32_t host) { disks_.erase(host); }
  void limit(std::uint32_t host, std::uint64_t most) { disk(host).most_bytes = most; }
  void end_host(std::uint32_t host, bool has_power);
  // Returns the number of the host's open descriptors.
  [[nodiscard]] std::size_t open_files(std::uint32_t host) const;

  // --- FileKernel ---

  io::CallResult open(const std::string& path, int flags, unsigned mode) noexcept override;
  io::CallResult duplicate(int file) noexcept override;
  io::CallResult read(int file, std::span<std::byte> buffer,
                      std::uint64_t offset) noexcept override;
  io::CallResult write(int file, std::span<const std::byte> data,
                       std::uint64_t offset) noexcept override;
  io::CallResult sync(int file) noexcept override;
  io::CallResult status(int file, struct stat& found) noexcept override;
  io::CallResult status_of(const std::string& path, struct stat& found) noexcept override;
  io::CallResult set_mode(int file, mode_t mode) noexcept override;
  io::CallResult rename(const std::string& from, const std::string& to) noexcept override;
  io::CallResult make_directory(const std::string& path, mode_t mode) noexcept override;
  io::CallResult remove(const std::string& path) noexcept override;
  void clean_up(const std::string& path) noexcept override { (void)remove(path); }
  io::CallResult list(const std::string& path,
                      std::vector<io::DirectoryEntry>& entries) noexcept override;

 private:
  static constexpr int kFirstDescriptor = 1 << 29;
  struct OpenFile {
    std::uint32_t host;
    int flags;
    std::shared_ptr<Inode> inode;
  };

  [[nodiscard]] Disk& disk(std::uint32_t host);
  [[nodiscard]] Disk& own_disk();  // The disk of the calling fiber's host.
  // Returns null if there is no such open file.
  [[nodiscard]] OpenFile* find(int descriptor) noexcept;
  [[nodiscard]] static io::CallResult rename_directory(Disk& there, const std::string& former,
                                                       const std::string& next);
  [[nodiscard]] std::shared_ptr<Inode> make_file(Disk& disk, const std::string& path, mode_t mode);

  RunState& run_;
  std::map<std::uint32_t, Disk> disks_;
  std::map<int, OpenFile> open_;
  int next_descriptor_ = kFirstDescriptor;
};

}  // namespace weft::sim
