// The state of a disk, and the effect of a power cut on it.
#include "libs/sim/disks.hpp"

#include <algorithm>
#include <utility>

namespace weft::sim {

namespace {

void move_directory(const std::string& former, const std::string& next, Names& names) {
  names.erase(next);  // It is an empty directory.
  Names moved;
  for (auto at = names.lower_bound(former); at != names.end() && at->first.starts_with(former);) {
    const std::string rest = at->first.substr(former.size());
    if (rest.empty() || rest.starts_with('/')) {
      moved[next + rest] = std::move(at->second);
      at = names.erase(at);
    } else {
      ++at;
    }
  }
  names.merge(moved);
}

}  // namespace

void Disk::apply(const Change& change, Names& names) {
  switch (change.kind) {
    case Change::Kind::link:
      names[change.path] = change.inode;
      return;
    case Change::Kind::unlink:
      names.erase(change.path);
      return;
    case Change::Kind::rename:
      names.erase(change.former);
      names[change.path] = change.inode;
      return;
    case Change::Kind::move_directory:
      move_directory(change.former, change.path, names);
      return;
    case Change::Kind::truncate:
      return;
  }
}

void Disk::make(Change change) {
  apply(change, now);
  if (change.kind == Change::Kind::truncate) {
    change.inode->bytes.clear();
    change.inode->dirty.clear();
  }
  journal.push_back(std::move(change));
}

void Disk::commit(std::size_t count) {
  for (; count > 0; --count) {
    apply(journal.front(), durable);
    if (journal.front().kind == Change::Kind::truncate) journal.front().inode->durable.clear();
    journal.pop_front();
  }
}

void Disk::sync(Inode& inode) {
  const auto last = std::find_if(journal.rbegin(), journal.rend(),
                                 [&](const Change& each) { return each.inode.get() == &inode; });
  commit(static_cast<std::size_t>(journal.rend() - last));
  inode.durable = inode.bytes;
  inode.dirty.clear();
}

bool Disk::lose_pages(Inode& inode) {
  enum class Fate : std::uint8_t { all_lost, none_lost, some_lost };
  const auto fate = static_cast<Fate>(chance.below(3));
  std::string left = inode.durable;
  for (const std::size_t page : inode.dirty) {
    const bool is_kept =
        fate == Fate::none_lost || (fate == Fate::some_lost && chance.below(2) == 0);
    if (!is_kept) continue;
    const std::size_t begin = page * kPage;
    const std::size_t end = std::min(begin + kPage, inode.bytes.size());
    if (left.size() < end) left.resize(end);
    left.replace(begin, end - begin, inode.bytes, begin, end - begin);
  }
  const bool has_lost = left != inode.bytes;
  inode.dirty.clear();
  inode.durable = left;
  inode.bytes = std::move(left);
  return has_lost;
}

std::size_t Disk::lose_power() {
  commit(chance.below(journal.size() + 1));
  std::size_t lost = journal.size();
  // If a truncation is lost, pages that were written after it have no place in the file on the
  // disk.
  for (const Change& change : journal) {
    if (change.kind == Change::Kind::truncate) change.inode->dirty.clear();
  }
  journal.clear();
  now = durable;
  for (auto& [path, inode] : now) {
    if (lose_pages(*inode)) ++lost;
  }
  return lost;
}

std::uint64_t Disk::size() const {
  std::uint64_t sum = 0;
  for (const auto& [path, inode] : now) sum += inode->bytes.size();
  return sum;
}

}  // namespace weft::sim
