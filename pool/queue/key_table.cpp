#include "pool/queue/key_table.hpp"

#include <new>
#include <utility>

namespace weft::pool {
namespace {

// Spreads keys that differ in few bits, as small numbers do, over the upper half.
constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;

}  // namespace

KeyTable::Terms*& KeyTable::bucket_of(const TaskKey& key) const noexcept {
  const std::uint64_t spread = (key.hash() * kSpread) >> 32;
  return buckets_.first[static_cast<std::size_t>(spread) & (buckets_.count - 1)];
}

KeyTable::Terms* KeyTable::find(const TaskKey& key) const noexcept {
  if (size_ == 0) return nullptr;
  Terms* terms = bucket_of(key);
  while (terms != nullptr && terms->key.hash() != key.hash()) terms = terms->next_in_bucket;
  return terms;
}

void KeyTable::insert(Terms& terms) noexcept {
  Terms*& bucket = bucket_of(terms.key);
  terms.next_in_bucket = std::exchange(bucket, &terms);
  ++size_;
}

KeyTable::Terms*& KeyTable::link_to(const Terms& terms) noexcept {
  Terms** link = &bucket_of(terms.key);
  while (*link != &terms) link = &(*link)->next_in_bucket;
  return *link;
}

void KeyTable::erase(Terms& terms) noexcept {
  link_to(terms) = terms.next_in_bucket;
  --size_;
}

void KeyTable::replace(Terms& terms, Terms& heir) noexcept {
  link_to(terms) = &heir;
  heir.next_in_bucket = terms.next_in_bucket;
}

KeyTable::Buckets KeyTable::make_buckets(std::size_t count) noexcept {
  std::unique_ptr<Terms*[]> first(new (std::nothrow) Terms*[count]());
  if (first == nullptr) return {};
  return {std::move(first), count};
}

KeyTable::Buckets KeyTable::adopt(Buckets buckets) noexcept {
  if (buckets.count <= buckets_.count) return buckets;
  std::swap(buckets_, buckets);
  for (std::size_t i = 0; i < buckets.count; ++i) {
    for (Terms* terms = buckets.first[i]; terms != nullptr;) {
      Terms*& bucket = bucket_of(terms->key);
      Terms* const next = std::exchange(terms->next_in_bucket, bucket);
      bucket = std::exchange(terms, next);
    }
  }
  return buckets;
}

}  // namespace weft::pool
