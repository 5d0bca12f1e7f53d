/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels of threads for profilers: custom labels ABI v1. For C and C++, on Linux, x86-64 and
 * aarch64; one header:
 *
 *	#define LABELS_IMPLEMENTATION	in one file of the program
 *	#include "labels.h"
 *
 * An executable is linked with
 *	-Wl,--export-dynamic-symbol=custom_labels_abi_version,--export-dynamic-symbol=custom_labels_current_set
 * so that its symbols can be found. A library is named libcustomlabels*.so, is there at the
 * start, and is compiled with -ftls-model=global-dynamic, on x86-64 with -mtls-dialect=gnu2, too.
 */
#ifndef LABELS_H
#define LABELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct labels_string {
	size_t len;
	const unsigned char *buf; /* not NULL, not even of an empty value */
};

struct labels_label {
	struct labels_string key, value;
};

struct labels_set {
	struct labels_label *storage;
	size_t count;
	size_t capacity; /* readers ignore it */
};

/*
 * Publishes a set for the calling thread, NULL for none, and returns the one before, which is to
 * be published again when the work is done. A set does not change and is not freed while it is
 * published.
 */
struct labels_set *labels_swap(struct labels_set *set);

/* The set of the calling thread, or NULL. */
struct labels_set *labels_current(void);

#ifdef LABELS_IMPLEMENTATION

/* Found by their names, whatever -fvisibility says and though nothing in the program refers to them. */
#define LABELS_VISIBLE __attribute__((visibility("default")))

extern LABELS_VISIBLE const uint32_t custom_labels_abi_version;
extern LABELS_VISIBLE __thread struct labels_set *custom_labels_current_set;
__attribute__((used)) const uint32_t custom_labels_abi_version = 1;
__attribute__((used)) __thread struct labels_set *custom_labels_current_set;

struct labels_set *labels_swap(struct labels_set *set)
{
	struct labels_set *before = custom_labels_current_set;

	/* A thread is read between two of its instructions: the compiler has to keep the order. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&custom_labels_current_set, set, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return before;
}

struct labels_set *labels_current(void)
{
	return custom_labels_current_set;
}

#endif

#ifdef __cplusplus
}

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace labels
{

/*
 * Scope publishes labels until it ends, and those around it that have other keys. It has copies of
 * the texts, and ends on the thread on which it began.
 */
class Scope
{
      public:
	Scope(std::initializer_list<std::pair<std::string_view, std::string_view>> pairs)
	    : set_{ storage_, 0, kMost }, before_(labels_current())
	{
		size_t bytes = 0;

		for (const auto &pair : pairs)
			bytes += pair.first.size() + pair.second.size();
		texts_.reserve(bytes); /* what is in it stays where it is */
		for (const auto &pair : pairs)
			add({ copy(pair.first), copy(pair.second) });
		/* Of two labels with one key the first counts. */
		for (size_t i = 0; before_ && i < before_->count; i++)
			add(before_->storage[i]);
		labels_swap(&set_);
	}
	~Scope()
	{
		labels_swap(before_);
	}
	Scope(const Scope &) = delete;
	Scope &operator=(const Scope &) = delete;

      private:
	static constexpr size_t kMost = 32;

	labels_string copy(std::string_view s)
	{
		const size_t at = texts_.size();

		texts_.append(s);
		return { s.size(), reinterpret_cast<const unsigned char *>(texts_.data() + at) };
	}
	void add(labels_label label)
	{
		if (set_.count < kMost)
			storage_[set_.count++] = label;
	}

	std::string texts_;
	labels_label storage_[kMost];
	labels_set set_;
	labels_set *before_;
};

} // namespace labels
#endif

#endif
