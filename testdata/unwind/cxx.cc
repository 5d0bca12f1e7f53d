// SPDX-License-Identifier: Apache-2.0
// Exceptions, and threads of the standard library: cxx [SECONDS]
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

extern "C" {
#include "run.h"

// truth.h is C.
struct abi_v1_set;
extern __thread struct abi_v1_set *custom_labels_current_set;
extern __thread const char *truth_root;
struct truth;
void truth_describe(struct truth *truth, const char *name, const char *format, ...);
}

#define FRAME __attribute__((noipa))

namespace
{

// As large as struct truth, which begins with the set.
struct alignas(16) description {
	char bytes[2048];
};

void publish(description *d)
{
	std::atomic_signal_fence(std::memory_order_seq_cst);
	custom_labels_current_set = reinterpret_cast<abi_v1_set *>(d);
	std::atomic_signal_fence(std::memory_order_seq_cst);
}

truth *of(description &d)
{
	return reinterpret_cast<truth *>(&d);
}

inline void work(unsigned long &value, unsigned long count)
{
	for (; count > 0; count--)
		__asm__ volatile("" : "+r"(value), "+r"(count));
}

} // namespace

namespace w
{

// A scope's end is a place where frames are unwound to.
struct guard {
	unsigned long value;
	FRAME ~guard()
	{
		work(value, 100);
	}
};

FRAME void w_throw(unsigned long value)
{
	work(value, 1000);
	throw std::runtime_error(std::to_string(value));
}

template <typename T> FRAME T w_down(T depth, const std::string &text)
{
	guard g{ static_cast<unsigned long>(depth) };

	if (depth == 0) {
		w_throw(text.size());
		return depth;
	}
	T below = w_down(depth - 1, text);
	return below + static_cast<T>(g.value);
}

FRAME unsigned long w_catch(int depth)
{
	try {
		return static_cast<unsigned long>(w_down(depth, "a text"));
	} catch (const std::exception &e) {
		return static_cast<unsigned long>(e.what()[0]);
	}
}

struct shape {
	virtual ~shape() = default;
	virtual unsigned long w_area(unsigned long n) const = 0;
};

struct square : shape {
	FRAME unsigned long w_area(unsigned long n) const override
	{
		work(n, 300000);
		return n;
	}
};

FRAME unsigned long w_virtual(const shape &s, unsigned long depth)
{
	if (depth == 0)
		return s.w_area(depth) + 1;
	unsigned long below = w_virtual(s, depth - 1);
	__asm__ volatile("" : "+r"(below)); // so that it is no loop
	return below + 1;
}

static std::string repeat(const char *word, int n)
{
	std::string text;

	for (int i = 0; i < n; i++)
		text += word;
	return text;
}

FRAME unsigned long w_exceptions(description &d, int depth)
{
	unsigned long value = 0;

	truth_describe(of(d), "exceptions", "w_turns;w_exceptions;+w_catch;%s+w_throw;?12",
		       repeat("+w_down;", depth + 1).c_str());
	for (int i = 0; i < 200; i++) {
		publish(&d);
		value += w_catch(depth);
		publish(nullptr);
	}
	return value;
}

FRAME unsigned long w_virtuals(description &d)
{
	static const square s;

	truth_describe(of(d), "virtual", "w_turns;w_virtuals;%s+w_area", repeat("+w_virtual;", 30).c_str());
	publish(&d);
	unsigned long value = w_virtual(s, 29);
	publish(nullptr);
	return value;
}

FRAME unsigned long w_turns()
{
	unsigned long value = 0;
	auto d = std::make_unique<description>();

	while (!run_over())
		value += w_exceptions(*d, 25) + w_virtuals(*d);
	return value;
}

FRAME void w_thread(std::atomic<unsigned long> &sum)
{
	truth_root = "w_thread";
	run_sleep_once();
	sum += w_turns();
}

} // namespace w

int main(int argc, char **argv)
{
	std::atomic<unsigned long> sum{ 0 };

	run_begin(argc > 1 ? std::atof(argv[1]) : 10);
	truth_root = "main";
	run_sleep_once();
	std::thread other([&sum] { w::w_thread(sum); });
	run_ready();
	sum += w::w_turns();
	other.join();
	return 0;
}
