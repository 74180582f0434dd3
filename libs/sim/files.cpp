// The system calls about files.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>
#include <weft/this_fiber.hpp>

#include "libs/sim/disks.hpp"
#include "libs/sim/run_state.hpp"
#include "libs/sim/shelter.hpp"

namespace weft::sim {

using io::CallResult;

namespace {

// The number of the first stream of a seed for disks. The streams of the network have smaller
// numbers.
constexpr std::uint64_t kDiskStream = std::uint64_t{1} << 62;
// The time that a disk takes for a sync, in nanoseconds.
constexpr std::int64_t kLeastSync = 50'000;
constexpr std::int64_t kMostSync = 5'000'000;
// The size of the largest file, in bytes.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32;

// Returns the absolute path without "." and "..", and without a slash at the end.
std::string whole(const std::string& path) {
  std::string name = (std::filesystem::path("/") / path).lexically_normal().string();
  if (name.size() > 1 && name.ends_with('/')) name.pop_back();
  return name;
}

bool has_entries(const Names& names, const std::string& path) {
  const std::string before = path == "/" ? path : path + '/';
  const auto next = names.lower_bound(before);
  return next != names.end() && next->first.starts_with(before);
}

bool is_file(const Names& names, const std::string& path) {
  const auto found = names.find(path);
  return found != names.end() && !found->second->is_directory;
}

bool is_directory(const Names& names, const std::string& path) {
  const auto found = names.find(path);
  if (path == "/" || has_entries(names, path)) return true;
  return found != names.end() && found->second->is_directory;
}

// Returns whether a file is at a place where the path needs a directory.
bool leads_through_file(const Names& names, const std::string& path) {
  for (std::size_t end = path.find('/', 1); end != std::string::npos;
       end = path.find('/', end + 1)) {
    if (is_file(names, path.substr(0, end))) return true;
  }
  return false;
}

void describe(const Inode& inode, struct stat& found) {
  found = {};
  found.st_ino = inode.number;
  found.st_mode = (inode.is_directory ? S_IFDIR : S_IFREG) | inode.mode;
  found.st_nlink = 1;
  found.st_size = static_cast<off_t>(inode.bytes.size());
  found.st_mtim.tv_sec = inode.modified / 1'000'000'000;
  found.st_mtim.tv_nsec = inode.modified % 1'000'000'000;
}

}  // namespace

// --- Calls of the world ---

Disk& Disks::disk(std::uint32_t host) {
  return disks_.try_emplace(host, run_.seed(), kDiskStream + host).first->second;
}

Disk& Disks::own_disk() { return disk(run_.current_host()); }

std::size_t Disks::open_files(std::uint32_t host) const {
  const auto is_its = [host](const auto& each) { return each.second.host == host; };
  return static_cast<std::size_t>(std::ranges::count_if(open_, is_its));
}

Disks::OpenFile* Disks::find(int descriptor) noexcept {
  const auto found = open_.find(descriptor);
  return found == open_.end() ? nullptr : &found->second;
}

std::shared_ptr<Inode> Disks::make_file(Disk& disk, const std::string& path, mode_t mode) {
  auto inode = std::make_shared<Inode>();
  inode->number = disk.next_number++;
  inode->mode = mode;
  inode->modified = run_.wall_clock();
  disk.make({Change::Kind::link, inode, path});
  return inode;
}

void Disks::put(std::uint32_t host, const std::string& path, std::string bytes) {
  Disk& there = disk(host);
  const auto inode = make_file(there, whole(path), 0644);
  inode->bytes = std::move(bytes);
  there.sync(*inode);
}

std::optional<std::string> Disks::contents(std::uint32_t host, const std::string& path) {
  const Names& names = disk(host).now;
  const auto found = names.find(whole(path));
  if (found == names.end() || found->second->is_directory) return std::nullopt;
  return found->second->bytes;
}

void Disks::end_host(std::uint32_t host, bool has_power) {
  std::erase_if(open_, [host](const auto& each) { return each.second.host == host; });
  const auto found = disks_.find(host);
  if (has_power || found == disks_.end()) return;
  if (const std::size_t lost = found->second.lose_power(); lost != 0) {
    run_.note(host, "loses " + std::to_string(lost) + " changes of files");
  }
}

// --- System calls ---

CallResult Disks::open(const std::string& path, int flags, unsigned mode) noexcept {
  Disk& there = own_disk();
  const std::string name = whole(path);
  if (is_directory(there.now, name)) return {0, EISDIR};
  if (leads_through_file(there.now, name)) return {0, ENOTDIR};
  const auto found = there.now.find(name);
  std::shared_ptr<Inode> inode;
  if (found == there.now.end()) {
    if ((flags & O_CREAT) == 0) return {0, ENOENT};
    constexpr unsigned kMask = 022;  // The umask with which programs begin.
    inode = make_file(there, name, mode & ~kMask);
  } else {
    if ((flags & O_EXCL) != 0) return {0, EEXIST};
    inode = found->second;
    if ((flags & O_TRUNC) != 0) there.make({Change::Kind::truncate, inode});
  }
  const int descriptor = next_descriptor_++;
  open_[descriptor] = {run_.current_host(), flags, std::move(inode)};
  return {descriptor, 0};
}

CallResult Disks::duplicate(int file) noexcept {
  const OpenFile* opened = find(file);
  if (opened == nullptr) return {0, EBADF};
  const int descriptor = next_descriptor_++;
  open_[descriptor] = OpenFile(*opened);
  return {descriptor, 0};
}

CallResult Disks::read(int file, std::span<std::byte> buffer, std::uint64_t offset) noexcept {
  const OpenFile* opened = find(file);
  if (opened == nullptr || (opened->flags & O_ACCMODE) == O_WRONLY) return {0, EBADF};
  const std::string& bytes = opened->inode->bytes;
  if (offset >= bytes.size()) return {};
  const std::size_t count = std::min(buffer.size(), bytes.size() - offset);
  std::memcpy(buffer.data(), bytes.data() + offset, count);
  return {static_cast<std::int64_t>(count), 0};
}

CallResult Disks::write(int file, std::span<const std::byte> data, std::uint64_t offset) noexcept {
  const OpenFile* opened = find(file);
  if (opened == nullptr || (opened->flags & O_ACCMODE) == O_RDONLY) return {0, EBADF};
  if (data.empty()) return {};
  if ((opened->flags & O_APPEND) != 0) offset = opened->inode->bytes.size();
  if (offset > kMostBytes || data.size() > kMostBytes - offset) return {0, EFBIG};
  Inode& inode = *opened->inode;
  const std::size_t end = offset + data.size();
  if (end > inode.bytes.size()) {
    const Disk& there = disk(opened->host);
    const std::uint64_t more = end - inode.bytes.size();
    if (there.most_bytes != ~std::uint64_t{0} && there.size() + more > there.most_bytes) {
      return {0, ENOSPC};
    }
    inode.bytes.resize(end);
  }
  std::memcpy(inode.bytes.data() + offset, data.data(), data.size());
  for (std::size_t page = offset / kPage; page <= (end - 1) / kPage; ++page) {
    inode.dirty.insert(page);
  }
  inode.modified = run_.wall_clock();
  return {static_cast<std::int64_t>(data.size()), 0};
}

// Bytes that are written during the sync also reach the disk, which the system permits.
CallResult Disks::sync(int file) noexcept {
  const OpenFile* opened = find(file);
  if (opened == nullptr) return {0, EBADF};
  const OpenFile own = *opened;
  this_fiber::sleep_for(
      std::chrono::nanoseconds(disk(own.host).chance.between(kLeastSync, kMostSync)));
  const Shelter shelter(&run_);
  disk(own.host).sync(*own.inode);
  return {};
}

CallResult Disks::status(int file, struct stat& found) noexcept {
  const OpenFile* opened = find(file);
  if (opened == nullptr) return {0, EBADF};
  describe(*opened->inode, found);
  return {};
}

CallResult Disks::status_of(const std::string& path, struct stat& found) noexcept {
  const Names& names = own_disk().now;
  const std::string name = whole(path);
  if (leads_through_file(names, name)) return {0, ENOTDIR};
  if (const auto at = names.find(name); at != names.end()) {
    describe(*at->second, found);
    return {};
  }
  if (!is_directory(names, name)) return {0, ENOENT};
  found = {};
  found.st_mode = S_IFDIR | 0755;
  return {};
}

CallResult Disks::set_mode(int file, mode_t mode) noexcept {
  OpenFile* opened = find(file);
  if (opened == nullptr) return {0, EBADF};
  opened->inode->mode = mode & 07777;
  return {};
}

CallResult Disks::rename(const std::string& from, const std::string& to) noexcept {
  Disk& there = own_disk();
  const std::string former = whole(from);
  const std::string next = whole(to);
  if (leads_through_file(there.now, former) || leads_through_file(there.now, next)) {
    return {0, ENOTDIR};
  }
  if (is_directory(there.now, former)) return rename_directory(there, former, next);
  const auto found = there.now.find(former);
  if (found == there.now.end()) return {0, ENOENT};
  if (is_directory(there.now, next)) return {0, EISDIR};
  if (former != next) there.make({Change::Kind::rename, found->second, next, former});
  return {};
}

CallResult Disks::rename_directory(Disk& there, const std::string& former,
                                   const std::string& next) {
  if (former == "/" || next == "/") return {0, EBUSY};
  if (next.starts_with(former + '/')) return {0, EINVAL};
  if (is_file(there.now, next)) return {0, ENOTDIR};
  if (former == next) return {};
  if (has_entries(there.now, next)) return {0, ENOTEMPTY};
  there.make({Change::Kind::move_directory, nullptr, next, former});
  return {};
}

CallResult Disks::make_directory(const std::string& path, mode_t mode) noexcept {
  Disk& there = own_disk();
  const std::string name = whole(path);
  if (leads_through_file(there.now, name)) return {0, ENOTDIR};
  if (is_file(there.now, name) || is_directory(there.now, name)) return {0, EEXIST};
  constexpr unsigned kMask = 022;  // The umask with which programs begin.
  make_file(there, name, mode & ~kMask)->is_directory = true;
  return {};
}

CallResult Disks::remove(const std::string& path) noexcept {
  Disk& there = own_disk();
  const std::string name = whole(path);
  if (name == "/") return {0, EBUSY};
  if (leads_through_file(there.now, name)) return {0, ENOTDIR};
  if (has_entries(there.now, name)) return {0, ENOTEMPTY};
  const auto found = there.now.find(name);
  if (found == there.now.end()) return {0, ENOENT};
  there.make({Change::Kind::unlink, found->second, name});
  return {};
}

CallResult Disks::list(const std::string& path, std::vector<io::DirectoryEntry>& entries) noexcept {
  const Names& names = own_disk().now;
  const std::string name = whole(path);
  if (is_file(names, name) || leads_through_file(names, name)) return {0, ENOTDIR};
  if (!is_directory(names, name)) return {0, ENOENT};
  const std::string before = name == "/" ? name : name + '/';
  std::map<std::string, bool>
      found;  // A directory that was made may also be found through its entries.
  for (auto at = names.lower_bound(before); at != names.end() && at->first.starts_with(before);
       ++at) {
    const std::size_t end = at->first.find('/', before.size());
    found[at->first.substr(before.size(), end - before.size())] |=
        end != std::string::npos || at->second->is_directory;
  }
  for (const auto& [entry, holds_entries] : found) entries.push_back({entry, holds_entries});
  return {};
}

}  // namespace weft::sim
