#include "pool/queue/key_table.hpp"

#include <new>
#include <utility>

namespace weft::pool {
namespace {

// A multiplication by this number spreads keys that differ in few bits, such as small numbers, over
// the upper half of the product.
constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;

}  // namespace

KeyTable::Attributes*& KeyTable::bucket_of(const TaskKey& key) const noexcept {
  const std::uint64_t spread = (key.hash() * kSpread) >> 32;
  return buckets_.first[static_cast<std::size_t>(spread) & (buckets_.count - 1)];
}

KeyTable::Attributes* KeyTable::find(const TaskKey& key) const noexcept {
  if (size_ == 0) return nullptr;
  Attributes* attributes = bucket_of(key);
  while (attributes != nullptr && attributes->key.hash() != key.hash())
    attributes = attributes->next_in_bucket;
  return attributes;
}

void KeyTable::insert(Attributes& attributes) noexcept {
  Attributes*& bucket = bucket_of(attributes.key);
  attributes.next_in_bucket = std::exchange(bucket, &attributes);
  ++size_;
}

KeyTable::Attributes*& KeyTable::link_to(const Attributes& attributes) noexcept {
  Attributes** link = &bucket_of(attributes.key);
  while (*link != &attributes) link = &(*link)->next_in_bucket;
  return *link;
}

void KeyTable::erase(Attributes& attributes) noexcept {
  link_to(attributes) = attributes.next_in_bucket;
  --size_;
}

void KeyTable::replace(Attributes& attributes, Attributes& heir) noexcept {
  link_to(attributes) = &heir;
  heir.next_in_bucket = attributes.next_in_bucket;
}

KeyTable::Buckets KeyTable::make_buckets(std::size_t count) noexcept {
  std::unique_ptr<Attributes*[]> first(new (std::nothrow) Attributes*[count]());
  if (first == nullptr) return {};
  return {std::move(first), count};
}

KeyTable::Buckets KeyTable::adopt(Buckets buckets) noexcept {
  if (buckets.count <= buckets_.count) return buckets;
  std::swap(buckets_, buckets);
  for (std::size_t i = 0; i < buckets.count; ++i) {
    for (Attributes* attributes = buckets.first[i]; attributes != nullptr;) {
      Attributes*& bucket = bucket_of(attributes->key);
      Attributes* const next = std::exchange(attributes->next_in_bucket, bucket);
      bucket = std::exchange(attributes, next);
    }
  }
  return buckets;
}

}  // namespace weft::pool
